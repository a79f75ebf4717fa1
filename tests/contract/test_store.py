"""The store contract: what every backend promises, in one suite that none opts out of."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from sash.errors import (
    ArtifactNotFound,
    ContinuationFinal,
    ContinuationNotFound,
    InvalidInput,
    LeaseLost,
    SessionBusy,
    SessionChanged,
    SessionEnded,
    SessionExists,
    SessionNotFound,
)
from sash.ports.store import Artifact, Bundle, ClaimRequest, Cut, Evicted, TurnEnd, Vector
from sash.values.continuations import ArtifactRef, Continuation, ContinuationRequest, ContinuationResponse
from sash.values.ids import new_id
from sash.values.messages import MessageEntry
from sash.values.sessions import Pin, Session, SessionMemory
from sash.values.stats import Stats
from sash.values.steps import (
    ApprovalGiven,
    Failed,
    Finished,
    HomeChanged,
    Plan,
    ToolCall,
    ToolResult,
)

PLAN = Plan("thinking")


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


def said(*texts, role="user"):
    return tuple(MessageEntry(role, text, token_count=5, tags={"input"}) for text in texts)


def completed(*messages, cut=None, **fields):
    step = Finished("done")
    response = ContinuationResponse("done")
    return TurnEnd("completed", (step,), response, messages=messages, cut=cut, **fields)


def without(*messages, turn_starts=(), digest=""):
    return Cut(tuple(Evicted(m.id, "max_tokens") for m in messages), turn_starts, digest)


async def test_a_session_is_kept_as_it_was_given(store, start):
    session = await start(preferences={"language": "de", "deep": [1, {"a": None}]})
    assert await store.get_session("ann", session.id) == session
    with pytest.raises(SessionExists):
        await store.create_session(session)


async def test_a_change_needs_the_version_that_was_read(store, start, clock):
    session = await start()
    clock.advance(5)
    saved = await store.save_session(replace(session, preferences={"a": 1}))
    assert (saved.version, saved.updated_at) == (2, clock.now())
    assert await store.get_session("ann", session.id) == saved
    with pytest.raises(SessionChanged):
        await store.save_session(replace(session, preferences={"b": 2}))
    assert (await store.get_session("ann", session.id)).preferences == {"a": 1}


async def test_sessions_are_listed_newest_first_page_by_page(store, start):
    made = [await start() for _ in range(5)]
    await start("bob")
    first = await store.list_sessions("ann", limit=2)
    second = await store.list_sessions("ann", limit=2, cursor=first.next_cursor)
    third = await store.list_sessions("ann", limit=2, cursor=second.next_cursor)
    listed = [*first.items, *second.items, *third.items]
    assert listed == made[::-1]
    assert third.next_cursor is None
    await store.save_session(replace(made[0], status="ended"))
    assert [s.id for s in (await store.list_sessions("ann", status="ended")).items] == [made[0].id]


async def test_a_turn_is_begun_worked_on_and_finished(store, start, begin, clock):
    session = await start()
    begun = await begin(session)
    turn = begun.turn
    assert begun.created
    assert turn.continuation.status == "running"
    assert turn.session == session
    assert turn.window.messages == ()
    clock.advance(1)
    steps = await store.append(turn.lease, [PLAN, ToolCall("1", "look", "{}")])
    assert [(s.n, s.cursor, s.ts) for s in steps] == [(1, 1, clock.now()), (2, 2, clock.now())]
    await store.append(turn.lease, [ToolResult("1", "look", "seen")])
    messages = said("hi", "hello")
    await store.finish(turn.lease, completed(*messages, stats=Stats(turns=1, steps=3)))
    ended = await store.get_continuation("ann", turn.continuation.id)
    assert (ended.status, ended.response.final_message) == ("completed", "done")
    assert (ended.created_at, ended.updated_at) == (session.created_at, clock.now())
    assert [s.type for s in (await store.journal("ann", ended.id))[1]] == [
        "plan",
        "tool_call",
        "tool_result",
        "summary",
    ]
    assert [m.message for m in await store.messages("ann", session.id)] == list(messages)
    assert (await store.window("ann", session.id)).messages == messages
    after = await store.get_session("ann", session.id)
    assert (after.stats.turns, after.stats.steps, after.version) == (1, 3, 2)


async def test_only_one_turn_holds_a_session(store, start, begin):
    session = await start()
    first = await begin(session)
    with pytest.raises(SessionBusy) as error:
        await begin(session)
    assert error.value.continuation_id == first.continuation.id
    assert len(await store.list_continuations("ann", session.id)) == 1
    await store.finish(first.turn.lease, completed())
    assert (await begin(session)).turn is not None


async def test_of_many_at_once_exactly_one_is_accepted(store, start, begin):
    session = await start()
    results = await asyncio.gather(*(begin(session) for _ in range(20)), return_exceptions=True)
    assert sum(not isinstance(r, SessionBusy) for r in results) == 1
    assert len(await store.list_continuations("ann", session.id)) == 1


async def test_the_same_key_is_the_same_continuation(store, start, begin):
    session = await start()
    results = await asyncio.gather(*(begin(session, key="k") for _ in range(50)))
    assert len({r.continuation.id for r in results}) == 1
    assert [r.created for r in results].count(True) == 1
    turn = next(r.turn for r in results if r.turn)
    await store.finish(turn.lease, completed())
    again = await begin(session, "other words", key="k")
    assert (again.created, again.turn, again.continuation.status) == (False, None, "completed")
    other = await start()
    assert (await begin(other, key="k")).created


async def test_cursors_are_not_given_again_when_steps_are_swept(store, start, begin, clock):
    session = await start()
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*said("one")))
    clock.advance(60)
    await store.sweep(idle_before=clock.now() - timedelta(days=1), ended_before=clock.now())
    turn = (await begin(session)).turn
    assert [s.cursor for s in await store.append(turn.lease, [PLAN])] == [2]


async def test_a_queue_is_served_in_order(store, start, begin):
    session = await start()
    first = await begin(session, "1")
    second = await begin(session, "2", enqueue=True)
    third = await begin(session, "3", enqueue=True)
    assert (second.turn, second.continuation.status) == (None, "pending")
    assert await store.claim_next(session.id, ClaimRequest("w1")) is None
    assert (await store.finish(first.turn.lease, completed())).next_waits
    served = []
    while turn := await store.claim_next(session.id, ClaimRequest("w1")):
        served.append(turn.continuation.id)
        await store.finish(turn.lease, completed())
    assert served == [second.continuation.id, third.continuation.id]


async def test_a_session_that_is_over_takes_no_turn(store, start, begin):
    session = await start()
    await store.save_session(replace(session, status="ended"))
    with pytest.raises(SessionEnded):
        await begin(session)


async def test_who_lost_the_lease_cannot_write(store, start, begin, clock):
    session = await start()
    turn = (await begin(session)).turn
    clock.advance(31)
    assert [c.id for c in await store.interrupt_lost()] == [turn.continuation.id]
    again = await store.claim("ann", turn.continuation.id, ClaimRequest("w2"))
    for late in (store.append(turn.lease, [PLAN]), store.finish(turn.lease, completed(*said("late")))):
        with pytest.raises(LeaseLost):
            await late
    assert await store.messages("ann", session.id) == []
    assert [s.type for s in (await store.journal("ann", turn.continuation.id))[1]] == ["observed_event"]
    assert again.lease.epoch > turn.lease.epoch
    await store.finish(again.lease, completed())


async def test_a_renewed_lease_is_not_lost(store, start, begin, clock):
    turn = (await begin(await start())).turn
    for _ in range(5):
        clock.advance(20)
        assert await store.renew("w1", [turn.continuation.id, "other"]) == {turn.continuation.id}
        assert await store.interrupt_lost() == []
    assert await store.renew("w2", [turn.continuation.id]) == frozenset()
    assert await store.renew("w1", []) == frozenset()
    await store.append(turn.lease, [PLAN])


async def test_a_resumed_turn_has_its_steps(store, start, begin, clock):
    turn = (await begin(await start())).turn
    await store.append(turn.lease, [PLAN])
    clock.advance(31)
    await store.interrupt_lost()
    again = await store.claim(
        "ann", turn.continuation.id, ClaimRequest("w2"), steps=[HomeChanged("the light is on")]
    )
    assert [s.type for s in again.steps] == ["plan", "observed_event", "observed_event"]
    assert [s.n for s in again.steps] == [1, 2, 3]
    with pytest.raises(SessionBusy):
        await store.claim("ann", turn.continuation.id, ClaimRequest("w3"))


async def test_an_interrupted_turn_does_not_block_but_cannot_run_beside_another(store, start, begin, clock):
    session = await start()
    old = (await begin(session)).turn
    clock.advance(31)
    await store.interrupt_lost()
    new = (await begin(session)).turn
    with pytest.raises(SessionBusy):
        await store.claim("ann", old.continuation.id, ClaimRequest("w1"))
    await store.finish(new.lease, completed())
    assert (
        await store.claim("ann", old.continuation.id, ClaimRequest("w1"))
    ).continuation.status == "running"


async def test_awaiting_approval_holds_the_session_and_no_lease(store, start, begin, clock):
    session = await start()
    turn = (await begin(session)).turn
    await store.append(turn.lease, [PLAN], give_back="awaiting_approval")
    clock.advance(1000)
    assert await store.interrupt_lost() == []
    with pytest.raises(SessionBusy):
        await begin(session)
    with pytest.raises(LeaseLost):
        await store.append(turn.lease, [PLAN])
    approval = ApprovalGiven("1", True)
    again = await store.claim("ann", turn.continuation.id, ClaimRequest("w2"), steps=[approval])
    assert [s.type for s in again.steps] == ["plan", "observed_event"]
    await store.finish(again.lease, completed())


async def test_a_cancel_is_final(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    cancelled = await store.cancel("ann", turn.continuation.id, "taking too long")
    assert cancelled.status == "cancelled"
    assert ((await store.journal("ann", cancelled.id))[1])[-1].detail == {
        "status": "cancelled",
        "reason": "taking too long",
    }
    for late in (store.append(turn.lease, [PLAN]), store.finish(turn.lease, completed(*said("late")))):
        with pytest.raises(LeaseLost):
            await late
    with pytest.raises(ContinuationFinal):
        await store.cancel("ann", turn.continuation.id, "again")
    with pytest.raises(ContinuationFinal):
        await store.claim("ann", turn.continuation.id, ClaimRequest("w1"))
    assert await store.messages("ann", session.id) == []
    assert (await begin(session)).turn is not None


async def test_events_have_cursors_without_a_gap(store, start, begin):
    session = await start()
    for _ in range(3):
        turn = (await begin(session)).turn
        await store.append(turn.lease, [PLAN, PLAN])
        await store.finish(turn.lease, completed())
    events = await store.events("ann", session.id)
    assert [e.step.cursor for e in events] == list(range(1, 10))
    assert [e.step.n for e in events] == [1, 2, 3] * 3
    assert await store.events("ann", session.id, after=4, limit=3) == events[4:7]
    assert await store.events("ann", session.id, after=9) == []


async def test_the_window_is_cut_where_the_turn_said(store, start, begin):
    session = await start()
    first, second = said("one", "two", "three"), said("four", role="assistant")
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*first))
    turn = (await begin(session)).turn
    assert turn.window.messages == first
    end = completed(*second, cut=without(first[0], first[2], turn_starts=(second[0].id,)))
    await store.finish(turn.lease, end)
    window = await store.window("ann", session.id)
    assert window.messages == (first[1], second[0])
    assert (window.evicted_count, window.turn_starts) == (2, (second[0].id,))
    assert [gone.message_id for gone in await store.evicted("ann", session.id)] == [first[0].id, first[2].id]
    transcript = await store.messages("ann", session.id)
    assert [m.position for m in transcript] == [1, 2, 3, 4]
    assert [m.in_window for m in transcript] == [False, True, False, True]
    assert transcript[3].continuation_id == turn.continuation.id
    assert await store.messages("ann", session.id, after=1, limit=2) == transcript[1:3]


async def test_a_window_is_cut_anywhere_again_and_again(store, start, begin, reopen):
    session = await start()
    messages = said(*map(str, range(12)))
    window = []
    for k, evicted in enumerate([(), (0, 3), (1,), (), (2, 4, 5, 9), (6, 7, 8, 11)]):
        new = messages[2 * k : 2 * k + 2]
        turn = (await begin(session)).turn
        gone = [messages[n] for n in evicted]
        await store.finish(turn.lease, completed(*new, cut=without(*gone) if gone else None))
        window = [m for m in (*window, *new) if m not in gone]
        assert list((await store.window("ann", session.id)).messages) == window
        there = [m.message for m in await store.messages("ann", session.id) if m.in_window]
        assert there == window
    store = await reopen()
    assert list((await store.window("ann", session.id)).messages) == window == [messages[10]]
    assert (await store.window("ann", session.id)).evicted_count == 11


async def test_a_failed_turn_leaves_the_window_as_it_was(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*said("one"), cut=without(turn_starts=("x",))))
    before = await store.window("ann", session.id)
    turn = (await begin(session)).turn
    await store.finish(turn.lease, TurnEnd("failed", (Failed("model_error", "no answer"),)))
    assert await store.window("ann", session.id) == before


async def test_messages_of_every_form_are_kept_exactly(store, start, begin):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":  1}'}}
    messages = (
        MessageEntry("user", "ünï\n\x00😀 ", token_count=3, tags={"input", "important"}, name="Ann"),
        MessageEntry("user", [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": "x"}]),
        MessageEntry("assistant", "", tool_calls=[call]),
        MessageEntry("tool", "", tool_call_id="1"),
    )
    session = await start()
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*messages))
    assert (await store.window("ann", session.id)).messages == messages


async def test_what_others_changed_during_a_turn_stays(store, start, begin, clock):
    session = await start()
    turn = (await begin(session)).turn
    pins = (Pin("p", "always", clock.now()),)
    await store.save_session(replace(session, memory=SessionMemory(pins=pins)))
    await store.finish(turn.lease, completed(*said("one"), cut=without(digest="- gone")))
    after = await store.get_session("ann", session.id)
    assert after.memory == SessionMemory(digest="- gone", pins=pins, cut_at=clock.now())
    assert after.version == 3


async def test_search_finds_words_in_the_owner_s_transcripts_only(store, start, begin):
    for owner in ("ann", "bob"):
        session = await start(owner)
        turn = (await begin(session)).turn
        end = completed(*said('Error 500 at "db.example.com"', "the kitchen light", "Größe ÄÖÜ"))
        await store.finish(turn.lease, replace(end, cut=without(end.messages[0])))
    found = await store.search("bob", "error 500")
    assert [(m.session_id, m.in_window) for m in found] == [(session.id, False)]
    assert [m.message.text for m in await store.search("bob", "KITCHEN", session_id=session.id)] == [
        "the kitchen light"
    ]
    assert [m.message.text for m in await store.search("bob", "größe")] == ["Größe ÄÖÜ"]
    assert await store.search("bob", "kitchen", session_id="other") == []
    assert await store.search("carl", "kitchen") == []
    for odd in ("", " ", '"', "a AND", "NEAR(", "*", "x OR y -z", "col:x", "\0", '"\0"'):
        assert await store.search("bob", odd) == []
    assert len(await store.search("bob", "kitchen\0light")) == 1


async def test_nothing_crosses_owners(store, start, begin):
    session = await start("ann")
    turn = (await begin(session)).turn
    artifact = Artifact(ArtifactRef(new_id(), "text/plain", 1), session.id, "ann", b"x")
    await store.put_artifact(artifact)
    for attempt in (
        store.get_session("bob", session.id),
        store.delete_session("bob", session.id),
        store.save_session(replace(session, owner="bob")),
        store.events("bob", session.id),
        store.window("bob", session.id),
        store.messages("bob", session.id),
        store.list_continuations("bob", session.id),
        store.window_turns("bob", session.id),
        store.export_session("bob", session.id),
        store.put_artifact(replace(artifact, owner="bob")),
        begin(replace(session, owner="bob")),
    ):
        with pytest.raises(SessionNotFound):
            await attempt
    for attempt in (
        store.get_continuation("bob", turn.continuation.id),
        store.journal("bob", turn.continuation.id),
        store.cancel("bob", turn.continuation.id, "mine"),
        store.claim("bob", turn.continuation.id, ClaimRequest("w")),
        store.amend("bob", turn.continuation.id, "mine", 1),
    ):
        with pytest.raises(ContinuationNotFound):
            await attempt
    with pytest.raises(ArtifactNotFound):
        await store.get_artifact("bob", artifact.ref.id)
    assert (await store.list_sessions("bob")).items == ()
    assert await store.erase("bob") == 0
    assert await store.get_artifact("ann", artifact.ref.id) == artifact


async def test_a_deleted_session_does_not_come_back_by_a_late_write(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    artifact = Artifact(ArtifactRef(new_id(), "text/plain", 1), session.id, "ann", b"x")
    await store.put_artifact(artifact)
    await store.delete_session("ann", session.id)
    for late in (store.append(turn.lease, [PLAN]), store.finish(turn.lease, completed(*said("late")))):
        with pytest.raises(LeaseLost):
            await late
    with pytest.raises(SessionNotFound):
        await store.save_session(session)
    with pytest.raises(SessionNotFound):
        await store.get_session("ann", session.id)
    with pytest.raises(ContinuationNotFound):
        await store.get_continuation("ann", turn.continuation.id)
    with pytest.raises(ArtifactNotFound):
        await store.get_artifact("ann", artifact.ref.id)
    assert await store.renew("w1", [turn.continuation.id]) == frozenset()


async def test_erasing_an_owner_leaves_no_word(store, start, begin):
    for owner in ("ann", "ann", "bob"):
        turn = (await begin(await start(owner))).turn
        await store.finish(turn.lease, completed(*said("secret words")))
    assert len(await store.search("ann", "secret")) == 2
    assert await store.erase("ann") == 2
    assert (await store.list_sessions("ann")).items == ()
    assert await store.search("ann", "secret") == []
    assert len(await store.search("bob", "secret")) == 1


async def test_search_takes_names_apart(store, start, begin):
    turn = (await begin(await start())).turn
    await store.finish(turn.lease, completed(*said("light.kitchen_main is on")))
    for words in ("kitchen", "main light", "kitchen_main", "light.kitchen_main"):
        assert len(await store.search("ann", words)) == 1, words


async def test_what_nobody_works_on_is_said_to_wait(store, start, begin, clock, reopen):
    session, other = await start(), await start()
    first = await begin(session)
    queued = await begin(session, enqueue=True)
    await begin(other)
    assert await store.waiting() == []
    clock.advance(31)
    await store.interrupt_lost()
    store = await reopen()
    waiting = [(c.id, c.status) for c in await store.waiting()]
    assert waiting[:2] == [(first.continuation.id, "interrupted"), (queued.continuation.id, "pending")]
    assert len(waiting) == 3
    await store.claim_next(session.id, ClaimRequest("w2"))
    assert [c.session_id for c in await store.waiting()] == [other.id]


async def test_the_last_id_is_known(store, start, begin, reopen):
    assert await store.last_id() is None
    session = await start()
    assert await store.last_id() == session.id
    begun = await begin(session)
    store = await reopen()
    assert await store.last_id() == begun.continuation.id


async def test_nobody_s_parts_can_be_taken_by_an_import(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    artifact = Artifact(ArtifactRef(new_id(), "text/plain", 1), session.id, "ann", b"x")
    await store.put_artifact(artifact)
    bob = replace(session, id=new_id(), owner="bob")
    stolen = replace(turn.continuation, session_id=bob.id, owner="bob", status="cancelled")
    copy = replace(artifact, session_id=bob.id, owner="bob", data=b"y")
    for parts in ({"continuations": (stolen,)}, {"artifacts": (copy,)}):
        with pytest.raises(SessionExists):
            await store.import_session(Bundle(bob, **parts))
    assert (await store.list_sessions("bob")).items == ()
    assert await store.get_artifact("ann", artifact.ref.id) == artifact
    await store.finish(turn.lease, completed(*said("mine")))


async def test_a_turn_that_is_handed_back_without_a_word_waits_after_a_restart(store, start, begin, reopen):
    turn = (await begin(await start())).turn
    await store.append(turn.lease, [], give_back="awaiting_approval")
    store = await reopen()
    assert (await store.get_continuation("ann", turn.continuation.id)).status == "awaiting_approval"
    assert await store.interrupt_lost() == []


async def test_what_a_sweep_ended_is_ended_after_a_restart(store, start, begin, clock, reopen):
    idle, used = await start(), await start()
    turn = (await begin(used)).turn
    await store.finish(turn.lease, completed(*said("kept")))
    clock.advance(timedelta(days=8).total_seconds())
    await store.sweep(idle_before=clock.now() - timedelta(days=7), ended_before=clock.now())
    store = await reopen()
    assert (await store.get_session("ann", idle.id)).status == "expired"
    assert [m.message.text for m in await store.messages("ann", used.id)] == ["kept"]
    assert (await store.get_continuation("ann", turn.continuation.id)).status == "completed"


async def test_no_byte_of_what_was_erased_is_left_on_the_disk(store, start, begin, tmp_path):
    for owner in ("ann", "bob"):
        session = await start(owner, preferences={"of": f"xylophone-{owner}"})
        turn = (await begin(session, f"xylophone-{owner}")).turn
        await store.append(turn.lease, [Plan(f"xylophone-{owner}")])
        await store.finish(turn.lease, completed(*said(f"xylophone-{owner} plays")))
        ref = ArtifactRef(new_id(), "text/plain", 1)
        await store.put_artifact(Artifact(ref, session.id, owner, f"xylophone-{owner}".encode()))
        assert await store.search(owner, "xylophone")
    await store.erase("ann")
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"xylophone-ann" not in left
    assert len(await store.search("bob", "xylophone")) == 1


async def test_what_is_said_after_an_erasure_is_found(store, start, begin):
    turn = (await begin(await start())).turn
    await store.finish(turn.lease, completed(*said("secret words", "more secrets")))
    assert len(await store.search("ann", "secret")) == 1
    await store.erase("ann")
    turn = (await begin(await start())).turn
    await store.finish(turn.lease, completed(*said("new words")))
    assert [m.message.text for m in await store.search("ann", "words")] == ["new words"]


async def test_an_export_comes_back_whole(store, start, begin):
    session = await start()
    turn = (await begin(session, key="k")).turn
    await store.append(turn.lease, [PLAN])
    first = said("one", "two")
    await store.finish(turn.lease, completed(*first, cut=without(first[0], turn_starts=("x",))))
    await store.put_artifact(
        Artifact(ArtifactRef(new_id(), "image/png", 3, "plot"), session.id, "ann", b"png")
    )
    bundle = await store.export_session("ann", session.id)
    with pytest.raises(SessionExists):
        await store.import_session(bundle)
    await store.delete_session("ann", session.id)
    await store.import_session(bundle)
    assert await store.export_session("ann", session.id) == bundle
    assert [m.message.text for m in await store.search("ann", "one")] == ["one"]
    again = await begin(session, key="k")
    assert not again.created
    turn = (await begin(session)).turn
    [step] = await store.append(turn.lease, [PLAN])
    assert step.cursor == 3
    await store.finish(turn.lease, completed(*said("three")))
    assert [m.position for m in await store.messages("ann", session.id)] == [1, 2, 3]


async def test_everything_is_there_when_the_store_is_opened_again(store, start, begin, reopen, clock):
    session, other = await start(preferences={"a": 1}), await start("bob")
    turn = (await begin(session, key="k")).turn
    await store.append(turn.lease, [PLAN])
    first = said("one", "two")
    await store.finish(turn.lease, completed(*first, cut=without(first[0], digest="- one")))
    waiting = (await begin(session)).turn
    await store.append(waiting.lease, [PLAN], give_back="awaiting_approval")
    pending = await begin(session, enqueue=True)
    await store.put_artifact(Artifact(ArtifactRef(new_id(), "image/png", 3), session.id, "ann", b"png"))
    before = await store.export_session("ann", session.id)
    store = await reopen()
    assert await store.export_session("ann", session.id) == before
    assert await store.get_session("bob", other.id) == other
    assert await store.interrupt_lost() == []
    assert [m.message.text for m in await store.search("ann", "one")] == ["one"]
    again = await store.claim("ann", waiting.continuation.id, ClaimRequest("w2"), steps=[PLAN])
    assert [s.cursor for s in again.steps] == [3, 4]
    await store.finish(again.lease, completed(*said("three")))
    assert (await store.claim_next(session.id, ClaimRequest("w2"))).continuation.id == pending.continuation.id
    store = await reopen()
    assert [m.position for m in await store.messages("ann", session.id)] == [1, 2, 3]


async def test_a_turn_whose_process_is_gone_is_interrupted_when_the_store_is_opened_again(
    store, start, begin, reopen, clock
):
    turn = (await begin(await start())).turn
    await store.append(turn.lease, [PLAN])
    store = await reopen()
    clock.advance(31)
    assert [c.id for c in await store.interrupt_lost()] == [turn.continuation.id]
    store = await reopen()
    assert await store.interrupt_lost() == []
    assert [s.type for s in (await store.journal("ann", turn.continuation.id))[1]] == [
        "plan",
        "observed_event",
    ]


async def test_a_sweep_ends_what_is_idle_or_forgotten(store, start, begin, clock):
    idle, waiting, done, held = [await start() for _ in range(4)]
    turn = (await begin(waiting)).turn
    await store.append(turn.lease, [PLAN], give_back="awaiting_approval")
    finished = (await begin(done)).turn
    await store.finish(finished.lease, completed(*said("kept")))
    clock.advance(timedelta(days=8).total_seconds())
    running = (await begin(held)).turn
    now = clock.now()
    swept = await store.sweep(idle_before=now - timedelta(days=7), ended_before=now - timedelta(hours=24))
    assert (swept.continuations, swept.steps) == (1, 1)
    assert (await store.get_continuation("ann", turn.continuation.id)).status == "expired"
    assert (await store.journal("ann", finished.continuation.id))[1] == ()
    assert [m.message.text for m in await store.messages("ann", done.id)] == ["kept"]
    assert (await store.get_session("ann", idle.id)).status == "expired"
    assert (await store.get_session("ann", held.id)).status == "active"
    await store.append(running.lease, [PLAN])


async def test_artifacts_are_kept_byte_for_byte(store, start):
    session = await start()
    artifact = Artifact(
        ArtifactRef(new_id(), "application/octet-stream", 256, "all"), session.id, "ann", bytes(range(256))
    )
    await store.put_artifact(artifact)
    assert await store.get_artifact("ann", artifact.ref.id) == artifact
    with pytest.raises(ArtifactNotFound):
        await store.get_artifact("ann", "nothing")
    with pytest.raises(SessionNotFound):
        await store.put_artifact(replace(artifact, session_id="nowhere"))


async def test_a_worker_that_knows_the_window_is_not_sent_it_again(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*said("one")))
    known = await store.get_session("ann", session.id)
    turn = (await begin(session, known=known)).turn
    assert turn.session == known
    assert turn.window is None
    await store.finish(turn.lease, completed(*said("two")))
    turn = (await begin(session, known=known)).turn
    assert [m.text for m in turn.window.messages] == ["one", "two"]


async def test_a_continuation_can_be_given_back_to_be_resumed(store, start, begin, clock):
    session = await start()
    turn = (await begin(session)).turn
    clock.advance(3)
    await store.append(turn.lease, [PLAN], give_back="interrupted")
    waiting = await store.get_continuation("ann", turn.continuation.id)
    assert (waiting.status, waiting.updated_at) == ("interrupted", clock.now())
    with pytest.raises(LeaseLost):
        await store.append(turn.lease, [PLAN])
    assert [c.id for c in await store.waiting()] == [waiting.id]
    assert (await begin(session)).turn is not None, "what is interrupted holds nothing"


async def test_what_a_turn_took_is_kept_with_it_and_with_the_session(store, start, begin, clock, reopen):
    session = await start()
    done = Stats(turns=1, cost_usd=0.5, errors={"e": 1}, durations={3: 1})
    gone = Stats(turns=1, cancelled_turns=1, cost_usd=0.25)
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(stats=done))
    clock.advance(60)
    other = (await begin(session)).turn
    cancelled = await store.cancel("ann", other.continuation.id, "why", stats=gone)
    assert cancelled.stats == gone
    again = await reopen()
    assert (await again.get_session("ann", session.id)).stats == done + gone
    assert (await again.get_continuation("ann", turn.continuation.id)).stats == done
    assert (await again.get_continuation("ann", other.continuation.id)).stats == gone


async def test_the_stats_of_turns_are_found_by_when_they_ended(store, start, begin, clock):
    mine, other = await start(), await start("bob")
    ended = []
    for hours, session in ((0, mine), (1, other), (2, mine), (30, mine)):
        clock.advance(hours * 3600)
        turn = (await begin(session)).turn
        await store.finish(turn.lease, completed(stats=Stats(turns=1, steps=hours + 1)))
        ended.append(clock.now())
    await begin(mine)
    assert await store.turn_stats("ann", ended[0]) == [
        (ended[0], Stats(turns=1, steps=1)),
        (ended[2], Stats(turns=1, steps=3)),
        (ended[3], Stats(turns=1, steps=31)),
    ]
    assert [stats.steps for _, stats in await store.turn_stats("ann", ended[2])] == [3, 31]
    assert await store.turn_stats("ann", ended[3] + timedelta(seconds=1)) == []


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


@pytest.mark.parametrize("indexed", [False, True])
async def test_evicted_messages_are_recalled_by_the_beginnings_of_their_words(store, start, say, indexed):
    session, other = await start(), await start()
    first = await say(
        session, "The boiler leaks", "Boilers are OLD", "boil the kettle, E-500", 'a "quoted" word'
    )
    foreign = await say(other, "another boiler")
    await say(other, "x", evicted=foreign)
    await say(session, "a boiler in the window", evicted=first)
    await store.search("ann", "an index catches up when somebody searches" if indexed else " ")

    async def recalled(*beginnings, **options):
        found = await store.recall("ann", session.id, beginnings, **options)
        assert not any(m.in_window for m in found)
        return [(m.position, m.message.text) for m in found]

    assert await recalled("boiler") == [(1, "The boiler leaks"), (2, "Boilers are OLD")]
    assert [at for at, _ in await recalled("boil")] == [1, 2, 3]
    assert [at for at, _ in await recalled("old", "kettl")] == [2, 3]
    assert [at for at, _ in await recalled("500")] == [3]
    assert [at for at, _ in await recalled("boil", limit=1)] == [3]
    assert [at for at, _ in await recalled("boil", "leak", limit=1)] == [1, 3]
    assert await recalled("window") == []
    assert await recalled("another") == []
    for odd in ('"', "quoted", "AND", "text : x", "boil* OR", "*", "", "é", "'"):
        await recalled(odd)
    with pytest.raises(SessionNotFound):
        await store.recall("bob", session.id, ["boil"])


async def test_what_tools_returned_can_be_left_out(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    messages = (
        MessageEntry("user", "the boiler?"),
        MessageEntry("assistant", "", tool_calls=calls),
        MessageEntry("tool", "boiler: on", tool_call_id="1"),
        MessageEntry("assistant", "The boiler is on."),
    )
    await store.finish(turn.lease, completed(*messages, cut=without(*messages)))
    assert [m.position for m in await store.recall("ann", session.id, ["boil"])] == [1, 3, 4]
    assert [m.position for m in await store.recall("ann", session.id, ["boil"], said=True)] == [1, 4]


async def test_an_imported_transcript_can_be_recalled(store, start, say):
    session = await start()
    messages = await say(session, "the boiler leaks")
    await say(session, "later", evicted=messages)
    bundle = await store.export_session("ann", session.id)
    await store.delete_session("ann", session.id)
    assert await store.search("ann", "boiler") == []
    await store.import_session(bundle)
    assert [m.position for m in await store.recall("ann", session.id, ["boil"])] == [1]


@pytest.mark.parametrize("indexed", [False, True])
async def test_what_was_kept_of_an_older_turn_is_not_recalled(store, start, say, indexed):
    session = await start()
    messages = await say(session, "boiler one", "boiler two", "boiler three")
    await say(session, "later", evicted=[messages[0], messages[2]])
    await store.search("ann", "index" if indexed else " ")
    assert [m.position for m in await store.recall("ann", session.id, ["boil"])] == [1, 3]


async def test_images_are_not_searched_for_words(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,boiler"}}
    text = {"type": "text", "text": "a photo of the meter"}
    message = MessageEntry("user", [text, picture])
    await store.finish(turn.lease, completed(message))
    [found] = await store.search("ann", "photo meter")
    assert found.message == message
    assert await store.search("ann", "boiler") == []
    await store.erase("ann")
    assert await store.search("ann", "photo") == []


async def test_vectors_are_bounded_and_go_with_the_session(store, start, reopen):
    session = await start()
    vectors = [Vector(n, "m", bytes([n, 255])) for n in range(1, 8)]
    await store.add_vectors("ann", session.id, vectors[:4], keep=5)
    await store.add_vectors("ann", session.id, [*vectors[4:], replace(vectors[3], model="n")], keep=5)
    kept = [replace(vectors[3], model="n") if v.position == 4 else v for v in vectors[2:]]
    assert await store.vectors("ann", session.id) == kept
    again = await reopen()
    assert await again.vectors("ann", session.id) == kept
    with pytest.raises(SessionNotFound):
        await again.vectors("bob", session.id)
    await again.delete_session("ann", session.id)
    with pytest.raises(SessionNotFound):
        await again.vectors("ann", session.id)


async def test_a_saved_session_keeps_when_its_window_was_cut(store, start, say, clock):
    session = await start()
    messages = await say(session, "one")
    clock.advance(60)
    cut_at = clock.now()
    await say(session, "two", evicted=messages)
    clock.advance(60)
    saved = await store.get_session("ann", session.id)
    await store.save_session(replace(saved, preferences={"a": 1}))
    assert (await store.get_session("ann", session.id)).memory.cut_at == cut_at


@pytest.mark.parametrize("indexed", [False, True])
async def test_words_are_found_without_regard_to_accents_and_sharp_s(store, start, say, indexed):
    session = await start()
    messages = await say(session, "Die Fußbodenheizung im Café", "Hauptstraße 5", "light lights lighting")
    more = await say(session, "light again")
    await say(session, "later", evicted=[*messages, *more])
    await store.search("ann", "index" if indexed else " ")
    for beginning, positions in (
        ("fußb", [1]),
        ("cafe", [1]),
        ("café", [1]),
        ("hauptstraß", [2]),
        ("lig", [3, 4]),
    ):
        assert [m.position for m in await store.recall("ann", session.id, [beginning])] == positions
    assert [m.position for m in await store.recall("ann", session.id, ["light"], limit=2)] == [3, 4]


@pytest.mark.parametrize("indexed", [False, True])
async def test_many_words_are_looked_up_each_for_itself(store, start, say, indexed):
    session = await start()
    rare = await say(session, "the heron stands in the pond")
    common = [m for n in range(60) for m in await say(session, f"the lamp number {n} burns")]
    await say(session, "later", evicted=[*rare, *common])
    await store.search("ann", "index" if indexed else " ")
    found = await store.recall("ann", session.id, ["lamp", "burn", "heron", "unicorn"], limit=3)
    assert [m.position for m in found] == [1, 59, 60, 61]


async def test_what_waits_keeps_what_it_took(store, start, begin, reopen):
    session = await start()
    turn = (await begin(session)).turn
    spent = Stats(turns=1, cost_usd=0.5)
    await store.append(turn.lease, [PLAN], give_back="awaiting_approval", stats=spent)
    again = await reopen()
    assert (await again.get_continuation("ann", turn.continuation.id)).stats == spent
    assert [stats for _, stats in await again.turn_stats("ann", session.created_at)] == [spent]
    claimed = await again.claim("ann", turn.continuation.id, ClaimRequest("w2"))
    await again.finish(claimed.lease, completed(stats=Stats(turns=1, cost_usd=0.75)))
    assert [stats.cost_usd for _, stats in await again.turn_stats("ann", session.created_at)] == [0.75]
    assert (await again.get_session("ann", session.id)).stats.cost_usd == 0.75


async def test_what_the_index_has_and_has_not_are_found_together(store, start, say):
    session = await start()
    old = await say(session, "boiler one", "boiler two")
    await say(session, "later", evicted=old)
    await store.search("ann", "index")
    new = await say(session, "boiler three", "boiler four")
    await say(session, "later still", evicted=new)
    assert [m.position for m in await store.recall("ann", session.id, ["boil"])] == [1, 2, 4, 5]
    assert [m.position for m in await store.recall("ann", session.id, ["boil"], limit=3)] == [2, 4, 5]
    assert [m.position for m in await store.recall("ann", session.id, ["boil"], limit=1)] == [5]


async def test_an_owner_has_one_active_session_of_a_name(store, start, reopen):
    first = await start(name="default")
    assert await store.find_session("ann", "default") == first
    with pytest.raises(SessionExists):
        await start(name="default")
    other = await start("bob", name="default")
    assert (await start(name="another")).name == "another"
    store = await reopen()
    assert await store.find_session("ann", "default") == first
    assert await store.find_session("bob", "default") == other
    assert await store.find_session("ann", "nothing") is None
    with pytest.raises(SessionExists):
        await store.create_session(replace(first, id=new_id()))
    assert len((await store.list_sessions("ann")).items) == 2


async def test_a_name_finds_the_active_session_or_the_newest(store, start, reopen):
    first = await start(name="default")
    ended = await store.save_session(replace(first, status="ended"))
    assert await store.find_session("ann", "default") == ended
    second = await start(name="default")
    assert await store.find_session("ann", "default") == second
    with pytest.raises(SessionExists):
        await store.save_session(replace(ended, status="active"))
    assert (await store.get_session("ann", first.id)).status == "ended"
    over = await store.save_session(replace(second, status="ended"))
    assert await store.find_session("ann", "default") == over
    again = await store.save_session(replace(ended, status="active"))
    store = await reopen()
    assert await store.find_session("ann", "default") == again
    await store.delete_session("ann", first.id)
    assert await store.find_session("ann", "default") == over
    await store.delete_session("ann", second.id)
    assert await store.find_session("ann", "default") is None


async def test_a_session_can_be_named_and_renamed(store, start, reopen):
    session, other = await start(), await start(name="taken")
    named = await store.save_session(replace(session, name="mine"))
    assert await store.find_session("ann", "mine") == named
    renamed = await store.save_session(replace(named, name="yours"))
    with pytest.raises(SessionExists):
        await store.save_session(replace(renamed, name="taken"))
    store = await reopen()
    assert await store.find_session("ann", "mine") is None
    assert await store.find_session("ann", "yours") == renamed
    assert await store.find_session("ann", "taken") == other


async def test_of_many_who_begin_a_name_at_once_exactly_one_does(store, start):
    results = await asyncio.gather(*(start(name="default") for _ in range(20)), return_exceptions=True)
    [begun] = [r for r in results if not isinstance(r, SessionExists)]
    assert await store.find_session("ann", "default") == begun
    assert (await store.list_sessions("ann")).items == (begun,)


async def test_active_sessions_are_counted(store, start):
    first = await start()
    await start()
    await start(owner="other")
    assert [await store.count_active(owner) for owner in (first.owner, "other", "nobody")] == [2, 1, 0]
    await store.save_session(replace(first, status="ended"))
    assert await store.count_active(first.owner) == 1


async def test_sessions_are_listed_by_name(store, start):
    old = await start(name="default")
    old = await store.save_session(replace(old, status="ended"))
    new = await start(name="default")
    await start(name="other")
    await start("bob", name="default")
    assert (await store.list_sessions("ann", name="default")).items == (new, old)
    assert (await store.list_sessions("ann", name="default", status="ended")).items == (old,)


async def test_an_import_whose_name_is_taken_has_none(store, start):
    session = await start(name="default")
    bundle = await store.export_session("ann", session.id)
    await store.delete_session("ann", session.id)
    assert (await store.import_session(bundle)).name == "default"
    assert await store.find_session("ann", "default") == bundle.session
    copy = replace(bundle, session=replace(bundle.session, id=new_id()))
    imported = await store.import_session(copy)
    assert imported.name is None
    assert await store.get_session("ann", imported.id) == imported
    assert await store.find_session("ann", "default") == bundle.session
    over = replace(bundle, session=replace(bundle.session, id=new_id(), status="ended"))
    assert (await store.import_session(over)).name == "default"


@pytest.fixture
def now_and_later(store, reopen):
    async def now_and_later():
        """Give the store as it is, and then opened again."""
        yield store
        yield await reopen()

    return now_and_later


async def test_what_is_open_is_listed_without_what_is_over(store, start, begin, clock, now_and_later):
    session, other = await start(), await start()
    for _ in range(3):
        turn = (await begin(session)).turn
        await store.finish(turn.lease, completed())
    lost = await begin(session)
    clock.advance(31)
    await store.interrupt_lost()
    running = await begin(session)
    queued = await begin(session, enqueue=True)
    waiting = (await begin(other)).turn
    await store.append(waiting.lease, [PLAN], give_back="awaiting_approval")
    expected = [lost.continuation.id, running.continuation.id, queued.continuation.id]
    async for opened in now_and_later():
        unfinished = await opened.list_continuations("ann", session.id, open_only=True)
        assert [c.id for c in unfinished] == expected
        assert not any(c.is_final for c in unfinished)
        [asked] = await opened.list_continuations("ann", other.id, open_only=True)
        assert (asked.id, asked.status) == (waiting.continuation.id, "awaiting_approval")
    with pytest.raises(SessionNotFound):
        await opened.list_continuations("bob", session.id, open_only=True)


async def test_an_id_that_is_none_is_not_found(store):
    for odd in ("x" * 1000, "..", "a/b", "\0", "é" * 300):
        with pytest.raises(SessionNotFound):
            await store.get_session("ann", odd)
        with pytest.raises(ArtifactNotFound):
            await store.get_artifact("ann", odd)


async def test_a_lease_does_not_last_for_as_long_as_the_clock_was_set_back(store, start, begin, clock):
    dead, alive = [(await begin(await start())).turn for _ in range(2)]
    clock.advance(-86_400)
    await store.renew(alive.lease.worker, [alive.continuation.id])
    assert [c.id for c in await store.interrupt_lost()] == [dead.continuation.id]
    clock.advance(29)
    assert await store.interrupt_lost() == []


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


async def test_a_turn_that_is_over_is_recorded_whole(store, start, begin, record, clock, now_and_later):
    session = await start()
    turn = (await begin(session)).turn
    await store.append(turn.lease, [PLAN])
    first = said("one", "two")
    await store.finish(turn.lease, completed(*first))
    clock.advance(5)
    cut = without(first[0], first[1], turn_starts=("x",), digest="- one")
    recorded, messages, written = await record(session, "the boiler?", "It leaks.", cut=cut)
    assert [(s.n, s.cursor, s.ts) for s in written] == [(1, 3, clock.now())]
    async for opened in now_and_later():
        ended, steps = await opened.journal("ann", recorded)
        assert (ended.status, ended.response.final_message) == ("completed", "It leaks.")
        assert (ended.request.metadata, ended.updated_at) == ({"source": "test"}, clock.now())
        assert (ended.stats, steps) == (Stats(turns=1, local_turns=1), written)
        assert [m.message for m in await opened.messages("ann", session.id)] == [*first, *messages]
        assert [m.continuation_id for m in await opened.messages("ann", session.id, after=2)] == [
            recorded
        ] * 2
        window = await opened.window("ann", session.id)
        assert (window.messages, window.evicted_count, window.turn_starts) == (messages, 2, ("x",))
        after = await opened.get_session("ann", session.id)
        assert (after.version, after.stats.local_turns, after.updated_at) == (3, 1, clock.now())
        assert (after.memory.digest, after.memory.cut_at) == ("- one", clock.now())
        assert [e.step.cursor for e in await opened.events("ann", session.id)] == [1, 2, 3]
    assert [m.position for m in await opened.search("ann", "boiler leaks")] == []
    assert [m.position for m in await opened.search("ann", "leaks")] == [4]


async def test_several_steps_of_a_recorded_turn_are_kept(store, start, record, reopen):
    session = await start()
    steps = (PLAN, Finished("done"))
    recorded, _, _ = await record(session, "q", "a", steps=steps)
    opened = await reopen()
    assert [s.type for s in (await opened.journal("ann", recorded))[1]] == ["plan", "summary"]


async def test_the_last_cursor_is_known_even_when_its_step_is_swept(store, start, begin, clock, reopen):
    session = await start()
    assert await store.last_cursor("ann", session.id) == 0
    turn = (await begin(session)).turn
    await store.append(turn.lease, [PLAN, PLAN])
    assert await store.last_cursor("ann", session.id) == 2
    await store.finish(turn.lease, completed(*said("q")))
    clock.advance(10)
    swept = await store.sweep(idle_before=session.created_at, ended_before=clock.now())
    assert swept.steps == 3
    opened = await reopen()
    assert await opened.last_cursor("ann", session.id) == 3
    with pytest.raises(SessionNotFound):
        await opened.last_cursor("bob", session.id)


async def test_a_turn_is_recorded_once_under_its_key(store, start, begin, record, now_and_later):
    session = await start()
    first, messages, _ = await record(session, "q", "a", key="k")
    await begin(session)
    for question in ("q", "another"):
        again, _, steps = await record(session, question, "b", key="k")
        assert (again, steps) == (first, ())
    async for opened in now_and_later():
        assert [m.message for m in await opened.messages("ann", session.id)] == list(messages)


@pytest.mark.parametrize("how", ["finish", "cancel"])
async def test_a_session_for_one_question_ends_with_it_in_one_commit(store, start, begin, how, now_and_later):
    asked = await start(is_one_question=True)
    other = await start(context={"is_one_question": True})
    for session in (asked, other):
        turn = (await begin(session)).turn
        if how == "finish":
            await store.finish(turn.lease, completed(*said("q")))
        else:
            await store.cancel("ann", turn.continuation.id, "enough")
    async for opened in now_and_later():
        over = await opened.get_session("ann", asked.id)
        assert (over.status, over.version) == ("ended", 2)
        assert (await opened.get_session("ann", other.id)).status == "active"
        assert await opened.count_active("ann") == 1


async def test_nothing_is_recorded_in_a_session_that_is_held_or_over_or_has_changed(
    store, start, begin, record
):
    session = await start()
    turn = (await begin(session)).turn
    with pytest.raises(SessionBusy) as error:
        await record(session, "q", "a")
    assert error.value.continuation_id == turn.continuation.id
    await store.finish(turn.lease, completed())
    with pytest.raises(SessionNotFound):
        await record(replace(session, id=new_id()), "q", "a")
    request = ContinuationRequest("q")
    new = Continuation(
        new_id(), session.id, "ann", "running", session.created_at, session.created_at, request
    )
    with pytest.raises(SessionChanged):
        await store.record(new, completed(*said("q")), session)
    with pytest.raises(SessionNotFound):
        await store.record(replace(new, owner="bob"), completed(*said("q")), session)
    current = await store.get_session("ann", session.id)
    await store.save_session(replace(current, status="ended"))
    with pytest.raises(SessionEnded):
        await record(session, "q", "a")
    assert await store.messages("ann", session.id) == []
    assert len(await store.list_continuations("ann", session.id)) == 1
    with pytest.raises(ContinuationNotFound):
        await store.get_continuation("ann", new.id)


async def test_the_turns_in_the_window_are_listed_in_their_order(store, start, begin, record, now_and_later):
    session = await start()
    made = [await record(session, f"q{n}", f"a{n}") for n in range(5)]
    turn = (await begin(session)).turn
    gone = [m for n in (0, 2) for m in made[n][1]] + [made[1][1][0]]
    await store.finish(turn.lease, completed(*said("last"), cut=without(*gone)))
    failed = (await begin(session)).turn
    await store.finish(failed.lease, TurnEnd("failed", (Failed("model_error", "no answer"),)))
    expected = [made[1][0], made[3][0], made[4][0], turn.continuation.id]
    async for opened in now_and_later():
        assert [t.id for t in await opened.window_turns("ann", session.id)] == expected
    assert (await opened.window_turns("ann", session.id))[0] == await opened.get_continuation(
        "ann", made[1][0]
    )


async def answers(store, session):
    return [m.message.text for m in await store.messages("ann", session.id)]


async def test_an_answer_is_amended_wherever_it_stands(store, start, record, reopen, clock, now_and_later):
    session = await start()
    old, gone, _ = await record(session, "one?", "first answer")
    new, kept, _ = await record(session, "two?", "second answer", cut=without(*gone))
    before = await store.get_session("ann", session.id)
    clock.advance(5)
    amended = await store.amend("ann", new, "another one", 7)
    assert amended.response.final_message == "another one"
    await store.amend("ann", old, "late words", 3)
    async for opened in now_and_later():
        assert await opened.get_continuation("ann", new) == amended
        assert (await opened.get_continuation("ann", old)).response.final_message == "late words"
        assert await answers(opened, session) == ["one?", "late words", "two?", "another one"]
        window = await opened.window("ann", session.id)
        assert window.messages == (kept[0], replace(kept[1], content="another one", token_count=7))
        after = await opened.get_session("ann", session.id)
        assert (after.version, after.updated_at) == (before.version + 2, clock.now())
        assert after.stats == before.stats
        _, steps = await opened.journal("ann", new)
        assert steps[-1].detail == {"status": "completed", "final_message": "another one", "amended": True}
        assert [e.step.cursor for e in await opened.events("ann", session.id)] == [1, 2, 3, 4]
    again = await opened.amend("ann", new, "the third", 2)
    assert again.updated_at == amended.updated_at, "when the turn ended does not change"
    assert (await (await reopen()).get_continuation("ann", new)).response.final_message == "the third"


async def test_an_amended_answer_is_not_what_a_worker_knows(store, start, begin, record):
    session = await start()
    recorded, _, _ = await record(session, "q", "a")
    known = await store.get_session("ann", session.id)
    await store.amend("ann", recorded, "b", 1)
    turn = (await begin(session, known=known)).turn
    assert [m.text for m in turn.window.messages] == ["q", "b"]


async def test_what_others_do_while_an_answer_is_amended_stays(store, start, begin, record, now_and_later):
    session = await start()
    recorded, _, _ = await record(session, "q", "a")
    running = (await begin(session)).turn
    await store.amend("ann", recorded, "b", 1)
    await store.finish(running.lease, completed(*said("more")))
    current = await store.get_session("ann", session.id)
    await store.save_session(replace(current, preferences={"a": 1}))
    await store.amend("ann", recorded, "c", 1)
    async for opened in now_and_later():
        assert await answers(opened, session) == ["q", "c", "more"]
        assert (await opened.get_session("ann", session.id)).preferences == {"a": 1}


@pytest.mark.parametrize("indexed", [False, True])
async def test_search_and_recall_find_the_amended_words_and_not_the_old(
    store, start, record, indexed, now_and_later
):
    session = await start()
    recorded, gone, _ = await record(session, "what leaks?", "the old boiler")
    await record(session, "and then?", "the boiler again", cut=without(*gone))
    await store.search("ann", "index" if indexed else " ")
    await store.recall("ann", session.id, ["index"])
    await store.amend("ann", recorded, "a new radiator", 3)
    async for opened in now_and_later():
        assert [m.position for m in await opened.recall("ann", session.id, ["boil"])] == []
        assert [m.position for m in await opened.recall("ann", session.id, ["radi"])] == [2]
        assert [m.position for m in await opened.recall("ann", session.id, ["leak"])] == [1]
        assert [m.position for m in await opened.search("ann", "boiler")] == [4]
        assert [m.message.text for m in await opened.search("ann", "radiator")] == ["a new radiator"]


async def test_only_the_answer_of_a_completed_turn_can_be_amended(store, start, begin):
    session = await start()
    silent = (await begin(session)).turn
    await store.finish(silent.lease, completed(*said("only a question")))
    running = (await begin(session)).turn
    with pytest.raises(InvalidInput, match="running"):
        await store.amend("ann", running.continuation.id, "x", 1)
    await store.cancel("ann", running.continuation.id, "why")
    with pytest.raises(ContinuationFinal, match="cancelled"):
        await store.amend("ann", running.continuation.id, "x", 1)
    with pytest.raises(InvalidInput, match="no answer"):
        await store.amend("ann", silent.continuation.id, "x", 1)
    with pytest.raises(ContinuationNotFound):
        await store.amend("ann", new_id(), "x", 1)
    assert await answers(store, session) == ["only a question"]
    assert (await store.get_session("ann", session.id)).version == 3


async def test_an_amended_answer_is_exported_and_imported(store, start, record, reopen):
    session = await start()
    recorded, _, _ = await record(session, "q", "old words")
    await record(session, "q2", "a2")
    await store.amend("ann", recorded, "new words", 2)
    bundle = await store.export_session("ann", session.id)
    await store.delete_session("ann", session.id)
    await store.import_session(bundle)
    store = await reopen()
    assert await store.export_session("ann", session.id) == bundle
    assert await answers(store, session) == ["q", "new words", "q2", "a2"]
    assert await store.search("ann", "old") == []
    await store.amend("ann", recorded, "newer words", 2)
    store = await reopen()
    assert await answers(store, session) == ["q", "newer words", "q2", "a2"]


async def test_a_turn_whose_steps_were_swept_can_be_amended(store, start, record, reopen, clock):
    session = await start()
    recorded, _, _ = await record(session, "q", "a")
    await record(session, "q2", "a2")

    async def sweep(store):
        clock.advance(60)
        return await store.sweep(idle_before=clock.now() - timedelta(days=1), ended_before=clock.now())

    assert (await sweep(store)).steps == 2
    await store.amend("ann", recorded, "b", 1)
    store = await reopen()
    assert await answers(store, session) == ["q", "b", "q2", "a2"]
    assert [s.cursor for s in (await store.journal("ann", recorded))[1]] == [3]
    assert (await sweep(store)).steps == 1
    store = await reopen()
    assert await answers(store, session) == ["q", "b", "q2", "a2"]
    assert (await store.get_continuation("ann", recorded)).response.final_message == "b"
    assert (await store.journal("ann", recorded))[1] == ()


async def test_the_vector_of_an_amended_turn_is_dropped(store, start, record, reopen):
    session = await start()
    made = [await record(session, f"q{n}", f"a{n}") for n in range(3)]
    vectors = [Vector(position, "m", b"v") for position in (1, 3)]
    await store.add_vectors("ann", session.id, vectors, keep=9)
    await store.amend("ann", made[2][0], "in the window, without a vector", 1)
    assert await store.vectors("ann", session.id) == vectors
    await store.amend("ann", made[0][0], "other words", 1)
    assert await (await reopen()).vectors("ann", session.id) == vectors[1:]


@pytest.mark.parametrize("end", ["delete", "erase"])
async def test_no_byte_of_a_deleted_session_is_left_on_the_disk(store, start, record, end, tmp_path):
    words = {"ann": ("quokka", "zephyr", "marimba"), "bob": ("wombat", "cyclone", "piano")}
    sessions = {}
    for owner, (asked, first, amended) in words.items():
        session = sessions[owner] = await start(owner, name=asked)
        recorded, _, _ = await record(session, f"a {asked}?", f"a {first}")
        assert await store.search(owner, first)
        await store.amend(owner, recorded, f"a {amended}", 3)
        ref = ArtifactRef(new_id(), "text/plain", 1)
        await store.put_artifact(Artifact(ref, session.id, owner, asked.encode()))
        assert await store.search(owner, amended)
    if end == "delete":
        await store.delete_session("ann", sessions["ann"].id)
    else:
        await store.erase("ann")
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    # A full-text index writes a word without the letters that it shares with the one before.
    assert not [word for word in words["ann"] if word.encode()[1:] in left]
    assert len(await store.search("bob", "piano")) == 1
    assert await store.search("bob", "cyclone") == []
    assert await store.find_session("ann", "quokka") is None
