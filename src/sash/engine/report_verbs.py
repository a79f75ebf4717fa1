"""The runtime's methods that report: the context of a session, and the statistics of an owner."""

import asyncio
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from sash.engine.context import prefix_share, report
from sash.engine.past_actions import ACTION_CURSOR, explain_newest, find_action_to_undo, list_action_page
from sash.engine.previous_prompts import find_previous_prompts
from sash.engine.prompt_parts import PartDescriber
from sash.engine.prompt_record import PromptReader, SentPrompt
from sash.engine.recall_report import RecallReport, read_recall
from sash.engine.session_verbs import SessionVerbs
from sash.engine.turn.progress import Progress
from sash.errors import ContinuationNotFound, HomeUnavailable, InvalidInput
from sash.memory.window import Window
from sash.ports.store import Page
from sash.values.action_explanation import ActionExplanation
from sash.values.prompts import split_ids
from sash.values.sessions import DEFAULT_OWNER, Session
from sash.values.stats import Stats, summary
from sash.values.validation import check_label, check_limit
from sash.values.window_stats import WindowStats, WindowTotals

STATISTICS_DAYS = 7
MAX_DAYS = 366


class ReportVerbs(SessionVerbs):
    """Methods for reports. They change nothing."""

    async def context_report(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, with_messages: bool = False
    ) -> dict[str, Any]:
        """Return the parts of the next model call, without the new message and the turns recalled for it.

        `evicted` has the messages that the last cut removed, and `next_evicted` those that the next one will
        remove if small turns fill the window until then. `recalled` has what was recalled for the last turn,
        and why; None if nothing was.

        `prefix_share` is the share of these tokens that equal the beginning of the last call: a provider can
        serve them from its cache. It is None if this process did not make the last call. `with_messages` adds
        the messages and the tools themselves. Tools that `turn_tools` finds for a turn are not among them.
        """
        parts = self._parts
        session = await parts.store.get_session(owner, session_id)
        window = await parts.store.window(owner, session_id)
        cached = parts.windows.get(session_id, session.version)
        last_prompt, briefing = (cached.last_prompt, cached.briefing) if cached else (None, None)
        if briefing is None:
            with suppress(HomeUnavailable):
                briefing = parts.brief_home(session)
        rendered = (
            [*cached.rendered.values()] if cached else list(map(parts.renderer.render, window.messages))
        )
        notes = await parts.notes.read_known(owner)
        tail = [("pinned", parts.describe_pinned(session, notes))]
        restored = Window.restore(window)
        tools = parts.session_tools.choose(session).schemas
        context = parts.contexts.build(session, notes, restored, rendered, tools, tail, home=briefing)
        share = None if last_prompt is None else prefix_share(context, last_prompt, parts.counter)
        evicted = await parts.store.evicted(owner, session_id)
        recalled = await self._read_last_recall(owner, session_id)
        sent = {"messages": list(context.messages), "tools": context.tools} if with_messages else {}
        return {
            **report(context, parts.counter),
            **sent,
            "prefix_share": share,
            "evicted": [asdict(message) for message in evicted],
            "evicted_count": window.evicted_count,
            "next_evicted": [eviction.message.id for eviction in restored.preview_cut()],
            "digest": session.memory.digest,
            "recalled": recalled and asdict(recalled),
        }

    async def _read_last_recall(self, owner: str, session_id: str) -> RecallReport | None:
        parts = self._parts
        newest = await parts.store.recent_continuations(owner, session_id=session_id, limit=1)
        with suppress(ContinuationNotFound):  # A sweep may have deleted the turn meanwhile.
            return await read_recall(parts.store, parts.counter, owner, newest[0].id) if newest else None
        return None

    async def recall_report(self, continuation_id: str, *, owner: str = DEFAULT_OWNER) -> RecallReport | None:
        """Return the old messages that were recalled for a turn, and why.

        Return None if nothing was recalled, or after the steps were dropped.
        """
        return await read_recall(self._parts.store, self._parts.counter, owner, continuation_id)

    async def sent_prompts(self, continuation_id: str, *, owner: str = DEFAULT_OWNER) -> list[SentPrompt]:
        """Return what each model call of a turn sent, word for word. Empty after the steps were dropped."""
        parts = self._parts
        continuation, steps = await parts.store.journal(owner, continuation_id)
        sent = await parts.store.prompts(owner, continuation_id)
        if not sent.records:
            return []
        previous = await find_previous_prompts(parts.store, continuation)
        stored = (*sent.parts, *(previous.parts if previous else ()))
        ids = {message_id for part in stored for message_id in split_ids(part.ids)}
        found = await parts.store.find_messages(owner, continuation.session_id, ids) if ids else []
        question = parts.renderer.render_question(continuation)

        def restore() -> list[SentPrompt]:
            messages = {stored.message.id: parts.renderer.render(stored.message) for stored in found}
            before = None if previous is None else PromptReader(previous, messages).restore_last()
            return PromptReader(sent, messages).restore(
                lambda count: Progress.from_steps(question, steps[:count]).prompt(),
                PartDescriber(parts.counter),
                before,
            )

        return await asyncio.to_thread(restore)

    async def explain_action(
        self, *, owner: str = DEFAULT_OWNER, entity_id: str | None = None, session_id: str | None = None
    ) -> ActionExplanation | None:
        """Explain the newest action of the owner: its sentence, its speaker, and the rule that allowed it.

        With `entity_id` it is the newest action on that entity, with `session_id` the newest one of that
        session. An owner also finds the actions of the household. Return None if none of the newest 200 turns
        of either has such an action. Actions that were denied or only previewed do not count.
        """
        parts = self._parts
        if entity_id is not None:
            check_label("entity_id", entity_id)
        if session_id is not None:
            check_label("session_id", session_id)
        owners = [owner] if parts.household in (None, owner) else [owner, parts.household]
        return await explain_newest(parts.store, owners, entity_id, session_id)

    async def list_actions(
        self,
        *,
        owner: str = DEFAULT_OWNER,
        session_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        """List the actions of an owner or of one session as `PastAction`, newest first.

        Actions that were denied or only previewed are among them. The list reaches back 1000 turns.
        """
        check_limit("limit", limit)
        if session_id is not None:
            check_label("session_id", session_id)
        if cursor is not None and not ACTION_CURSOR.fullmatch(cursor):
            raise InvalidInput(f"cursor must be the next_cursor of the previous page, got {cursor!r:.80}")
        parts = self._parts
        return await list_action_page(parts.store, owner, session_id, limit, cursor, parts.find_index())

    async def find_action_to_undo(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> str | None:
        """Return the key of the action that an undo reverses: the ids of its turn and call with a colon.

        Return None if the session has no such action, or if the home is unavailable.
        """
        return await find_action_to_undo(self._parts.store, owner, session_id, self._parts.find_index())

    async def window_stats(self, session: Session) -> WindowStats:
        """Return the counts of a session's window: messages, tokens, evictions and tags."""
        parts = self._parts
        cached = parts.windows.get(session.id, session.version)
        if cached is not None:
            return cached.window.count_stats()
        return Window.restore(await parts.store.window(session.owner, session.id)).count_stats()

    def sum_cached_windows(self) -> WindowTotals:
        """Return the sums of the windows that this process has in memory, of all owners, without tags."""
        return self._parts.windows.sum_windows()

    async def statistics(self, *, owner: str = DEFAULT_OWNER, days: int = STATISTICS_DAYS) -> dict[str, Any]:
        """Return the counts and costs of the owner's turns: in all, today, and for each of the last days.

        The total is the sum of the sessions, and at least the sum of the last days. The days also count
        turns that have not ended, and the money of deleted turns, which no session has. `period` is the sum
        of the days.
        """
        if check_limit("days", days) > MAX_DAYS:
            raise InvalidInput(f"days must be at most {MAX_DAYS}, got {days}")
        parts = self._parts
        total, cursor, sessions = Stats(), None, 0
        while True:
            page = await parts.store.list_sessions(owner, limit=500, cursor=cursor, with_questions=True)
            for session in page.items:
                total += session.stats
            sessions, cursor = sessions + len(page.items), page.next_cursor
            if cursor is None:
                break
        today = parts.local_time.today()
        by_day = {(today - timedelta(days=n)).date().isoformat(): Stats() for n in range(days)}
        since, recent = today - timedelta(days=max(days, STATISTICS_DAYS) - 1), Stats()
        for ended_at, stats in await parts.store.turn_stats(owner, since):
            recent += stats
            day = ended_at.astimezone(today.tzinfo).date().isoformat()
            if day in by_day:
                by_day[day] += stats
        total = total.at_least(recent)
        return {
            "sessions": sessions,
            **summary(total),
            "windows": asdict(await parts.store.window_totals(owner)),
            "today": summary(by_day[today.date().isoformat()]),
            "period": summary(sum(by_day.values(), Stats())),
            "days": [{"day": day, **summary(stats)} for day, stats in sorted(by_day.items())],
        }
