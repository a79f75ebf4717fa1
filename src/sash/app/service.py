"""Authorises callers. A method checks the scope, restricts the policy, and calls the runtime.

REST, MCP and the command line use this module, and it imports none of them. It returns the runtime's own
values; each surface encodes them with `app/schemas.py`.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from sash.app.access import Caller, Scope
from sash.app.caller_view import CallerShown
from sash.app.early_answer import write_early_answer
from sash.app.list_service import ListService
from sash.app.owner_shares import OwnerShares
from sash.app.schemas import WaitingShown
from sash.engine.prompt_record import SentPrompt
from sash.engine.recall_report import RecallReport
from sash.engine.report_verbs import STATISTICS_DAYS
from sash.engine.runtime import Runtime
from sash.engine.turn.caller import find_place
from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import Forbidden, HomeUnavailable
from sash.ports.store import Artifact, Bundle, StoredMessage
from sash.values.continuations import UNDER_WAY, Continuation
from sash.values.events import Event
from sash.values.owner_notes import OwnerNotes
from sash.values.requests import (
    Approve,
    Ask,
    Fork,
    MessageTags,
    Note,
    PinRequest,
    SendMessage,
    StartSession,
    UpdateSession,
)
from sash.values.sessions import Fact, Pin, Session, SessionPolicy
from sash.values.window_stats import WindowStats

WHOLE = Fork()


class AgentService(ListService):
    """The methods of the runtime, for callers with an owner and scopes. They raise `Forbidden`.

    Expensive methods also raise `TooManyRequests` if the owner's share is used up. Code outside may use
    `runtime` for what needs no authorisation, such as its defaults and its health. After `early_wait_s` a
    caller that waits for an answer is told that the turn still runs; None means no limit.
    """

    def __init__(self, runtime: Runtime, *, early_wait_s: float | None = None) -> None:
        self.runtime = runtime
        self.early_wait_s = early_wait_s
        self.shares = OwnerShares()

    async def start_session(self, caller: Caller, request: StartSession) -> Session:
        caller.need("converse")
        return await self.runtime.start(self._limit(caller, request), owner=caller.owner)

    async def open_session(self, caller: Caller, request: StartSession, *, reopen: bool = False) -> Session:
        """Return the active session with the requested name, or start one.

        With `reopen`, an expired session of that name becomes active again instead.
        """
        caller.need("converse")
        await self._check_act_in_named(caller, request.name, reopen=reopen)
        return await self.runtime.open_session(
            self._limit(caller, request), owner=caller.owner, reopen=reopen
        )

    async def reopen_session(self, caller: Caller, session_id: str) -> Session:
        caller.need("converse")
        await self._check_act(caller, session_id)
        return await self.runtime.reopen_session(session_id, owner=caller.owner)

    async def get_session(self, caller: Caller, session_id: str) -> Session:
        caller.need("read")
        return await self.runtime.get_session(session_id, owner=caller.owner)

    async def update_session(self, caller: Caller, session_id: str, request: UpdateSession) -> Session:
        """Change a session. A change of its policy needs the scope `act`."""
        caller.need("converse")
        if request.policy is not None:
            caller.need("act")
        await self._check_act(caller, session_id)
        return await self.runtime.update(session_id, request, owner=caller.owner)

    async def set_preferences(self, caller: Caller, session_id: str, preferences: dict[str, Any]) -> Session:
        return await self.update_session(caller, session_id, UpdateSession(preferences=preferences))

    async def window_stats(self, caller: Caller, session: Session) -> WindowStats:
        """Return the counts of a session's window. `session` is one that this caller has got."""
        caller.need("read")
        return await self.runtime.window_stats(session)

    async def end_session(self, caller: Caller, session_id: str, reason: str | None = None) -> Session:
        caller.need("converse")
        await self._check_act(caller, session_id)
        return await self.runtime.end_session(session_id, owner=caller.owner, reason=reason)

    async def reset_session(self, caller: Caller, session_id: str) -> Session:
        """Empty the window of a session. Its transcript stays."""
        caller.need("converse")
        await self._check_act(caller, session_id)
        return await self.runtime.reset_session(session_id, owner=caller.owner)

    async def delete_session(self, caller: Caller, session_id: str) -> None:
        caller.need("converse")
        await self._check_act(caller, session_id)
        async with self.shares.use(caller.owner, "transfer"):
            await self.runtime.delete_session(session_id, owner=caller.owner)

    async def list_inactive(self, caller: Caller, older_than_days: float = 0) -> list[str]:
        caller.need("read")
        async with self.shares.use(caller.owner, "report"):
            return await self.runtime.list_inactive(owner=caller.owner, older_than_days=older_than_days)

    async def delete_inactive(self, caller: Caller, older_than_days: float = 0) -> int:
        """Delete ended and expired sessions. Some of them may allow actions, so this needs `act`."""
        caller.need("converse")
        caller.need("act")
        async with self.shares.use(caller.owner, "transfer"):
            return await self.runtime.delete_inactive(owner=caller.owner, older_than_days=older_than_days)

    async def fork_session(self, caller: Caller, session_id: str, request: Fork = WHOLE) -> Session:
        caller.need("converse")
        await self._check_act(caller, session_id)
        async with self.shares.use(caller.owner, "transfer"):
            return await self.runtime.fork_session(session_id, owner=caller.owner, at=request.at)

    @asynccontextmanager
    async def open_export(self, caller: Caller, session_id: str) -> AsyncIterator[dict[str, Any]]:
        """Export a session. The owner's share is in use until the context ends."""
        caller.need("read")
        async with self.shares.use(caller.owner, "transfer"):
            yield await self.runtime.export_session(session_id, owner=caller.owner)

    async def import_session(self, caller: Caller, data: dict[str, Any]) -> Session:
        caller.need("converse")
        async with self.shares.use(caller.owner, "transfer"):
            return await self.runtime.import_session(
                data, owner=caller.owner, adopt=lambda bundle: self._limit_import(caller, bundle)
            )

    async def send_message(self, caller: Caller, session_id: str, sent: SendMessage) -> Continuation:
        caller.need("converse")
        await self._check_act(caller, session_id)
        return await self.runtime.send(session_id, sent, owner=caller.owner)

    async def reply(self, caller: Caller, session_id: str, sent: SendMessage) -> Continuation:
        """Send a message, or let it answer an approval question, as `Runtime.reply` does.

        An answer needs the right to approve, and a message in a session that allows actions the scope `act`.
        """
        caller.need("converse")

        async def check(answered: Continuation | None) -> None:
            if answered is None:
                await self._check_act(caller, session_id)
            else:
                await self._check_approver(caller, answered.id)

        return await self.runtime.reply(session_id, sent, owner=caller.owner, check=check)

    async def record_turn(
        self,
        caller: Caller,
        session_id: str,
        user_message: str,
        ai_response: str | None,
        *,
        metadata: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        tags: Sequence[str] = (),
    ) -> Continuation:
        """Add a turn that was answered elsewhere."""
        caller.need("converse")
        await self._check_act(caller, session_id)
        return await self.runtime.record_turn(
            session_id,
            user_message,
            ai_response,
            owner=caller.owner,
            metadata=metadata,
            idempotency_key=idempotency_key,
            tags=tags,
        )

    async def amend_turn(self, caller: Caller, continuation_id: str, ai_response: str) -> Continuation:
        caller.need("converse")
        await self._check_act_in(caller, continuation_id)
        return await self.runtime.amend_turn(continuation_id, ai_response, owner=caller.owner)

    async def list_turns(
        self, caller: Caller, session_id: str, *, limit: int | None = None
    ) -> list[Continuation]:
        caller.need("read")
        async with self.shares.use(caller.owner, "report"):
            return await self.runtime.list_turns(session_id, owner=caller.owner, limit=limit)

    async def open_continuations(self, caller: Caller, session_id: str) -> list[Continuation]:
        caller.need("read")
        return await self.runtime.open_continuations(session_id, owner=caller.owner)

    async def await_continuation(
        self, caller: Caller, continuation_id: str, *, timeout_s: float | None = 0
    ) -> ContinuationResult:
        """Return the state of a turn. Wait at most `timeout_s` for its end; None means no limit."""
        caller.need("read")
        if timeout_s == 0:
            return await self.runtime.await_continuation(continuation_id, owner=caller.owner, timeout_s=0)
        return await self.wait_for_turn(caller, continuation_id, timeout_s)

    async def wait_for_turn(
        self, caller: Caller, continuation_id: str, timeout_s: float | None
    ) -> ContinuationResult:
        """Wait for a turn as `await_continuation` does, for callers that do not need the scope `read`."""
        wait = partial(
            self.runtime.await_continuation, continuation_id, owner=caller.owner, timeout_s=timeout_s
        )
        return await self.shares.run_aside(caller.owner, wait)

    async def cancel(self, caller: Caller, continuation_id: str, reason: str | None = None) -> Continuation:
        caller.need("converse")
        await self._check_act_in(caller, continuation_id)
        return await self.runtime.cancel(continuation_id, owner=caller.owner, reason=reason)

    async def cancel_waiting(self, caller: Caller, turn_id: str) -> WaitingShown:
        """Cancel what a session does later, and return it."""
        caller.need("converse")
        if "act" not in caller.scopes:
            waiting = await self.runtime.list_waiting(owner=caller.owner)
            for session_id in {turn.session_id for turn in waiting if turn.id == turn_id}:
                await self._check_act(caller, session_id)
        cancelled = await self.runtime.cancel_waiting(turn_id, owner=caller.owner)
        return WaitingShown.of(cancelled, self.runtime.describe_waiting(cancelled))

    async def resume(self, caller: Caller, continuation_id: str) -> Continuation:
        caller.need("converse")
        await self._check_act_in(caller, continuation_id)
        return await self.runtime.resume(continuation_id, owner=caller.owner)

    async def retry(self, caller: Caller, continuation_id: str) -> Continuation:
        caller.need("converse")
        await self._check_act_in(caller, continuation_id)
        return await self.runtime.retry(continuation_id, owner=caller.owner)

    async def approve(self, caller: Caller, continuation_id: str, answer: Approve) -> Continuation:
        await self._check_approver(caller, continuation_id)
        return await self.runtime.approve(
            continuation_id, answer.call_id, answer.approved, owner=caller.owner
        )

    async def ask(self, caller: Caller, question: Ask) -> ContinuationResult:
        """Ask one question. Wait for `timeout_ms` of the question, or for `early_wait_s`."""
        asked = await self.put_question(caller, question)
        timeout_s = self.early_wait_s if question.timeout_s is None else question.timeout_s
        return await self.await_continuation(caller, asked.id, timeout_s=timeout_s)

    async def write_notice(self, caller: Caller, turn: ContinuationResult) -> str | None:
        """Return a sentence for the user about a turn that has no answer yet, in the user's language.

        None if the turn does not run any more. The sentence is never part of the transcript.
        """
        if turn.status not in UNDER_WAY:
            return None
        session = await self.runtime.get_session(turn.continuation.session_id, owner=caller.owner)
        _, language = find_place(session, turn.continuation.request)
        of_home = None
        with suppress(HomeUnavailable):
            of_home = self.runtime.home.index.language if self.runtime.home else None
        return write_early_answer(turn.status, language, of_home)

    async def put_question(
        self,
        caller: Caller,
        question: Ask,
        *,
        policy: SessionPolicy | None = None,
        preferences: dict[str, Any] | None = None,
        area: str | None = None,
    ) -> Continuation:
        """Start a turn with one question, without waiting. The caller also needs the scope `read`."""
        caller.need("converse")
        caller.need("read")
        policy = self._limit_policy(caller, policy)
        return await self.runtime.put_question(
            question, owner=caller.owner, policy=policy, preferences=preferences, area=area
        )

    async def call_tool(
        self, caller: Caller, name: str, arguments: dict[str, Any], session_id: str | None = None
    ) -> Any:
        caller.need("read")
        if session_id is not None:
            caller.need("converse")  # The tool may store an artifact in the session.
            await self._check_act(caller, session_id)
        async with self.shares.use(caller.owner, "tool"):
            return await self.runtime.call_tool(name, arguments, owner=caller.owner, session_id=session_id)

    async def tag_message(
        self, caller: Caller, session_id: str, message_id: str, change: MessageTags
    ) -> StoredMessage:
        """Replace the tags of a message. Evictions regard them from the next turn on."""
        caller.need("converse")
        await self._check_act(caller, session_id)
        async with self.shares.use(caller.owner, "report"):
            return await self.runtime.tag_message(session_id, message_id, change.tags, owner=caller.owner)

    async def context_report(
        self, caller: Caller, session_id: str, *, with_messages: bool = False
    ) -> dict[str, Any]:
        caller.need("read")
        async with self.shares.use(caller.owner, "report"):
            return await self.runtime.context_report(
                session_id, owner=caller.owner, with_messages=with_messages
            )

    async def recall_report(self, caller: Caller, continuation_id: str) -> RecallReport | None:
        """Return what was recalled for a turn, or None."""
        caller.need("read")
        async with self.shares.use(caller.owner, "report"):
            return await self.runtime.recall_report(continuation_id, owner=caller.owner)

    async def sent_prompts(self, caller: Caller, continuation_id: str) -> list[SentPrompt]:
        """Return what each model call of a turn sent."""
        caller.need("read")
        async with self.shares.use(caller.owner, "report"):
            return await self.runtime.sent_prompts(continuation_id, owner=caller.owner)

    async def remember(self, caller: Caller, note: Note, session_id: str | None = None) -> Fact:
        await self._check_notes(caller, session_id)
        return await self.runtime.remember(note.text, session_id=session_id, owner=caller.owner)

    async def list_facts(self, caller: Caller, session_id: str | None = None) -> tuple[Fact, ...]:
        """Return the facts of the caller's owner, or only those of a session."""
        caller.need("read")
        return await self.runtime.list_facts(session_id=session_id, owner=caller.owner)

    async def edit_fact(
        self, caller: Caller, fact_id: str, note: Note, session_id: str | None = None
    ) -> Fact:
        await self._check_notes(caller, session_id)
        return await self.runtime.edit_fact(fact_id, note.text, session_id=session_id, owner=caller.owner)

    async def forget(self, caller: Caller, fact_id: str, session_id: str | None = None) -> Fact:
        await self._check_notes(caller, session_id)
        return await self.runtime.drop_fact(fact_id, session_id=session_id, owner=caller.owner)

    async def pin(self, caller: Caller, pin: PinRequest, session_id: str | None = None) -> Pin:
        await self._check_pins(caller, session_id)
        return await self.runtime.pin(
            pin.text, entity_id=pin.entity_id, session_id=session_id, owner=caller.owner
        )

    async def list_pins(self, caller: Caller, session_id: str | None = None) -> tuple[Pin, ...]:
        """Return the pins of the caller's owner, or only those of a session."""
        caller.need("read")
        return await self.runtime.list_pins(session_id=session_id, owner=caller.owner)

    async def unpin(self, caller: Caller, pin_id: str, session_id: str | None = None) -> None:
        await self._check_pins(caller, session_id)
        await self.runtime.unpin(pin_id, session_id=session_id, owner=caller.owner)

    async def owner_notes(self, caller: Caller) -> OwnerNotes:
        caller.need("read")
        return await self.runtime.owner_notes(owner=caller.owner)

    async def set_owner_preferences(self, caller: Caller, preferences: dict[str, Any]) -> OwnerNotes:
        await self._check_pins(caller)
        return await self.runtime.set_owner_preferences(preferences, owner=caller.owner)

    async def artifact(self, caller: Caller, artifact_id: str) -> Artifact:
        caller.need("read")
        return await self.runtime.get_artifact(artifact_id, owner=caller.owner)

    async def describe_caller(self, caller: Caller) -> CallerShown:
        """Return the caller's rights, and the defaults of the sessions that it starts."""
        caller.need("read")
        policy, may_pin = self._limit_policy(caller), caller.scopes.issuperset(self._list_pin_scopes())
        return CallerShown.of(caller, self.runtime, policy, self.early_wait_s, may_pin)

    async def statistics(self, caller: Caller, days: int = STATISTICS_DAYS) -> dict[str, Any]:
        caller.need("read")
        async with self.shares.use(caller.owner, "report"):
            return await self.runtime.statistics(owner=caller.owner, days=days)

    async def erase(self, caller: Caller) -> int:
        caller.need("admin")
        return await self.runtime.erase(owner=caller.owner)

    async def events(self, caller: Caller, session_id: str, after: int = 0) -> AsyncIterator[Event]:
        """Return a session's events after a cursor. Raise at once if the session or the cursor is unknown."""
        caller.need("read")
        return await self.runtime.open_events(session_id, owner=caller.owner, after=after)

    async def turn_events(self, caller: Caller, continuation_id: str) -> tuple[int, AsyncIterator[Event]]:
        """Return the cursor before a turn, and its events until it ends or waits for a person."""
        caller.need("read")
        return await self.runtime.open_turn_events(continuation_id, owner=caller.owner)

    def _limit(self, caller: Caller, request: StartSession) -> StartSession:
        """Return the request with the policy that this caller may have."""
        return replace(request, policy=self._limit_policy(caller, request.policy))

    def _limit_policy(self, caller: Caller, requested: SessionPolicy | None = None) -> SessionPolicy:
        """Return the policy of a new session. Without the scope `act` it allows no actions."""
        policy = requested or self.runtime.defaults.policy
        if "act" in caller.scopes or not policy.allow_actuation:
            return policy
        if requested is not None:
            caller.need("act")
        return replace(policy, allow_actuation=False)

    def _limit_import(self, caller: Caller, bundle: Bundle) -> Bundle:
        """Return an import with the rights of the caller. Without the scope `act` it allows no actions."""
        if "act" in caller.scopes:
            return bundle
        session = bundle.session
        policy = replace(session.policy, allow_actuation=False)
        return replace(bundle, session=replace(session, policy=policy))

    async def _check_act(self, caller: Caller, session_id: str) -> None:
        """Raise Forbidden if the session allows actions and the caller lacks the scope `act`."""
        if "act" in caller.scopes:
            return
        session = await self.runtime.get_session(session_id, owner=caller.owner)
        if session.policy.allow_actuation:
            raise Forbidden(
                f"session {session_id} allows actions, and your token lacks the scope 'act': start another "
                "session, or use a token with that scope",
                scope="act",
            )

    async def _check_notes(self, caller: Caller, session_id: str | None) -> None:
        """Raise Forbidden if the caller may not change the notes of a session, or of the owner."""
        caller.need("converse")
        if session_id is not None:
            await self._check_act(caller, session_id)

    async def _check_pins(self, caller: Caller, session_id: str | None = None) -> None:
        """Check the rules of notes. Pins and preferences of the owner also need `act` if a session may act.

        A pin reads like an order, and it reaches all sessions of the owner, those that may act too.
        """
        await self._check_notes(caller, session_id)
        for scope in self._list_pin_scopes() if session_id is None else ():
            caller.need(scope)

    def _list_pin_scopes(self) -> tuple[Scope, ...]:
        """Return the scopes that change the pins and preferences of an owner."""
        return ("converse", "act") if self.runtime.operator.policy.allow_actuation else ("converse",)

    async def _check_approver(self, caller: Caller, continuation_id: str) -> None:
        """Raise Forbidden if the caller may not approve actions of this turn, by the policy in force."""
        if "act" in caller.scopes:
            return
        if self.runtime.operator.policy.approvers == "act":
            caller.need("act")
        caller.need("converse")
        continuation = await self.runtime.store.get_continuation(caller.owner, continuation_id)
        session = await self.runtime.get_session(continuation.session_id, owner=caller.owner)
        if session.policy.approvers == "act":
            caller.need("act")

    async def _check_act_in(self, caller: Caller, continuation_id: str) -> None:
        if "act" not in caller.scopes:
            continuation = await self.runtime.store.get_continuation(caller.owner, continuation_id)
            await self._check_act(caller, continuation.session_id)

    async def _check_act_in_named(self, caller: Caller, name: str | None, *, reopen: bool) -> None:
        """Raise Forbidden if a session of this name would be opened, allows actions, and needs `act`."""
        if name is None or "act" in caller.scopes:
            return
        named = await self.runtime.find_session(name, owner=caller.owner)
        if named is not None and (named.status == "active" or (reopen and named.status == "expired")):
            await self._check_act(caller, named.id)
