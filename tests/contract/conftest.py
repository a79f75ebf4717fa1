"""A store of every backend. Every test of the contract runs against each of them."""

from dataclasses import replace

import pytest

from sash.ports.turns import ClaimRequest
from sash.testing import FakeClock
from sash.values.continuations import Continuation, ContinuationRequest, ContinuationResponse
from sash.values.ids import new_id
from sash.values.sessions import Session
from sash.values.stats import Stats
from tests.backends import BACKENDS, DURABLE
from tests.contract.sample_values import completed, said, without


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=BACKENDS)
async def backend(request):
    return request.param


@pytest.fixture
async def store(backend, tmp_path, clock):
    store = BACKENDS[backend](tmp_path, clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def reopen(backend, store, tmp_path, clock):
    """Return a function that closes the store, and opens a new one on the same data if it is durable."""
    opened = [store]

    async def reopen():
        await opened[-1].close()
        if backend in DURABLE:
            opened.append(BACKENDS[backend](tmp_path, clock))
        await opened[-1].open()
        return opened[-1]

    yield reopen
    for again in opened:
        await again.close()


@pytest.fixture
def start(store, clock):
    async def start(owner="ann", id=None, **fields):
        session = Session(id or new_id(), owner, clock.now(), clock.now(), **fields)
        await store.create_session(session)
        return session

    return start


@pytest.fixture
def begin(store, clock):
    async def begin(session, message="hi", *, key=None, known=None, **options):
        request = ContinuationRequest(message, idempotency_key=key)
        new = Continuation(new_id(), session.id, session.owner, "pending", clock.now(), clock.now(), request)
        return await store.begin(new, ClaimRequest("w1", known=known), **options)

    return begin


@pytest.fixture
def say(store, begin):
    async def say(session, *texts, evicted=(), role="user"):
        """Finish a turn that says texts, and evicts messages."""
        turn = (await begin(session)).turn
        messages = said(*texts, role=role)
        cut = without(*evicted) if evicted else None
        await store.finish(turn.lease, completed(*messages, cut=cut))
        return messages

    return say


@pytest.fixture
def now_and_later(store, reopen):
    async def now_and_later():
        """Give the store as it is, and then opened again."""
        yield store
        yield await reopen()

    return now_and_later


@pytest.fixture
def record(store, clock):
    async def record(session, question, answer, *, cut=None, key=None, **fields):
        """Record a turn of a question and an answer in a session as it is now."""
        request = ContinuationRequest(question, idempotency_key=key, metadata={"source": "test"})
        new = Continuation(new_id(), session.id, session.owner, "running", clock.now(), clock.now(), request)
        messages = (*said(question), *said(answer, role="assistant"))
        end = completed(*messages, cut=cut, stats=Stats(turns=1, local_turns=1))
        end = replace(end, response=ContinuationResponse(answer), **fields)
        current = await store.get_session(session.owner, session.id)
        recorded, steps = await store.record(new, end, current)
        assert recorded == await store.get_continuation(session.owner, recorded.id)
        return recorded.id, messages, steps

    return record
