"""Exports, imports, copies and deletions of one owner do not delay the requests of others."""

import asyncio
import json
import socket
import sqlite3
from contextlib import closing, suppress

import pytest

from sash import Runtime
from sash.app.owner_shares import SHARES
from sash.errors import ContinuationNotFound, SessionExists, SessionNotFound, StoreUnavailable
from sash.stores.sqlite import bundles, database, hidden_sessions
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel
from tests.finding import search
from tests.surfaces.serving import WAIT_S, problem, serving

MEGABYTE = "word " * 200_000


class Stop(Exception):
    """The work ends in the middle."""


@pytest.fixture
async def store(tmp_path, monkeypatch):
    """A store whose long jobs give way after each step."""
    monkeypatch.setattr(database, "SLICE_S", 0.0)
    store = SqliteStore(tmp_path / "sash.db")
    await store.open()
    yield store
    await store.close()


async def make_bundle(store, turns=5):
    """Return the bundle of a session with some turns, and delete the session."""
    runtime = Runtime(store, ScriptedModel(lambda request: "a secret answer"))
    session = await runtime.start_session(owner="ann")
    for n in range(turns):
        sent = await runtime.send_message(session.id, f"question {n}", owner="ann")
        await runtime.await_continuation(sent.id, owner="ann", timeout_s=WAIT_S)
    await runtime.drain()
    bundle = await store.export_session("ann", session.id)
    await store.delete_session("ann", session.id)
    return bundle


def stop_after(steps, count):
    """Return a generator that runs `count` steps and then fails."""

    def run(*args, **options):
        for n, value in enumerate(steps(*args, **options)):
            if n == count:
                raise Stop
            yield value

    return run


async def test_other_writes_run_between_the_steps_of_an_import(store):
    bundle = await make_bundle(store)
    importing = asyncio.create_task(store.import_session(bundle))
    seen = []
    async with asyncio.timeout(WAIT_S):
        while not importing.done():
            await store.renew("worker", [])
            with suppress(SessionNotFound):
                seen.append(await store.get_session("ann", bundle.session.id))
            seen.append(None)
    assert None in seen
    assert await store.export_session("ann", bundle.session.id) == bundle


@pytest.mark.parametrize("steps", range(0, 40, 3))
async def test_a_failed_import_leaves_nothing(store, monkeypatch, steps):
    bundle = await make_bundle(store)
    monkeypatch.setattr(bundles, "insert_bundle", stop_after(bundles.insert_bundle, steps))
    with suppress(Stop):
        await store.import_session(bundle)
        return  # The import has fewer steps.
    monkeypatch.undo()
    assert (await store.list_sessions("ann")).items == ()
    assert await search(store, "ann", "secret") == []
    await store.import_session(bundle)
    assert await store.export_session("ann", bundle.session.id) == bundle


@pytest.mark.parametrize("steps", range(0, 40, 3))
async def test_a_crash_during_an_import_leaves_nothing(store, monkeypatch, tmp_path, steps):
    bundle = await make_bundle(store)

    monkeypatch.setattr(bundles, "insert_bundle", stop_after(bundles.insert_bundle, steps))
    monkeypatch.setattr(hidden_sessions, "delete_hidden", stop_after(hidden_sessions.delete_hidden, 0))
    with suppress(Stop):
        await store.import_session(bundle)
        return
    monkeypatch.undo()
    await store.close()
    again = SqliteStore(tmp_path / "sash.db")
    await again.open()
    with closing(sqlite3.connect(tmp_path / "sash.db")) as db:
        for table in ("sessions", "messages", "steps", "continuations"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    await again.import_session(bundle)
    assert await again.export_session("ann", bundle.session.id) == bundle
    await again.close()


@pytest.mark.parametrize("steps", range(0, 40, 3))
async def test_a_crash_during_a_deletion_hides_the_session_and_the_next_start_deletes_it(
    store, monkeypatch, tmp_path, steps
):
    bundle = await make_bundle(store)
    await store.import_session(bundle)
    monkeypatch.setattr(hidden_sessions, "delete_hidden", stop_after(hidden_sessions.delete_hidden, steps))
    with suppress(Stop):
        await store.delete_session("ann", bundle.session.id)
    with pytest.raises(SessionNotFound):
        await store.get_session("ann", bundle.session.id)
    monkeypatch.undo()
    await store.close()
    again = SqliteStore(tmp_path / "sash.db")
    await again.open()
    await again.close()
    assert b"secret" not in (tmp_path / "sash.db").read_bytes()


async def test_a_caller_that_goes_away_does_not_stop_a_deletion(store, tmp_path):
    bundle = await make_bundle(store)
    await store.import_session(bundle)
    deleting = asyncio.create_task(store.delete_session("ann", bundle.session.id))
    await asyncio.sleep(0)
    async with asyncio.timeout(WAIT_S):
        while (await store.list_sessions("ann")).items:
            await asyncio.sleep(0)
    deleting.cancel()
    with suppress(asyncio.CancelledError):
        await deleting
    await store.close()
    assert b"secret" not in (tmp_path / "sash.db").read_bytes()


async def test_a_caller_that_goes_away_when_its_session_is_hidden_does_not_stop_the_deletion(
    store, monkeypatch, tmp_path
):
    bundle = await make_bundle(store)
    await store.import_session(bundle)
    write = store.database.write

    async def write_and_cancel(job):
        written = await write(job)
        deleting.cancel()
        await asyncio.sleep(0)
        return written

    monkeypatch.setattr(store.database, "write", write_and_cancel)
    deleting = asyncio.create_task(store.delete_session("ann", bundle.session.id))
    with pytest.raises(asyncio.CancelledError):
        await deleting
    await store.close()
    assert b"secret" not in (tmp_path / "sash.db").read_bytes()


async def test_turns_and_artifacts_of_a_hidden_session_are_not_shown(store, monkeypatch):
    bundle = await make_bundle(store)
    await store.import_session(bundle)
    monkeypatch.setattr(hidden_sessions, "delete_hidden", stop_after(hidden_sessions.delete_hidden, 0))
    with suppress(Stop):
        await store.delete_session("ann", bundle.session.id)
    for continuation in bundle.continuations:
        with pytest.raises(ContinuationNotFound):
            await store.get_continuation("ann", continuation.id)
    assert await store.turn_stats("ann", bundle.session.created_at) == []


async def test_an_import_with_a_taken_id_leaves_the_other_session_as_it_was(store):
    bundle = await make_bundle(store)
    await store.import_session(bundle)
    with pytest.raises(SessionExists):
        await store.import_session(bundle)
    assert await store.export_session("ann", bundle.session.id) == bundle


async def test_a_closed_store_reports_a_long_job_as_an_error(store):
    bundle = await make_bundle(store)
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.import_session(bundle)


async def test_an_unread_export_uses_only_the_share_of_its_owner(tmp_path):
    async with serving(tmp_path) as served:
        greedy, victim = served.token("greedy"), served.token("victim")
        started = await served.client.post("/v1/sessions", headers=greedy)
        session_id = started.json()["session_id"]
        for _ in range(4):
            await served.runtime.record_turn(session_id, MEGABYTE, owner="greedy")
        path = f"/v1/sessions/{session_id}/export"
        host, port = served.url.removeprefix("http://").split(":")
        share = SHARES["transfer"]
        with closing(socket.socket()) as unread:
            unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            unread.connect((host, int(port)))
            head = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n"
            unread.sendall(f"{head}Authorization: {greedy['Authorization']}\r\n\r\n".encode())
            assert (await asyncio.to_thread(unread.recv, 15)).startswith(b"HTTP/1.1 200")
            requests = [
                asyncio.create_task(served.client.get(path, headers=greedy)) for _ in range(share.waiting + 1)
            ]
            async with asyncio.timeout(WAIT_S):
                [refused], waiting = await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
                problem(await refused, 429, "too_many_requests")
                other = await served.client.post("/v1/sessions", headers=victim)
                exported = await served.client.get(
                    f"/v1/sessions/{other.json()['session_id']}/export", headers=victim
                )
                assert exported.status_code == 200
        async with asyncio.timeout(WAIT_S):
            results = await asyncio.gather(*waiting)
        assert {r.status_code for r in results} == {200}
        assert len(json.loads(results[0].content)["messages"]) == 8


async def test_a_page_of_large_messages_has_fewer_of_them(tmp_path):
    async with serving(tmp_path) as served:
        session_id = await served.start()
        for _ in range(5):
            await served.runtime.record_turn(session_id, MEGABYTE)
        positions, cursor = [], "0"
        while cursor is not None:
            page = await served.client.get(
                f"/v1/sessions/{session_id}/messages", params={"cursor": cursor, "limit": 500}
            )
            assert len(page.content) < 6 << 20
            positions += [message["position"] for message in page.json()["messages"]]
            cursor = page.json()["next_cursor"]
        assert positions == list(range(1, 11))
