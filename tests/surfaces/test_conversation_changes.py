"""Conversations by name: concurrent changes, turns of the agent, and sessions that end."""

import asyncio

import pytest

from sash import Runtime
from sash.app.service import AgentService
from sash.errors import ContinuationNotFound, SessionBusy
from sash.server.conversation_service import ConversationService
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel
from tests.surfaces.conversations import ANN, DEFAULT, WAIT_S, fill, sessions, users


async def test_concurrent_first_calls_start_one_conversation(serve):
    conversations = await serve()
    begun = await asyncio.gather(*(conversations.open_session(*DEFAULT) for _ in range(20)))
    assert len({session.id for session in begun}) == 1
    await asyncio.gather(*(conversations.add_turn(ANN, "new", f"q{n}") for n in range(20)))
    assert len(await sessions(conversations)) == 2
    stats = (await conversations.get_statistics(ANN, "new"))["statistics"]
    assert (stats["current_turns"], stats["total_turns_ever"]) == (10, 20)


async def test_clearing_during_additions_keeps_the_count(serve):
    conversations = await serve()
    await fill(conversations, 3)
    await asyncio.gather(
        *(conversations.add_turn(*DEFAULT, f"q{n}") for n in range(10)),
        conversations.clear(*DEFAULT),
        *(conversations.add_turn(*DEFAULT, f"r{n}") for n in range(10)),
        conversations.clear(*DEFAULT),
        conversations.add_turn(*DEFAULT, "last"),
    )
    stats = (await conversations.get_statistics(*DEFAULT))["statistics"]
    assert stats["total_turns_ever"] == 24
    assert [s.status for s in await sessions(conversations)] == ["active"]


async def test_concurrent_clears_keep_the_count(serve, monkeypatch):
    conversations = await serve()
    await fill(conversations, 3)
    runtime = conversations.runtime
    listed = runtime.list_sessions

    async def while_another_clears(**options):
        [active] = [s for s in (await listed(owner="ann")).items if s.status == "active"]
        await runtime.end_session(
            active.id, owner="ann"
        )  # The other caller has not started the next session yet.
        return await listed(**options)

    monkeypatch.setattr(runtime, "list_sessions", while_another_clears)
    await conversations.clear(*DEFAULT)
    monkeypatch.undo()
    assert (await conversations.get_statistics(*DEFAULT))["statistics"]["total_turns_ever"] == 3
    await fill(conversations, 1)
    assert (await conversations.get_statistics(*DEFAULT))["statistics"]["total_turns_ever"] == 4


async def test_turns_of_the_agent_are_part_of_the_conversation(serve):
    conversations = await serve()
    runtime = conversations.runtime
    await conversations.add_turn(*DEFAULT, "q", "a")
    session = await conversations.open_session(*DEFAULT)
    sent = await runtime.send_message(session.id, "and now?", owner="ann", metadata={"by": "agent"})
    await runtime.await_continuation(sent.id, owner="ann", timeout_s=WAIT_S)
    newest = (await conversations.get_history(*DEFAULT))["turns"][-1]
    assert (newest["id"], newest["user_message"], newest["ai_response"]) == (sent.id, "and now?", "ok")
    assert newest["metadata"] == {"by": "agent"}
    shown = [m["content"] for m in runtime.model.requests[-1].messages if m["role"] == "assistant"]
    assert shown == ["a"]


async def test_a_failed_turn_is_not_counted(serve):
    conversations = await serve(model=ScriptedModel(RuntimeError("no")))
    runtime = conversations.runtime
    session = await conversations.open_session(*DEFAULT)
    sent = await runtime.send_message(session.id, "hi", owner="ann")
    await runtime.await_continuation(sent.id, owner="ann", timeout_s=WAIT_S)
    added = await conversations.add_turn(*DEFAULT, "q", "a")
    assert added["statistics"] == {
        "current_turns": 1,
        "max_turns": 10,
        "total_turns_ever": 1,
        "deleted_turns": 0,
    }


async def test_no_turn_is_added_while_the_agent_answers(serve):
    asked, go_on = asyncio.Event(), asyncio.Event()

    class Waiting(ScriptedModel):
        async def stream(self, request):
            asked.set()
            await go_on.wait()
            async for delta in super().stream(request):
                yield delta

    conversations = await serve(model=Waiting("ok"), answer_s=0.05)
    runtime = conversations.runtime
    session = await conversations.open_session(*DEFAULT)
    sent = await runtime.send_message(session.id, "hi", owner="ann")
    await asyncio.wait_for(asked.wait(), WAIT_S)
    with pytest.raises(SessionBusy):
        await conversations.add_turn(*DEFAULT, "q", "a")
    with pytest.raises(ContinuationNotFound):
        await conversations.update_turn(*DEFAULT, sent.id, "x")
    go_on.set()
    await runtime.await_continuation(sent.id, owner="ann", timeout_s=WAIT_S)
    await conversations.add_turn(*DEFAULT, "q", "a")


async def test_an_expired_conversation_continues(serve, clock):
    conversations = await serve()
    await fill(conversations, 2)
    clock.advance(30 * 86400)
    await conversations.runtime.sweep()
    assert users((await conversations.get_history(*DEFAULT))["turns"]) == ["Turn 1", "Turn 2"]
    assert [s.status for s in await sessions(conversations)] == ["expired"]
    added = await conversations.add_turn(*DEFAULT, "Turn 3")
    assert added["statistics"]["current_turns"] == 3
    assert len(await sessions(conversations)) == 1


async def test_a_conversation_continues_its_count_after_its_session_ended(serve):
    conversations = await serve()
    await fill(conversations, 2)
    session = await conversations.open_session(*DEFAULT)
    await conversations.runtime.end_session(session.id, owner="ann")
    assert (await conversations.get_statistics(*DEFAULT))["statistics"]["total_turns_ever"] == 2
    added = await conversations.add_turn(*DEFAULT, "new")
    assert added["statistics"] == {
        "current_turns": 1,
        "max_turns": 10,
        "total_turns_ever": 3,
        "deleted_turns": 2,
    }
    await conversations.clear(*DEFAULT)
    assert [s.id == session.id for s in await sessions(conversations)] == [False]


@pytest.mark.parametrize("odd", ["many", None, [1], 1.5])
async def test_an_imported_count_of_another_type_is_ignored(serve, odd):
    conversations = await serve()
    await fill(conversations, 2)
    [session] = await sessions(conversations)
    exported = await conversations.runtime.export_session(session.id, owner="ann")
    exported["session"]["context"] = {"turns_before": odd}
    await conversations.runtime.delete_session(session.id, owner="ann")
    await conversations.runtime.import_session(exported, owner="ann")
    assert (await conversations.get_statistics(*DEFAULT))["statistics"]["total_turns_ever"] == 2
    assert (await conversations.clear(*DEFAULT))["total_turns_ever"] == 2


async def test_two_servers_start_one_conversation(tmp_path):
    path = tmp_path / "sash.db"
    async with Runtime(SqliteStore(path)) as a, Runtime(SqliteStore(path)) as b:
        both = ConversationService(AgentService(a)), ConversationService(AgentService(b))
        begun = await asyncio.gather(*(c.open_session(*DEFAULT) for c in both for _ in range(5)))
        assert len({session.id for session in begun}) == 1
        await asyncio.gather(*(c.add_turn(*DEFAULT, f"q{n}", "a") for n in range(5) for c in both))
        assert (await both[0].get_statistics(*DEFAULT))["statistics"]["total_turns_ever"] == 10
