"""Fills in what the clauses of a sentence leave out, from each other and from earlier turns."""

from collections.abc import Sequence
from dataclasses import replace

from sash.intents.acting.act import WARMTH
from sash.intents.acting.options import find_option
from sash.intents.acting.plan import choose_from
from sash.intents.approval_words import parse_approval
from sash.intents.corrections import undo_for_other
from sash.intents.follow_ups import FollowUps, compares_places
from sash.intents.kinds import list_kinds
from sash.intents.memory_questions import find_liked_number
from sash.intents.ordinals import choose_by_place
from sash.intents.question_detection import is_polite_request, is_question
from sash.intents.sentence.clause import Amount, Clause, Word
from sash.intents.sentence.clause_reader import COMPLAINTS
from sash.intents.sentence.moments import find_moment
from sash.intents.sentence.time_words import NO_TIME
from sash.intents.situation import Situation
from sash.intents.topic import Topic
from sash.intents.words.tokens import split_words
from sash.ports.home import Entity
from sash.values.continuations import Continuation

# Things that a person asks for by their names, and what is to be done with them.
_WISHES = {
    "kind.light": "on", "kind.fan": "on", "kind.tv": "on", "kind.radio": "on", "kind.media": "play",
    "kind.video": "play",
}  # fmt: skip
# The reference of a clause after a bare "no": it is meant instead of the clause before it.
_REPLACES = "replaces"
# The time before another one: "and the day before?".
_EARLIER = {
    "today": "yesterday",
    "yesterday": "day_before_yesterday",
    "this_week": "last_week",
    "this_month": "last_month",
    "this_year": "last_year",
}
# Words such as "locked" name a state after a question, and no command.
_STATES = frozenset({"on", "off", "open", "close", "lock", "unlock"})
_PRONOUNS = frozenset({"it", "them"})
# What is said to be too dark or too cold is the reason for a command about these kinds, or for these acts.
_REASONS = {
    **dict.fromkeys(("brighter", "darker"), frozenset({"kind.light", "brighter", "darker"})),
    **dict.fromkeys(("warmer", "colder"), frozenset({"kind.climate", "kind.fan", "heat", "cool", *WARMTH})),
}


class ClauseCompletion:
    """Completes the clauses of one sentence, with the topics of earlier turns, newest first."""

    def __init__(self, situation: Situation, topics: Sequence[Topic], turns: Sequence[Continuation]) -> None:
        self._situation = situation
        self._topics = topics
        self._turns = turns
        response = turns[-1].response if turns else None
        is_command = response is not None and (response.topic or {}).get("kind") == "command"
        changed_ids = self._list_changed() if is_command else None
        self._follow_ups = FollowUps(topics, situation.words, situation.area_id, changed_ids)

    def needs_earlier(self) -> bool:
        """Return whether the sentence refers to an earlier one, or leaves out its thing or its act."""
        clauses = self._situation.reader.read_clauses(self._situation.sentence)
        kept = [clause for clause in clauses if not is_empty(clause)]
        if not kept:
            return True
        if self._asks_anew(kept[0]):
            return False
        if len(kept) > 1 and _only_tells(kept[0]) and self.is_command(kept[-1]):
            # "It is cold in the living room, turn the heating up".
            return not any(self._situation.words.is_place(word.keys) for word in kept[0].words)
        follows_command = bool(self._topics) and self._topics[0].kind == "command"
        is_past = not kept[0].time.is_empty and find_moment(kept[0].time, self._situation.now) is None
        return self._follow_ups.needs_earlier(kept[0]) and not (follows_command and is_past)

    def complete(self, clauses: list[Clause]) -> list[Clause]:
        """Return the clauses with what they leave out, from the clause before each or from earlier turns."""
        completed: list[Clause] = []
        context: Clause | None = None
        index = self._situation.index
        clauses = [choose_by_place(self._go_back(clause), self._topics, index) for clause in clauses]
        kept = _join_names([_limit_to_label(clause) for clause in _leave_out_empty(clauses)])
        kept = self._share_question(self._leave_out_complaint(_join_times(kept)))
        for n, clause in enumerate(kept):
            before = completed[-1] if completed else None
            if before is not None and _only_excludes(clause):
                completed[-1] = replace(before, excluded=(*before.excluded, *clause.excluded))
                continue
            if before is not None and _adds_arm_mode(clause, before):
                completed[-1] = replace(before, do=(*before.do, *clause.do))
                continue
            is_last = n == len(kept) - 1
            if not is_last:
                clause = self._share_kind(clause, kept[n + 1])
            if before is None and not is_last and self._shares_act(clause, kept[n + 1]):
                clause = replace(clause, do=kept[n + 1].do, amount=kept[n + 1].amount)
            if len(kept) > 1 and _is_departure(clause) and not any("arm" in each.do for each in kept):
                continue
            # "Turn on the lamp and the fan and close the blinds" has no context.
            goes_on = before is not None and before.is_command and clause.is_fragment and bool(clause.words)
            is_context = (_only_tells(clause) and not goes_on) or _is_reason(clause, kept[-1])
            if not is_last and is_context and self.is_command(kept[-1]):
                context = clause  # "It is cold in the living room, turn the heating up".
                continue
            if context is not None and self._orders(clause):
                clause = replace(clause, is_question=False)
            if before is not None and _replaces(clause, before):
                completed.pop()  # "The kitchen light, I mean the hallway light".
                clause = replace(clause, refer=clause.refer - {_REPLACES})
            clause = self._complete_one(clause, before)
            completed.append(self._follow_ups.add_place(clause, context) if context else clause)
        undone = self._undo_last(completed[-1]) if completed else None
        return [undone, *completed] if undone else completed

    def _go_back(self, clause: Clause) -> Clause:
        """Return "and the day before?" with the time before that of the last question."""
        before = any(match.value == "before" for match in self._situation.sentence.find("compare"))
        topic = self._follow_ups.find_topic()
        if not before or not is_empty(clause) or topic is None or not topic.clauses:
            return clause
        time = topic.clauses[-1].time
        day = _EARLIER.get(time.day or "today")
        return replace(clause, time=replace(time, day=day, places=frozenset())) if day else clause

    def _undo_last(self, clause: Clause) -> Clause | None:
        topic, index = self._follow_ups.find_topic(), self._situation.index
        return undo_for_other(clause, topic, self._list_changed(), index)

    def _complete_one(self, clause: Clause, before: Clause | None) -> Clause:
        if compares_places(clause) or (before is None and self._asks_anew(clause)):
            return clause
        return self._follow_ups.complete(self._name_act(clause), before)

    async def fill_liked(self, clause: Clause) -> Clause:
        """Return a clause with the number that the user likes: "set it to the temperature I like"."""
        situation = self._situation
        if not any(match.value == "like" for match in situation.sentence.find("memory")):
            return clause
        facts = await situation.utterance.dialogue.list_facts()
        value = find_liked_number(situation.reader, facts, clause.words)
        if value is None:
            return clause
        unit = "degrees" if "temperature" in clause.properties else None
        likes = [match for match in situation.sentence.find("memory") if match.value == "like"]
        said = {situation.sentence.words[place] for match in likes for place in match.places}
        words = tuple(
            word
            for word in clause.words
            if word.text not in said and (not word.has("property") or word.entity_ids)
        )
        return replace(clause, amount=Amount(value, unit), words=words, ask=(), is_question=False)

    def is_command(self, clause: Clause) -> bool:
        """Return whether a clause says what to do, and the sentence does not ask about it."""
        if clause.do == ("broken",):
            return False  # "The sensor does not work" reports a problem.
        text = self._situation.sentence.text
        if not is_polite_request(text) and is_polite_request(clause.text) and self._orders(clause):
            return bool(clause.do or not clause.amount.is_empty)
        if is_polite_request(text) and is_question(text, self._situation.writer.language):
            return False  # "Can you tell me if the light is on?"
        is_polite = is_polite_request(text) or not set(clause.ask) - {"labelled"}
        is_asked = clause.is_question and (
            not is_polite or (text.endswith("?") and not is_polite_request(text))
        )
        return bool(clause.do or not clause.amount.is_empty) and not is_asked

    def _asks_anew(self, clause: Clause) -> bool:
        """Return whether a clause only names something and asks, after a command: "Robby?".

        It does not go on with the command, as "and the bedroom?" does: a question switches nothing.
        """
        follows_command = bool(self._topics) and self._topics[0].kind == "command"
        if not (follows_command and clause.is_question and clause.is_fragment) or clause.refer:
            return False
        return not any(m.start == 0 and m.kind == "join" for m in self._situation.sentence.matches)

    def add_place(self, clause: Clause, context: Clause) -> Clause:
        """Return a clause in the place of another one, if it names none itself."""
        return self._follow_ups.add_place(clause, context)

    def _share_question(self, clauses: list[Clause]) -> list[Clause]:
        """Return clauses that go on with a question as questions.

        "Is the door shut and locked?" asks twice, and so does "are the garage and the front door closed?".
        """
        shared = list(clauses[:1])
        for clause in clauses[1:]:
            before = shared[-1]
            if before.is_question and set(before.ask) == {"is"} and self._names_state(clause):
                if not before.do and not before.properties and clause.words:
                    shared[-1] = replace(before, do=clause.do)
                words = clause.words or before.words
                clause = replace(clause, words=words, ask=before.ask, is_question=True)
            shared.append(clause)
        return shared

    def _names_state(self, clause: Clause) -> bool:
        """Return whether a clause ends with a state, and has no verb before it: "the garage shut"."""
        is_plain = not (clause.is_question or clause.ask or clause.refer or clause.has_make)
        # "Is it cold, heating on" goes on with a command.
        follows_comma = f", {clause.text}" in self._situation.sentence.text
        if follows_comma or not (is_plain and clause.do and _STATES.issuperset(clause.do)):
            return False
        *said, _ = split_words(clause.text) or [""]
        named = {part for word in clause.words for part in split_words(word.text)}
        return named.union(self._situation.reader.lexicon.articles).issuperset(said)

    def _leave_out_complaint(self, clauses: list[Clause]) -> list[Clause]:
        """Return a request alone, with the thing of the remark before it: "the fan is too loud, stop it"."""
        if len(clauses) != 2:
            return clauses
        remark, request = clauses
        things = tuple(word for word in remark.words if word.entity_ids or not word.has("property"))
        # Unknown words after the thing only say how it is: "the fan is a bit wild".
        known = [n for n, word in enumerate(things) if word.is_known]
        things = things[: known[-1] + 1] if known else ()
        has_pronoun = bool(request.refer & _PRONOUNS) and not request.words
        if not (things and has_pronoun and self._is_remark(remark, things[0])):
            return clauses
        is_order = bool(request.do or not request.amount.is_empty) and self._orders(request)
        is_complaint = bool(remark.do) and COMPLAINTS.issuperset(remark.do)
        if not is_order and not (is_complaint and request.is_question):
            return clauses
        return [replace(request, words=things, refer=request.refer - _PRONOUNS, is_question=not is_order)]

    def _orders(self, clause: Clause) -> bool:
        """Return whether a clause is no question, or a polite one: "can you stop it?"."""
        asks = is_question(clause.text, self._situation.writer.language)
        return not asks and (not clause.is_question or is_polite_request(clause.text))

    def _is_remark(self, clause: Clause, thing: Word) -> bool:
        """Return whether a clause only says how a thing is: no verb stands before the thing."""
        is_stated = set(clause.ask) == {"is"} or (not clause.ask and COMPLAINTS.issuperset(clause.do))
        if not is_stated or clause.has_make or "?" in clause.text:
            return False
        sentence = self._situation.sentence
        start = sentence.text.find(clause.text)
        before = range(start, sentence.text.find(thing.text, start))
        verbs = (m for m in sentence.matches if m.kind in ("do", "ask") and m.value != "make")
        return not any(sentence.tokens[match.start].start in before for match in verbs)

    def _list_changed(self) -> list[str]:
        """Return the entities whose states the last turn changed."""
        response = self._turns[-1].response if self._turns else None
        actions = response.actions if response else ()
        return [key for each in actions for key, state in each.before.items() if state != each.after.get(key)]

    def _shares_act(self, clause: Clause, following: Clause) -> bool:
        """Return whether the act of the next clause is meant for this one, too: "the TV and the lamp off"."""
        has_thing = any(word.has("kind") or word.has("noun") or word.entity_ids for word in clause.words)
        has_thing = has_thing or (
            clause.has_make and bool(clause.words)
        )  # "Set the kitchen and the hall to …".
        is_open = clause.is_fragment and not clause.is_question and not clause.properties and has_thing
        return is_open and bool(following.words) and self.is_command(following)

    def _share_kind(self, clause: Clause, following: Clause) -> Clause:
        """Return places with the kind that the next clause names: "the bedroom and bathroom lights"."""
        places = [word for word in clause.words if self._situation.words.is_place(word.keys)]
        kinds = tuple(word for word in following.words if word.has("kind") and word.is_plural)
        is_list = bool(places) and len(places) == len(clause.words) and not clause.is_question
        if not is_list or not kinds or len(kinds) == len(following.words) or not following.is_fragment:
            return clause
        return replace(clause, words=(*clause.words, *kinds), excluded=following.excluded)

    def _find_wish(self, clause: Clause) -> str | None:
        """Return what is to be done with a thing that a person only names politely: "lights, please".

        After a command, or a question about such things, the sentence goes on with that one.
        """
        last = self._follow_ups.find_topic()
        if not self._situation.sentence.find("please") or (last is not None and last.kind == "command"):
            return None
        wished = (_list_keys([clause]) | self._list_named_kinds(clause)) & _WISHES.keys()
        is_asked = last is not None and last.kind == "question" and wished & _list_keys(last.clauses)
        return None if is_asked else next((_WISHES[key] for key in _WISHES if key in wished), None)

    def _list_named_kinds(self, clause: Clause) -> frozenset[str]:
        """Return the kinds of the things that a clause names: "all the outdoor lights"."""
        index = self._situation.index
        ids = (key for word in clause.words for key in word.entity_ids if key in index.entities)
        kinds = (list_kinds(index.entities[key].domain, index.get_device_class(key)) for key in ids)
        return frozenset(kind for each in kinds for kind in each)

    def _name_act(self, clause: Clause) -> Clause:
        """Return a clause that starts the scene or script that it only names: "good night"."""
        is_asked_for = bool(self._situation.sentence.find("please"))  # "Jazz, please".
        may_choose = clause.has_make or (clause.is_fragment and (len(clause.words) > 1 or is_asked_for))
        if may_choose and not clause.do and not clause.is_question and find_option(self._situation, clause):
            return replace(clause, do=("play",))  # "Put Netflix on the TV".
        if clause.is_question or not clause.is_fragment or not clause.words or clause.refer:
            return clause
        if wish := self._find_wish(clause):
            return replace(clause, do=(wish,))
        words, index = self._situation.words, self._situation.index

        def is_named(entity: Entity) -> bool:
            return entity.domain in ("scene", "script") and all(
                entity.id in word.entity_ids
                or entity.id in words.find_named(word.keys)
                or f"kind.{entity.domain}" in word.keys
                for word in clause.words
            )

        named = [entity.id for entity in index.entities.values() if is_named(entity)]
        return choose_from(replace(clause, do=("on",)), named, index.entities) if len(named) == 1 else clause


def _list_keys(clauses: Sequence[Clause]) -> frozenset[str]:
    return frozenset(key for clause in clauses for word in clause.words for key in word.keys)


def _leave_out_empty(clauses: Sequence[Clause]) -> list[Clause]:
    """Return the clauses that say something. After a bare "no" a clause replaces the one before it."""
    kept: list[Clause] = []
    is_corrected = False
    for clause in clauses:
        if is_empty(clause):
            is_no = "correct" in clause.refer or parse_approval(clause.text) is False
            is_corrected = is_corrected or is_no
            continue
        if is_corrected and (clause.words or clause.is_command):
            # A plain "no" at the beginning corrects the last turn.
            clause = replace(clause, refer=clause.refer | {_REPLACES if kept else "correct"})
        kept.append(clause)
        is_corrected = False
    return kept


def _replaces(clause: Clause, before: Clause) -> bool:
    """Return whether a clause corrects the one before it, so that only the later one is meant."""
    is_same_act = clause.is_fragment or (clause.is_command and clause.do == before.do)
    return _REPLACES in clause.refer or ("correct" in clause.refer and is_same_act and bool(clause.words))


def is_empty(clause: Clause) -> bool:
    """Return whether a clause says nothing, as "well" or "and"."""
    refers = clause.refer - {"correct", "too", "about"}
    is_any = clause.is_any and clause.is_question
    return clause.is_fragment and not (
        clause.words or refers or clause.excluded or not clause.time.is_empty or is_any
    )


def _join_times(clauses: list[Clause]) -> list[Clause]:
    """Join a time with the clause after it, or else before it: "at seven, lights on"."""
    joined: list[Clause] = []
    time = NO_TIME
    for clause in clauses:
        if clause.is_fragment and not (clause.words or clause.refer or clause.excluded or clause.is_question):
            time = time.merge(clause.time)
            continue
        joined.append(replace(clause, time=time.merge(clause.time)))
        time = NO_TIME
    if not joined:
        return clauses
    if not time.is_empty:
        joined[-1] = replace(joined[-1], time=joined[-1].time.merge(time))
    return joined


def _join_names(clauses: list[Clause]) -> list[Clause]:
    """Join a clause that only names a thing with one that needs it: "the garage door, open it"."""
    joined: list[Clause] = []
    for clause in clauses:
        last = joined[-1] if joined else None
        if last is not None and last.is_fragment and last.words and clause.is_command and not clause.words:
            joined[-1] = replace(clause, words=last.words, refer=clause.refer - {"it", "them"})
        elif last is not None and _lacks_name(last) and clause.is_fragment and _only_names(clause):
            joined[-1] = replace(last, words=clause.words)
        else:
            joined.append(clause)
    return joined


def _lacks_name(clause: Clause) -> bool:
    """Return whether a command names no thing: "take a break, Robby"."""
    return clause.is_command and not (clause.words or clause.refer or clause.is_all or clause.is_everything)


def _only_names(clause: Clause) -> bool:
    """Return whether a clause is nothing but the name of one thing."""
    return len(clause.words) == 1 and bool(clause.words[0].entity_ids) and not clause.refer


def _only_excludes(clause: Clause) -> bool:
    """Return whether a clause only says what is not meant: "all lights off, but not the hall"."""
    return clause.is_fragment and bool(clause.excluded) and not clause.words and clause.time.is_empty


def _limit_to_label(clause: Clause) -> Clause:
    """Return a clause whose words mean labels only, if it says so: "all lights labelled night"."""
    if "labelled" not in clause.ask:
        return clause
    words = []
    for word in clause.words:
        labels = frozenset(key for key in word.keys if key.startswith("label:"))
        words.append(Word("", labels) if labels else word)
    return replace(clause, words=tuple(words))


def _is_departure(clause: Clause) -> bool:
    """Return whether a clause only says that a person goes or stays: "everything off, I'm going out"."""
    acts = all(do.startswith("arm_") or do in ("away", "home") for do in clause.do)
    return acts and bool(clause.do) and not (clause.words or clause.is_question)


def _only_tells(clause: Clause) -> bool:
    """Return whether a clause neither asks for anything nor says what to do."""
    return not clause.is_question and not clause.do and clause.amount.is_empty


def _is_reason(clause: Clause, command: Clause) -> bool:
    """Return whether a clause only says why a command is given: "it is dark, turn on the light"."""
    wanted = frozenset().union(*(_REASONS.get(do, ()) for do in clause.do))
    is_nameless = not any(word.has("kind") or word.entity_ids for word in clause.words)
    said = {*command.do, *(key for word in command.words for key in word.keys)}
    return is_nameless and not wanted.isdisjoint(said)


def _adds_arm_mode(clause: Clause, before: Clause) -> bool:
    """Return whether a clause says how to arm: "arm the alarm, we are leaving"."""
    return (
        "arm" in before.do
        and bool(clause.do)
        and all(do.startswith(("arm_", "away", "home")) for do in clause.do)
    )
