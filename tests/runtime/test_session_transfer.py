"""Sessions that are forked, exported and imported."""

import asyncio
import json

import pytest

from sash.errors import (
    InvalidExport,
    SashError,
    SessionNotFound,
)
from sash.testing import calling
from tests.runtime.talk import WAIT_S, transcript, turn
from tests.runtime.waiting_model import WaitingModel
from tests.tools import tool


async def test_a_fork_goes_its_own_way(run):
    runtime = await run(lambda request: "ok")
    session = await runtime.start_session()
    await turn(runtime, session, "shared")
    fork = await runtime.fork_session(session.id)
    await turn(runtime, fork, "only here")
    assert [t for _, t in await transcript(runtime, session)] == ["shared", "ok"]
    assert [t for _, t in await transcript(runtime, fork)] == ["shared", "ok", "only here", "ok"]


async def test_an_export_can_be_imported_by_another_owner(run):
    runtime = await run(calling("log"), "done", tools=[tool("log", lambda a, c: "x" * 9000)])
    session = await runtime.start_session()
    await turn(runtime, session, "find the word marmalade")
    data = json.loads(json.dumps(await runtime.export_session(session.id)))
    await runtime.erase()
    with pytest.raises(SessionNotFound):
        await runtime.get_session(session.id)
    imported = await runtime.import_session(data, owner="bob")
    assert imported.owner == "bob"
    assert len(await runtime.search("marmalade", owner="bob")) == 1
    assert await runtime.search("marmalade") == []
    for damaged in ({}, None, data | {"version": 2}, data | {"session": {}}, data | {"messages": [1]}):
        with pytest.raises(SashError):
            await runtime.import_session(damaged)


def tampered(export, what):
    bad = "../../evil"
    match what:
        case "session":
            return json.loads(json.dumps(export).replace(export["session"]["id"], bad))
        case "continuation":
            return json.loads(json.dumps(export).replace(export["continuations"][0]["id"], bad))
        case "orphan":
            export["messages"] = export["messages"][2:]
            for n, stored in enumerate(export["messages"], 1):
                stored["position"] = n
        case "order":
            export["messages"].reverse()
        case "twice":
            export["steps"].append(export["steps"][0])
        case "stranger":
            export["steps"][0]["continuation_id"] = export["session"]["id"]
        case "shape":
            export["messages"] = {"a": 1}
        case "format":
            export["format"] = "other"
    return export


def evil_files(folder):
    """Find the files of a bad id in the test's folder, and beside it."""
    return {*folder.rglob("*evil*"), *folder.parent.glob("*evil*")}


@pytest.mark.parametrize(
    "what", ["session", "continuation", "orphan", "order", "twice", "stranger", "shape", "format"]
)
async def test_an_export_that_was_tampered_with_is_refused(run, what, tmp_path):
    async def look(arguments, context):
        return "fine"

    runtime = await run(calling("look"), "done", tools=[tool("look", look)])
    session = await runtime.start_session()
    await turn(runtime, session)
    export = await runtime.export_session(session.id)
    await runtime.erase()
    before = evil_files(tmp_path)
    with pytest.raises(InvalidExport):
        await runtime.import_session(tampered(export, what))
    assert (await runtime.list_sessions()).items == ()
    assert evil_files(tmp_path) == before


async def test_a_turn_that_was_exported_while_it_ran_is_interrupted_where_it_is_imported(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    export = await runtime.export_session(session.id)
    await runtime.erase()
    model.go_on.set()
    await runtime.import_session(export)
    await runtime.resume(sent.id)
    assert (await runtime.await_continuation(sent.id, timeout_s=WAIT_S)).status == "completed"
