"""Writes answers in one language: sentences from its file, numbers, times, names and states."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from sash.home.index import HomeIndex
from sash.intents.answers.names import Name, Namer, join_names
from sash.intents.words.lexicon import load_lexicon
from sash.ports.home import NO_STATE, UNKNOWN, Area, Entity
from sash.values.state_words import choose_state_words

MAX_DECIMALS = 2
# A date that is nearer is said without its year.
DAYS_OF_YEAR = 300
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


@cache
def _load_sentences(language: str) -> Mapping[str, Any]:
    path = files("sash") / "data" / "answers" / f"{language}.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}


class AnswerWriter:
    """The sentences, numbers and names of one language. A sentence without a translation is in English."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._sentences = _load_sentences(language)
        self._english = _load_sentences("en")
        self._states = choose_state_words(language)
        self._forms: Mapping[str, Any] = self._english["forms"] | self._sentences.get("forms", {})
        self._verbs: Mapping[str, str] = self._forms.get("verbs", {})
        self._was: Sequence[str] = self._forms.get("was", ("", ""))
        self._agreement: Mapping[str, Mapping[str, str]] = self._forms.get("agreement", {})
        # The endings of a participle: masculine, feminine, and both in the plural.
        self._endings: Sequence[str] = self._forms.get("endings", ("", "", "", ""))
        contractions: Mapping[str, str] = self._forms.get("contractions", {})
        self._contractions = [
            (re.compile(rf"(?<!\w){words}"), short) for words, short in contractions.items()
        ]
        self._namer = Namer(load_lexicon(language), self._sentences.get("forms", {}))

    def say(self, key: str, /, **values: Any) -> str:
        """Return a sentence by its key, such as "talk.hello", with its blanks filled in."""
        text = self.phrase(key, **values)
        return text[:1].upper() + text[1:]

    def phrase(self, key: str, /, **values: Any) -> str:
        """Return a text for the middle of a sentence by its key, with its blanks filled in."""
        section, _, name = key.partition(".")
        template = str(self._sentences.get(section, {}).get(name) or self._english[section][name])
        filled = {blank: Name(value) if type(value) is str else value for blank, value in values.items()}
        for name in filled.values():
            if isinstance(name, Name):
                name.end = self._endings[2 * name.is_plural + name.is_feminine]
        text = template.format(**filled | self._conjugate(template, filled))
        return self._contract(text.replace("  ", " "))

    @property
    def prepositions(self) -> frozenset[str]:
        """The prepositions of places, such as "in" and "im"."""
        inside: Mapping[str, str] = self._forms.get("cases", {}).get("inside", {})
        return frozenset(text.split()[0].lower() for text in inside.values() if text)

    @property
    def or_word(self) -> str:
        """The word between alternatives, such as "or"."""
        return str(self._forms["or"])

    def has(self, key: str) -> bool:
        section, _, name = key.partition(".")
        return name in self._english.get(section, {})

    def table(self, key: str) -> Mapping[str, str]:
        """Return a table of words by its key, such as "memory.swap", or a section.

        Empty if the language has none.
        """
        section, _, name = key.partition(".")
        found = self._sentences.get(section, {})
        table: Mapping[str, str] = found.get(name, {}) if name else found
        return table

    def join(self, items: Iterable[str], word: str = "and") -> Name:
        """Return a list as a person says it: "the lamp, the fan and the TV". `word` is "and" or "or"."""
        return join_names(items, self._forms[word], is_sum=word == "and")

    def number(self, value: float, decimals: int = MAX_DECIMALS) -> str:
        """Return a number with a few decimals at most, and the decimal mark of the language."""
        text = f"{value:.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text.replace(".", self._forms["decimal_mark"])

    def quantity(self, value: float | str, unit: str) -> str:
        """Return a number with its unit as it is said: "18.2 degrees", "47 percent", "320 watts"."""
        number = self.number(float(value), self._choose_decimals(unit))
        spoken = self._forms["units"].get(unit, unit)
        return f"{number} {spoken}".strip()

    def duration(self, seconds: float) -> str:
        """Return a length of time, rounded: "3 hours and 10 minutes"."""
        seconds = round(seconds)
        if seconds < _MINUTE_S:
            return self._count(seconds, "second")
        return self.join(self._count_minutes(round(seconds / _MINUTE_S)))

    def exact_duration(self, seconds: float) -> str:
        """Return a length of time with its seconds: "1 hour and 30 seconds"."""
        minutes, rest = divmod(round(seconds), _MINUTE_S)
        parts = self._count_minutes(minutes)
        return self.join([*parts, self._count(rest, "second")] if rest or not parts else parts)

    def _count_minutes(self, minutes: int) -> list[str]:
        """Return the days, hours and minutes of a length of time. Two days and more have no minutes."""
        days, minutes = (
            divmod(minutes, _DAY_S // _MINUTE_S) if minutes >= 2 * _DAY_S // _MINUTE_S else (0, minutes)
        )
        hours, minutes = divmod(minutes, 60)
        parts = [(days, "day"), (hours, "hour"), (0 if days else minutes, "minute")]
        return [self._count(count, unit) for count, unit in parts if count]

    def clock(self, moment: datetime) -> str:
        """Return a time of day: "8:04"."""
        form = self._forms["clock"] if moment.minute else self._forms.get("full_hour", self._forms["clock"])
        return str(form).format(hour=moment.hour, minute=f"{moment.minute:02}")

    def moment(self, moment: datetime, now: datetime) -> str:
        """Return a time with its day as it is said today: "yesterday at 17:17"."""
        return str(self._forms["day_and_clock"]).format(day=self.day(moment, now), clock=self.clock(moment))

    def day(self, moment: datetime, now: datetime) -> str:
        """Return a day: "today", "yesterday", "on Monday", "on 5 January". Others have a year."""
        days = (moment.date() - now.date()).days
        near = {
            -2: "day_before_yesterday",
            -1: "yesterday",
            0: "today",
            1: "tomorrow",
            2: "day_after_tomorrow",
        }
        if days in near:
            return str(self._forms[near[days]])
        if -7 < days < 7:
            return str(self._forms["on_weekday"]).format(weekday=self._forms["weekdays"][moment.weekday()])
        # The months of a year ago would be taken for the last ones.
        form = "on_date" if abs(days) < DAYS_OF_YEAR else "on_date_of_year"
        return str(self._forms[form]).format(
            day=self._day_of_month(moment), month=self._forms["months"][moment.month - 1], year=moment.year
        )

    def month(self, moment: datetime) -> str:
        """Return the name of the month of a time: "January"."""
        return str(self._forms["months"][moment.month - 1])

    def date(self, moment: datetime) -> str:
        """Return a whole date: "Saturday, 17 January 2026"."""
        return str(self._forms["date"]).format(
            weekday=self._forms["weekdays"][moment.weekday()],
            day=self._day_of_month(moment),
            month=self._forms["months"][moment.month - 1],
            year=moment.year,
        )

    def name(self, thing: Entity | Area) -> Name:
        """Return the name of a thing in the middle of a sentence: "the kitchen light", "Robby".

        A thing with an English name has its alias in the language of the writer, if there is one.
        """
        return self._namer.name(thing)

    def name_text(self, text: str, aliases: Sequence[str] = ()) -> Name:
        """Return a name that stands for no entity that is known here, or an alias of it, with its article."""
        return self._namer.name_text(text, aliases)

    def title(self, text: str, aliases: Sequence[str] = ()) -> str:
        """Return the name of a scene or script for quotation marks: an alias or a translation of it."""
        title = self._namer.name_text(text, aliases).bare
        return title[:1].upper() + title[1:]

    def name_bare(self, text: str) -> Name:
        """Return a name or a noun without an article, with the prepositions of the language: "d'énergie"."""
        return self._namer.name_bare(text)

    def name_noun(self, text: str) -> Name:
        """Return a common noun such as "temperature", with the cases of the language."""
        return self._namer.name_noun(text)

    def write_noun(self, text: str) -> str:
        """Return what a person wrote as one noun, with a capital letter if the language has one for nouns."""
        return text[:1].upper() + text[1:] if self._forms.get("capital_nouns") and " " not in text else text

    def strip_about(self, text: str) -> str:
        """Return what a reminder is about, without its preposition: "the laundry" for "about the laundry"."""
        first, _, rest = text.partition(" ")
        return rest if rest and first.lower() in self._forms["about"] else text

    def names(self, entities: Sequence[Entity], word: str = "and") -> Name:
        """Return the names of entities as a list, without repetitions."""
        return self.join(dict.fromkeys(self.name(entity) for entity in entities), word)

    def state(self, index: HomeIndex, entity: Entity) -> str:
        """Return the present state of an entity in words, with its unit."""
        state = index.states.get(entity.id)
        if state is None or state.state in NO_STATE:
            return self.state_name(UNKNOWN if state is None else state.state)
        if state.domain == "climate" and (mode := self.table("climate").get(state.state)):
            return mode
        named = self.state_name(state.state, index.get_device_class(entity.id))
        if state.domain == "person" and state.state not in ("home", "not_home"):
            return self.phrase("people.zone", place=named)
        if named == state.state and _is_number(state.state):
            return self.quantity(state.state, state.unit)
        return named.replace("_", " ")

    def state_name(self, state: str, device_class: str = "") -> str:
        """Return the name of a state: "closed" for off of a window sensor."""
        return self._states.name_state(state, device_class)

    def _count(self, count: int, unit: str) -> str:
        one, several = self._forms[unit]
        return f"{count} {one if count == 1 else several}"

    def _day_of_month(self, moment: datetime) -> str:
        return str(self._forms.get("first_of_month", 1)) if moment.day == 1 else str(moment.day)

    def _choose_decimals(self, unit: str) -> int:
        return 1 if unit in ("°C", "°F", "%", "W", "V") else MAX_DECIMALS

    def _contract(self, text: str) -> str:
        """Return a text with the short forms of its words: "del" for "de el"."""
        for words, short in self._contractions:
            text = words.sub(short, text)
        return text

    def _agree(self, state: str, named: Name) -> str:
        """Return the form of a state that agrees with a name: "encendida" of a feminine one."""
        gender, number = "feminine" if named.is_feminine else "", "plural" if named.is_plural else ""
        return self._agreement.get("_".join(filter(None, (gender, number))), {}).get(state, state)

    def _conjugate(self, template: str, values: Mapping[str, Any]) -> dict[str, str]:
        """Return "is" or "are" for {be}. A state that is a verb, such as "heizt", needs none."""
        named = values.get("name") or values.get("names") or Name("")
        if self._agreement and (named[:1].isdigit() or (not named and "things" in values)):
            named = self._add_gender(named or values["things"])
        state = self._agree(str(values.get("state", "")), named)
        is_plural, (one, several) = getattr(named, "is_plural", False), self._forms["be"]
        words = {"be": several if is_plural else one, "was": self._was[is_plural], "state": state}
        if state in self._verbs:
            # "È rimasto al lavoro" has a verb of its own between the two.
            is_said = "{be} {state}" in template and not is_plural
            words |= {"be": "", "state": state} if is_said else {"state": self._verbs[state]}
        return words

    def _add_gender(self, things: Name) -> Name:
        """Return a text such as "5 lumières" with the gender of its noun."""
        is_plural = things.is_plural or self._namer.add_article(things).is_plural
        return Name(things, is_plural=is_plural, is_feminine=self._namer.is_feminine(things))


@cache
def choose_writer(language: str) -> AnswerWriter:
    """Return the writer of one of the languages with a lexicon."""
    return AnswerWriter(language)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
