"""A complete sentence means the same after any turn: cases of the table, after a question about something else."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.answers.demo_talk import hold
from tests.answers.judge import find_fault
from tests.answers.table import Case, read_cases

# A question about one thing, which changes nothing.
QUESTIONS: Mapping[str, str] = {
    "en": "when was the front door last opened?",
    "de": "Wie warm ist es im Wohnzimmer?",
    "fr": "quand la porte d'entrée a-t-elle été ouverte pour la dernière fois ?",
    "es": "¿cuándo se abrió la puerta principal por última vez?",
    "it": "che temperatura c'è in soggiorno?",
    "nl": "hoe warm is het in de woonkamer?",
}
# This case is about a conversation in which nothing was said before.
FIRST_SENTENCES = frozenset({"first-thing-first"})
# Skip cases that expect a question: after an earlier turn, Sash may know the answer.
COMPLETE = [
    case
    for case in read_cases()
    if "demo" in case.houses
    and not case.before
    and "asks" not in case.outcomes
    and case.id not in FIRST_SENTENCES
]
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_complete_sentence_means_the_same_after_any_turn(part):
    faults: dict[str, str] = {}
    # Every fourth case, to keep the suite fast.
    for case in COMPLETE[part :: 4 * PARTS]:
        later: Case = replace(case, before=(QUESTIONS[case.language],))
        heard = await hold(later)
        if fault := find_fault(later, heard):
            faults[case.id] = f"{fault}: {heard.answer}"
    assert faults == {}
