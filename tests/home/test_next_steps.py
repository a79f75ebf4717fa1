"""The sentences that the user may send next."""

from sash.home.follow_ups import suggest_follow_ups
from sash.ports.home import UNAVAILABLE
from sash.values.citations import EntityCitation
from tests.home.small_home import NOW

LEAK = EntityCitation("binary_sensor.leak", "Leak sensor", UNAVAILABLE, None, NOW)


def test_what_is_wrong_is_asked_after_a_state_that_is_unavailable():
    assert suggest_follow_ups("en", [], [], [LEAK], asked="Is there a leak?") == (
        "What is wrong with the Leak sensor?",
    )


def test_the_question_that_was_answered_is_no_next_step():
    suggested = suggest_follow_ups("en", [], [], [LEAK], asked="what is wrong with the leak sensor")
    assert suggested == (
        "What is in the logbook about the Leak sensor this week?",
        "Which devices are unavailable?",
    )
