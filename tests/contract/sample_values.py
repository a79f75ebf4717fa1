"""Steps, messages and ends of turns for the tests of the contract."""

from sash.ports.turns import Cut, Evicted, TurnEnd
from sash.values.continuations import ContinuationResponse
from sash.values.messages import MessageEntry
from sash.values.steps import (
    Finished,
    Plan,
)

PLAN = Plan("thinking")


def said(*texts, role="user"):
    return tuple(MessageEntry(role, text, token_count=5, tags={"input"}) for text in texts)


def completed(*messages, cut=None, **fields):
    step = Finished("done")
    response = ContinuationResponse("done")
    return TurnEnd("completed", (step,), response, messages=messages, cut=cut, **fields)


def without(*messages, turn_starts=(), digest=""):
    return Cut(tuple(Evicted(m.id, "max_tokens") for m in messages), turn_starts, digest)
