"""Callers of the conversation service, and functions that fill and read conversations."""

from sash.app.access import Caller

WAIT_S = 60
ANN, BOB = Caller("ann"), Caller("bob")
DEFAULT = (ANN, "default")


def users(turns):
    """Return the user messages of turns."""
    return [turn["user_message"] for turn in turns]


async def fill(conversations, count, *of):
    """Add `count` turns, and return their results."""
    return [
        await conversations.add_turn(*(of or DEFAULT), f"Turn {n}", f"answer {n}")
        for n in range(1, count + 1)
    ]


async def sessions(conversations, owner="ann"):
    """Return the sessions of an owner."""
    return (await conversations.runtime.list_sessions(owner=owner)).items
