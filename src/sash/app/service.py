"""Authorises callers: checks the scope, limits policy and budgets, and calls one verb of the runtime.

REST, MCP and the command line share it, and it imports none of them.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, TypeVar

from sash.app.access import Caller
from sash.app.schemas import (
    Acknowledged,
    Cancelled,
    ContextShown,
    ContinuationShown,
    Erased,
    FactList,
    MessageList,
    PinList,
    SessionList,
    SessionOver,
    SessionShown,
    SessionStarted,
    shown,
    shown_message,
    shown_result,
)
from sash.engine.runtime import Runtime
from sash.errors import ContinuationFinal, Forbidden, NoteNotFound
from sash.ports.store import Artifact
from sash.values.codec import adapter
from sash.values.events import Event
from sash.values.requests import Approve, Ask, Note, SendMessage, StartSession
from sash.values.sessions import Budgets, Fact, Pin, Session, SessionPolicy, SessionStatus

T = TypeVar("T", int, float)


class AgentService:
    """The verbs of the runtime for callers with an owner and scopes."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    async def start_session(self, caller: Caller, wanted: StartSession) -> SessionStarted:
        caller.need("converse")
        limited = replace(
            wanted, budgets=self._budgets(wanted.budgets), policy=self.policy(caller, wanted.policy)
        )
        session = await self.runtime.start(limited, owner=caller.owner)
        return SessionStarted(session.id)

    async def list_sessions(
        self,
        caller: Caller,
        *,
        status: SessionStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> SessionList:
        caller.need("read")
        page = await self.runtime.list_sessions(owner=caller.owner, status=status, limit=limit, cursor=cursor)
        return SessionList(page.items, page.next_cursor)

    async def get_session(self, caller: Caller, session_id: str) -> SessionShown:
        caller.need("read")
        session = await self.runtime.get_session(session_id, owner=caller.owner)
        unfinished = await self.runtime.open_continuations(session_id, owner=caller.owner)
        return SessionShown(session, tuple(continuation.id for continuation in unfinished))

    async def end_session(self, caller: Caller, session_id: str, reason: str | None = None) -> SessionOver:
        caller.need("converse")
        why = {} if reason is None else {"reason": reason}
        ended = await self.runtime.end_session(session_id, owner=caller.owner, **why)
        return SessionOver("expired" if ended.status == "expired" else "ended")

    async def delete_session(self, caller: Caller, session_id: str) -> Erased:
        caller.need("converse")
        await self.runtime.delete_session(session_id, owner=caller.owner)
        return Erased(1)

    async def fork_session(self, caller: Caller, session_id: str) -> SessionStarted:
        caller.need("converse")
        await self.check_act(caller, session_id)
        session = await self.runtime.fork_session(session_id, owner=caller.owner)
        return SessionStarted(session.id)

    async def export_session(self, caller: Caller, session_id: str) -> dict[str, Any]:
        caller.need("read")
        return await self.runtime.export_session(session_id, owner=caller.owner)

    async def import_session(self, caller: Caller, data: dict[str, Any]) -> SessionStarted:
        caller.need("converse")
        session = await self.runtime.import_session(
            data, owner=caller.owner, adopt=lambda session: self._adopted(caller, session)
        )
        return SessionStarted(session.id)

    async def send_message(self, caller: Caller, session_id: str, sent: SendMessage) -> Acknowledged:
        caller.need("converse")
        await self.check_act(caller, session_id)
        continuation = await self.runtime.send(session_id, sent, owner=caller.owner)
        return Acknowledged(continuation.id)

    async def await_continuation(
        self, caller: Caller, continuation_id: str, *, wait_ms: int = 0
    ) -> ContinuationShown:
        """Return the state of a turn; wait at most `wait_ms` for its end."""
        caller.need("read")
        result = await self.runtime.await_continuation(
            continuation_id, owner=caller.owner, timeout_s=wait_ms / 1000
        )
        return shown_result(result)

    async def cancel(self, caller: Caller, continuation_id: str, reason: str | None = None) -> Cancelled:
        caller.need("converse")
        why = {} if reason is None else {"reason": reason}
        try:
            await self.runtime.cancel(continuation_id, owner=caller.owner, **why)
        except ContinuationFinal:
            return Cancelled("already_final")
        return Cancelled("cancelled")

    async def resume(self, caller: Caller, continuation_id: str) -> ContinuationShown:
        caller.need("converse")
        await self._check_act_in(caller, continuation_id)
        return shown(await self.runtime.resume(continuation_id, owner=caller.owner))

    async def retry(self, caller: Caller, continuation_id: str) -> Acknowledged:
        caller.need("converse")
        await self._check_act_in(caller, continuation_id)
        again = await self.runtime.retry(continuation_id, owner=caller.owner)
        return Acknowledged(again.id)

    async def approve(self, caller: Caller, continuation_id: str, answer: Approve) -> ContinuationShown:
        caller.need("act")
        return shown(
            await self.runtime.approve(continuation_id, answer.call_id, answer.approved, owner=caller.owner)
        )

    async def ask(self, caller: Caller, question: Ask) -> ContinuationShown:
        asked = await self.put_question(caller, question)
        timeout_s = None if question.timeout_ms is None else question.timeout_ms / 1000
        result = await self.runtime.await_continuation(
            asked.continuation_id, owner=caller.owner, timeout_s=timeout_s
        )
        return shown_result(result)

    async def put_question(self, caller: Caller, question: Ask) -> Acknowledged:
        """Ask without waiting. The caller must be able to read the answer."""
        caller.need("converse")
        caller.need("read")
        limited = replace(question, budgets=self._budgets(question.budgets))
        asked = await self.runtime.put_question(limited, owner=caller.owner, policy=self.policy(caller))
        return Acknowledged(asked.id)

    async def call_tool(
        self, caller: Caller, name: str, arguments: dict[str, Any], session_id: str | None = None
    ) -> Any:
        caller.need("read")
        if session_id is not None:
            caller.need("converse")  # The tool may store an artifact in it.
        return await self.runtime.call_tool(name, arguments, owner=caller.owner, session_id=session_id)

    async def list_messages(
        self, caller: Caller, session_id: str, *, after: int = 0, limit: int = 100
    ) -> MessageList:
        caller.need("read")
        found = await self.runtime.list_messages(session_id, owner=caller.owner, after=after, limit=limit + 1)
        page = tuple(map(shown_message, found[:limit]))
        return MessageList(page, str(page[-1].position) if len(found) > limit else None)

    async def search(
        self, caller: Caller, query: str, *, session_id: str | None = None, limit: int = 10
    ) -> MessageList:
        caller.need("read")
        if session_id is not None:
            await self.runtime.get_session(session_id, owner=caller.owner)
        found = await self.runtime.search(query, owner=caller.owner, session_id=session_id, limit=limit)
        return MessageList(tuple(map(shown_message, found)))

    async def context(self, caller: Caller, session_id: str) -> ContextShown:
        caller.need("read")
        report = await self.runtime.context_report(session_id, owner=caller.owner)
        context: ContextShown = adapter(ContextShown).validate_python(report)
        return context

    async def facts(self, caller: Caller, session_id: str) -> FactList:
        caller.need("read")
        session = await self.runtime.get_session(session_id, owner=caller.owner)
        return FactList(session.memory.facts)

    async def remember(self, caller: Caller, session_id: str, note: Note) -> Fact:
        caller.need("converse")
        await self.check_act(caller, session_id)
        return await self.runtime.remember(session_id, note.text, owner=caller.owner)

    async def forget(self, caller: Caller, session_id: str, fact_id: str) -> FactList:
        """Drop one fact by its id. A word would drop all facts that contain it, so it is refused."""
        caller.need("converse")
        await self.check_act(caller, session_id)
        session = await self.runtime.get_session(session_id, owner=caller.owner)
        if fact_id not in {fact.id for fact in session.memory.facts}:
            raise NoteNotFound(f"no fact {fact_id!r:.80} in session {session_id}", session_id=session_id)
        return FactList(await self.runtime.forget(session_id, fact_id, owner=caller.owner))

    async def pins(self, caller: Caller, session_id: str) -> PinList:
        caller.need("read")
        session = await self.runtime.get_session(session_id, owner=caller.owner)
        return PinList(session.memory.pins)

    async def pin(self, caller: Caller, session_id: str, note: Note) -> Pin:
        caller.need("converse")
        await self.check_act(caller, session_id)
        return await self.runtime.pin(session_id, note.text, owner=caller.owner)

    async def unpin(self, caller: Caller, session_id: str, pin_id: str) -> None:
        caller.need("converse")
        await self.check_act(caller, session_id)
        await self.runtime.unpin(session_id, pin_id, owner=caller.owner)

    async def set_preferences(
        self, caller: Caller, session_id: str, preferences: dict[str, Any]
    ) -> SessionShown:
        caller.need("converse")
        await self.check_act(caller, session_id)
        return SessionShown(await self.runtime.set_preferences(session_id, preferences, owner=caller.owner))

    async def artifact(self, caller: Caller, artifact_id: str) -> Artifact:
        caller.need("read")
        return await self.runtime.get_artifact(artifact_id, owner=caller.owner)

    async def statistics(self, caller: Caller, days: int = 7) -> dict[str, Any]:
        caller.need("read")
        return await self.runtime.statistics(owner=caller.owner, days=days)

    async def erase(self, caller: Caller) -> Erased:
        caller.need("admin")
        return Erased(await self.runtime.erase(owner=caller.owner))

    async def events(self, caller: Caller, session_id: str, after: int = 0) -> AsyncIterator[Event]:
        """Return a session's events after a cursor. An unknown session or cursor raises at once."""
        caller.need("read")
        await self.runtime.check_cursor(session_id, after, owner=caller.owner)
        return self.runtime.events(session_id, owner=caller.owner, after=after)

    def _budgets(self, wanted: Budgets | None) -> Budgets:
        """Return the budgets of a new session; the operator's money limits are the maximum."""
        usual = self.runtime.defaults.budgets
        if wanted is None:
            return usual
        return replace(
            wanted,
            max_cost_per_turn_usd=_least(wanted.max_cost_per_turn_usd, usual.max_cost_per_turn_usd),
            max_cost_per_day_usd=_least(wanted.max_cost_per_day_usd, usual.max_cost_per_day_usd),
        )

    def policy(self, caller: Caller, wanted: SessionPolicy | None = None) -> SessionPolicy:
        """Return the policy of a new session. Without the scope `act` it allows no actions.

        A caller with that scope chooses what is allowed; the operator's denylist, confirmations and rate
        limit stay in force.
        """
        usual = self.runtime.defaults.policy
        policy = usual if wanted is None else _within(usual, wanted)
        if "act" in caller.scopes or not policy.allow_actuation:
            return policy
        if wanted is not None:
            caller.need("act")
        return replace(policy, allow_actuation=False)

    def _adopted(self, caller: Caller, session: Session) -> Session:
        """Return an imported session with the policy and budgets that this caller may have."""
        policy = session.policy
        if "act" not in caller.scopes:
            policy = replace(policy, allow_actuation=False)
        return replace(session, policy=self.policy(caller, policy), budgets=self._budgets(session.budgets))

    async def check_act(self, caller: Caller, session_id: str) -> None:
        """Refuse a caller without the scope `act` in a session that allows actions."""
        if "act" in caller.scopes:
            return
        session = await self.runtime.get_session(session_id, owner=caller.owner)
        if session.policy.allow_actuation:
            raise Forbidden(
                f"the agent of session {session_id} may act, and your token lacks the scope 'act': start a "
                "session of your own",
                scope="act",
            )

    async def _check_act_in(self, caller: Caller, continuation_id: str) -> None:
        if "act" not in caller.scopes:
            result = await self.runtime.await_continuation(continuation_id, owner=caller.owner, timeout_s=0)
            await self.check_act(caller, result.continuation.session_id)


def _within(usual: SessionPolicy, wanted: SessionPolicy) -> SessionPolicy:
    """Return the wanted policy with all restrictions of the default policy."""
    return replace(
        wanted,
        denylisted_services=_all(usual.denylisted_services, wanted.denylisted_services),
        require_confirmation=_all(usual.require_confirmation, wanted.require_confirmation),
        max_actions_per_minute=_least(wanted.max_actions_per_minute, usual.max_actions_per_minute),
        dry_run=usual.dry_run or wanted.dry_run,
    )


def _all(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _least(one: T | None, other: T | None) -> T | None:
    """Return the lower of two limits; None means no limit."""
    return min((limit for limit in (one, other) if limit is not None), default=None)
