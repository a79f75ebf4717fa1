"""Questions about what Sash did, and why."""

from datetime import timedelta

import pytest

from sash.intents.about_sash import answer_about_sash
from sash.values.continuations import TurnCaller
from tests.intents.everyday import NOW, Earlier, Talk, action, explanation, turn

LIGHT = "turn on the kitchen light"


def make_earlier(**changes: object) -> Earlier:
    """Return a conversation in which the kitchen light was turned on five minutes ago."""
    known = explanation(LIGHT, asked_at=NOW - timedelta(minutes=5), **changes)
    return Earlier([turn(LIGHT, actions=(action(),))], explanations={None: known})


async def ask(talk: Talk, text: str, earlier: Earlier | None = None, **changes: object) -> str:
    situation = talk.situate(text, earlier=earlier or make_earlier(), **changes)  # type: ignore[arg-type]
    reply = await answer_about_sash(situation)
    return reply.text if reply else ""


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("why did you do that?", "Because you said “turn on the kitchen light” today at 13:55."),
        ("why did you turn on the kitchen light", "Because you said “turn on the kitchen light”"),
        ("who told you to turn that on", "You did, today at 13:55"),
        (
            "what did you just do?",
            "You said “turn on the kitchen light” today at 13:55, and I did it: the kitchen",
        ),
        ("did that work?", "Yes, it worked: the kitchen ceiling light is on."),
        ("are you even allowed to do that?", "Yes, my settings allow it."),
        ("what did you hear me say?", "I heard “turn on the kitchen light”."),
        ("did an AI model answer that?", "No, I understood that by myself."),
    ],
)
async def test_an_action_is_explained_in_the_words_that_were_said(talk: Talk, text: str, answer: str) -> None:
    assert (await ask(talk, text)).startswith(answer)


@pytest.mark.parametrize(
    "text",
    ["why is the kitchen light on?", "what was that code on the boiler", "which model is the dishwasher"],
)
async def test_questions_about_other_things_are_left_to_others(talk: Talk, text: str) -> None:
    assert await ask(talk, text) == ""


async def test_nothing_done_is_said_honestly(talk: Talk) -> None:
    for text in ("why did you do that?", "who asked for it?", "did that work?"):
        assert await ask(talk, text, Earlier()) == "I have not done anything in this conversation."


async def test_another_person_is_named(talk: Talk) -> None:
    ben = TurnCaller("ben", "Ben", certainty="signed_in")
    earlier, anna = make_earlier(caller=ben), TurnCaller("anna", "Anna", certainty="signed_in")
    assert (await ask(talk, "who asked for it?", earlier, caller=anna)).startswith("Ben did")
    assert (await ask(talk, "who asked for it?", earlier, caller=ben)).startswith("You did")


async def test_a_no_of_the_user_is_the_reason(talk: Talk) -> None:
    denied = Earlier([turn("unlock the front door", actions=(action("denied", approved=False),))])
    assert await ask(talk, "why didn't you do it?", denied) == "Because you said no."
    forbidden = Earlier([turn("unlock the front door", actions=(action("denied"),))])
    assert await ask(talk, "why not?", forbidden) == "Because my settings do not allow it."


@pytest.mark.parametrize(
    ("verified", "outcome", "answer"),
    [
        (False, "done", "No, I see no effect"),
        (None, "done", "It was carried out without an error"),
        (None, "failed", "No, it did not work."),
        (None, "unknown", "I do not know."),
    ],
)
async def test_success_is_claimed_only_if_it_was_seen(
    talk: Talk, verified: bool | None, outcome: str, answer: str
) -> None:
    earlier = make_earlier(verified=verified, outcome=outcome)
    assert (await ask(talk, "did it work?", earlier)).startswith(answer)


async def test_an_approval_and_a_model_are_told(talk: Talk) -> None:
    answer = await ask(talk, "why did you do that?", make_earlier(approved=True, way="model"))
    assert "the answer was yes" in answer
    assert "An AI model chose" in answer
    by_model = Earlier([turn("what do you think of Mozart", model_calls=1)])
    assert await ask(talk, "did an AI answer that?", by_model) == "Yes, an AI model answered that."


async def test_what_sash_may_do_comes_from_the_policy(talk: Talk) -> None:
    assert (await ask(talk, "what are you allowed to do?")).startswith("Yes, I may control things")
    talk.allow_nothing()
    assert (await ask(talk, "what are you allowed to do?")).startswith("No, I may only answer questions")
