"""Turns without a pipeline that waits for them.

These are turns with an early answer, turns that wait for an approval, and what was asked for a later time.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import CALLBACK_TYPE, Event, HomeAssistant, callback
from homeassistant.helpers.event import async_call_later

from sash.app.approval_question import write_question
from sash.engine.runtime import Runtime
from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import SashError
from sash.values.continuations import Continuation

from .announcer import Announcer
from .notification_texts import find_texts
from .session_scope import SessionPlace, Speaker
from .speaker import recall_speaker
from .turn_errors import INTERRUPTED, describe_error, describe_failure
from .turn_signal import find_error_code, follow_turns

# The companion app fires this event for the button of a notification.
NOTIFICATION_ACTION = "mobile_app_notification_action"
APPROVE, DENY = "SASH_APPROVE_", "SASH_DENY_"

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question for an approval. `stop` cancels the timer of its notification."""

    turn: Continuation
    place: SessionPlace
    speaker: Speaker
    language: str
    text: str
    call_ids: tuple[str, ...]
    stop: CALLBACK_TYPE

    @property
    def tag(self) -> str:
        return f"sash_{self.turn.id}"

    @property
    def token(self) -> str:
        """The id in the buttons of the notification. The next question of the same turn has another id."""
        return "_".join((self.turn.id, *self.call_ids))


class LateTurns:
    """Follows turns that no pipeline waits for: tells the result, and asks for approvals."""

    def __init__(
        self, hass: HomeAssistant, entry: ConfigEntry, runtime: Runtime, announcer: Announcer
    ) -> None:
        self._hass = hass
        self._entry = entry
        self._runtime = runtime
        self._announcer = announcer
        self._questions: dict[str, OpenQuestion] = {}
        self._fired: set[str] = set()

    @callback
    def open(self) -> Callable[[], None]:
        """Listen to the buttons of notifications. Return a function that stops this and all timers."""
        stop_listening = self._hass.bus.async_listen(NOTIFICATION_ACTION, self._on_action)
        stop_following = follow_turns(self._hass, self._entry, self._on_turn)

        @callback
        def close() -> None:
            stop_listening()
            stop_following()
            for question in self._questions.values():
                question.stop()
            self._questions.clear()

        return close

    @property
    def open_questions(self) -> list[str]:
        """The ids of the turns that wait for an answer to their question."""
        return list(self._questions)

    @callback
    def follow(self, turn: Continuation, place: SessionPlace, speaker: Speaker, language: str) -> None:
        """Tell the speaker the result of a turn when it ends."""
        self._entry.async_create_background_task(
            self._hass, self._tell_result(turn, place, speaker, language), f"sash turn {turn.id}"
        )

    async def give_up(self, turn: Continuation, speaker: Speaker, language: str) -> None:
        """Cancel an interrupted turn, and tell the speaker that no answer comes."""
        await self._runtime.cancel(turn.id, owner=turn.owner, reason="interrupted twice")
        text = await describe_error(self._hass, INTERRUPTED, language)
        await self._announcer.tell(speaker, text, f"sash_{turn.id}")

    @callback
    def ask(
        self, result: ContinuationResult, place: SessionPlace, speaker: Speaker, language: str, wait_s: float
    ) -> str:
        """Return the question for the approvals of a turn.

        The speaker gets a notification if no answer comes within `wait_s` seconds.
        """
        turn = result.continuation
        text = write_question(result.waiting_calls, language, self._hass.config.language)

        async def remind(_: object) -> None:
            await self._ask_by_notification(question)

        call_ids = tuple(call.call_id for call in result.waiting_calls)
        stop = async_call_later(self._hass, wait_s, remind)
        question = OpenQuestion(turn, place, speaker, language, text, call_ids, stop)
        self._questions[turn.id] = question
        return text

    @callback
    def withdraw(self, place: SessionPlace) -> None:
        """Forget the questions of a session, because its user speaks again."""
        if place.name is None:
            return
        for question in [question for question in self._questions.values() if question.place == place]:
            self._close(question)

    async def answer(self, turn_id: str, approved: bool, call_id: str | None = None) -> bool:
        """Approve or deny all waiting calls of a turn, or only one. Return False without an open question."""
        question = self._questions.get(turn_id)
        if question is None:
            return False
        self._close(question)
        try:
            await answer_calls(self._runtime, question.turn, approved, call_id)
        except SashError as error:
            _LOGGER.info("the answer to a question came too late: %s", error.message)
            return False
        self.follow(question.turn, question.place, question.speaker, question.language)
        return True

    @callback
    def hand_over(self, turn_id: str) -> None:
        """Close the question of a turn that was answered elsewhere, and tell its speaker the result."""
        if question := self._questions.get(turn_id):
            self._close(question)
            self.follow(question.turn, question.place, question.speaker, question.language)

    @callback
    def _close(self, question: OpenQuestion) -> None:
        self._questions.pop(question.turn.id, None)
        question.stop()
        self._entry.async_create_background_task(
            self._hass,
            self._announcer.clear(question.speaker, question.tag),
            f"clear notification {question.tag}",
        )

    async def _ask_by_notification(self, question: OpenQuestion) -> None:
        texts, token = find_texts(question.language, self._hass.config.language), question.token
        await self._announcer.notify(
            question.speaker,
            question.text,
            question.tag,
            actions=((f"{APPROVE}{token}", texts.yes), (f"{DENY}{token}", texts.no)),
            hint=texts.how_to_answer.format(turn_id=question.turn.id),
        )

    async def _on_action(self, event: Event) -> None:
        action = str(event.data.get("action") or "")
        approved = action.startswith(APPROVE)
        if not approved and not action.startswith(DENY):
            return
        token = action.removeprefix(APPROVE if approved else DENY)
        question = next((each for each in self._questions.values() if each.token == token), None)
        # A question that a user asked is answered on a phone of that user.
        if question is None or question.speaker.user_id not in (None, event.context.user_id):
            return
        await self.answer(question.turn.id, approved)

    @callback
    def _on_turn(self, result: ContinuationResult) -> None:
        """Take back the question of a turn that has ended, and follow a waiting turn that has fired."""
        turn = result.continuation
        question = self._questions.get(turn.id)
        if question is not None and turn.is_final:
            self._close(question)
        if turn.request.fired is None:
            return
        if turn.is_final:
            self._fired.discard(turn.id)
        elif turn.id not in self._fired:
            self._fired.add(turn.id)
            self._entry.async_create_background_task(
                self._hass, self._tell_fired(turn), f"sash waiting turn {turn.id}"
            )

    async def _tell_fired(self, turn: Continuation) -> None:
        """Tell the user who asked for something later what has become of it."""
        try:
            session = await self._runtime.get_session(turn.session_id, owner=turn.owner)
        except SashError as error:  # The session was deleted, or the runtime is closed.
            _LOGGER.info("the result of turn %s cannot be told: %s", turn.id, error.message)
            return
        speaker = recall_speaker(self._hass, turn.request.caller)
        language = turn.request.language or self._hass.config.language
        await self._tell_result(turn, SessionPlace(turn.owner, session.name), speaker, language)

    async def _tell_result(
        self, turn: Continuation, place: SessionPlace, speaker: Speaker, language: str
    ) -> None:
        try:
            result = await self._runtime.await_continuation(turn.id, owner=turn.owner)
        except SashError as error:  # The session was deleted, or the runtime is closed.
            _LOGGER.info("the result of turn %s cannot be told: %s", turn.id, error.message)
            return
        has_stopped = result.continuation.is_final or result.waiting_calls or find_error_code(result)
        if not has_stopped:
            return  # The entry is being unloaded. `recovered_turns` goes on when it is loaded again.
        tag = f"sash_{turn.id}"
        if result.waiting_calls:
            text = self.ask(result, place, speaker, language, 0)
            if speaker.satellite_id is not None:
                await self._announcer.announce(speaker.satellite_id, text)
            return
        if result.response is not None:
            text = result.response.final_message
        else:
            text = await describe_failure(self._hass, result, language)
        await self._announcer.tell(speaker, text, tag)


async def answer_calls(runtime: Runtime, turn: Continuation, approved: bool, call_id: str | None) -> None:
    """Approve or deny all calls of a turn that wait for an approval, or only one.

    A turn goes on after each answer, and then waits for the next one.
    """
    waiting = (await runtime.await_continuation(turn.id, owner=turn.owner, timeout_s=0)).waiting_calls
    for number, each in enumerate([call_id] if call_id is not None else [call.call_id for call in waiting]):
        if number:
            await runtime.await_continuation(turn.id, owner=turn.owner)
        await runtime.approve(turn.id, each, approved, owner=turn.owner)
