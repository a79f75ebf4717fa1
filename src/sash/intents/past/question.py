"""Reads a clause as a question about the past."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from sash.intents.acting.default_domains import EVERYTHING
from sash.intents.past.asked_states import AskedState, ask_for, invert
from sash.intents.past.missing_meter import Metered
from sash.intents.past.sources import (
    are_doors,
    choose_entrances,
    choose_sensors,
    choose_targets,
    find_meters,
    find_unknown_thing,
    is_label,
    list_consumer_words,
)
from sash.intents.sentence.clause import Clause, Word
from sash.intents.sentence.moments import Span, find_past_span
from sash.intents.sentence.time_reader import UNIT_S
from sash.intents.sentence.time_words import TimeWords
from sash.intents.situation import Situation
from sash.ports.home import NO_STATE, Entity

PastAsk = Literal[
    "was", "when", "how_long", "how_often", "who", "happened",
    "until", "where", "value", "highest", "lowest", "average", "used", "future", "unrecorded",
]  # fmt: skip
MAX_TARGETS = 32
NO_TIME = TimeWords()
# A span that ends this short before now is not over.
_PRESENT = timedelta(minutes=2)
_EXTREMES: tuple[Literal["highest", "lowest", "average"], ...] = ("highest", "lowest", "average")
# The properties that a meter counts.
METERED = frozenset({"energy", "power", "gas", "water"})
# Other days may be ahead: "on Monday", "in December".
_PAST_DAYS = frozenset({"today", "yesterday", "day_before_yesterday", "last_week", "last_month", "last_year"})
_SWITCHED = frozenset({"on", "off"})
# Things that move while they work.
_ROBOTS = frozenset({"vacuum", "lawn_mower"})
# "¿Qué temperatura hubo anoche?" asks for a number.
_MEASURED = frozenset({"temperature", "humidity", "brightness", "pressure", "co2", "voltage"})
# These properties are no measurements.
_UNMEASURED = frozenset(
    {"playing", "errors", "logbook", "weather", "time", "date", "available", "unavailable"}
)
# The acts that ask for a temperature: "was it warmer yesterday".
_COMPARED = frozenset({"warmer", "colder"})
_DAYS_AHEAD = frozenset({"tomorrow", "day_after_tomorrow"})
# These words name no thing of their own: "what happened in the house".
_WHOLE_HOME = frozenset({"room.house", "room.inside", "kind.person", "kind.device", "property.logbook"})
_VISITS = frozenset({"home", "away"})
_GENERAL = frozenset({"kind.person", "room.house", "room.inside"})
# Minutes without a unit are an hour of the day up to 24.
_MAX_HOUR_S = 24 * 60
_MEASURING = frozenset(
    {"sensor", "number", "input_number", "climate", "weather", "water_heater", "humidifier"}
)
# "Did I leave the garage open?" asks for the present.
_ABOUT_NOW = frozenset({"left_so", "forgot"})
# The states in which a person may have left a thing.
_LEFT_STATES = frozenset({"on", "off", "close", "lock", "arm"})
_PRESENT_ASKS = frozenset({"is", "what", "how", "how_much", "how_many", "which"})
_PLAIN_ASKS = frozenset({"is"})
_DOERS = frozenset({"mood.speaker", "mood.report", "remark.subject"})
# The future of these is known, or another part answers it.
_FORESEEN = frozenset({"weather", "calendar", "timer", "todo", "sun", "alarm_control_panel"})


class Target(NamedTuple):
    """An entity that is asked about, and its states that are asked for."""

    entity: Entity
    asked: AskedState | None = None


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A question about the past.

    `span` is the time asked for; None asks for the last time. Both ends are equal for a moment. `time` holds
    its words. With `wants_all` all targets have to be in the state. `back` asks for an earlier time than the
    last one. With `wants_list` the question is which of them, and with `is_denied` whether none was. With
    `names_source` the question did not name the thing that answers it. `metered` says what was consumed, and
    by which things. `unwatched` is a place without a motion sensor, for a question about people.
    """

    ask: PastAsk
    targets: tuple[Target, ...] = ()
    span: Span | None = None
    time: TimeWords = NO_TIME
    wants_first: bool = False
    wants_all: bool = False
    back: int = 0
    wants_list: bool = False
    is_denied: bool = False
    names_source: bool = False
    metered: Metered | None = None
    unwatched: tuple[Word, ...] = ()

    @property
    def is_moment(self) -> bool:
        return self.span is not None and self.span.start == self.span.end


def read_past_question(
    situation: Situation, clause: Clause, entities: tuple[Entity, ...]
) -> PastQuestion | None:
    """Return the question about the past that a clause asks of these entities; None for other clauses."""
    return _Reader(situation, clause, entities).read()


class _Reader:
    def __init__(self, situation: Situation, clause: Clause, entities: tuple[Entity, ...]) -> None:
        self._situation = situation
        self._clause = clause
        self._entities = tuple(e for e in entities if e.id in situation.index.entities)
        self._asks = frozenset(clause.ask)
        self._time = settle_time(clause.time)
        self._span = find_span(clause.time, situation.now)
        # "Nobody" asks for the times in which nothing was noticed.
        self._is_nobody = any(match.value == "nobody" for match in situation.sentence.find("condition"))

    def read(self) -> PastQuestion | None:
        clause = self._clause
        if clause.time.is_repeated or not (clause.is_question or self._asks or self._names_measure()):
            return None
        if "battery" in clause.properties and self._span is None and self._asks <= _PRESENT_ASKS:
            return None  # "How much battery has Robby got left?"
        if clause.tense == "future" or clause.time.day in _DAYS_AHEAD:
            return self._read_future()
        is_measured = self._asks.intersection(_EXTREMES) or _MEASURED.intersection(clause.properties)
        if "happen" in clause.do and not is_measured:
            if not self._entities and any(not word.keys & _WHOLE_HOME for word in clause.words):
                return None
            return self._make("happened", self._name_all())
        if not self._is_past():
            return None
        found = self._read_use() or self._read_number() or self._read_state()
        if found is not None:
            return found
        is_named = bool(self._entities or clause.do or clause.properties)
        is_visit = _VISITS.intersection(clause.do) and clause.tense == "past" and self._names_unknown()
        is_certain = self._is_over() or "enter" in clause.do or is_visit
        if self._asks_for_people() and clause.words:
            return replace(self._make("unrecorded"), unwatched=clause.words)
        return self._make("unrecorded") if is_named and is_certain else None

    def _asks_for_people(self) -> bool:
        return self._is_nobody or any("kind.person" in word.keys for word in self._clause.words)

    def _names_measure(self) -> bool:
        """Return whether a clause names what was measured in a time: "energy this week"."""
        clause = self._clause
        if clause.do or not clause.amount.is_empty or self._span is None:
            return False
        return bool(self._find_metered() or (clause.properties and self._is_over()))

    def _find_metered(self) -> str | None:
        """Return what is counted, such as "energy", also if a label of the home has this name."""
        clause = self._clause
        if clause.words and all(is_label(word) for word in clause.words):
            named = [match.value for match in self._situation.sentence.find("property")]
            return next((name for name in named if name in METERED), None)
        return next((name for name in clause.properties if name in METERED), None)

    def _asks_where_somebody_is(self) -> bool:
        """Return whether a question is about where a person is by now: "has Anna left?"."""
        clause = self._clause
        is_person = any(key.startswith("person.") for word in clause.words for key in word.entity_ids)
        is_plain = clause.time.is_empty and self._asks <= {"is", "ever"}
        return is_person and is_plain and bool(clause.do) and {"home", "away"}.issuperset(clause.do)

    def _is_past(self) -> bool:
        clause, asks = self._clause, self._asks
        if asks & _ABOUT_NOW and clause.time.is_empty:
            return False
        if self._asks_where_somebody_is():
            return False
        if clause.tense == "past" or self._is_over() or clause.time.role in ("since", "ago"):
            return True
        if asks & {"ever", "how_often"} and clause.do:
            return True
        if self._span is not None and (asks & set(_EXTREMES) or self._find_metered()):
            return True
        if "who" in asks:
            return bool(clause.do) and clause.do[0] not in ("home", "away")
        if "enter" in clause.do:
            return True
        is_anybody = self._asks_for_people()
        is_gone = not {"available", "unavailable"}.isdisjoint(clause.properties)
        if "how_long" in asks and not clause.properties and self._asks_for_present_state():
            return True
        return bool(asks & {"how_long", "last"} and (clause.do or is_anybody or is_gone))

    def _asks_for_present_state(self) -> bool:
        """Return whether a question names one thing with a state, and no state: "since when?"."""
        return not self._clause.do and len(self._entities) == 1 and self._entities[0].domain == "person"

    def _is_over(self) -> bool:
        """Return whether the time that is asked for is over."""
        return is_over(self._clause.time, self._situation.now)

    def _read_future(self) -> PastQuestion | None:
        known = {entity.domain for entity in self._entities} & _FORESEEN
        is_about = bool(self._clause.do) or (bool(self._clause.properties) and "when" in self._asks)
        is_asked = bool(self._asks & {"when", "is", "how_long"} and is_about and self._entities)
        is_time_ahead = not self._clause.time.is_empty and self._span is None
        if not is_asked or known or not (is_time_ahead or "when" in self._asks):
            return None
        return self._make("future", self._name_all())

    def _read_use(self) -> PastQuestion | None:
        """Return a question for a consumption: "how much electricity did we use today"."""
        clause, situation = self._clause, self._situation
        measured = {situation.index.get_device_class(entity.id) for entity in self._entities}
        kind = self._find_metered()
        is_state = bool(set(clause.do) - {"used"})
        is_meter = bool(measured) and (measured <= METERED or "used" in clause.do)
        if kind is None and is_meter and measured & METERED and not is_state and not clause.properties:
            kind = "energy" if measured & {"energy", "power"} else next(iter(measured & METERED))
        if kind is None and clause.do == ("used",) and self._asks & {"how_much", "what"}:
            kind = "energy"
        is_moment = self._span is not None and self._span.start == self._span.end
        if kind is None or self._asks & {*_EXTREMES, "when", "how_long", "how_often", "who"} or is_moment:
            return None
        if self._span is None and clause.tense != "past":
            return None
        kind = "energy" if kind == "power" else kind
        words = list_consumer_words(clause)
        unknown = find_unknown_thing(situation, words) if not self._entities else ""
        meters = [] if unknown else find_meters(situation, words, self._entities, kind)
        question = self._make("used", tuple(map(Target, meters)), is_today=True)
        return replace(question, metered=Metered(kind, self._entities, words, unknown))

    def _read_number(self) -> PastQuestion | None:
        """Return a question for a measurement: "how cold did it get last night"."""
        clause = self._clause
        extreme = next((ask for ask in _EXTREMES if ask in self._asks), None)
        is_compared = not _COMPARED.isdisjoint(clause.do)
        if not (clause.properties or extreme or is_compared or self._is_number_asked()):
            return None
        if not _UNMEASURED.isdisjoint(clause.properties):
            return None
        sensors = choose_sensors(self._situation, clause, self._entities)
        if not sensors or (extreme is None and self._span is None and not (clause.properties or is_compared)):
            return None
        return self._make(extreme or "value", tuple(map(Target, sensors)), is_today=True)

    def _is_number_asked(self) -> bool:
        """Return whether a sensor with numbers is asked for its value: "what was the outdoor temperature"."""
        is_measuring = any(entity.domain in _MEASURING for entity in self._entities)
        return bool(self._asks & {"what", "how"} and self._span and is_measuring and not self._clause.do)

    def _read_state(self) -> PastQuestion | None:
        """Return a question for a state, and for how long, how often or by whom."""
        if "where" in self._asks and (people := [e for e in self._entities if e.domain == "person"]):
            home = choose_targets(self._situation, ("home",), people)
            return self._make("where", tuple(Target(*each) for each in home), is_today=True)
        acts = self._choose_acts()
        if not acts and "how_long" in self._asks and self._asks_for_present_state():
            is_home = self._situation.index.get_state(self._entities[0].id) == "home"
            acts = ("home",) if is_home else ("away",)
        entities = self._entities or self._list_meant(acts)
        if not entities and any(
            word.has("kind") and not word.keys & _WHOLE_HOME for word in self._clause.words
        ):
            return None  # There is no such thing: "the window in the garage".
        chosen = self._choose_targets(acts, entities)
        targets = self._settle_states(tuple(Target(entity, asked) for entity, asked in chosen))
        if not targets or self._is_undone(targets):
            return None  # "Did I turn the oven off?" asks for the present if it is on.
        if "until_when" in self._asks:
            return self._make("until", targets)
        if self._asks & {"how_many", "how_much"} and "enter" in acts:
            return self._make("how_often", targets, is_today=True)
        for ask in ("who", "how_often", "how_long", "when"):
            if ask in self._asks or (ask == "how_long" and "how_much" in self._asks):
                return self._make(ask, targets, is_today=ask == "how_often")
        if "last" in self._asks and self._span is None:
            return self._make("when", targets)
        return self._make("was", targets)

    def _choose_targets(
        self, acts: tuple[str, ...], entities: tuple[Entity, ...]
    ) -> list[tuple[Entity, AskedState]]:
        """Return what tells the answer. No door tells whether "the cat" came in."""
        if "enter" not in acts:
            return choose_targets(self._situation, acts, entities)
        return [] if self._names_unknown() else choose_entrances(self._situation, self._entities)

    def _names_unknown(self) -> bool:
        """Return whether a clause has a word for something that the home does not know."""
        find = self._situation.words.find
        return any(
            not (word.entity_ids or word.keys & _GENERAL or find(word.keys)) for word in self._clause.words
        )

    def _is_undone(self, targets: tuple[Target, ...]) -> bool:
        """Return whether speakers ask if they left a thing in a state that it is not in now."""
        is_timed = self._span is not None or not self._asks <= _PLAIN_ASKS
        if is_timed or _LEFT_STATES.isdisjoint(self._clause.do) or not self._names_doer():
            return False
        states = [(self._situation.index.get_state(t.entity.id), t.asked) for t in targets]
        return any(asked and not asked.matches(state) and state not in NO_STATE for state, asked in states)

    def _names_doer(self) -> bool:
        """Return whether the speaker is the subject of a clause: "did I", "ho spento"."""
        return any(match.tag in _DOERS for match in self._situation.sentence.matches)

    def _list_meant(self, acts: tuple[str, ...]) -> tuple[Entity, ...]:
        """Return the things that a question means without a name.

        "What was on last night?" means all that can be on. For people, it is all in the places that are
        named, also beside a word that is not known.
        """
        words, everything = self._situation.words, self._situation.index.entities.values()
        if not self._clause.words and _SWITCHED.intersection(acts) and self._asks & {"what", "which"}:
            return tuple(entity for entity in everything if entity.domain in EVERYTHING)
        if not self._asks_for_people():
            return ()
        keys = frozenset[str]().union(*(word.keys for word in self._clause.words))
        inside = words.find_place(keys) if words.is_place(keys) else frozenset()
        return tuple(entity for entity in everything if entity.id in inside)

    def _choose_acts(self) -> tuple[str, ...]:
        """Return the acts that a question asks for, also if its words leave them out."""
        clause = self._clause
        if "unavailable" in clause.properties:
            return ("broken",)
        if "available" in clause.properties:
            return ("available",)
        if clause.has_make and self._entities and all(e.domain == "person" for e in self._entities):
            return (*clause.do, "away")
        if not clause.do and self._asks_for_people():
            return ("moving",)  # "Was anybody in the living room?"
        if clause.do[:1] == ("moving",) and self._entities and are_doors(self._situation, self._entities):
            return ("open",)  # "Did anybody come through the front door?"
        if clause.do[:1] == ("moving",) and {e.domain for e in self._entities} & _ROBOTS:
            return ("clean",)  # "When did Robby last come through?"
        if not clause.do and self._entities and (clause.has_make or "what" in self._asks):
            return ("used", "on")  # "When did I last make coffee?"
        return clause.do

    def _settle_states(self, targets: tuple[Target, ...]) -> tuple[Target, ...]:
        """Return targets with the states that are asked for: those without anybody, or the present one."""
        index = self._situation.index
        if self._is_nobody and "how_long" in self._asks:
            people = [t.entity for t in targets if t.entity.domain == "person"]
            if people:
                return tuple(Target(*each) for each in choose_targets(self._situation, ("away",), people))
            return tuple(Target(t.entity, invert(t.asked)) for t in targets if t.asked is not None)
        if "present" in self._clause.refer and len(targets) == 1:
            state = index.get_state(targets[0].entity.id)
            if targets[0].asked and not targets[0].asked.matches(state) and state not in NO_STATE:
                return (targets[0]._replace(asked=ask_for(state)),)
        return targets

    def _name_all(self) -> tuple[Target, ...]:
        return tuple(map(Target, self._entities))

    def _make(
        self,
        ask: PastAsk,
        targets: tuple[Target, ...] = (),
        *,
        is_today: bool = False,
    ) -> PastQuestion:
        """Return the question. With `is_today` it is about today if it names no time."""
        span, time = self._span, self._time
        if span is None and (is_today or ask == "happened"):
            time, now = TimeWords(day="today"), self._situation.now
            span = find_past_span(time, now)
        return PastQuestion(
            ask,
            targets[:MAX_TARGETS],
            span,
            time,
            wants_first="first" in self._asks,
            wants_all=self._clause.is_all
            or self._clause.is_everything
            or (self._is_nobody and ask == "how_long"),
            back=self._clause.ask.count("previous"),
            wants_list=self._clause.ask[:1] in (("which",), ("what",))
            and not self._situation.sentence.find("later"),
            is_denied=self._is_nobody and ask == "was",
            names_source="enter" in self._clause.do,
        )


def is_over(time: TimeWords, now: datetime) -> bool:
    """Return whether words can only mean a time that has ended, such as "last night"."""
    span = find_span(time, now)
    is_certain = time.day in _PAST_DAYS or time.role == "ago"
    return is_certain and span is not None and now - span.end > _PRESENT


def settle_time(time: TimeWords) -> TimeWords:
    """Return the time of a question about the past: "after nine" is no nine minutes."""
    if not time.is_bare or time.duration_s is None or time.duration_s > _MAX_HOUR_S:
        return time
    return replace(time, hour=round(time.duration_s / 60), duration_s=None, role="since")


def find_span(time: TimeWords, now: datetime) -> Span | None:
    """Return the past time that words mean; None without one. "Three days ago" is that day."""
    time = settle_time(time)
    if time.is_invalid or time.is_later:
        return None
    span = find_past_span(time, now)
    if span is None or span.start > now or span.end < span.start:
        return None
    if time.role == "ago" and time.duration_s is not None and time.duration_s % UNIT_S["day"] == 0:
        midnight = span.start.replace(hour=0, minute=0, second=0, microsecond=0)
        return Span(midnight, midnight + timedelta(days=1))
    return span
