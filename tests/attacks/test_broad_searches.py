"""Searches of one owner do not delay the requests of others."""

import asyncio
import threading

import pytest

from sash import Runtime
from sash.app.access import Caller
from sash.app.owner_shares import SHARES
from sash.app.service import AgentService
from sash.errors import InvalidInput, TooManyRequests
from sash.memory.recall_question import read_question
from sash.stores.sqlite import database, word_search
from sash.stores.sqlite import store as sqlite_store
from sash.stores.sqlite.session_rows import find_key
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel
from sash.values.sessions import WindowLimits
from tests.surfaces.serving import WAIT_S, problem, serving

GREEDY, VICTIM = Caller("greedy"), Caller("victim")


@pytest.fixture
async def service(tmp_path):
    async with Runtime(SqliteStore(tmp_path / "sash.db"), ScriptedModel(lambda request: "ok")) as runtime:
        yield AgentService(runtime)


async def test_a_search_of_more_than_32_words_is_refused(tmp_path):
    async with serving(tmp_path) as served:
        session_id = await served.start()
        path = f"/v1/sessions/{session_id}/search"
        for count, status in ((32, 200), (33, 422)):
            words = " ".join(f"w{n}" for n in range(count))
            found = await served.client.get(path, params={"q": words})
            assert found.status_code == status, found.text
        problem(found, 422, "invalid_input")
        repeated = await served.client.get(path, params={"q": "a " * 100})
        assert repeated.status_code == 200


async def test_a_search_that_takes_too_long_is_stopped(service, monkeypatch):
    session = await service.runtime.start_session(owner="greedy")
    for n in range(20):
        await service.runtime.record_turn(session.id, f"the lamp {n}", "done", owner="greedy")
    assert len(await service.search(GREEDY, "lamp", session_id=session.id, limit=50)) == 20
    monkeypatch.setattr(word_search, "MAX_SEARCH_S", 0.0)
    monkeypatch.setattr(word_search, "STEPS_PER_CHECK", 1)
    with pytest.raises(InvalidInput, match="took longer"):
        await service.search(GREEDY, "lamp", session_id=session.id)
    monkeypatch.undo()
    assert len(await service.search(GREEDY, "lamp", session_id=session.id, limit=50)) == 20


async def test_recall_that_takes_too_long_is_stopped(service, monkeypatch):
    """A turn waits for it. Neither a slow query nor an index that lacks many messages stops the turn."""
    session = await service.runtime.start_session(owner="greedy", window=WindowLimits(max_turns=1))
    for n in range(20):
        await service.runtime.record_turn(session.id, f"the lamp {n}", "done", owner="greedy")
    store = service.runtime.store
    words = read_question("lamp").words

    async def recall():
        return (await store.find_words("greedy", session.id, words)).found

    def slow_recall(db):
        return word_search.find_words(db, "greedy", find_key(db, "greedy", session.id), words)

    assert len(await recall()) == 19
    monkeypatch.setattr(word_search, "STEPS_PER_CHECK", 1)
    monkeypatch.setattr(word_search, "MAX_RECALL_S", 0.0)
    with pytest.raises(InvalidInput, match="took longer"):
        await store.database.read(slow_recall, "greedy")
    monkeypatch.undo()
    monkeypatch.setattr(sqlite_store, "MAX_UNINDEXED", -1)
    monkeypatch.setattr(word_search, "MAX_RECALL_S", 0.1)
    async with asyncio.timeout(WAIT_S):
        with pytest.raises(InvalidInput, match="took longer"):
            await recall()  # as if the index always lacked messages
    monkeypatch.undo()
    assert len(await recall()) == 19


async def test_an_owner_s_searches_wait_in_a_line_that_ends(service, monkeypatch):
    """The victim's search runs while those of the greedy owner wait."""
    may_end, running = asyncio.Event(), []
    search = service.runtime.store.search_words

    async def slow_search(owner, *args, **options):
        if owner == "greedy":
            running.append(owner)
            await may_end.wait()
        return await search(owner, *args, **options)

    monkeypatch.setattr(service.runtime.store, "search_words", slow_search)
    share = SHARES["search"]
    tasks = [
        asyncio.create_task(service.search(GREEDY, "lamp")) for _ in range(share.running + share.waiting)
    ]
    await asyncio.sleep(0)
    async with asyncio.timeout(WAIT_S):
        with pytest.raises(TooManyRequests) as refused:
            await service.search(GREEDY, "lamp")
    assert refused.value.limit == share.running + share.waiting
    async with asyncio.timeout(WAIT_S):
        assert await service.search(VICTIM, "lamp") == []
        assert len(running) == share.running
        tasks[1].cancel()  # A request that goes away leaves the line.
        may_end.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [r for r in results if r != []] == [results[1]]
    assert isinstance(results[1], asyncio.CancelledError)
    assert await service.search(GREEDY, "lamp") == []


async def test_a_session_s_search_ignores_the_words_of_other_sessions(service):
    """The best match comes first, also with the filter by session."""
    mine = await service.runtime.start_session(owner="victim")
    other = await service.runtime.start_session(owner="victim")
    for text in ("lamp " + "and many other words " * 30, "the lamp"):
        await service.runtime.record_turn(mine.id, text, owner="victim")
        await service.runtime.record_turn(other.id, text, owner="victim")
    found = await service.search(VICTIM, "lamp", session_id=mine.id)
    assert [(m.session_id, m.message.text[:5]) for m in found] == [(mine.id, "the l"), (mine.id, "lamp ")]


async def test_one_owner_cannot_take_all_readers_of_the_store(tmp_path):
    store = SqliteStore(tmp_path / "sash.db")
    await store.open()
    may_end, started = threading.Event(), threading.Semaphore(0)

    def slow_job(db):
        started.release()
        may_end.wait(2 * WAIT_S)

    try:
        tasks = [asyncio.create_task(store.database.read(slow_job, "greedy")) for _ in range(20)]
        for _ in range(database.READERS_PER_OWNER):
            assert await asyncio.to_thread(started.acquire, timeout=WAIT_S)
        tasks[0].cancel()  # A caller that goes away does not free its reader.
        async with asyncio.timeout(WAIT_S):
            assert await store.count_active("victim") == 0
        assert not started.acquire(blocking=False)
    finally:
        may_end.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store.close()
