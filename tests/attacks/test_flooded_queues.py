"""One owner cannot queue turns without end, in one session or in many."""

import asyncio

import pytest

from sash.errors import TooManyTurns
from sash.ports.session_rules import MAX_PENDING_PER_OWNER, MAX_PENDING_PER_SESSION
from sash.ports.turns import ClaimRequest
from sash.testing import FakeClock
from sash.values.continuations import Continuation, ContinuationRequest
from sash.values.ids import new_id
from sash.values.sessions import Session
from tests.backends import BACKENDS, DURABLE
from tests.contract.sample_values import completed
from tests.surfaces.serving import WaitingModel, problem, serving


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=BACKENDS)
async def store(request, tmp_path, clock):
    store = BACKENDS[request.param](tmp_path, clock)
    await store.open()
    yield store
    await store.close()


async def start(store, clock, owner):
    session = Session(new_id(), owner, clock.now(), clock.now())
    await store.create_session(session)
    return session


async def enqueue(store, session, key=None):
    now = session.created_at
    request = ContinuationRequest("hi", idempotency_key=key)
    new = Continuation(new_id(), session.id, session.owner, "running", now, now, request)
    return await store.begin(new, ClaimRequest("worker"), enqueue=True)


async def test_the_queue_of_a_session_is_bounded(store, clock):
    session = await start(store, clock, "ann")
    running = await enqueue(store, session)
    queued = [await enqueue(store, session, key=str(n)) for n in range(MAX_PENDING_PER_SESSION)]
    with pytest.raises(TooManyTurns) as refused:
        await enqueue(store, session)
    assert (refused.value.session_id, refused.value.limit) == (session.id, MAX_PENDING_PER_SESSION)
    assert len(await store.list_continuations("ann", session.id)) == 1 + MAX_PENDING_PER_SESSION
    assert (await enqueue(store, session, key="0")).continuation.id == queued[0].continuation.id
    await store.finish(running.turn.lease, completed())
    await store.claim_next(session.id, ClaimRequest("worker"))
    assert (await enqueue(store, session)).continuation.status == "pending"


async def test_the_queues_of_an_owner_are_bounded_together(store, clock):
    full = MAX_PENDING_PER_OWNER // MAX_PENDING_PER_SESSION
    for session in [await start(store, clock, "ann") for _ in range(full)]:
        for _ in range(1 + MAX_PENDING_PER_SESSION):
            await enqueue(store, session)
    other = await start(store, clock, "ann")
    assert (await enqueue(store, other)).turn is not None
    with pytest.raises(TooManyTurns) as refused:
        await enqueue(store, other)
    assert refused.value.limit == MAX_PENDING_PER_OWNER
    victim = await start(store, clock, "bob")
    await enqueue(store, victim)
    assert (await enqueue(store, victim)).continuation.status == "pending"


@pytest.mark.parametrize("kind", DURABLE)
async def test_a_full_queue_stays_full_after_a_restart(kind, tmp_path, clock):
    for expected in ("pending", None):
        store = BACKENDS[kind](tmp_path, clock)
        await store.open()
        if expected:
            session = await start(store, clock, "ann")
            for _ in range(1 + MAX_PENDING_PER_SESSION):
                await enqueue(store, session)
        with pytest.raises(TooManyTurns):
            await enqueue(store, session)
        await store.close()


async def test_a_client_is_told_to_try_again(tmp_path):
    model = WaitingModel()
    async with serving(tmp_path, model=model) as served:
        session_id = await served.start()
        for _ in range(1 + MAX_PENDING_PER_SESSION):
            await served.send(session_id, busy="enqueue")
        path, body = f"/v1/sessions/{session_id}/messages", {"message": "hi", "busy": "enqueue"}
        refused = await served.client.post(path, json=body)
        told = problem(refused, 429, "too_many_turns")
        assert (told["limit"], refused.headers["retry-after"]) == (MAX_PENDING_PER_SESSION, "2")
        model.go.set()
        async with asyncio.timeout(45):
            while (await served.client.post(path, json=body)).status_code != 202:
                await asyncio.sleep(0.01)
