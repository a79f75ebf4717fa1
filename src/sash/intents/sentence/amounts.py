"""Reads numbers and amounts: "thirty percent", "half", "red"."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from sash.intents.sentence.clause import STEPS, Amount
from sash.intents.sentence.sentence import Sentence
from sash.intents.sentence.time_words import Number, TimeWords
from sash.intents.words.lexicon import NOUNS
from sash.intents.words.phrases import Match, choose_matches

_PERCENT_BY_SIZE = {
    "full": 100.0,
    "three_quarters": 75.0,
    "two_thirds": 67.0,
    "half": 50.0,
    "third": 33.0,
    "quarter": 25.0,
    "low": 1.0,
}
# Acts that change a temperature by some degrees.
_WARMTH_STEPS = frozenset({"warmer", "colder", "up", "down"})
# A bare number above this is a difference only if it is round: "by 10", and not "by 7".
_MAX_ODD_CHANGE = 5


def read_amount(
    sentence: Sentence, inside: list[Match], numbers: list[Number], time: TimeWords
) -> tuple[Amount, set[int]]:
    """Return the amount that some phrases and numbers say, and the places of its words."""
    amount, used = _read_sizes(inside, time)
    # "Cent" in "pour cent" and "deux" in "les deux" are no numbers of their own.
    fixed = (m for m in inside if m.kind in ("unit", "refer", "all") and len(m.places) > 1)
    in_phrases = {place for match in fixed for place in match.places}
    for number in numbers:
        if not time.places.isdisjoint(range(number.start, number.end)) or number.start in in_phrases:
            continue
        units = [m for m in inside if m.kind == "unit" and m.start == number.end]
        unit = max(units, key=lambda match: len(match.places), default=None)
        if unit is None and not _is_plain_number(sentence, number):
            continue
        if unit is None and _counts_things(number, inside):
            used.update(range(number.start, number.end))
            continue
        amount = replace(amount, value=number.value, unit=unit.value if unit else None)
        end = unit.end if unit else number.end
        if half := next((m for m in inside if m.tag == "time.and_half" and m.start == end), None):
            amount, end = replace(amount, value=number.value + 0.5), half.end
        used.update(range(number.start, end))
        before = find_preposition(inside, number)
        used.update(before.places if before else ())
        # "10 percent louder", "10 more".
        is_compared = any(m.start == end and _is_comparison(m) for m in inside)
        role: Literal["by", "to"] | None = "by" if is_compared else None
        if before is not None:
            role = "by" if before.value == "by" else "to"
        amount = replace(amount, role=role)
    if amount.is_empty and (one := _find_one_degree(inside)):
        amount = replace(amount, value=1.0, unit=one.value)
        used.update(one.places)
    return amount, used


def _read_sizes(inside: list[Match], time: TimeWords) -> tuple[Amount, set[int]]:
    """Return the amount without its numbers, and the places of its words."""
    used: set[int] = set()
    amount = Amount()
    longer = [set(m.places) for m in inside if m.kind in ("do", "ask", *NOUNS)]
    # "Noch ein bisschen" has a size, and also refers to the last step.
    repeated = [set(m.places) for m in inside if m.tag == "refer.more"]
    sizes = [m for m in inside if m.kind in ("amount", "colour")]
    sizes = [m for m in sizes if not any(set(m.places) < one for one in longer)]
    for match in choose_matches(sizes):
        if not time.places.isdisjoint(match.places):
            continue
        if not any(set(match.places) <= more for more in repeated):
            used.update(match.places)
        if match.kind == "colour":
            amount = replace(amount, colour=match.value)
        elif match.value in _PERCENT_BY_SIZE:
            amount = replace(amount, value=_PERCENT_BY_SIZE[match.value], unit="percent")
        else:
            amount = replace(amount, size=match.value)
    return amount, used


def _is_comparison(match: Match) -> bool:
    return match.tag == "refer.more" or (match.kind == "do" and match.value in STEPS)


def find_preposition(inside: list[Match], number: Number) -> Match | None:
    """Return the words before a number that make it a value or a difference: "up to", "by"."""
    found = [m for m in inside if m.kind == "value" and m.end == number.start]
    return max(found, key=lambda match: len(match.places), default=None)


def find_differences(inside: list[Match], numbers: list[Number]) -> list[Match]:
    """Return the prepositions that make a bare number a difference and no time: "dim it by 10".

    In some languages the same word also begins a time: "um 10", "by 10". A thing after the number makes it a
    time: "um 7 die Heizung höher".
    """
    if not any(m.kind == "do" and m.value in STEPS for m in inside):
        return []
    found = []
    for number in numbers:
        before = find_preposition(inside, number)
        is_round = number.value <= _MAX_ODD_CHANGE or number.value % _MAX_ODD_CHANGE == 0
        is_hour = number.minute is not None or any(
            m.kind in ("time", "unit") and m.start == number.end for m in inside
        )
        is_first = any(m.kind in ("name", *NOUNS) and m.start >= number.end for m in inside)
        if before is not None and before.value == "by" and is_round and not (is_hour or is_first):
            found.append(before)
    return found


def _counts_things(number: Number, inside: list[Match]) -> bool:
    """Return whether a number says how many things are meant: "two lamps"."""
    return any(match.kind == "kind" and match.start == number.end for match in inside)


def _find_one_degree(inside: list[Match]) -> Match | None:
    """Return the unit that stands for one: "a degree warmer"."""
    steps = any(m.kind == "do" and m.value in _WARMTH_STEPS for m in inside)
    is_asked = any(m.kind == "ask" for m in inside)
    return next((m for m in inside if m.tag == "unit.degrees" and steps and not is_asked), None)


# The words after a number that make it an ordinal one: "5 th".
_ORDINAL_ENDS = frozenset({"st", "nd", "rd", "th", "er", "ère"})


def find_numbers(sentence: Sentence, known: Mapping[str, float], start: int, end: int) -> list[Number]:
    """Return the numbers from one place up to another. `known` are those that are written as words."""
    found, place = [], start
    while place < end:
        word = sentence.words[place]
        if word[0].isdecimal():
            number = _add_half(sentence, _read_digits(word, place))
            is_ordinal = number.end < end and sentence.words[number.end] in _ORDINAL_ENDS
            found.append(number._replace(end=number.end + 1) if is_ordinal else number)
            place = found[-1].end
            continue
        for length in (4, 3, 2, 1):
            value = known.get(" ".join(sentence.words[place : place + length]))
            if value is not None and place + length <= end:
                found.append(_add_half(sentence, Number(value, place, place + length)))
                place = found[-1].end - 1
                break
        place += 1
    return found


def _is_plain_number(sentence: Sentence, number: Number) -> bool:
    """Return whether a number is no article: "one" may be one."""
    fillers = {m.places for m in sentence.matches if m.kind == "filler"}
    return (number.start,) not in fillers


def _add_half(sentence: Sentence, number: Number) -> Number:
    """Return a number with the half or the fraction that follows it: "two and a half", "1 1/2"."""
    after = sentence.words[number.end] if number.end < len(sentence.words) else ""
    if "/" in after and number.value % 1 == 0:
        return number._replace(value=number.value + _read_digits(after, number.end).value, end=number.end + 1)
    half = next((m for m in sentence.matches if m.tag == "unit.and_half" and m.start == number.end), None)
    return number._replace(value=number.value + 0.5, end=half.end) if half else number


def _read_digits(word: str, place: int) -> Number:
    if "/" in word:
        return Number(int(word[0]) / int(word[2]), place, place + 1)
    if ":" in word:
        hour, minute = word.split(":")
        return Number(float(hour), place, place + 1, int(minute[:4]))
    _, _, digits = word.replace(",", ".").partition(".")
    dotted_minute = int(digits) if len(digits) == 2 else None
    return Number(float(word.replace(",", ".")[:18]), place, place + 1, dotted_minute=dotted_minute)
