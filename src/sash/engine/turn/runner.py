"""Runs one turn and writes its end: the answer, the messages for the window, and the evicted messages."""

import logging
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from sash.engine.budget import SpendingTurn, TurnBudget
from sash.engine.ceiling import find_limits
from sash.engine.fixed_model import keep_fixed_model
from sash.engine.parts import Parts
from sash.engine.redaction import redact, redact_json, redact_step
from sash.engine.turn.answer_notes import write_notes
from sash.engine.turn.caller import find_place
from sash.engine.turn.journal import Journal
from sash.engine.turn.loop import Answered, Loop
from sash.engine.turn.progress import Progress
from sash.engine.turn.tool_calls import ToolCalls, list_cut_off
from sash.engine.turn.topics import find_topics
from sash.engine.window_cache import CachedWindow
from sash.errors import (
    ContentFiltered,
    ContextTooLong,
    LeaseLost,
    ModelError,
    SashError,
    SessionChanged,
    WriteRefused,
)
from sash.memory.digest import extend_digest
from sash.memory.window import Eviction
from sash.memory.window_log import log_evictions, log_window
from sash.models.catalog import OFFLINE
from sash.ports.turns import Cut, Evicted, Turn, TurnEnd
from sash.values.citations import EntityCitation
from sash.values.continuations import Continuation, ContinuationError, ContinuationResponse
from sash.values.messages import LOCAL_TAG, OFFLINE_TAG, MessageEntry, built_in_tags, turns
from sash.values.sessions import Session
from sash.values.stats import Stats, bucket
from sash.values.steps import Failed, Finished, Interrupted, StepBody, bill_steps

# Smaller amounts are rounding errors.
MIN_USD = 1e-9

_logger = logging.getLogger(__name__)


class TurnRunner:
    """Runs one turn to its end.

    `unwritten` is an end that the store could not write. `has_next` is True if another turn of the session
    may be waiting. `is_settled` is True if all money of the turn is stored, with a cancellation for example.
    """

    def __init__(self, parts: Parts, turn: Turn) -> None:
        self._parts = parts
        self._turn = turn
        self._started_at = parts.clock.now()
        continuation = turn.continuation
        question = parts.renderer.render_question(continuation)
        self._progress = Progress.from_steps(question, turn.steps)
        self._limits = find_limits(turn.session, parts.operator, continuation.request)
        if parts.spending.has_unknown_cost(self._limits.model):  # An old session may have such a model.
            self._limits = replace(self._limits, model=keep_fixed_model(self._limits.model))
        names = (parts.model_name(self._limits.model), *parts.model.names[1:])
        self._budget = TurnBudget(parts.spending, turn, self._limits.budgets, self._progress, names)
        self.journal = Journal(parts, turn, self._progress)
        self._tools = parts.turn_tools(turn.session, continuation.request)
        self._tool_calls = ToolCalls(
            parts, turn, self._tools, self._limits, self._progress, self.journal, self._budget
        )
        self.unwritten: TurnEnd | None = None
        self.ended: Continuation | None = None
        self.has_next = False
        self.is_settled = False

    async def run(self) -> None:
        """Run the turn. Its outcome is in the store afterwards, unless the store cannot be written."""
        turn, spending = self._turn, self._parts.spending
        spending.start(turn.continuation.id, SpendingTurn.of(turn.continuation, self._progress))
        try:
            try:
                await self._run()
            except SashError as error:
                if self.unwritten is not None and not isinstance(error, WriteRefused):
                    raise
                await self._give_up(error)
            except Exception as error:
                trace = redact("".join(traceback.format_exception(error)))
                _logger.error("turn %s failed: %s", turn.continuation.id, trace)
                await self._fail("internal_error", f"{type(error).__name__}: {error}")
        except LeaseLost:
            self.unwritten, self.has_next = None, True
            _logger.info("turn %s was taken over or ended elsewhere", turn.continuation.id)
            await self.spend_unwritten()
        except SashError as error:
            _logger.error("the end of turn %s could not be written: %s", turn.continuation.id, error)
        finally:
            spending.stop(turn.continuation.id)
            await self.journal.stop()

    async def cut_off(self) -> TurnEnd:
        """Write no more steps, and return the end of the turn for a cancel, without its last step.

        The result of an action that is under way is among the steps. The stats include the running model
        call.
        """
        steps: list[StepBody] = []
        if self._tools.lacks(self._progress.list_under_way()):
            steps += await self.journal.close()  # The turn must not go on while its tools are found.
            await self._tools.load()
        results = [redact_step(result) for result in list_cut_off(self._tools.registry, self._progress)]
        for result in results:
            self._progress.apply(result)
        stats = self._stats(cancelled_turns=1) + self._budget.running_stats()
        steps += (*await self.journal.close(), *results)
        return replace(_end_cut_off(self._progress, steps, stats), prompts=self.journal.prompts)

    async def spend_unwritten(self) -> None:
        """Write the money that no stored step has. The turn was deleted or taken over."""
        if self.ended is not None or self.is_settled:
            return
        self.is_settled = True
        stored_usd = bill_steps(step.body for step in self.journal.steps).cost_usd
        usd = self._progress.cost_usd + self._budget.running_stats().cost_usd - stored_usd
        usd += sum(call.cost_usd for call in self._progress.open_calls.values() if call.is_begun)
        if usd < MIN_USD:
            return
        try:
            await self._parts.store.spend(self._turn.continuation.owner, usd)
        except SashError as error:
            _logger.error("%.4f USD of turn %s are not counted: %s", usd, self._turn.continuation.id, error)

    async def interrupt(self) -> None:
        """Mark a stopped turn as interrupted, or write the end that it had reached.

        The model call that was running is paid for, although its answer is lost.
        """
        if self.ended is not None:
            return
        self._budget.write_off()
        try:
            if self.unwritten is not None:
                await self.journal.finish(self.unwritten)
            else:
                begun, lost_bills = self._tool_calls.list_begun_actions(), tuple(self._budget.lost_bills)
                step = Interrupted(lost_bills=lost_bills, begun=begun)
                await self.journal.hand_back([step], "interrupted", self._stats())
        except LeaseLost:
            return  # The turn has ended, waits for an approval, or was cancelled.
        except SashError as error:
            _logger.error("turn %s could not be marked as interrupted: %s", self._turn.continuation.id, error)

    async def _run(self) -> None:
        parts, turn = self._parts, self._turn
        await parts.pacing.wait(turn.session.owner)
        # The cached window may have been dropped since the turn was claimed.
        window = parts.windows.take(turn, parts.renderer.render) or await parts.read_window(turn.session)
        loop = Loop(
            parts,
            turn,
            self._limits,
            window,
            self._progress,
            self.journal,
            self._budget,
            self._tool_calls,
            self._tools,
        )
        answered = await loop.run()
        if answered is None:
            parts.windows.put(turn.session, window)
        else:
            await self._complete(answered, window)

    async def _complete(self, answered: Answered, window: CachedWindow) -> None:
        """End the turn: its messages join the window and may evict others."""
        parts, turn, progress = self._parts, self._turn, self._progress
        answer, run_long = answered.answer, parts.long_work.run
        await parts.pacing.wait(turn.session.owner)
        text = await run_long(turn.session.owner, len(answer.content), redact, answer.content)
        reasoning = await run_long(turn.session.owner, len(answer.reasoning), redact, answer.reasoning)
        messages = [*progress.transcript(), {"role": "assistant", "content": text}]
        read = [source.entity_id for source in answer.citations if isinstance(source, EntityCitation)]
        is_offline = answered.bill is not None and answered.bill.model == OFFLINE
        tags = LOCAL_TAG if answer.local else OFFLINE_TAG if is_offline else frozenset()
        tags |= find_topics(messages, read)
        session, add = turn.session, partial(add_messages, parts, is_reset=progress.has_reset)
        change = await add(session, window, turn.continuation, messages, tags)
        steps = await self.journal.take_unwritten()
        request = turn.continuation.request
        language = find_place(session, request)[1] or progress.language
        index = parts.find_index()
        notes = write_notes(replace(answer, content=text), progress, language, index, request.message)
        end = TurnEnd(
            "completed",
            (*steps, Finished(text, answered.stopped_by, answered.bill)),
            ContinuationResponse(
                text,
                reasoning_summary=reasoning or None,
                citations=notes.citations,
                follow_ups=notes.follow_ups,
                actions=tuple(progress.actions),
                stopped_by=answered.stopped_by,
                topic=redact_json(answer.topic) if answer.topic else None,
            ),
            artifacts=tuple(progress.artifacts),
            messages=change.messages,
            cut=change.cut,
            stats=self._stats(
                local_turns=int(not progress.has_model_call), evicted_messages=len(change.evicted)
            ),
        )
        while True:
            try:
                ended_at = await self._finish(end, session if parts.max_open_turns > 1 else None)
                break
            except SessionChanged:  # Another turn has ended: its messages are in the window now.
                session = await parts.store.get_session(session.owner, session.id)
                window = await parts.read_window(session)
                change = await add(session, window, turn.continuation, messages, tags)
                stats = replace(end.stats, evicted_messages=len(change.evicted))
                end = replace(end, messages=change.messages, cut=change.cut, stats=stats)
        if progress.home_changes and window.briefing:
            window.briefing.changed_tokens += parts.counter.count_text(progress.home_changes)
        cache_window(parts, end.apply_to_session(session, ended_at), window, change)
        if progress.has_model_call and not session.is_task:
            parts.maintenance.after_turn(session, turn.continuation)

    async def _give_up(self, error: SashError) -> None:
        """End the turn with an error.

        If the model failed for a time after finished tool calls, interrupt the turn instead, so that it can
        be resumed.
        """
        is_temporary = isinstance(error, ModelError) and not isinstance(
            error, ContentFiltered | ContextTooLong
        )
        if not is_temporary or not self._progress.tool_calls or self._progress.open_calls:
            await self._fail(error.code, error.message)
            return
        message = redact(error.message)
        _logger.warning("turn %s was interrupted and can be resumed: %s", self._turn.continuation.id, message)
        step = Interrupted(error.code, message, tuple(self._budget.lost_bills))
        await self.journal.hand_back([step], "interrupted", self._stats(errors={error.code: 1}))
        self.has_next = True

    async def _fail(self, code: str, message: str) -> None:
        """End the turn with an error; the window stays as it was."""
        message = redact(message)
        await self.journal.stop()
        if self._tools.lacks(self._progress.list_under_way()):
            await self._tools.load()
        self._tool_calls.cut_off()
        steps = await self.journal.take_unwritten()
        actions = tuple(self._progress.actions)
        end = TurnEnd(
            "failed",
            (*steps, Failed(code, message)),
            ContinuationResponse("It failed.", actions=actions) if actions else None,
            error=ContinuationError(code, message),
            stats=self._stats(failed_turns=1, errors={code: 1}),
        )
        await self._finish(end)

    async def _finish(self, end: TurnEnd, based_on: Session | None = None) -> datetime:
        """Write the end of the turn and return its time. If the store fails, `unwritten` keeps the end.

        With `based_on`, other turns may end before it is written. Then its cut would be wrong, so it keeps
        none; the next turn evicts more.
        """
        self.unwritten = end if based_on is None else replace(end, cut=None)
        written = await self.journal.finish(end, based_on)
        self.unwritten = None
        ended_at = written.steps[-1].ts
        self.ended = end.apply_to_continuation(self._turn.continuation, ended_at)
        self.has_next = written.next_waits
        return ended_at

    def _stats(self, **outcome: Any) -> Stats:
        """Return the cost and the duration of the turn so far. `outcome` sets more fields."""
        duration = self._parts.clock.now() - self._started_at
        milliseconds = max(0.0, duration.total_seconds() * 1000)  # The clock may be set back during a turn.
        return self._progress.stats(
            turns=1,
            steps=self._progress.plans + 1,
            duration_ms=round(milliseconds),
            durations={bucket(milliseconds): 1},
            **outcome,
        )


async def read_cut_off(parts: Parts, owner: str, continuation_id: str) -> tuple[TurnEnd, int]:
    """Return the end of a cancelled turn that does not run in this process, and the number of its steps.

    The end is computed from the steps. An open call of the turn may be under way in another process, or was
    when a process died.
    """
    continuation, steps = await parts.store.journal(owner, continuation_id)
    progress = Progress.from_steps(continuation.request.message, steps)
    if continuation.status in ("running", "interrupted"):
        progress.mark_begun()
    tools = parts.tools
    if parts.tool_finder is not None and (names := progress.list_under_way()):
        session = await parts.store.get_session(owner, continuation.session_id)
        turn_tools = parts.turn_tools(session, continuation.request)
        if turn_tools.lacks(names):
            await turn_tools.load()
        tools = turn_tools.registry
    results = list_cut_off(tools, progress)
    for result in results:
        progress.apply(result)
    return _end_cut_off(progress, results, progress.stats(turns=1, cancelled_turns=1)), len(steps)


def _end_cut_off(progress: Progress, steps: Sequence[StepBody], stats: Stats) -> TurnEnd:
    """Return the end of a cancelled turn, without its last step. `steps` are not written yet.

    The turn has a response only if it has actions.
    """
    response = ContinuationResponse("It was cancelled.", actions=tuple(progress.actions))
    return TurnEnd("cancelled", tuple(steps), response if progress.actions else None, stats=stats)


@dataclass(frozen=True, slots=True)
class WindowChange:
    """The messages of a finished turn as the transcript stores them, and the messages that they evicted."""

    messages: tuple[MessageEntry, ...]
    evicted: tuple[MessageEntry, ...] = ()
    cut: Cut | None = None
    is_reset: bool = False


async def add_messages(
    parts: Parts,
    session: Session,
    window: CachedWindow,
    continuation: Continuation,
    messages: Sequence[dict[str, Any]],
    tags: frozenset[str] = frozenset(),
    *,
    is_reset: bool = False,
) -> WindowChange:
    """Add the messages of a turn, as the model read them, to the window. Return them with the evictions.

    Every message gets `tags`, and the user's message also those of the request. With `is_reset`, evict all
    earlier messages first, and start with an empty digest.
    """
    size = sum([len(message["content"]) for message in messages])
    entries = await parts.long_work.run(
        session.owner, size, _make_entries, parts, continuation, messages, tags
    )
    evictions = list(window.reset() if is_reset else ())
    evictions += [
        eviction
        for entry, message in zip(entries, messages, strict=True)
        for eviction in window.add(entry, parts.renderer.fill_empty(message))
    ]
    if not evictions:
        return WindowChange(entries)
    log_evictions(_logger, session.id, evictions)
    evicted = tuple(eviction.message for eviction in evictions)
    size = sum(len(message.text) for message in evicted)
    digest = ""
    if not is_reset:
        digest = await parts.long_work.run(session.owner, size, _extend_digest, parts, session, evicted)
    return WindowChange(entries, evicted, make_cut(window, evictions, digest), is_reset)


def make_cut(window: CachedWindow, evictions: Sequence[Eviction], digest: str) -> Cut:
    """Return the cut that the store writes for these evictions of a window."""
    return Cut(
        tuple(Evicted(eviction.message.id, eviction.reason) for eviction in evictions),
        tuple(window.window.find_turn_starts()),
        digest,
    )


def cache_window(parts: Parts, session: Session, window: CachedWindow, change: WindowChange) -> None:
    """Cache the window of a turn whose end is on the disk, and start the work that follows an eviction."""
    parts.windows.put(session, window)
    log_window(_logger, session.id, window.window)
    if change.evicted:
        window.drop_briefing()
        parts.maintenance.after_cut(session, () if change.is_reset else change.evicted)


def _make_entries(
    parts: Parts, continuation: Continuation, messages: Sequence[dict[str, Any]], tags: frozenset[str]
) -> tuple[MessageEntry, ...]:
    now = parts.clock.now()
    return tuple([_make_entry(parts, continuation, message, tags, now) for message in messages])


def _make_entry(
    parts: Parts, continuation: Continuation, message: dict[str, Any], tags: frozenset[str], now: datetime
) -> MessageEntry:
    """Return a message as the transcript stores it, counted without the context that Sash added."""
    role, calls, name = message["role"], message.get("tool_calls", ()), message.get("name")
    if role == "user":
        content, at = continuation.request.content, continuation.created_at
        counted, name = parts.renderer.render_question(continuation), continuation.request.user_name
        tags = tags.union(continuation.request.tags)
    else:
        content, at, counted = message["content"], now, parts.renderer.fill_empty(message)["content"]
    return MessageEntry(
        role,
        content,
        timestamp=at,
        token_count=parts.counter.count_message(counted, calls, message.get("name")),
        tags=built_in_tags(role, bool(calls)) | tags if tags else built_in_tags(role, bool(calls)),
        id=parts.ids.new(now),
        tool_calls=tuple(calls),
        tool_call_id=message.get("tool_call_id"),
        name=name,
    )


def _extend_digest(parts: Parts, session: Session, evicted: Sequence[MessageEntry]) -> str:
    return extend_digest(session.memory.digest, turns(evicted), parts.counter.count_text, parts.digest_tokens)
