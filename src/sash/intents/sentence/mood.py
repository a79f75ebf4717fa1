"""Tells requests from sentences that ask for nothing: reports, plans, quotations, and what is taken back.

A request has a verb in the imperative, a polite phrase, or no verb at all: "lights on". A part of a sentence
asks for nothing if a subject stands before its verb: "I turned off the heating". The words for this are in
the section `mood` of a lexicon:

* `speaker`, `subject`, `you`: subjects. `auxiliary`: verbs and adverbs between a subject and its verb.
* `polite`: phrases that make a request of a part with a subject: "I want".
* `verb`: verbs of a third person that are no acts: "macht".
* `told`: verbs that report about the thing before them: "the radio stopped".
* `report`: verbs that are never a request, although their subject is left out: "apagué".
* `link`: words that begin a part that depends on another one: "if", "that".
* `denial`: the beginning of a sentence that says what is not wanted. `none`: "no" before a noun.
* `say`: verbs of a quotation. `i_say`: the same about the speaker, who may well repeat a request.
* `back`: the end of a sentence that takes the rest back: "never mind".
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sash.intents.question_detection import asks_ability, is_question
from sash.intents.sentence.clause import NOTICED
from sash.intents.sentence.phrase_choice import SETTING
from sash.intents.sentence.sentence import Sentence
from sash.intents.words.lexicon import NOUNS
from sash.intents.words.phrases import Match

if TYPE_CHECKING:
    from sash.intents.sentence.reader import SentenceReader

# The verb ends a part in these languages: "ich habe das Licht angemacht".
_VERB_LAST = ("de", "nl")
# States that a home does not switch. Words for them say nothing about a request.
_NO_ACTS = frozenset(NOTICED | {"home", "away", "done", "broken", "happen", "used", "enter", "run", "locate"})
# What is said about the light or the warmth is no request beside a condition: "it gets warmer".
_FEELINGS = frozenset({"brighter", "darker", "warmer", "colder", "louder", "quieter"})
# English particles. Those of other languages are in their lexicons.
_SHORT_ACTS = frozenset({"on", "off", "up", "down"})
_EMPTY = frozenset({"filler", "soft", "talk", "join", "time", "remark"})
_WEAK = frozenset({"filler", "soft", "talk", "refer"})
_THINGS = frozenset({"name", *NOUNS})


def keep_requests(sentence: Sentence, reader: "SentenceReader") -> Sentence | None:
    """Return a sentence without the parts that ask for nothing. Return None if no part is a request.

    A sentence without such parts stays as it is.
    """
    return _Mood(sentence, reader).keep_requests()


class _Mood:
    """The mood of one sentence."""

    def __init__(self, sentence: Sentence, reader: "SentenceReader") -> None:
        self._sentence = sentence
        self._reader = reader
        self._words = sentence.words
        self._moods = [m for m in sentence.matches if m.kind == "mood" or m.tag == "remark.subject"]
        things = (match for match in sentence.matches if match.kind in _THINGS)
        self._things = {place for match in things for place in match.places}

    def keep_requests(self) -> Sentence | None:
        if not self._moods:
            return self._sentence
        if self._is_quoted() or self._is_taken_back():
            return None
        if self._asks_to_tell():
            return self._sentence
        parts = self._split()
        idle: list[tuple[int, int]] = []
        for start, end in parts:
            follows = bool(idle) and idle[-1][1] >= start - 1
            if self._asks_nothing(start, end) or (follows and self._begins(("told",), start, end)):
                idle.append((start, end))
        if not idle:
            return self._sentence
        kept = [part for part in parts if part not in idle]
        depends = any(self._begins(("link",), *part) for part in idle)
        if not any(self._is_request(*part, strictly=depends or self._denies(idle)) for part in kept):
            return None
        if depends:
            return self._sentence  # A condition belongs to the request after it.
        text = ", ".join(self._sentence.cut(*part) for part in kept)
        rest = self._reader.read(text, corrects=self._sentence.corrected)
        return None if self._refers_back(rest) else rest

    def _asks_to_tell(self) -> bool:
        """Return whether a sentence asks to be told about something: "tell me if somebody opens the door"."""
        matches = self._sentence.matches
        fillers = {p for m in matches if m.kind in _EMPTY for p in m.places}
        tells = [m for m in matches if m.tag == "later.tell" and fillers.issuperset(range(m.start))]
        conditions = [m for m in matches if m.tag in ("condition.when", "condition.if")]
        return any(match.end == each.start for match in tells for each in conditions)

    def _denies(self, parts: list[tuple[int, int]]) -> bool:
        return any(self._begins(("denial",), *part) for part in parts)

    def _split(self) -> list[tuple[int, int]]:
        """Return the bounds of the parts between commas, and of those that begin with "and" and a verb."""
        bounds = self._reader.find_bounds(self._sentence)
        return [(start, end) for start, end in bounds if any(w[0].isalnum() for w in self._words[start:end])]

    def _inside(self, start: int, end: int) -> list[Match]:
        return [match for match in self._sentence.matches if match.start >= start and match.end <= end]

    def _find(self, values: Iterable[str], start: int, end: int) -> list[Match]:
        """Return the phrases of the section `mood` in a part, longest first."""
        found = [m for m in self._moods if m.value in values and m.start >= start and m.end <= end]
        return sorted(found, key=lambda match: (match.start, -len(match.places)))

    def _find_first(self, start: int, end: int) -> int:
        """Return the place of the first word that means something."""
        moods = {m.start for m in self._moods if m.value not in ("auxiliary", "none", "back")}
        acts = {m.start for m in self._sentence.matches if m.kind == "do"}
        empty = {p for m in self._inside(start, end) if m.kind in _EMPTY for p in m.places}
        kept = moods | acts | self._things
        return next((n for n in range(start, end) if n in moods or n not in empty or n in kept), end)

    def _begins(self, values: Iterable[str], start: int, end: int) -> bool:
        """Return whether a part begins with a phrase of the section `mood`."""
        first = self._find_first(start, end)
        return any(match.start == first and match.value in values for match in self._moods)

    def _find_acts(self, start: int, end: int) -> list[Match]:
        """Return the phrases that say what to do, without those that have a subject of their own."""
        return [m for m in self._inside(start, end) if m.kind == "do" and m.value not in _NO_ACTS]

    def _is_verb(self, match: Match) -> bool:
        """Return whether an act is more than a particle such as "off"."""
        word = self._words[match.start]
        is_short = len(match.places) == 1 and word in _SHORT_ACTS
        return not is_short and word not in self._reader.lexicon.particles

    def _asks_nothing(self, start: int, end: int) -> bool:
        """Return whether a part is a report, a plan, a condition or a denial."""
        if self._begins(("denial", "report"), start, end) or self._names_none(start, end):
            return True
        # "It would be nice, if you …" is polite in its first part.
        since = 0 if self._begins(("link",), start, end) else start
        if self._find(("polite",), since, end) or "?" in self._words[start:end]:
            return False
        return self._has_told_thing(start, end) or self._has_subject(start, end)

    def _names_none(self, start: int, end: int) -> bool:
        """Return whether a part is about no thing at all: "turn on no lights"."""
        is_asked = any(m.kind in ("ask", "condition", "except") for m in self._inside(start, end))
        return not is_asked and any(m.end in self._things for m in self._find(("none",), start, end))

    def _has_told_thing(self, start: int, end: int) -> bool:
        """Return whether a part reports about a thing: "the TV paused"."""
        part, language = self._sentence.cut(start, end), self._reader.lexicon.language
        if is_question(part, language) and not asks_ability(part, language):
            return False  # "Is the door locked and the garage shut?"
        first = self._find_first(start, end)
        depends = self._begins(("link",), start, end)
        for told in self._find(("told",), start, end):
            if depends and self._find_acts(told.end, end):
                continue  # "When the window is opened turn the heating off".
            before = range(first, told.start)
            acts = [m for m in self._find_acts(start, told.start) if self._things.isdisjoint(m.places)]
            is_named = any(self._is_in_name(place) for place in before)
            has_article = any(w in self._reader.lexicon.articles for w in self._words[start : told.start])
            if self._begins(("link",), start, told.start) and self._is_request(told.end, end, strictly=False):
                continue  # "Wenn Anna geht, mach alles aus" is a condition.
            if not acts and not self._things.isdisjoint(before) and (is_named or has_article):
                return not self._wishes(start, end, told)
        return False

    def _is_in_name(self, place: int) -> bool:
        return any(match.kind == "name" and place in match.places for match in self._sentence.matches)

    def _wishes(self, start: int, end: int, told: Match | None = None) -> bool:
        """Return whether a part says what a thing shall do: "Robby should clean", but not "should have"."""
        past = set(told.places) if told is not None else set()
        return any(
            match.kind == "wish" and past.isdisjoint(match.places) for match in self._inside(start, end)
        )

    def _has_subject(self, start: int, end: int) -> bool:
        """Return whether a part has a subject before its verb: "he turned on the light"."""
        first = self._find_first(start, end)
        links = [m for m in self._find(("link",), start, end) if m.start == first]
        place = links[0].end if links else first
        while links and place < end and any(m.start == place for m in self._find(("link",), place, end)):
            place += 1
        values = {"speaker", "subject", *({"you", "report"} if links else ())}
        subjects = [m for m in self._find(values, start, end) if m.start == place]
        if not subjects:
            return False
        subject = subjects[0]
        if subject.value == "report" or any(m.places == subject.places for m in self._find_acts(start, end)):
            return True  # "Se accendi": the ending of the verb is its subject.
        acts = [m for m in self._find_acts(start, end) if not set(subject.places) & set(m.places)]
        if all(each.value == "subject" for each in subjects) and self._wishes(start, end):
            return False
        if links and self._goes_on(acts):
            return False
        return self._has_verb_after(subject.end, end, acts, depends=bool(links))

    def _goes_on(self, acts: list[Match]) -> bool:
        """Return whether a second verb follows: "when I get home turn on the light"."""
        verbs = [m for m in acts if self._is_verb(m) and self._things.isdisjoint(m.places)]
        first = min((match.end for match in verbs), default=0)
        return any(match.start >= first and match.value not in SETTING for match in verbs)

    def _has_verb_after(self, place: int, end: int, acts: list[Match], *, depends: bool) -> bool:
        """Return whether a verb follows a subject, perhaps after an auxiliary verb."""
        auxiliary = {p for m in self._find(("auxiliary",), place, end) for p in m.places}
        # "He quickly turned on the light".
        adverbs = self._reader.lexicon.adverb_endings
        auxiliary |= {n for n in range(place, end) if adverbs and self._words[n].endswith(adverbs)}
        first = next((n for n in range(place, end) if n not in auxiliary), end)
        acts = [m for m in acts if m.start not in auxiliary and m.value not in _FEELINGS]
        verbs = self._find(("verb", "told"), first, end)
        if any(m.start == first for m in (*verbs, *filter(self._is_verb, acts))):
            return True
        is_open = depends or first > place
        if not is_open or self._reader.lexicon.language not in _VERB_LAST:
            return False
        return any(map(self._is_verb, acts)) and not any(m.value in SETTING for m in acts)

    def _is_request(self, start: int, end: int, *, strictly: bool) -> bool:
        """Return whether a part says what to do. `strictly` needs a verb at its beginning."""
        acts = self._find_acts(start, end)
        if not strictly:
            return any(m.value not in SETTING for m in acts) or self._has_other_request(start, end)
        first = self._find_first(start, end)
        return any(
            m.start == first and self._is_verb(m) and m.value not in _FEELINGS for m in acts
        ) or self._has_other_request(start, end)

    def _has_other_request(self, start: int, end: int) -> bool:
        return any(m.kind in ("item", "later", "memory") for m in self._inside(start, end))

    def _refers_back(self, rest: Sentence) -> bool:
        """Return whether what is kept needs a part that was left out: "…, turn it on again"."""
        has_thing = any(match.kind in _THINGS for match in rest.matches)
        return not has_thing and any(m.tag in ("refer.it", "refer.them") for m in rest.matches)

    def _is_quoted(self) -> bool:
        """Return whether the sentence tells what was said, or what the speaker has not said."""
        end = len(self._words)
        own = self._find(("i_say",), 0, end)
        places = {place for match in own for place in match.places}
        if any(places.isdisjoint(match.places) for match in self._find(("say",), 0, end)):
            return True
        negations = [match for match in self._sentence.matches if match.kind == "not"]
        return any(each.start < match.end for match in own for each in negations)

    def _is_taken_back(self) -> bool:
        """Return whether the sentence ends in words such as "never mind"."""
        end = len(self._words)
        back = {place for match in self._find(("back",), 0, end) for place in match.places}
        weak = {p for m in self._sentence.matches if m.kind in _WEAK for p in m.places}
        place = end
        while place and (not self._words[place - 1][0].isalnum() or place - 1 in weak | back):
            place -= 1
        found = self._find(("back",), place, end)
        signs = {n for n in range(place, end) if not self._words[n][0].isalnum()}
        is_apart = any(len(m.places) > 1 or any(n < m.start for n in signs) for m in found)
        return is_apart and bool(self._find_acts(0, min(match.start for match in found)))
