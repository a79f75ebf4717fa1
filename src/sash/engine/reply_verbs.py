"""The methods for a user who talks to the agent: a message, or an answer to an approval question."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime

from sash.engine.detached import detached
from sash.engine.turn.continuation_result import ContinuationResult
from sash.engine.turn_verbs import TurnVerbs
from sash.errors import ContinuationFinal, ContinuationNotFound, NotAwaitingApproval, SessionChanged
from sash.intents.approval_words import approves_and_goes_on, parse_approval
from sash.values.continuations import Continuation
from sash.values.requests import SendMessage
from sash.values.sessions import DEFAULT_OWNER
from sash.values.steps import ApprovalGiven, ApprovalRequested
from sash.values.turn_caller import is_same_speaker
from sash.values.validation import check_label

# Seconds in which a spoken yes or no answers an approval question.
APPROVAL_WAIT_S = 60.0
ANOTHER_MESSAGE = "the user sent another message instead of an answer to the approval question"
TOO_LATE = "the user answered the approval question too late"

CheckReply = Callable[[Continuation | None], Awaitable[None]]


class ReplyVerbs(TurnVerbs):
    """Methods for surfaces on which a user speaks with the agent, such as a voice assistant."""

    @detached
    async def reply(
        self,
        session_id: str,
        sent: SendMessage,
        *,
        owner: str = DEFAULT_OWNER,
        approval_wait_s: float = APPROVAL_WAIT_S,
        check: CheckReply | None = None,
    ) -> Continuation:
        """Send the message of a user, or let it answer the approval question of the session.

        A yes or no within `approval_wait_s` of the question answers all waiting calls of that turn, and this
        returns that turn. It has to come from the user and the device that were asked: several people may
        share a session. Any other message, or any later one, drops the question: the waiting turn is
        cancelled, and this starts a new turn as `send` does. A yes that goes on ("yes, and close the blinds")
        does both: the new turn follows the approved one. A message that is sent again with its
        `idempotency_key` changes nothing. A yes does not approve what a turn asks that began by itself if the
        answer before it was a question, too.

        `check` is awaited before anything happens. It gets the turn that the message answers, or None if the
        message starts a turn, and raises if the caller may not do so.
        """
        check_label("session_id", session_id)
        waiting = await self._find_waiting(owner, session_id)
        if waiting and await self._is_known(owner, session_id, sent.idempotency_key):
            waiting = []
        approved = None if sent.attachments else parse_approval(sent.message)
        goes_on = not sent.attachments and approves_and_goes_on(sent.message)
        if waiting and not is_same_speaker(waiting[-1].continuation.request.caller, sent.caller):
            approved, goes_on = None, False
        if waiting and (approved or goes_on) and await self._follows_question(waiting[-1]):
            approved, goes_on = None, False
        is_in_time = bool(waiting) and self._measure_wait_s(waiting[-1]) <= approval_wait_s
        if approved is not None and is_in_time:
            return await self._answer(waiting[-1], approved, check)
        reason = TOO_LATE if approved is not None or goes_on else ANOTHER_MESSAGE
        request = await self._make_request(owner, session_id, sent)
        if check is not None:
            await check(None)
        if goes_on and is_in_time:
            await self._answer(waiting[-1], True, check)
            return await self._begin(session_id, owner, request, "enqueue")
        for question in waiting:
            await self._drop(question, reason)
        return await self._begin(session_id, owner, request, sent.busy)

    @detached
    async def drop_questions(
        self, session_id: str, *, asked_before: datetime, owner: str = DEFAULT_OWNER
    ) -> None:
        """Drop the approval questions of a session that were asked before a time, as `reply` does.

        This is for a message that another agent has answered. `record_turn` can record it afterwards.
        """
        check_label("session_id", session_id)
        for question in await self._find_waiting(owner, session_id):
            if _find_asked_at(question) < asked_before:
                await self._drop(question, ANOTHER_MESSAGE)

    async def _find_waiting(self, owner: str, session_id: str) -> list[ContinuationResult]:
        """Return the turns of a session that wait for an approval. The last one has asked last."""
        waiting = []
        for turn in await self.open_continuations(session_id, owner=owner):
            if turn.status == "awaiting_approval":
                with suppress(ContinuationNotFound):
                    waiting.append(await self._worker.result(owner, turn.id))
        return sorted(waiting, key=lambda result: -self._measure_wait_s(result))

    async def _follows_question(self, waiting: ContinuationResult) -> bool:
        """Return True if a turn began by itself and asks, although the last answer was a question, too.

        A yes may be meant for that question, as for "Shall I turn it on?", so it approves nothing.
        """
        turn = waiting.continuation
        if turn.request.fired is None:
            return False
        last = await self._parts.store.recent_continuations(
            turn.owner, session_id=turn.session_id, statuses={"completed"}, limit=1
        )
        return any(
            answered.response is not None and answered.response.final_message.rstrip().endswith("?")
            for answered in last
        )

    async def _is_known(self, owner: str, session_id: str, idempotency_key: str | None) -> bool:
        """Return True if a turn of the session has this key."""
        if idempotency_key is None:
            return False
        turns = await self._parts.store.list_continuations(owner, session_id)
        return any(turn.request.idempotency_key == idempotency_key for turn in turns)

    def _measure_wait_s(self, waiting: ContinuationResult) -> float:
        """Return the seconds since a turn has asked for an approval."""
        return (self._parts.clock.now() - _find_asked_at(waiting)).total_seconds()

    async def _answer(
        self, waiting: ContinuationResult, approved: bool, check: CheckReply | None
    ) -> Continuation:
        """Approve or deny the waiting calls of a turn. If it has gone on meanwhile, return it unchanged."""
        turn = waiting.continuation
        if check is not None:
            await check(turn)
        steps = tuple(ApprovalGiven(call.call_id, approved) for call in waiting.waiting_calls)
        try:
            return await self._worker.take_over(turn, steps, len(waiting.steps))
        except (NotAwaitingApproval, ContinuationFinal):
            return await self._parts.store.get_continuation(turn.owner, turn.id)

    async def _drop(self, waiting: ContinuationResult, reason: str) -> None:
        """Cancel a turn that waits for an approval. If it has gone on meanwhile, leave it."""
        turn = waiting.continuation
        with suppress(SessionChanged, ContinuationFinal, ContinuationNotFound):
            await self._worker.drop(turn.owner, turn.id, reason, len(waiting.steps))
            await self._worker.serve_next(turn.session_id)


def _find_asked_at(waiting: ContinuationResult) -> datetime:
    """Return the time at which a turn has last asked for an approval."""
    asked_at = [step.ts for step in waiting.steps if isinstance(step.body, ApprovalRequested)]
    return max(asked_at, default=waiting.continuation.updated_at)
