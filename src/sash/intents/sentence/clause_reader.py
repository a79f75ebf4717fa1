"""Reads the clauses of one sentence: where each begins and ends, and what it says."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from sash.intents.sentence.amounts import find_differences, find_numbers, read_amount
from sash.intents.sentence.clause import NO_AMOUNT, NOTICED, STEPS, Amount, Clause, Word
from sash.intents.sentence.phrase_choice import SETTING, choose_phrases
from sash.intents.sentence.sentence import Sentence
from sash.intents.sentence.time_reader import (
    BETWEEN_JOINS,
    HOUR_ROLES,
    ROLES,
    find_between,
    read_time,
    read_times_between,
)
from sash.intents.sentence.time_words import WEEKDAYS, Number, TimeWords
from sash.intents.words.lexicon import NOUNS
from sash.intents.words.phrases import Match, choose_matches

if TYPE_CHECKING:
    from sash.intents.sentence.reader import SentenceReader

_SWITCHED = frozenset(
    {
        "do",
        "kind",
        "room",
        "noun",
        "name",
        "filler",
        "time",
        "talk",
        "soft",
        "all",
        "item",
        "pronoun",
        "value",
    }
)
_PUT_ON = frozenset(
    {
        "kind.light",
        "kind.tv",
        "kind.radio",
        "kind.media",
        "kind.video",
        "kind.speaker",
        "kind.fan",
        "kind.climate",
    }
    | {f"noun.{noun}" for noun in ("coffee_machine", "washing_machine", "dishwasher", "dryer", "oven")}
    | {f"noun.{noun}" for noun in ("bedside", "ceiling", "floor_lamp", "mirror", "outdoor_lights", "sauna")}
)
# Phrases of fillers with so many words are polite beginnings.
MIN_POLITE_WORDS = 3
_ON_DAYS = frozenset({*WEEKDAYS, "weekend"})
_TIME_SECTIONS = frozenset({"time", "unit"})
# A word that may be a pronoun or an article is a pronoun before these.
_AFTER_PRONOUNS = frozenset({"do", "filler", "value", "not", "refer", "join", "all", "pronoun", "compare"})
# These ask for a value.
_OPEN_ASKS = frozenset({"ask.what", "ask.how_much", "ask.how_many"})
# "It is dark here" asks for the opposite.
COMPLAINTS = frozenset({"brighter", "darker", "warmer", "colder", "louder", "quieter"})
# What is done to a thing that is not to stay as it is.
_OPPOSITES = {"on": "off", "off": "on", "open": "close", "close": "open", "unlock": "lock"}
# Words that ask for an extreme of one property: "the coldest".
_EXTREMES = {"warmest": "highest", "coldest": "lowest"}
_EXTREME_PROPERTIES = {"warmest": "temperature", "coldest": "temperature"}
# Phrases that are no time.
_SAYS_MORE = frozenset({"ask", "do", "keep", "name", "refer", *NOUNS})


class ClauseReader:
    """Reads the clauses of one sentence."""

    def __init__(self, reader: "SentenceReader", sentence: Sentence) -> None:
        self._reader = reader
        self._sentence = sentence
        self._words = sentence.words
        matches = sentence.matches
        fillers = [match for match in matches if match.kind == "filler"]
        self._fillers = frozenset(place for match in fillers for place in match.places)
        # Long phrases without a meaning: "could I have", "be a dear and".
        long_fillers = (match for match in fillers if len(match.places) >= MIN_POLITE_WORDS)
        self._polite = frozenset(place for match in long_fillers for place in match.places)
        tenses = (match for match in matches if match.kind == "tense")
        # "Hoeveel graden hebben we" asks for now, although "hebben we" is also a past.
        measured = {p for m in matches if m.kind == "property" and len(m.places) > 2 for p in m.places}
        present = self._polite | measured
        self._tenses = [match for match in tenses if present.isdisjoint(match.places)]
        self._asks = [match for match in matches if match.kind == "ask"]
        self._pronouns = [match for match in matches if match.kind in ("pronoun", "refer")]
        self._wishes = [match for match in matches if match.kind == "wish"]
        self._by_start: defaultdict[int, list[tuple[int, Match]]] = defaultdict(list)
        for n, match in enumerate(matches):
            self._by_start[match.start].append((n, match))

    def read(self, start: int, end: int) -> list[Clause]:
        """Return the clauses of the words from `start` up to `end`."""
        bounds = self.find_bounds(start, end)
        return [self.read_part(first, last) for first, last in bounds if self._has_words(first, last)]

    def _list_inside(self, start: int, end: int) -> list[Match]:
        """Return the phrases between two places, in the order of the sentence's matches."""
        inside = [each for n in range(start, end) for each in self._by_start.get(n, ()) if each[1].end <= end]
        return [match for _, match in sorted(inside)]

    def _has_words(self, start: int, end: int) -> bool:
        return any(word[0].isalnum() for word in self._words[start:end])

    def find_bounds(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the first place and the place after the last one of each clause."""
        names = {p for m in self._choose_nouns(0, len(self._words)) if len(m.places) > 1 for p in m.places}
        taken = names | self._find_time_joins() | self._polite
        joins = [m for m in self._sentence.matches if m.kind == "join" and taken.isdisjoint(m.places)]
        joins += [m for m in self._sentence.matches if self._corrects_inside(m, start)]
        bounds = []
        for match in choose_matches(m for m in joins if m.start >= start and m.end <= end):
            bounds.append((start, match.start))
            start = match.end if match.kind == "join" else match.start
        bounds.append((start, end))
        return [part for first, last in bounds for part in self._split_run_on(first, last)]

    def _greets(self, match: Match) -> bool:
        """Return whether a greeting stands before a comma or a request: "morning, lights on please"."""
        if match.tag not in ("talk.good_morning", "talk.good_evening") or match.start > 0:
            return False
        end = match.end
        while end < len(self._words) and self._words[end] == "sash":
            end += 1
        following = self._words[end] if end < len(self._words) else ""
        return following == "," or any(
            m.tag in ("mood.polite", "filler") and m.start == end and len(m.places) > 1
            for m in self._sentence.matches
        )

    def _corrects_inside(self, match: Match, start: int) -> bool:
        """Return whether a correction begins a part: "the kitchen light no wait the hall light"."""
        is_phrase = match.tag == "refer.correct" and len(match.places) > 1 and match.start > start
        return is_phrase and any(
            m.kind in ("name", *NOUNS) and m.end <= match.start for m in self._sentence.matches
        )

    def _split_run_on(self, start: int, end: int) -> list[tuple[int, int]]:
        """Split commands that follow each other without a word between them: "lamp off fan on"."""
        inside = self._list_inside(start, end)
        inside = [match for match in inside if not self._is_before_day(match, inside)]
        chosen = choose_phrases(self._sentence, inside, set())
        if second := self._find_second_command(chosen, inside):
            before, after = second
            return [(start, before), (after, end)] if before > start else [(after, end)]
        if any(match.kind in ("ask", "condition") for match in chosen):
            return [(start, end)]
        runs: list[tuple[str, int, int]] = []
        for match in chosen:
            role = "act" if match.kind == "do" and match.value not in SETTING else "thing"
            if match.kind not in ("do", "name", *NOUNS) or (match.kind == "do" and role == "thing"):
                continue
            if runs and runs[-1][0] == role:
                runs[-1] = (role, runs[-1][1], match.end)
            else:
                runs.append((role, match.start, match.end))
        if len(runs) < 4 or len(runs) % 2:
            return [(start, end)]
        # "Lamp off, fan on" is split after each act, and "turn off lamp turn on fan" before each.
        cuts = [last if runs[0][0] == "thing" else first for role, first, last in runs if role == "act"]
        cuts = cuts[:-1] if runs[0][0] == "thing" else cuts[1:]
        places = [start, *cuts, end]
        return list(pairwise(places))

    def _find_second_command(self, chosen: list[Match], inside: list[Match]) -> tuple[int, int] | None:
        """Return where a command ends and another one begins, without a word such as "but" between them.

        "All lights off, but leave the lamp on", "leave this on but turn that off".
        """
        nouns = {match.places for match in inside if match.kind in ("name", *NOUNS)}
        verbs = {match.start for match in chosen if match.kind in ("do", "keep")}
        but = next((m for m in inside if m.kind == "except" and m.end in verbs), None)
        if but is not None and but.places not in nouns:
            return but.start, but.end
        acts = [m.start for m in chosen if m.kind == "do" and m.value not in SETTING]
        kept = next((m.start for m in chosen if m.kind == "keep" and m.end - m.start > 1), None)
        return None if kept is None or min(acts, default=kept) >= kept else (kept, kept)

    def _find_time_joins(self) -> set[int]:
        """Return the places of words in numbers and times: "treinta y cinco", "siete y media"."""
        times = [m for m in self._sentence.matches if m.kind in _TIME_SECTIONS]
        numbers = find_numbers(self._sentence, self._reader.lexicon.numbers, 0, len(self._words))
        found = {p for m in times if len(m.places) > 1 and m.value not in BETWEEN_JOINS for p in m.places}
        # "Tutte e due".
        found.update(p for m in self._sentence.matches if m.kind in ("all", "refer") for p in m.places[1:-1])
        if between := find_between(times, numbers):
            found.update(between[1].places)
        for number in numbers:
            found.update(range(number.start, number.end))
            is_hour = any(m.end == number.start and m.value in HOUR_ROLES for m in times)
            if is_hour and any(n.start == number.end + 1 for n in numbers):
                found.update(m.start for m in times if m.value == "and_minutes" and m.start == number.end)
        return found

    def _choose_nouns(self, start: int, end: int) -> list[Match]:
        kinds = {"name", *NOUNS}
        inside = [m for m in self._sentence.matches if m.kind in kinds and m.start >= start and m.end <= end]
        return choose_matches(inside)

    def read_part(self, start: int, end: int) -> Clause:
        """Return the clause of the words from `start` up to `end`."""
        inside = self._list_inside(start, end)
        numbers = find_numbers(self._sentence, self._reader.lexicon.numbers, start, end)
        inside = [m for m in inside if not (m.kind == "do" and self._ends_in_preposition(m, inside, numbers))]
        inside = [m for m in inside if not self._is_before_day(m, inside)]
        long_names = choose_matches(m for m in inside if m.kind == "name" and self._is_long_name(m))
        named = {place for match in long_names for place in match.places}
        phrases = choose_matches(m for m in inside if m.kind in ("do", *NOUNS) and len(m.places) > 1)
        # A time goes on after "schalte … um": "schalte um 8".
        starts = {*(n.start for n in numbers), *(m.start for m in inside if m.kind in _TIME_SECTIONS)}
        phrases = [each for each in phrases if each.kind != "do" or each.end not in starts]
        named |= {place for match in phrases if match.kind == "property" for place in match.places}  # "CO2"
        # "Three quarters" is an amount of its own.
        sizes = {p for m in inside if m.kind == "amount" and len(m.places) > 1 for p in m.places}
        numbers = [n for n in numbers if (named | sizes).isdisjoint(range(n.start, n.end))]
        # "Schalte … bis 22 Uhr ein" ends with a part of its verb.
        last_word = max((n for n in range(start, end) if self._words[n][0].isalnum()), default=start)
        verb_ends = {m.places[-1] for m in phrases if m.kind == "do"} & {last_word}
        numbers = [n for n in numbers if n.start not in verb_ends]
        # "Labelled night" names a label and no time.
        last = min((m.start for m in inside if m.tag == "ask.labelled"), default=end)
        # "For the night" is a mode of an alarm and "mesita de noche" a thing, and no time.
        times = [
            m
            for m in inside
            if m.kind in _TIME_SECTIONS
            and named.isdisjoint(m.places)
            and not any(
                len(one.places) >= len(m.places) and not set(m.places).isdisjoint(one.places)
                for one in phrases
                if m.value not in ROLES
            )
        ]
        times = [m for m in times if not self._means_all(m, inside, numbers)]
        # "Evening, could you …" greets.
        greeted = {p for m in self._sentence.matches if self._greets(m) for p in m.places}
        times = [m for m in times if not greeted.issuperset(m.places)]
        # "Too much" is no amount.
        rejected = {place for m in inside if m.tag == "refer.too_much" for place in m.places}
        inside = [m for m in inside if m.kind != "amount" or not rejected.issuperset(m.places)]
        # "The night before" is another time than that of the last question.
        earlier = {place for m in inside if m.tag == "compare.before" for place in m.places}
        times = [m for m in times if not earlier.issuperset(m.places)]
        differences = {m.places for m in find_differences(inside, numbers)}
        times = [m for m in times if m.places not in differences]
        inside = [m for m in inside if not (self._names_many(m, inside) or self._is_label(m, inside))]
        times = [match for match in times if match.start < last]
        times += [m for m in inside if m.kind == "join" or m.tag == "refer.more"]
        # A command that is to be done between two times is left to the parts that wait.
        asking = [m for m in inside if m.kind in ("ask", "tense") and m.value not in ("lowest", "highest")]
        is_asked = "?" in self._words[start:end] or bool(asking)
        between = read_times_between(times, numbers, last_word + 1) if is_asked else None
        time = between or read_time(times, numbers, last_word + 1)
        if is_asked:  # "The lowest temperature" asks for an extreme, and sets nothing.
            extremes = {m.places for m in inside if m.kind == "ask"}
            inside = [m for m in inside if m.kind != "amount" or m.places not in extremes]
        amount, used = read_amount(self._sentence, inside, numbers, time)
        taken = {*time.places, *used}
        return self._build(start, end, inside, taken, amount, time)

    def _is_before_day(self, match: Match, inside: list[Match]) -> bool:
        """Return whether an act is only a preposition: "on" in "was Anna home on Monday"."""
        is_preposition = match.kind == "do" and any(
            m.kind == "value" and m.places == match.places for m in inside
        )
        if not is_preposition or not any(m.value in _ON_DAYS and m.start == match.end for m in inside):
            return False
        return any(
            m.kind == "do" and m.value not in SETTING and set(m.places).isdisjoint(match.places)
            for m in inside
        )

    def _is_label(self, match: Match, inside: list[Match]) -> bool:
        """Return whether the word for a colour is a label: "the cosy lights", "everything labelled cosy"."""
        if match.kind != "colour" or not self._reader.is_label_of_home(self._words[match.start : match.end]):
            return False
        return any(
            (m.kind in NOUNS and m.start == match.end) or (m.tag == "ask.labelled" and m.end == match.start)
            for m in inside
        )

    def _is_long_name(self, match: Match) -> bool:
        """Return whether a name has several words or a number. No part of it is a time then."""
        return len(match.places) > 1 or any(self._words[place][0].isdigit() for place in match.places)

    def _names_many(self, match: Match, inside: list[Match]) -> bool:
        """Return whether a name means all things of a kind: "all bedroom lights"."""
        if match.kind != "name" or len(match.places) < 2:
            return False
        has_all = any(m.kind == "all" and m.end == match.start for m in inside)
        last = {m.kind for m in inside if m.places == match.places[-1:]}
        first = {m.kind for m in inside if m.start == match.start and m.end < match.end}
        return has_all and "kind" in last and "room" in first

    def _means_all(self, match: Match, inside: list[Match], numbers: list[Number]) -> bool:
        """Return whether a word for "every" names things and no time: "every light", but "every 2 hours"."""
        is_both = match.tag == "time.every" and any(
            m.kind == "all" and m.places == match.places for m in inside
        )
        times = {m.start for m in inside if m.kind in _TIME_SECTIONS} | {number.start for number in numbers}
        return is_both and match.end not in times

    def _ends_in_preposition(self, match: Match, inside: list[Match], numbers: list[Number]) -> bool:
        """Return whether the last word of a phrase is no part of its verb: "auf" in "auf der Terrasse"."""
        lexicon, place = self._reader.lexicon, match.end - 1
        word, following = self._words[place], next(iter(self._words[match.end :]), "")
        if word not in lexicon.particles or any(m.kind == "except" and m.start == match.end for m in inside):
            return False
        if following in lexicon.not_after_particle:
            return True
        if following in lexicon.particles:
            return not self._is_before_noun(match.end, inside)
        is_value = any(m.kind == "value" and m.places == (place,) for m in inside)
        if not is_value and word not in lexicon.not_after_particle:
            return False
        kinds = {"name", "amount", "colour", "option", *NOUNS}
        starts = {*(m.start for m in inside if m.kind in kinds), *(number.start for number in numbers)}
        return match.end in starts

    def _is_before_noun(self, place: int, inside: list[Match]) -> bool:
        """Return whether a word is a preposition: "in" in "licht aan in de keuken"."""
        following = next(iter(self._words[place + 1 :]), "")
        is_noun = any(m.kind in ("name", *NOUNS) and m.start == place + 1 for m in inside)
        return is_noun or following in self._reader.lexicon.articles

    def _build(
        self,
        start: int,
        end: int,
        inside: list[Match],
        taken: set[int],
        amount: Amount,
        time: TimeWords,
    ) -> Clause:
        sentence = self._sentence
        chosen = choose_phrases(sentence, inside, taken)
        words, excluded = self._split_excluded(start, end, taken, chosen)
        values: dict[str, list[str]] = {}
        for match in chosen:
            values.setdefault(match.kind, []).append(match.value)
        self._settle_asks(values, chosen, start, end)
        text = sentence.cut(start, end)
        asks = values.get("ask", [])
        measured = tuple(_EXTREME_PROPERTIES[ask] for ask in asks if ask in _EXTREME_PROPERTIES)
        asks = [_EXTREMES.get(ask, ask) for ask in asks]
        acts = [*values.get("do", ()), *values.get("keep", ())]
        if not acts and "left_so" in asks:
            acts = self._find_left_state(chosen, inside)
        do = tuple(dict.fromkeys(value for value in acts if value not in SETTING))
        if do and not asks and COMPLAINTS.issuperset(acts) and _is_outside(words):
            # "It is cold outside" asks for nothing that a home could do.
            measured = ("temperature",) if {"warmer", "colder"}.intersection(do) else measured
            do = ()
        is_named = bool(words) or "everything" in values
        if do and not asks and is_named and self._only_names_state(chosen, start, end):
            values["ask"] = asks = ["is"]  # "Luce accesa in cucina".
        if do and not asks and _only_tells_where(do, words):
            values["ask"] = asks = ["is"]  # "Anna ya se ha ido" asks: a person is no device to send away.
        if set(acts) == {"put"} and amount == NO_AMOUNT and _SWITCHED.issuperset(values):
            do = _switch_on(words)
        is_no_more = any(match.tag == "not.more" and match.start == start for match in chosen)
        if is_no_more and not (acts or asks) and _switch_on(words):
            do = ("off",)  # "No more music", but not "there is no more music".
            del values["not"]
        is_instead = any(match.tag == "except.instead" for match in chosen[:1])
        keeps, is_negated = "keep" in values and amount.is_empty, "not" in values or is_instead
        if keeps and is_negated:
            # "Don't leave the lights on" is a command to turn them off.
            do = tuple(_OPPOSITES.get(value, value) for value in do)
            keeps = is_negated = False
        return Clause(
            text,
            do,
            not SETTING.isdisjoint(acts),
            tuple(dict.fromkeys(asks)),
            tuple(words),
            tuple(excluded),
            tuple(key.partition(".")[2] for word in words for key in word.keys if key.startswith("property."))
            or measured,
            amount,
            time,
            frozenset((*values.get("refer", ()), *self._find_pronouns(chosen, taken, end))),
            is_all="all" in values,
            is_any="any" in values or self._asks_for_any(chosen) or self._asks_if_left_on(asks, words),
            is_everything="everything" in values,
            is_negated=is_negated,
            is_question=not {"?", "¿"}.isdisjoint(self._words[start:end]) or "ask" in values,
            tense=self._find_tense(start, end),
            keeps=keeps,
        )

    def _split_excluded(
        self, start: int, end: int, taken: set[int], chosen: list[Match]
    ) -> tuple[list[Word], list[Word]]:
        """Return the words of a clause, and those behind "except"."""
        words: list[Word] = []
        excluded: list[Word] = []
        is_excluding = False
        by_place = {match.start: match for match in chosen}
        for place in range(start, end):
            match = by_place.get(place)
            is_excluding |= match is not None and match.kind == "except"
            (excluded if is_excluding else words).extend(self._describe(match, place, taken, chosen))
        return words, excluded

    def _settle_asks(self, values: dict[str, list[str]], chosen: list[Match], start: int, end: int) -> None:
        """Correct the asks of a clause in `values`.

        A wish, a complaint or an order asks nothing, so its ask is removed. A clause that names only a state,
        or begins with a verb of the past or with "any", gets the ask "is".
        """
        asks = values.get("ask", [])
        # "Lass das Licht brennen" begins with what is to be done.
        keeps = bool(chosen) and chosen[0].kind == "keep" and "?" not in self._words[start:end]
        is_stated = keeps or self._states_wish(chosen, start, end) or self._complains(chosen, start, end)
        is_some = asks == ["what"] and self._follows_setting(chosen, start, end)
        # "First turn on the light, then the fan" asks nothing.
        is_order = asks == ["first"] and "do" in values and chosen[0].tag == "ask.first"
        if (set(asks) == {"is"} and is_stated) or is_some or is_order:
            del values["ask"]
        acts = values.get("do")
        is_state = bool(acts) and NOTICED.issuperset(acts or ())
        is_asked = is_state or self._begins_in_past(start, end) or self._begins_with_any(chosen)
        if "ask" not in values and not is_order and is_asked:
            values["ask"] = ["is"]
        if not is_order and set(values.get("ask", ())) <= {"is"} and self._asks_inside(chosen):
            values["ask"] = ["what"]

    def _states_wish(self, chosen: list[Match], start: int, end: int) -> bool:
        """Return whether a clause says what a thing shall do: "Robby soll saugen", "der soll saugen"."""
        wish = next((match for match in self._wishes if start < match.start < end), None)
        if wish is None:
            return False
        is_named = any(m.end <= wish.start and m.kind in ("name", "refer", *NOUNS) for m in chosen)
        is_named = is_named or any(map(self._is_pronoun, range(start, wish.start)))
        has_subject = is_named or self._only_times(chosen, start, wish.start)
        return has_subject and not {"?", "¿"} & set(self._words[start:end])

    def _only_names_state(self, chosen: list[Match], start: int, end: int) -> bool:
        """Return whether the only act of a clause is a state, not an order or a wish: "luce accesa"."""
        acts = {self._words[place] for m in chosen if m.kind in ("do", "keep") for place in m.places}
        if not acts or not acts <= self._reader.lexicon.participles:
            return False
        inside = (m for m in self._sentence.matches if m.start >= start and m.end <= end)
        return not any(m.kind in ("please", "wish", "later", "condition", "not") for m in inside)

    def _only_times(self, chosen: list[Match], start: int, end: int) -> bool:
        """Return whether a clause begins with a time: "in zehn Minuten soll der Fernseher ausgehen"."""
        has_time = any(m.kind == "time" and start <= m.start < end for m in self._sentence.matches)
        return has_time and not any(m.end <= end and m.kind in _SAYS_MORE for m in chosen)

    def _asks_if_left_on(self, asks: Sequence[str], words: Sequence[Word]) -> bool:
        """Return whether a clause asks if several things were left on: "did I leave any lights on?"."""
        return "left_so" in asks and any(word.is_plural for word in words)

    def _find_left_state(self, chosen: list[Match], inside: list[Match]) -> list[str]:
        """Return the states inside a phrase that asks for them: "angelassen" in "habe ich … angelassen"."""
        asked = {place for match in chosen if match.tag == "ask.left_so" for place in match.places}
        return [m.value for m in inside if m.kind == "do" and asked.issuperset(m.places)]

    def _follows_setting(self, chosen: list[Match], start: int, end: int) -> bool:
        """Return whether a word for "what" means "some" after a verb: "zet wat muziek aan"."""
        settings = [m.start for m in chosen if m.kind == "do" and m.value in SETTING]
        asked = [m.start for m in chosen if m.kind == "ask"]
        return bool(settings) and min(settings) < min(asked) and "?" not in self._words[start:end]

    def _complains(self, chosen: list[Match], start: int, end: int) -> bool:
        """Return whether a clause complains about the home without asking: "es ist stockdunkel hier"."""
        first = next((n for n in range(start, end) if n not in self._fillers or self._is_pronoun(n)), end)
        asked = (match.start for match in self._asks if start <= match.start < end)
        is_stated = all(place > first for place in asked)
        acts = [match.value for match in chosen if match.kind == "do"]
        is_asked = "?" in self._words[start:end]
        return bool(acts) and COMPLAINTS.issuperset(acts) and is_stated and not is_asked

    def _is_pronoun(self, place: int) -> bool:
        return any(match.places == (place,) for match in self._pronouns)

    def _asks_inside(self, chosen: list[Match]) -> bool:
        """Return whether a word that asks is a part of a longer phrase: "qué temperatura hace"."""
        inside = {p for m in chosen if m.kind == "property" and len(m.places) > 1 for p in m.places}
        return any(match.tag in _OPEN_ASKS and match.start in inside for match in self._asks)

    def _begins_in_past(self, start: int, end: int) -> bool:
        """Return whether the first word that means something is a verb of the past: "se ha movido algo"."""
        first = next((n for n in range(start, end) if n not in self._fillers), end)
        return any(m.tag == "tense.past" and start <= m.start <= first for m in self._tenses)

    def _begins_with_any(self, chosen: list[Match]) -> bool:
        """Return whether a clause asks without a verb: "any windows open", but not "any colour brighter"."""
        first = next((match for match in chosen if match.kind not in ("filler", "soft", "join")), None)
        acts = {match.value for match in chosen if match.kind == "do"}
        asked = {match.start for match in self._sentence.matches if match.tag == "any.asked"}
        return first is not None and first.start in asked and not acts & {*STEPS, *SETTING}

    def _asks_for_any(self, chosen: list[Match]) -> bool:
        """Return whether a word that asks also means "any": "hay" in "¿hay luces encendidas?"."""
        asked = {match.places for match in chosen if match.kind == "ask"}
        return bool(asked) and any(m.kind == "any" and m.places in asked for m in self._sentence.matches)

    def _find_pronouns(self, chosen: list[Match], taken: set[int], end: int) -> Iterator[str]:
        """Yield what pronouns refer to. Before a noun the same words are articles: "la" and "la luz"."""
        kinds = {match.start: match.kind for match in chosen if match.tag != "refer.other"}
        kinds |= {place: "do" for match in chosen if match.kind == "keep" for place in match.places}
        for match in chosen:
            place = match.end
            is_last = place >= end or not self._words[place][0].isalnum()
            if match.kind == "pronoun" and (is_last or place in taken or kinds.get(place) in _AFTER_PRONOUNS):
                same = (each for each in self._pronouns if each.places == match.places)
                yield from (each.value for each in same if each.kind == "pronoun")

    def _find_tense(self, start: int, end: int) -> str | None:
        """Return the tense of a clause. A future word counts more: "will she have been home"."""
        found = {m.value for m in self._tenses if m.start >= start and m.end <= end}
        return "future" if "future" in found else "past" if "past" in found else None

    def _describe(self, match: Match | None, place: int, taken: set[int], chosen: list[Match]) -> list[Word]:
        """Return the description that begins at a place; empty for other words."""
        if match is not None:
            text = self._sentence.cut(match.start, match.end)
            if match.kind == "name":
                return [self._reader.make_name(text, match)]
            if match.kind in NOUNS:
                return self._reader.make_word(text, " ".join(self._words[p] for p in match.places), match)
            return []
        if place in taken or any(place in m.places for m in chosen):
            return []
        word = self._words[place]
        if not word.isalpha() or word in self._reader.lexicon.particles:
            return []
        return self._reader.make_word(self._sentence.cut(place, place + 1), word, None)


def _is_outside(words: Sequence[Word]) -> bool:
    return any("room.outside" in word.keys for word in words)


def _switch_on(words: Sequence[Word]) -> tuple[str, ...]:
    """Return what a verb such as "mets" does alone: it switches on what can play or shine."""
    is_known = all(word.is_known for word in words)
    return ("on",) if is_known and any(not _PUT_ON.isdisjoint(word.keys) for word in words) else ()


def _only_tells_where(do: Sequence[str], words: Sequence[Word]) -> bool:
    """Return whether a clause says of a person that they are at home or away."""
    is_person = any(key.startswith("person.") for word in words for key in word.entity_ids)
    return is_person and {"home", "away"}.issuperset(do)
