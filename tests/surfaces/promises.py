"""Something that a session does later, for tests of the surfaces."""

from datetime import timedelta

from sash.values.clock import SystemClock
from sash.values.ids import new_id
from sash.values.waiting_turns import DeferredCall, StateCondition, WaitingTurn


def promise(session_id, *, owner="local", clock=None, **fields):
    """Return a waiting turn that turns off a light in ten minutes."""
    now = (clock or SystemClock()).now()
    at = now + timedelta(minutes=10)
    call = DeferredCall("light.turn_off", ("light.kitchen_ceiling",))
    fields = {"at": at, "due_at": at, "calls": (call,)} | fields
    return WaitingTurn(new_id(), session_id, owner, "turn off the kitchen light", now, **fields)


WHEN_IT_LEAKS = {
    "at": None,
    "due_at": None,
    "when": StateCondition("binary_sensor.bathroom_leak", states=("on",)),
    "calls": (),
    "say": "The bathroom leaks.",
}
