"""Finds what takes a part of the last command back: "not the ceiling one", "only the floor lamp"."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from sash.home.index import HomeIndex
from sash.intents.acting.act import take_back
from sash.intents.home_words import HomeWords
from sash.intents.sentence.clause import NO_AMOUNT, Clause, Word
from sash.intents.topic import Topic

# What scenes, scripts and automations contain is not meant by their names.
_NO_GROUPS = frozenset({"scene", "script", "automation"})


def take_part_back(
    clause: Clause, topic: Topic, home: HomeWords, changed_ids: Collection[str] | None = None
) -> Clause | None:
    """Return what undoes the last command for some of its things: "not the ceiling one".

    None if the clause names none of them, or all of them. Things that the command did not change stay as they
    are: with `changed_ids`, those are all others.
    """
    last, ids = _read_last(topic), _list_named(clause, topic, home)
    was_many = last is not None and (last.is_all or any(word.is_plural for word in last.words))
    if last is None or not 0 < len(ids) < len(topic.entity_ids) + was_many:
        return None
    if topic.is_dropped:
        return replace(last, text=clause.text, excluded=(*last.excluded, *clause.words))
    return _reverse(clause, last, _keep_changed(ids, changed_ids, home), home.index)


def keep_only(
    clause: Clause, topic: Topic, home: HomeWords, changed_ids: Collection[str] | None = None
) -> Clause | None:
    """Return what undoes the last command for all things but those that a clause names: "only the lamp"."""
    last, named = _read_last(topic), _list_named(clause, topic, home)
    others = [key for key in _list_members(topic.entity_ids, home) if key not in named]
    if "only" not in clause.refer or not clause.is_fragment or last is None or not (named and others):
        return None
    if topic.is_dropped:
        return _repeat(clause, last, named, home.index)
    return _reverse(clause, last, _keep_changed(others, changed_ids, home), home.index)


def undo_for_other(
    clause: Clause, topic: Topic | None, changed_ids: Iterable[str], index: HomeIndex
) -> Clause | None:
    """Return what takes the last command back, if a clause has something else in its place.

    `changed_ids` are the entities that the command changed. Others stay as they are.
    """
    last = _read_last(topic)
    if "instead" not in clause.refer or not clause.is_command or last is None:
        return None
    ids = [key for key in changed_ids if key in index.entities]
    if not ids or clause.do != last.do or any(clause.words == (word,) for word in last.words):
        return None
    undone = _reverse(clause, replace(last, excluded=(), amount=NO_AMOUNT), ids, index)
    return None if undone is None else replace(undone, takes_back=True)


def _keep_changed(ids: Sequence[str], changed_ids: Collection[str] | None, home: HomeWords) -> list[str]:
    changed = None if changed_ids is None else {*changed_ids, *_list_members(changed_ids, home)}
    return [key for key in ids if changed is None or key in changed]


def _read_last(topic: Topic | None) -> Clause | None:
    """Return the last command of a topic that can be taken back."""
    is_command = topic is not None and topic.kind == "command" and bool(topic.clauses)
    return topic.clauses[-1] if topic is not None and is_command and take_back(topic.clauses[-1].do) else None


def _list_named(clause: Clause, topic: Topic, home: HomeWords) -> list[str]:
    named = [home.find(word.keys) | frozenset(word.entity_ids) for word in clause.words]
    ids = dict.fromkeys((*topic.entity_ids, *_list_members(topic.entity_ids, home)))
    return [key for key in ids if named and all(key in found for found in named)]


def _list_members(entity_ids: Iterable[str], home: HomeWords) -> list[str]:
    """Return entities, with the members of groups in place of the groups."""
    found: list[str] = []
    for key in entity_ids:
        members = home.index.list_contents(key)[0] if key.partition(".")[0] not in _NO_GROUPS else ()
        found += sorted(members) or [key]
    return found


def _repeat(clause: Clause, last: Clause, ids: Sequence[str], index: HomeIndex) -> Clause | None:
    """Return a command that was not carried out, for some of its entities."""
    known = tuple(key for key in ids if key in index.entities)
    if not known:
        return None
    word = Word(index.entities[known[0]].name, frozenset(), known)
    return replace(last, text=clause.text, words=(word,), is_all=len(known) > 1, refer=frozenset())


def _reverse(clause: Clause, last: Clause, ids: Sequence[str], index: HomeIndex) -> Clause | None:
    """Return the opposite of a command for some entities, whatever words it had."""
    known = [key for key in ids if key in index.entities]
    if not known:
        return None
    word = Word(index.entities[known[0]].name, frozenset(), tuple(known))
    do = take_back(last.do)
    return replace(last, text=clause.text, do=do, words=(word,), is_all=len(known) > 1, refer=frozenset())
