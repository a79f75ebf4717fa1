"""Fills in what a clause leaves out, from the last turns: "it", "and the bedroom?", "again"."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from sash.home.index import HomeIndex
from sash.intents.acting.act import STEPS, WARMTH, read_act
from sash.intents.acting.default_domains import PROPERTY_DOMAINS
from sash.intents.acting.services import choose_service
from sash.intents.corrections import keep_only, take_part_back
from sash.intents.home_words import HomeWords
from sash.intents.kinds import list_kinds
from sash.intents.ordinals import ORDINALS
from sash.intents.sentence.clause import NO_AMOUNT, Amount, Clause, Word
from sash.intents.sentence.time_words import TimeWords
from sash.intents.topic import Topic
from sash.ports.home import Entity

_THINGS = frozenset({"it", "them", "ones"})
# Words that refer to an earlier sentence.
_REFERENCES = frozenset(
    {
        *("about", "again", "before_that", "correct", "instead", "it", "more", "one", "other", "same"),
        *("them", "there", "too", "too_much"),
        *ORDINALS,
    }
)
_PLACE_PREFIXES = ("room.", "area:", "floor:")
# These acts mean an alarm, whatever was spoken of before.
_NAMES_ITS_THING = frozenset({"arm", "disarm"})
# Only things of these domains are warm or humid. Otherwise "it" is the weather, or the air of the room.
_OF_THE_AIR = frozenset({"temperature", "humidity"})
_HAS_AIR = frozenset({"climate", "humidifier", "sensor", "water_heater", "weather"})
# Questions that may follow another one without its thing.
_EXTREMES = frozenset({"highest", "lowest", "average"})
_ASKED_AGAIN = frozenset({"who", "when", "how_long", "how_often", "where", "until_when"})

_FURTHER = frozenset({"more", "too_much"})
_PAIRS = (
    ("up", "down"),
    ("brighter", "darker"),
    ("louder", "quieter"),
    ("warmer", "colder"),
    ("faster", "slower"),
    ("stronger", "weaker"),
)
_OTHER_WAY = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_ASKING = _ASKED_AGAIN | {"is"}


def list_focus_ids(topics: Sequence[Topic]) -> tuple[str, ...]:
    """Return the entities that the earlier turns were about, newest first."""
    return tuple(dict.fromkeys(key for topic in topics for key in topic.entity_ids))


class FollowUps:
    """Completes clauses with the topics of earlier turns, newest first.

    `area_id` is where the speaker is. `changed_ids` are the things that the last turn changed, if it gave a
    command.
    """

    def __init__(
        self,
        topics: Sequence[Topic],
        home: HomeWords,
        area_id: str | None = None,
        changed_ids: Collection[str] | None = None,
    ) -> None:
        self._topics = topics
        self._changed_ids = changed_ids
        self._area_id = area_id
        self._home = home
        self._index: HomeIndex = home.index

    def complete(self, clause: Clause, before: Clause | None = None) -> Clause:
        """Return a clause with what it leaves out. `before` is the clause before it in the same sentence."""
        topic = self.find_topic()
        last = before or (topic.clauses[-1] if topic and topic.clauses else None)
        clause = self._fill_place(clause, topic, before)
        if clause.is_fragment and "here" in clause.refer and self._area_id in self._index.areas:
            here = Word(self._index.areas[self._area_id].name, frozenset({f"area:{self._area_id}"}))
            clause = replace(clause, words=(*clause.words, here))
        if last is not None and (asked := self._ask_more(clause, last)) is not None:
            return asked
        if last is not None and (asked := self._ask_who(clause, last, topic)) is not None:
            return asked
        if "one" in clause.refer and last is not None and not clause.is_fragment:
            clause = self._fill_kind(clause, self._generalize(last, topic))
        if "other" in clause.refer and topic is not None and last is not None:
            return self._name_other(clause, last, topic)
        if "again" in clause.refer and last is not None and clause.is_fragment and not clause.words:
            return last
        if (rejected := self._reject(clause, topic)) is not None:
            return rejected
        if not _FURTHER.isdisjoint(clause.refer):
            clause = self._add_direction(clause, last)
        if clause.is_fragment or self._has_other_value(clause, last):
            is_known = before is not None or not clause.unknown
            return self._complete_fragment(clause, last, topic) if is_known else clause
        return self._fill_thing(clause, last, topic, before)

    def find_topic(self) -> Topic | None:
        """Return the newest topic that a sentence may refer to."""
        return next((topic for topic in self._topics if topic.clauses or topic.entity_ids), None)

    def _ask_more(self, clause: Clause, last: Clause) -> Clause | None:
        """Return another question about the same things: "when was that?", "which ones?", "by whom?"."""
        if "that_time" in clause.refer and not clause.words and not clause.do:
            return replace(
                last, text=clause.text, ask=("when",), is_question=True, tense=last.tense or "past"
            )
        if "ones" in clause.refer and not clause.words and not clause.do:
            return replace(last, text=clause.text, ask=("which",), is_any=False, is_question=True)
        if "before_that" in clause.refer and not clause.do and last.is_question:
            earlier = (*(ask for ask in last.ask if ask == "previous"), "previous")
            return replace(last, text=clause.text, ask=("when", *earlier), is_any=False, tense="past")
        if clause.ask and last.is_question and self._only_asks(clause):
            tense = last.tense or (None if "where" in clause.ask else "past")
            time = last.time if clause.time.is_empty else clause.time
            # "Since when?" after "is it open?" is about the state that it has.
            refer = last.refer if last.tense else last.refer | {"present"}
            earlier = tuple(ask for ask in last.ask if ask == "previous")
            ask = (*clause.ask, *earlier)
            return replace(last, text=clause.text, ask=ask, time=time, is_any=False, tense=tense, refer=refer)
        is_past = last.is_question and last.do and {"when", "how_long", "how_often", "who"} & set(last.ask)
        only_acts = clause.do and not (clause.words or clause.ask or clause.properties or clause.refer)
        if is_past and only_acts and clause.is_question:
            return replace(last, text=clause.text, do=clause.do)  # "And closed?"
        if self._asks_extreme(clause, last):
            kept = tuple(ask for ask in last.ask if ask not in _EXTREMES)
            time = last.time if clause.time.is_empty else clause.time
            return replace(last, text=clause.text, ask=(*kept, *clause.ask), time=time)
        return None

    def _asks_extreme(self, clause: Clause, last: Clause) -> bool:
        """Return whether a clause asks for another extreme of what was asked before: "and the coldest?"."""
        has_other = clause.properties and not set(clause.properties) & set(last.properties)
        return bool(
            last.is_question and _EXTREMES.intersection(clause.ask) and not clause.words and not has_other
        )

    def _reject(self, clause: Clause, topic: Topic | None) -> Clause | None:
        """Return what follows from a clause that only says what is not meant: "no, not that"."""
        if (
            topic is not None
            and (undone := keep_only(clause, topic, self._home, self._changed_ids)) is not None
        ):
            return undone
        is_no = clause.is_negated or ("correct" in clause.refer and not clause.words)
        if not is_no or not clause.is_fragment:
            return None
        if clause.words:
            if topic is None:
                return None
            undone = take_part_back(clause, topic, self._home, self._changed_ids)
            return undone or replace(clause, do=("stop",))
        is_plain = not clause.is_question and clause.time.is_empty
        return replace(clause, do=("stop",), is_negated=True) if is_plain else None

    def _fill_kind(self, clause: Clause, last: Clause) -> Clause:
        """Replace "the one" of a place by the kind of thing that was spoken of."""
        if not clause.words or self._has_thing(clause):
            return clause
        kinds = tuple(word for word in last.words if not self._is_place(word))
        return replace(clause, words=(*kinds, *clause.words), refer=clause.refer - {"one"})

    def _add_direction(self, clause: Clause, last: Clause | None) -> Clause:
        """Return a clause with "more" in the direction of the last one: darker after "dim the light".

        "That's too much" goes back.
        """
        if "too_much" in clause.refer:
            return (_go_part_back(clause, last) if last is not None else None) or clause
        has_value = not clause.amount.is_empty and clause.amount.role != "by"
        if clause.do or has_value or clause.is_question:
            return clause
        if last is None or clause.words:
            return replace(clause, do=("up",))
        if last.amount.size is not None and (way := tuple(do for do in last.do if do in ("open", "close"))):
            # "Close the blind a bit" goes on with "a bit more".
            size = clause.amount.size or last.amount.size
            return replace(clause, do=way, amount=replace(clause.amount, size=size))
        return replace(clause, do=tuple(do for do in last.do if do in STEPS) or ("up",))

    def _ask_who(self, clause: Clause, last: Clause, topic: Topic | None) -> Clause | None:
        """Return the question who made the change of the last command: "who did that?"."""
        if topic is None or topic.kind != "command" or last.is_question:
            return None
        if "who" not in clause.ask or not self._only_asks(clause):
            return None
        known = (self._index.entities[key] for key in topic.entity_ids if key in self._index.entities)
        words = last.words or tuple(map(self._make_word, known))[:1]
        asked = replace(last, text=clause.text, ask=clause.ask, words=words, is_question=True, tense="past")
        return replace(asked, time=TimeWords(), amount=NO_AMOUNT, refer=frozenset())

    def _only_asks(self, clause: Clause) -> bool:
        """Return whether a clause asks something else about the same thing: "by whom?", "who was it?"."""
        more = {"about"} if "where" in clause.ask else {"about", *_THINGS, "that_time"}
        if {"who", "is"} <= set(clause.ask) and not (clause.refer or clause.tense):
            return False  # "Who is in?"
        # "How long did it take?" has no act of its own.
        acts = set(clause.do) - {"run"} if "who" in clause.ask else set(clause.do)
        has_more = clause.words or acts or clause.properties or clause.refer - more
        return not has_more and not _ASKED_AGAIN.isdisjoint(clause.ask) and _ASKING.issuperset(clause.ask)

    def add_place(self, clause: Clause, context: Clause) -> Clause:
        """Return a clause in the place of another one, if it names none itself."""
        if any(self._is_place(word) or word.entity_ids for word in clause.words):
            return clause
        places = tuple(word for word in context.words if self._is_place(word))
        return replace(clause, words=(*clause.words, *(places or self._list_areas(context))))

    def _list_areas(self, clause: Clause) -> tuple[Word, ...]:
        """Return the area of the things that a clause names, if it is only one."""
        ids = (key for word in clause.words for key in word.entity_ids if key in self._index.entities)
        areas = {self._index.entities[key].area_id for key in ids}
        area = self._index.areas.get(areas.pop() or "") if len(areas) == 1 else None
        return () if area is None else (Word(area.name, frozenset({f"area:{area.id}"})),)

    def needs_earlier(self, clause: Clause) -> bool:
        """Return whether a clause refers to an earlier one, or leaves out its thing or its act."""
        if compares_places(clause):
            return False
        topic = self.find_topic()
        is_air = topic is not None and clause.is_question and self._is_about_air(clause, topic)
        # "How warm is it in here?" has its place.
        refer = (
            clause.refer - {"it"}
            if is_air or (clause.is_question and "here" in clause.refer)
            else clause.refer
        )
        has_verb = clause.has_make and clause.words
        has_time = self._has_thing(clause) and not clause.time.is_empty  # "Energy this week".
        is_open = clause.is_fragment and not (has_verb or has_time)
        last = topic.clauses[-1] if topic and topic.clauses else None
        if refer & _REFERENCES or is_open or self._has_other_value(clause, last):
            return True
        if clause.is_question:
            asks_extreme = last is not None and clause.time.is_empty and self._asks_extreme(clause, last)
            return not clause.words and ("ones" in refer or asks_extreme)
        return not self._is_whole(clause)

    def _fill_place(self, clause: Clause, topic: Topic | None, before: Clause | None) -> Clause:
        """Replace "there" by the place that the last turn was about."""
        if "there" not in clause.refer:
            return clause
        places = [word for word in before.words if self._is_place(word)] if before else []
        if not places and topic is not None:
            places = self._list_places(topic, None)
        if not places:
            return clause
        return replace(clause, words=(*clause.words, *places), refer=clause.refer - {"there"})

    def _fill_thing(
        self, clause: Clause, last: Clause | None, topic: Topic | None, before: Clause | None
    ) -> Clause:
        """Add the thing that "it" means, or that the clause leaves out."""
        if self._is_whole(clause):
            return clause
        if before is not None and before.words and (clause.refer & _THINGS or clause.is_command):
            kept = self._replace_words(before.words, clause.words)
            if self._has_property(before, clause):
                kept = (*before.words, *clause.words)  # "Turn on the TV and set the volume to 30 %".
            return replace(clause, words=kept, is_all=before.is_all)
        if topic is None or not (clause.refer & _THINGS or self._lacks_thing(clause)):
            return clause
        if clause.properties and not clause.refer and clause.is_question:
            return replace(clause, words=(*clause.words, *self._list_places(topic, last)))
        if clause.is_question and self._is_about_air(clause, topic):
            return clause
        places = self._list_places(topic, last) if self._is_sensor(topic) else []
        if places and WARMTH.intersection(clause.do):
            return replace(clause, words=(*clause.words, *places))
        ids = self._list_meant(clause, topic)
        words = tuple(
            self._make_word(self._index.entities[key]) for key in ids if key in self._index.entities
        )
        if not words:
            return clause
        named = Word(words[0].text, frozenset(), ids) if len(words) > 1 else words[0]
        if last is not None and last.is_question and self._asks_about_answer(clause):
            clause = replace(clause, time=last.time)
        return replace(clause, words=(*clause.words, named), is_all=clause.is_all or len(words) > 1)

    def _has_property(self, before: Clause, clause: Clause) -> bool:
        """Return whether the things of a clause have what the next one names alone: "the volume"."""
        if not all(word.has("property") and not word.entity_ids for word in clause.words):
            return False
        domains = {each for name in clause.properties for each in PROPERTY_DOMAINS.get(name, ())}
        things = [word for word in before.words if not self._is_place(word)]
        ids = (key for word in things for key in word.entity_ids or self._home.find(word.keys))
        return not domains.isdisjoint(key.partition(".")[0] for key in ids)

    def _list_meant(self, clause: Clause, topic: Topic) -> tuple[str, ...]:
        """Return the things that "it" or "them" means; for a command, the newest that can do it."""
        # An answer about no thing leaves what was spoken of before: "I do not know “jazz”".
        ids = topic.entity_ids or list_focus_ids(self._topics)[:1]
        if clause.is_command and not self._is_able(clause, ids):
            # "Turn it off" after a question about the weather is about the light before it.
            able = (t.entity_ids for t in self._topics if self._is_able(clause, t.entity_ids))
            # "It" in "make it warmer" may mean nothing that was spoken of.
            means_air = clause.has_make and not STEPS.isdisjoint(clause.do)
            ids = next(able, ids if clause.refer & _THINGS and not means_air else ())
        if ids and ("them" in clause.refer or clause.is_all) and len(ids) == 1:
            ids = self._list_in_row(topic)
        return ids

    def _list_in_row(self, topic: Topic) -> tuple[str, ...]:
        """Return the things of two commands, or of two questions, in a row, or of more with the same act."""
        acts = [(each.kind, each.clauses[-1].do if each.clauses else ()) for each in self._topics]
        count = next((n for n, act in enumerate(acts) if act != acts[0]), len(acts))
        return list_focus_ids([each for each in self._topics[: max(count, 2)] if each.kind == topic.kind])

    def _is_able(self, clause: Clause, entity_ids: Sequence[str]) -> bool:
        """Return whether one of these things can do what a command asks for, maybe with another amount."""
        act, states = read_act(clause), self._index.states
        return any(choose_service(act, states[key]) is not None for key in entity_ids if key in states)

    def _is_about_air(self, clause: Clause, topic: Topic) -> bool:
        """Return whether a clause asks how warm or humid it is, after a sentence about other things."""
        domains = {key.partition(".")[0] for key in topic.entity_ids}
        is_of_air = not (_OF_THE_AIR.isdisjoint(clause.properties) and WARMTH.isdisjoint(clause.do))
        return is_of_air and domains.isdisjoint(_HAS_AIR)

    def _is_whole(self, clause: Clause) -> bool:
        """Return whether a clause names its thing, or means the whole home or the speaker's room."""
        things = [word for word in clause.words if not word.has("property") or word.entity_ids]
        is_both = clause.is_all and not clause.is_everything
        refers = bool(clause.refer & _THINGS)
        return bool(
            things
            or (clause.is_everything and not is_both)
            or (clause.is_all and clause.is_question)
            or ("errors" in clause.properties and not refers)
            or (clause.do and clause.do[0] in _NAMES_ITS_THING and not refers)
            # "It is dark in here" is about the room, and not about the last turn.
            or (self._area_id is not None and "here" in clause.refer)
        )

    def _asks_about_answer(self, clause: Clause) -> bool:
        """Return whether a question is about the last answer and its time: "is that more than usual?"."""
        acts = set(clause.do) - {"up", "down"}
        has_own = clause.words or acts or clause.properties or not clause.time.is_empty
        return clause.is_question and not has_own

    def _lacks_thing(self, clause: Clause) -> bool:
        """Return whether a clause says what to do, but not with what."""
        return (
            bool(clause.do or not clause.amount.is_empty)
            or bool(clause.is_question and clause.properties and not clause.words)
            or bool(clause.ask and {"set_to", "how_long", "why"} & set(clause.ask))
        )

    def _has_other_value(self, clause: Clause, last: Clause | None) -> bool:
        """Return whether a clause only names a place and a value: "and the hall to 20"."""
        if last is None or not clause.words or not all(map(self._is_place, clause.words)):
            return False
        has_act = clause.do or clause.has_make or clause.ask or clause.properties or clause.is_question
        is_alike = clause.amount.unit in (None, last.amount.unit)
        return not has_act and is_alike and None not in (clause.amount.value, last.amount.value)

    def _complete_fragment(self, clause: Clause, last: Clause | None, topic: Topic | None) -> Clause:
        """Complete a clause that names only a thing, a place or a time: "and the bedroom?"."""
        if last is None:
            return clause
        base = self._generalize(last, topic) if not clause.words or not self._has_thing(clause) else last
        words = self._replace_words(base.words, clause.words)
        time = clause.time if not clause.time.is_empty else last.time
        value = last.amount.value if clause.amount.value is None else clause.amount.value
        return replace(
            base,
            text=clause.text,
            words=words or base.words,
            excluded=clause.excluded,
            time=replace(time, places=frozenset()) if not time.is_empty else TimeWords(),
            is_all=clause.is_all or (last.is_all and not self._has_thing(clause)),
            is_question=last.is_question,
            amount=replace(last.amount, value=value),
            refer=clause.refer & {"correct", "instead"},
        )

    def _generalize(self, clause: Clause, topic: Topic | None) -> Clause:
        """Return a clause whose names of things are replaced by their kinds and places."""
        words: list[Word] = []
        for word in clause.words:
            entities = [self._index.entities[key] for key in word.entity_ids if key in self._index.entities]
            if not entities:
                has_kind = any(each.has("kind") for each in clause.words)
                if not (word.has("noun") and has_kind):  # "Chevet" names one lamp of all.
                    words.append(word)
                continue
            kinds = self._list_kinds(entities)
            areas = {entity.area_id for entity in entities if entity.area_id}
            words += [Word(word.text, frozenset({kind})) for kind in kinds[:1]]
            words += [Word(word.text, frozenset({f"area:{area}"})) for area in areas]
        properties = clause.properties or tuple(
            key.partition(".")[2] for word in words for key in word.keys if key.startswith("property.")
        )
        return replace(clause, words=tuple(words), properties=properties)

    def _replace_words(self, old: Sequence[Word], new: Sequence[Word]) -> tuple[Word, ...]:
        """Return words in which new ones replace those of the same role: places, kinds and names."""
        if not new:
            return tuple(old)
        has_place = any(self._is_place(word) for word in new)
        has_thing = any(not self._is_place(word) for word in new)
        kept = [
            word
            for word in old
            if not (has_place and self._is_place(word))
            and not (has_thing and (not self._is_place(word)))
            and not word.entity_ids
        ]
        if has_thing and not has_place and any(word.entity_ids for word in new):
            kept = []
        return (*kept, *new)

    def _name_other(self, clause: Clause, last: Clause, topic: Topic) -> Clause:
        """Replace "the other one" by the things of the same kind that were not meant, first in its place."""
        known = [self._index.entities[key] for key in topic.entity_ids if key in self._index.entities]
        if not known:
            return clause
        first = known[0]
        alike = [
            entity
            for entity in self._index.entities.values()
            if self._list_kinds([entity])[:1] == self._list_kinds([first])[:1]
            and entity.domain == first.domain
            and entity.id not in topic.entity_ids
            and not self._index.list_contents(entity.id)[0]
        ]
        others = [entity for entity in alike if entity.area_id == first.area_id] or alike
        if not others:
            return clause
        word = Word(others[0].name, frozenset(), tuple(entity.id for entity in others))
        base = clause if clause.do or not clause.amount.is_empty else replace(last, text=clause.text)
        return replace(base, words=(word,), refer=frozenset(), is_all=False)

    def _list_places(self, topic: Topic, last: Clause | None) -> list[Word]:
        places = [word for word in last.words if self._is_place(word)] if last else []
        if places:
            return places
        areas = dict.fromkeys(
            entity.area_id
            for key in topic.entity_ids
            if (entity := self._index.entities.get(key)) and entity.area_id
        )
        return [
            Word(self._index.areas[area].name, frozenset({f"area:{area}"}))
            for area in list(areas)[:1]
            if area in self._index.areas
        ]

    def _make_word(self, entity: Entity) -> Word:
        return Word(entity.name, frozenset(), (entity.id,))

    def _list_kinds(self, entities: Sequence[Entity]) -> list[str]:
        """Return the kinds of things, what they measure first, and then what all of them are."""
        of_each = [list_kinds(each.domain, self._index.get_device_class(each.id)) for each in entities]
        counts = Counter(key for kinds in of_each for key in kinds)
        return sorted(counts, key=lambda key: (not key.startswith("property."), -counts[key]))

    def _has_thing(self, clause: Clause) -> bool:
        return any(not self._is_place(word) for word in clause.words)

    def _is_place(self, word: Word) -> bool:
        return not word.entity_ids and any(key.startswith(_PLACE_PREFIXES) for key in word.keys)

    def _is_sensor(self, topic: Topic) -> bool:
        return bool(topic.entity_ids) and all(key.startswith("sensor.") for key in topic.entity_ids)


def _go_part_back(clause: Clause, last: Clause) -> Clause | None:
    """Return the last step, or a step down from the last value, in the other direction: "that's too much"."""
    if clause.words or clause.do or "?" in clause.text or last.is_question:
        return None
    steps = tuple(_OTHER_WAY[do] for do in last.do if do in _OTHER_WAY)
    if not steps and last.amount.value is None and last.do != ("on",):
        return None
    amount = Amount(size="little")
    return replace(last, text=clause.text, do=steps or ("down",), amount=amount, refer=frozenset({"it"}))


def compares_places(clause: Clause) -> bool:
    """Return whether a clause asks about all places: "where is it warmest?"."""
    return "where" in clause.ask and not _EXTREMES.isdisjoint(clause.ask) and not clause.words
