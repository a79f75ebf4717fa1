"""`open_session` finds the active session of a name or creates it, in one atomic write."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sash.errors import SessionExists
from sash.values.ids import new_id
from sash.values.sessions import Session
from sash.values.stats import Stats
from tests.backends import BACKENDS, SHARED

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60
NAMES = 25


@pytest.fixture
def new(clock):
    def new(name, owner="ann", **fields):
        return Session(new_id(), owner, clock.now(), clock.now(), name=name, **fields)

    return new


async def test_a_new_name_creates_the_given_session(store, new, reopen):
    session = new("kitchen", preferences={"language": "de"})
    assert await store.open_session(session) == session
    assert await (await reopen()).get_session("ann", session.id) == session


async def test_a_known_name_returns_the_active_session_as_it_is_now(store, new, reopen):
    first = await store.open_session(new("kitchen"))
    changed = await store.save_session(replace(first, preferences={"a": 1}))
    assert await store.open_session(new("kitchen")) == changed
    again = await reopen()
    assert await again.open_session(new("kitchen")) == changed
    assert await again.count_active("ann") == 1


async def test_a_name_of_an_ended_session_creates_a_new_one(store, new):
    first = await store.open_session(new("kitchen"))
    await store.save_session(replace(first, status="ended"))
    second = new("kitchen")
    assert await store.open_session(second) == second
    assert await store.find_session("ann", "kitchen") == second


async def test_a_new_session_counts_the_turns_of_the_ended_one(store, new):
    first = await store.open_session(new("kitchen"))
    stats = Stats(turns=5, failed_turns=1, cancelled_turns=1)
    await store.save_session(replace(first, status="ended", stats=stats, turns_before=2))
    second = await store.open_session(new("kitchen"))
    assert (second.turns_before, second.total_turns) == (5, 5)
    assert await store.get_session("ann", second.id) == second


@pytest.mark.parametrize("reopen", [True, False])
async def test_an_expired_session_is_opened_again_only_on_request(store, new, reopen):
    first = await store.open_session(new("kitchen"))
    await store.save_session(replace(first, status="expired"))
    second = await store.open_session(new("kitchen"), reopen=reopen)
    assert (second.id == first.id) is reopen
    assert second.status == "active"
    assert await store.get_session("ann", second.id) == second


async def test_a_name_belongs_to_one_owner(store, new):
    of_ann, of_bob = new("kitchen"), new("kitchen", owner="bob")
    assert await store.open_session(of_ann) == of_ann
    assert await store.open_session(of_bob) == of_bob


async def test_a_session_without_a_name_is_always_created(store, new):
    first, second = new(None), new(None)
    assert await store.open_session(first) == first
    assert await store.open_session(second) == second


async def test_an_id_that_is_taken_is_refused(store, new):
    session = await store.open_session(new("kitchen"))
    with pytest.raises(SessionExists):
        await store.open_session(replace(session, name="bathroom"))
    assert await store.find_session("ann", "bathroom") is None


async def test_concurrent_callers_of_a_name_get_the_same_session(store, new):
    opened = await asyncio.gather(*(store.open_session(new("kitchen")) for _ in range(20)))
    assert len({session.id for session in opened}) == 1
    assert await store.count_active("ann") == 1


@pytest.mark.parametrize("kind", SHARED)
async def test_processes_that_open_the_same_names_at_once_get_the_same_sessions(kind, tmp_path, clock):
    command = [sys.executable, "-m", "tests.contract.open_sessions", kind, str(tmp_path), str(NAMES)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    processes = [subprocess.Popen(command, **pipes) for _ in range(2)]
    try:
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        opened = [json.loads(process.communicate(timeout=TIMEOUT_S)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert opened[0] == opened[1]
    store = BACKENDS[kind](tmp_path, clock)
    await store.open()
    assert await store.count_active("ann") == NAMES
    await store.close()
