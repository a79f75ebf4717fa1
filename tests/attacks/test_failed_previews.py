"""An approval needs a preview: a call whose effect cannot be described is neither asked for nor made."""

import asyncio
import logging
from datetime import timedelta

import pytest

from sash import Runtime
from sash.testing import FakeClock, ScriptedModel, calling
from tests.backends import BACKENDS
from tests.runtime.policies import CAREFUL, OPEN
from tests.runtime.talk import WAIT_S, turn
from tests.tools import tool


@pytest.fixture(params=BACKENDS)
def make_store(request, tmp_path):
    clock = FakeClock()
    return clock, lambda: BACKENDS[request.param](tmp_path, clock)


class Gate:
    """A tool that opens a gate. `previews` are its next previews; None raises an error."""

    def __init__(self, *previews):
        self.opened = 0
        self._previews = list(previews)
        self.tool = tool("open_gate", self._open, action=True, preview=self._preview)

    def _open(self, arguments, context):
        self.opened += 1
        return "open"

    async def _preview(self, arguments, context):
        shown = self._previews.pop(0)
        if shown is None:
            raise RuntimeError("the gate cannot be reached")
        return shown


async def test_an_approval_is_not_requested_without_a_preview(make_store):
    clock, new_store = make_store
    gate, model = Gate(None, None), ScriptedModel(calling("open_gate"), "No.")
    async with Runtime(new_store(), model, [gate.tool], clock=clock) as runtime:
        result = await turn(runtime, await runtime.start_session(policy=CAREFUL), "open it")
    assert (result.status, gate.opened) == ("completed", 0)
    assert [action.outcome for action in result.response.actions] == ["failed"]
    assert (
        "the preview failed: RuntimeError: the gate cannot be reached"
        in model.requests[-1].messages[-1]["content"]
    )


@pytest.mark.parametrize(
    "previews", [({"opens": "gate"}, None), ("RuntimeError: the gate cannot be reached", None)]
)
async def test_a_preview_that_fails_after_the_approval_stops_the_call(make_store, previews):
    """The second case is an approval that an older version requested with the text of an error."""
    clock, new_store = make_store
    gate, model = Gate(*previews), ScriptedModel(calling("open_gate"), "No.")
    async with Runtime(new_store(), model, [gate.tool], clock=clock) as runtime:
        waiting = await turn(runtime, await runtime.start_session(policy=CAREFUL), "open it")
        await runtime.approve(waiting.continuation.id, waiting.waiting_calls[0].call_id)
        result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert (result.status, gate.opened) == ("completed", 0)
    assert [action.outcome for action in result.response.actions] == ["denied"]


async def test_a_verification_that_fails_after_a_crash_is_logged(make_store, caplog):
    clock, new_store = make_store
    under_way, store = asyncio.Event(), new_store()

    async def hang(arguments, context):
        under_way.set()
        await asyncio.Event().wait()

    async def verify(arguments, context):
        raise RuntimeError("the gate cannot be reached")

    gate = tool("open_gate", hang, action=True, safety="verify", verify=verify)
    first = Runtime(store, ScriptedModel(calling("open_gate")), [gate], clock=clock)
    await first.open()
    session = await first.start_session(policy=OPEN)
    sent = await first.send_message(session.id, "open it")
    await asyncio.wait_for(under_way.wait(), WAIT_S)
    await first.abandon_turns()
    clock.advance(timedelta(minutes=1).total_seconds())
    second = Runtime(store, ScriptedModel("It is unknown."), [gate], clock=clock)
    with caplog.at_level(logging.WARNING, "sash"):
        async with second, asyncio.timeout(WAIT_S):
            await second.resume(sent.id)
            result = await second.await_continuation(sent.id)
    assert [action.outcome for action in result.response.actions] == ["unknown"]
    assert "it is unknown whether open_gate was done before a crash: RuntimeError: the gate" in caplog.text
    await first.close()
