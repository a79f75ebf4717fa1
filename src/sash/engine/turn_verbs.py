"""The runtime's methods for turns: send, record, wait, cancel, resume, retry, approve, and read events."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from sash.engine.detached import detached
from sash.engine.direct_call import DirectToolCall
from sash.engine.event_feed import EventFeeds
from sash.engine.fixed_model import check_fixed_model
from sash.engine.long_work import MAX_INLINE_CHARS
from sash.engine.redaction import clean_label, clean_object, redact, redact_attachment
from sash.engine.session_verbs import SessionVerbs
from sash.engine.turn.continuation_result import ContinuationResult
from sash.engine.turn.progress import Progress
from sash.engine.turn.recorder import amend
from sash.errors import (
    ContinuationFinal,
    ContinuationNotFound,
    ContinuationOpen,
    CursorUnknown,
    InvalidInput,
    KeyReused,
    NotAwaitingApproval,
    SashError,
    SessionNotFound,
    ShuttingDown,
    StoreUnavailable,
)
from sash.ports.session_rules import check_active
from sash.ports.tools import ToolSpec
from sash.values.continuations import FINAL, Continuation, ContinuationRequest, Status, TurnCaller
from sash.values.events import Event, FinalEvent, StepEvent, SweptEvent
from sash.values.media import check_media
from sash.values.requests import Ask, BusyPolicy, NameCaller, SendMessage, StartSession
from sash.values.sessions import DEFAULT_OWNER, Budgets, ModelConfig, SessionPolicy
from sash.values.steps import ApprovalGiven, ApprovalRequested, Interrupted
from sash.values.validation import check_count, check_flag, check_label, check_limit, check_size, check_text

# In these states a turn has not ended, and continues only if a person says so.
PAUSED = frozenset({"awaiting_approval", "interrupted"})


class TurnVerbs(SessionVerbs):
    """Methods for turns. A turn runs in its own task, so it continues if its caller goes away."""

    _feeds: EventFeeds

    async def send_message(
        self,
        session_id: str,
        message: str,
        *,
        owner: str = DEFAULT_OWNER,
        allow_tools: bool = True,
        max_steps: int | None = None,
        time_budget_ms: int | None = None,
        planner_hints: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        model: ModelConfig | None = None,
        attachments: Sequence[dict[str, Any]] | None = (),
        metadata: dict[str, Any] | None = None,
        tags: Sequence[str] = (),
        area: str | None = None,
        language: str | None = None,
        caller: TurnCaller | None = None,
        busy: BusyPolicy = "reject",
    ) -> Continuation:
        """Start a turn; `SendMessage` describes the fields. The turn is in the store when this returns."""
        parts: Any = attachments or ()  # the constructor refuses other values than a list of parts
        sent = SendMessage(
            message=message,
            allow_tools=allow_tools,
            max_steps=max_steps,
            time_budget_ms=time_budget_ms,
            planner_hints=planner_hints,
            idempotency_key=idempotency_key,
            model=model,
            attachments=parts,
            metadata=metadata,
            tags=tuple(tags),
            area=area,
            language=language,
            caller=caller,
            busy=busy,
        )
        return await self.send(session_id, sent, owner=owner)

    async def send(self, session_id: str, sent: SendMessage, *, owner: str = DEFAULT_OWNER) -> Continuation:
        """Start the turn that a request describes. The turn is in the store when this returns."""
        request = await self._make_request(owner, check_label("session_id", session_id), sent)
        return await self._begin(session_id, owner, request, sent.busy)

    async def _make_request(self, owner: str, session_id: str, sent: SendMessage) -> ContinuationRequest:
        """Return a message as it is stored. Raise if it is too large, or if the session refuses its model."""
        check_media(sent.attachments, allow_remote=self._allow_image_urls)
        request = await self._clean(owner, sent)
        await self._check_model(owner, session_id, request.model)
        return request

    async def _clean(self, owner: str, sent: SendMessage) -> ContinuationRequest:
        """Return a request as it is stored, without secrets. Raise `MessageTooLarge` if it is too large."""
        size = len(sent.message)
        for values in (sent.metadata or {}, sent.planner_hints or {}):
            # The size of other values than texts would take long to find out.
            size += sum(
                len(name) + (len(value) if isinstance(value, str) else MAX_INLINE_CHARS)
                for name, value in values.items()
            )
        if sent.attachments or sent.model:
            size = MAX_INLINE_CHARS + 1
        return await self._parts.long_work.run(owner, size, self._redact, sent)

    def _redact(self, sent: SendMessage) -> ContinuationRequest:
        check_size(len(sent.message.encode()), self._max_message_bytes)
        if sent.attachments:
            check_size(len(json.dumps(sent.attachments)), self._max_message_bytes)
        model, caller = sent.model, sent.caller
        return ContinuationRequest(
            message=redact(sent.message),
            allow_tools=sent.allow_tools,
            max_steps=sent.max_steps,
            time_budget_ms=sent.time_budget_ms,
            planner_hints=clean_object(sent.planner_hints or {}),
            idempotency_key=_clean_label("idempotency_key", sent.idempotency_key),
            model=None if model is None else self._parts.clean_model(model),
            attachments=tuple(map(redact_attachment, sent.attachments)),
            metadata=clean_object(sent.metadata or {}),
            tags=tuple(clean_label("tag", tag) for tag in sent.tags),
            area=_clean_label("area", sent.area),
            language=_clean_label("language", sent.language),
            caller=None if caller is None else _clean_caller(caller),
        )

    async def _begin(
        self,
        session_id: str,
        owner: str,
        request: ContinuationRequest,
        busy: BusyPolicy = "reject",
        retry_of: Continuation | None = None,
    ) -> Continuation:
        if retry_of is not None and retry_of.status == "interrupted":
            # First, because a client repeats a retry that fails, and the message must not run twice.
            await self._cancel_interrupted(retry_of)
        new = self._make_continuation(session_id, owner, request, retry_of)
        return _check_key(new, await self._worker.begin(new, busy))

    def _make_continuation(
        self,
        session_id: str,
        owner: str,
        request: ContinuationRequest,
        retry_of: Continuation | None = None,
    ) -> Continuation:
        now, old_id = self._parts.clock.now(), None if retry_of is None else retry_of.id
        return Continuation(
            self._parts.new_id(), session_id, owner, "running", now, now, request, retry_of=old_id
        )

    async def _check_model(self, owner: str, session_id: str, model: ModelConfig | None) -> None:
        """Raise `ModelFixed` if the session has a fixed model and `model` is another one. None is allowed.

        Raise `PolicyExceedsOperator` if the operator limits costs, and the price of the model is unknown.
        """
        if model is None:
            return
        self._check_cost(model)
        session = await self._parts.store.get_session(owner, session_id)
        if session.policy.enforce_fixed_model or self._is_model_fixed:
            check_fixed_model(model, self._parts.model_name(session.model))

    @detached
    async def record_turn(
        self,
        session_id: str,
        user_message: str,
        ai_response: str | None = None,
        *,
        owner: str = DEFAULT_OWNER,
        metadata: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        tags: Sequence[str] = (),
        area: str | None = None,
        language: str | None = None,
        caller: TurnCaller | None = None,
        answered_by: str | None = None,
    ) -> Continuation:
        """Add a turn that another agent answered; `SendMessage` describes the fields.

        `answered_by` is the name of that agent. It is stored in the metadata under this key. `amend_turn` can
        set a missing `ai_response` later.
        """
        if answered_by is not None:
            metadata = {**(metadata or {}), "answered_by": check_label("answered_by", answered_by)}
        sent = SendMessage(
            message=user_message,
            metadata=metadata,
            idempotency_key=idempotency_key,
            tags=tuple(tags),
            area=area,
            language=language,
            caller=caller,
        )
        request = await self._clean(owner, sent)
        answer = None if ai_response is None else await self._clean_answer(owner, ai_response)
        new = self._make_continuation(session_id, owner, request)
        return _check_key(new, await self._worker.record(new, answer))

    async def amend_turn(
        self, continuation_id: str, ai_response: str, *, owner: str = DEFAULT_OWNER
    ) -> Continuation:
        """Set or replace the answer of a completed turn, in the window and in the transcript."""
        return await amend(self._parts, owner, continuation_id, await self._clean_answer(owner, ai_response))

    async def name_caller(
        self, continuation_id: str, caller: TurnCaller, *, owner: str = DEFAULT_OWNER
    ) -> Continuation:
        """Record the speaker of a turn later, and return the turn. Its caller gets the certainty "named".

        The device of the turn stays if `caller` has none. `move_facts` moves what the turn stated.
        """
        named = replace(_clean_caller(NameCaller(caller=caller).caller), certainty="named")
        known = (await self._parts.store.get_continuation(owner, continuation_id)).request.caller
        if known is not None and named.device_id is None:
            named = replace(named, device_id=known.device_id)
        return await self._parts.store.set_caller(owner, continuation_id, named)

    async def _clean_answer(self, owner: str, answer: Any) -> str:
        if not isinstance(answer, str):
            raise InvalidInput(f"ai_response must be a string, got {type(answer).__name__}")
        check_size(len(check_text(answer).encode()), self._max_message_bytes)
        return await self._parts.long_work.run(owner, len(answer), redact, answer)

    async def list_turns(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, limit: int | None = None
    ) -> list[Continuation]:
        """List the turns in a session's window, oldest first; `limit` keeps only the newest."""
        turns = await self._parts.store.window_turns(owner, session_id)
        return turns if limit is None else turns[max(0, len(turns) - check_count("limit", limit)) :]

    async def open_continuations(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> list[Continuation]:
        """Return the turns of a session that have not ended, oldest first."""
        return await self._parts.store.list_continuations(owner, session_id, open_only=True)

    async def list_continuations(
        self,
        *,
        owner: str = DEFAULT_OWNER,
        session_id: str | None = None,
        before: str | None = None,
        statuses: Collection[Status] = (),
        limit: int = 50,
    ) -> list[ContinuationResult]:
        """Return the newest turns of an owner or a session, newest first, at most `limit`.

        With `before`, return only turns with a lower id, and with `statuses`, only those with one of them.
        Only turns that wait for an approval have their steps.
        """
        check_limit("limit", limit)
        turns = await self._parts.store.recent_continuations(
            owner, session_id=session_id, before=before, statuses=statuses, limit=limit
        )
        return [await self._add_waiting_calls(turn) for turn in turns]

    async def _add_waiting_calls(self, turn: Continuation) -> ContinuationResult:
        """Return a turn with its steps if it waits for an approval, else without them."""
        if turn.status == "awaiting_approval":
            with suppress(ContinuationNotFound):
                return await self._worker.result(turn.owner, turn.id)
        return ContinuationResult(turn, ())

    async def await_continuation(
        self, continuation_id: str, *, owner: str = DEFAULT_OWNER, timeout_s: float | None = None
    ) -> ContinuationResult:
        """Wait until a turn has ended or waits for a person, at most `timeout_s`, and return its state."""
        if timeout_s == 0:
            return await self._worker.result(owner, continuation_id)
        if timeout_s is None:
            return await self._worker.settled(owner, continuation_id)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._worker.settled(owner, continuation_id)
        except TimeoutError:
            return await self._worker.result(owner, continuation_id)

    @detached
    async def cancel(
        self, continuation_id: str, *, owner: str = DEFAULT_OWNER, reason: str | None = None
    ) -> Continuation:
        """Cancel a turn permanently and return it. Raise `ContinuationFinal` if it has ended."""
        reason = "cancelled by the user" if reason is None else reason
        cancelled = await self._worker.cancel(owner, continuation_id, reason)
        await self._worker.serve_next(cancelled.session_id)
        return cancelled

    @detached
    async def resume(self, continuation_id: str, *, owner: str = DEFAULT_OWNER) -> Continuation:
        """Continue an interrupted turn from its first missing step. A running turn is returned unchanged."""
        continuation = await self._parts.store.get_continuation(owner, continuation_id)
        if continuation.status == "running":
            return continuation
        if continuation.status == "awaiting_approval":
            raise ContinuationOpen(
                f"continuation {continuation_id} waits for an approval: approve or deny it"
            )
        return await self._worker.take_over(continuation)

    @detached
    async def retry(self, continuation_id: str, *, owner: str = DEFAULT_OWNER) -> Continuation:
        """Run the message of an ended or interrupted turn again, as a new continuation.

        An interrupted turn is cancelled first.
        """
        old = await self._parts.store.get_continuation(owner, continuation_id)
        if old.status not in FINAL and old.status != "interrupted":
            raise ContinuationOpen(f"continuation {continuation_id} is {old.status}: cancel it first")
        request = replace(old.request, idempotency_key=None)
        check_media(request.attachments, allow_remote=self._allow_image_urls)
        await self._check_model(owner, old.session_id, request.model)
        return await self._begin(old.session_id, owner, request, retry_of=old)

    async def _cancel_interrupted(self, old: Continuation) -> None:
        """Cancel a turn that will be retried. Raise if its session accepts no new turn now."""
        check_active(await self.get_session(old.session_id, owner=old.owner))
        with suppress(ContinuationFinal):
            await self._worker.claim(old)
            await self._worker.cancel(old.owner, old.id, "retried")

    @detached
    async def approve(
        self, continuation_id: str, call_id: str, approved: bool = True, *, owner: str = DEFAULT_OWNER
    ) -> Continuation:
        """Approve or deny a waiting tool call. The turn continues until it ends or needs another approval."""
        waiting = await self._worker.result(owner, continuation_id)
        if waiting.status != "awaiting_approval":
            raise NotAwaitingApproval(
                f"continuation {continuation_id} is {waiting.status}, not awaiting approval"
            )
        calls = Progress.from_steps(waiting.continuation.request.message, waiting.steps).open_calls
        call = calls.get(call_id) if isinstance(call_id, str) else None
        if call is None or not call.awaits_approval:
            known = ", ".join(call.id for call in calls.values() if call.awaits_approval)
            raise NotAwaitingApproval(f"no call {call_id} waits for an approval; these do: {known}")
        step = ApprovalGiven(call.id, check_flag("approved", approved))
        return await self._worker.take_over(waiting.continuation, (step,), len(waiting.steps))

    async def ask(
        self,
        message: str,
        *,
        owner: str = DEFAULT_OWNER,
        allow_tools: bool = True,
        model: ModelConfig | None = None,
        budgets: Budgets | None = None,
        policy: SessionPolicy | None = None,
        timeout_s: float | None = None,
        keep: bool = False,
    ) -> ContinuationResult:
        """Ask one question in a session of its own, and wait for the answer; `Ask` describes the fields."""
        question = Ask(message=message, allow_tools=allow_tools, model=model, budgets=budgets, keep=keep)
        asked = await self.put_question(question, owner=owner, policy=policy)
        return await self.await_continuation(asked.id, owner=owner, timeout_s=timeout_s)

    @detached
    async def put_question(
        self,
        question: Ask,
        *,
        owner: str = DEFAULT_OWNER,
        policy: SessionPolicy | None = None,
        preferences: dict[str, Any] | None = None,
        area: str | None = None,
    ) -> Continuation:
        """Start a turn with one question, without waiting. Its session ends with the answer, unless kept."""
        sent = SendMessage(message=question.message, allow_tools=question.allow_tools)
        request = StartSession(
            model=question.model, budgets=question.budgets, policy=policy, preferences=preferences, area=area
        )
        session = await self.start(request, owner=owner, is_one_question=not question.keep)
        try:
            return await self.send(session.id, sent, owner=owner)
        except SashError:
            await self.end_session(session.id, owner=owner)
            raise

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        owner: str = DEFAULT_OWNER,
        session_id: str | None = None,
    ) -> Any:
        """Call a tool that only reads the home, and return its result.

        A tool that stores its result needs a `session_id`.
        """
        return await DirectToolCall(self._parts, owner, session_id).make(name, arguments or {})

    @property
    def direct_tools(self) -> tuple[ToolSpec, ...]:
        """The tools that `call_tool` accepts."""
        return tuple(spec for spec in self._parts.tools.specs.values() if spec.direct)

    async def events(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, after: int = 0
    ) -> AsyncIterator[Event]:
        """Yield a session's events after a cursor, then new ones until the session is over.

        Stored events come from the store: a slow reader misses none and sees none twice, whichever process
        wrote them.
        """
        async with aclosing(await self.open_events(session_id, owner=owner, after=after)) as events:
            async for event in events:
                yield event

    async def open_events(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, after: int = 0
    ) -> AsyncGenerator[Event]:
        """Return what `events` yields. An unknown session or cursor raises at once, not at the first event.

        A cursor greater than the session's last cursor is unknown. It belongs to another session, or was
        assigned before the store was restored from a backup.

        Raises:
            CursorUnknown: the session has no such cursor.
        """
        last = await self._parts.store.last_cursor(owner, session_id)
        if after > last:
            raise CursorUnknown(
                f"session {session_id} has no cursor {after}: continue from its last cursor, {last}",
                session_id=session_id,
                last_cursor=last,
            )
        return self._follow_events(session_id, owner, after)

    async def open_turn_events(
        self, continuation_id: str, *, owner: str = DEFAULT_OWNER
    ) -> tuple[int, AsyncGenerator[Event]]:
        """Return the cursor before the first step of a turn, and the events of the turn.

        The last event is `final`; without a step if a sweep has deleted the steps of the turn. If the turn
        waits for an approval or was interrupted, it is the step that says so. If the runtime closes or the
        session is deleted, the events end without such an event.
        """
        turn, start = await self._worker.result(owner, continuation_id), 0
        if not turn.steps and not turn.continuation.is_final:
            # In this order: a step that is written meanwhile is after the cursor, or is found.
            start = await self._parts.store.last_cursor(owner, turn.continuation.session_id)
            turn = await self._worker.result(owner, continuation_id)
        if turn.steps:
            start = turn.steps[0].cursor - 1
        return start, self._follow_turn(turn, start)

    async def _follow_turn(self, turn: ContinuationResult, start: int) -> AsyncGenerator[Event]:
        continuation = turn.continuation
        events = self._follow_events(continuation.session_id, continuation.owner, start, continuation.id)
        async with aclosing(events):
            async for event in events:
                if event.continuation_id == continuation.id:
                    yield event
                    if isinstance(event, FinalEvent | SweptEvent):
                        return
                    if await self._has_paused(event, continuation.owner):
                        return

    async def _has_paused(self, event: Event, owner: str) -> bool:
        """Return True if an event is the last one of a turn that waits for a person."""
        if not isinstance(event, StepEvent) or not isinstance(
            event.step.body, ApprovalRequested | Interrupted
        ):
            return False
        try:
            turn = await self._worker.result(owner, event.continuation_id)
        except (StoreUnavailable, ShuttingDown):
            if not self._worker.closing:
                raise
            return True
        return turn.status in PAUSED and turn.steps[-1].cursor == event.cursor

    async def _find_swept(self, owner: str, turn_id: str | None) -> list[SweptEvent]:
        """Return the end of a turn if a sweep has deleted its steps."""
        if turn_id is None or not (await self._parts.store.get_continuation(owner, turn_id)).is_final:
            return []
        turn, steps = await self._parts.store.journal(owner, turn_id)
        return [] if steps else [SweptEvent(turn.session_id, turn_id, turn)]

    async def _follow_events(
        self, session_id: str, owner: str, after: int, turn_id: str | None = None
    ) -> AsyncGenerator[Event]:
        """Yield events as `events` does. With `turn_id`, the end of that turn comes even if it was swept."""
        hub = self._parts.hub
        with hub.subscribe(session_id) as subscriber, self._feeds.open(owner, session_id, after) as feed:
            try:
                while True:
                    is_last_look = self._worker.closed
                    subscriber.news.clear()
                    last_place = subscriber.find_last_place()
                    # Another subscriber's read may find the end meanwhile, with an event that this one lacks.
                    is_over = feed.is_over
                    stored = await feed.after(after)
                    for kept in stored:
                        for event in subscriber.take(after):
                            yield event
                        after = kept.cursor
                        subscriber.pass_step(kept)
                        yield kept
                    if stored:
                        continue
                    # The steps up to `last_place` were stored before the read, and a sweep may drop them.
                    after = max(after, last_place)
                    for unstored in subscriber.take(after) or await self._find_swept(owner, turn_id):
                        yield unstored
                    if is_over or is_last_look:
                        return
                    await feed.wait(subscriber)
            except (SessionNotFound, ContinuationNotFound):
                return  # The session was deleted.
            except StoreUnavailable:
                if not self._worker.closing:
                    raise


def _clean_label(name: str, label: str | None) -> str | None:
    return None if label is None else clean_label(name, label)


def _clean_caller(caller: TurnCaller) -> TurnCaller:
    return replace(
        caller,
        user_id=_clean_label("user_id", caller.user_id),
        user_name=_clean_label("user_name", caller.user_name),
        device_id=_clean_label("device_id", caller.device_id),
    )


def _check_key(new: Continuation, stored: Continuation) -> Continuation:
    """Return the stored turn. Raise `KeyReused` if its idempotency key belongs to another message."""
    if stored.id != new.id and stored.request.message != new.request.message:
        raise KeyReused(
            f"the idempotency_key {new.request.idempotency_key!r:.80} belongs to the message of turn "
            f"{stored.id}: use a new key for each message",
            continuation_id=stored.id,
        )
    return stored
