"""The sentences of the table are answered in the demo house as a person would expect."""

import pytest

from tests.answers.demo_talk import hold
from tests.answers.judge import find_fault
from tests.answers.sash_talk import WithoutFollowUps
from tests.answers.table import read_cases

CASES = [case for case in read_cases() if "demo" in case.houses]
KINDS = sorted({case.kind for case in CASES})
MIN_BROKEN = 20


@pytest.mark.parametrize("kind", KINDS)
async def test_the_sentences_are_answered_as_expected(kind):
    faults: dict[str, str] = {}
    for case in CASES:
        if case.kind == kind:
            heard = await hold(case)
            if fault := find_fault(case, heard):
                faults[case.id] = f"{fault}: {heard.answer}"
    assert faults == {}


async def test_the_table_notices_that_follow_ups_are_not_understood():
    """Break what is known of the sentences before: enough follow-ups are then answered wrongly."""
    broken = 0
    for case in CASES:
        if case.kind == "follow_ups" and broken < MIN_BROKEN:
            broken += find_fault(case, await hold(case, wrap=WithoutFollowUps)) is not None
    assert broken == MIN_BROKEN
