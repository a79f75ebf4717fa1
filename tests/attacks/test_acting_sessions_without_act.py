"""A caller without the scope `act` can read a session whose agent may act, and change nothing in it."""

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.errors import Forbidden
from sash.testing import calling
from sash.values.requests import Approve, Note, PinRequest, SendMessage, StartSession, UpdateSession
from tests.runtime.policies import CAREFUL
from tests.runtime.talk import turn
from tests.surfaces.serving import problem, serving
from tests.surfaces.speaking import eras, refused, talking
from tests.tools import tool

TALKER = Caller("local", frozenset({"read", "converse"}))
ACTING = {"allow_actuation": True, "allowlisted_services": ["switch"], "require_confirmation": ["*"]}
ALLOWED = {"allow_actuation": True, "allowlisted_services": ("switch",)}

CALLS = {
    "send": lambda s, session, sent: s.send_message(TALKER, session, SendMessage(message="hi")),
    "record": lambda s, session, sent: s.record_turn(TALKER, session, "hi", "ok"),
    "amend": lambda s, session, sent: s.amend_turn(TALKER, sent, "no"),
    "cancel": lambda s, session, sent: s.cancel(TALKER, sent),
    "resume": lambda s, session, sent: s.resume(TALKER, sent),
    "retry": lambda s, session, sent: s.retry(TALKER, sent),
    "approve": lambda s, session, sent: s.approve(TALKER, sent, Approve(call_id="call", approved=True)),
    "deny": lambda s, session, sent: s.approve(TALKER, sent, Approve(call_id="call", approved=False)),
    "end": lambda s, session, sent: s.end_session(TALKER, session),
    "delete": lambda s, session, sent: s.delete_session(TALKER, session),
    "fork": lambda s, session, sent: s.fork_session(TALKER, session),
    "reopen": lambda s, session, sent: s.reopen_session(TALKER, session),
    "open by name": lambda s, session, sent: s.open_session(TALKER, StartSession(name="hall")),
    "reopen by name": lambda s, session, sent: s.open_session(TALKER, StartSession(name="hall"), reopen=True),
    "remember": lambda s, session, sent: s.remember(TALKER, Note(text="x"), session),
    "forget": lambda s, session, sent: s.forget(TALKER, "x", session),
    "pin": lambda s, session, sent: s.pin(TALKER, PinRequest(text="x"), session),
    "unpin": lambda s, session, sent: s.unpin(TALKER, "x", session),
    "set preferences": lambda s, session, sent: s.set_preferences(TALKER, session, {"language": "de"}),
    "update": lambda s, session, sent: s.update_session(TALKER, session, UpdateSession(name="mine")),
    "delete inactive ones": lambda s, session, sent: s.delete_inactive(TALKER),
    "call a tool": lambda s, session, sent: s.call_tool(TALKER, "look", {}, session),
}


@pytest.mark.parametrize("name", CALLS)
async def test_every_call_that_changes_it_is_refused(run, name):
    tools = [tool("switch", lambda a, c: "done", action=True), tool("look", lambda a, c: "dark", direct=True)]
    runtime = await run(calling("switch"), "ok", tools=tools)
    session = await runtime.start_session(policy=CAREFUL, name="hall")
    waiting = await turn(runtime, session)
    before = await runtime.export_session(session.id)
    with pytest.raises(Forbidden, match="act"):
        await CALLS[name](AgentService(runtime), session.id, waiting.continuation.id)
    assert await runtime.export_session(session.id) == before


async def test_an_expired_one_is_not_reopened(run):
    runtime = await run()
    session = await runtime.start_session(policy=CAREFUL, name="hall")
    await runtime.store.save_session(replace(session, status="expired"))
    for name in ("reopen", "reopen by name"):
        with pytest.raises(Forbidden, match="act"):
            await CALLS[name](AgentService(runtime), session.id, "")
    assert (await runtime.get_session(session.id)).status == "expired"


@asynccontextmanager
async def waiting_for_approval(folder):
    """Serve a turn that waits for an approval. Yield its ids, and the headers of a token without `act`."""
    switch = tool("switch", lambda a, c: "done", action=True)
    async with serving(folder, calling("switch"), tools=[switch], **ALLOWED) as served:
        may_not = served.token("anna", "read", "converse")
        served.client.headers.update(served.token("anna"))
        session_id = await served.start(policy=ACTING)
        sent = await served.send(session_id)
        assert (await served.wait(sent))["status"] == "awaiting_approval"
        yield served, session_id, sent, may_not


async def test_it_is_neither_ended_nor_deleted_nor_cancelled_over_http(tmp_path):
    async with waiting_for_approval(tmp_path) as (served, session_id, sent, may_not):
        for method, path in (
            ("POST", f"/v1/sessions/{session_id}/end"),
            ("DELETE", f"/v1/sessions/{session_id}"),
            ("POST", f"/v1/continuations/{sent}/cancel"),
        ):
            problem(await served.client.request(method, path, headers=may_not), 403, "forbidden")
        assert (await served.wait(sent))["status"] == "awaiting_approval"


@eras
async def test_it_is_neither_ended_nor_cancelled_over_mcp(tmp_path, era):
    async with waiting_for_approval(tmp_path) as (served, session_id, sent, may_not):
        async with talking(served.url, era, may_not) as client:
            ended = await refused(client, "ha_agent_end_session", session_id=session_id)
            cancelled = await refused(client, "ha_agent_cancel", continuation_id=sent)
        assert (ended, cancelled) == ("forbidden", "forbidden")
        assert (await served.wait(sent))["status"] == "awaiting_approval"
