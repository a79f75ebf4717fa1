"""The work of a waiting turn that has fired: the decision, the tool calls, and the report to the user."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Literal

from sash.engine.turn.fired_sentences import FiredSentences, choose_sentences
from sash.engine.turn.progress import Progress
from sash.home.index import HomeIndex
from sash.home.state_text import write_state
from sash.ports.intents import LocalCallResult, make_local_calls
from sash.ports.model import Answer
from sash.ports.tools import DENIED_BY_USER
from sash.values.steps import WaitingTurnFired
from sash.values.waiting_turns import LATE, MISSED, FiredTurn, StateCondition, WaitingTurn

CALL_TOOL = "call_service"

_Result = Literal["done", "dry_run", "unseen", "unknown", "denied", "refused", "failed"]
# The worst result of several calls is reported.
_WORST_LAST: tuple[_Result, ...] = ("done", "dry_run", "unseen", "unknown", "denied", "refused", "failed")


def decide(fired: FiredTurn, index: HomeIndex | None, now: datetime) -> WaitingTurnFired:
    """Decide whether a waiting turn does its work now. `index` is None while the home is not connected."""
    turn = fired.turn
    words = choose_sentences(turn.language)
    due_at = None if turn.due_at is None else turn.due_at.isoformat()
    late: Literal["down", "delayed"] | None = None
    if turn.due_at is None or now - turn.due_at > MISSED:
        return WaitingTurnFired(turn.id, turn.summary, "missed", due_at)
    if now - turn.due_at > LATE:
        late = "down" if fired.was_down else "delayed"
    for condition in turn.only_if:
        if not _holds(condition, index, now):
            reason = _describe_obstacle(condition, index, turn.language, words)
            return WaitingTurnFired(turn.id, turn.summary, "not_now", due_at, late, reason)
    return WaitingTurnFired(turn.id, turn.summary, "due", due_at, late)


def make_calls(turn: WaitingTurn) -> Answer:
    """Return the calls of a waiting turn, as calls of the tool for services."""
    return make_local_calls(CALL_TOOL, {f"later-{n}": call.arguments for n, call in enumerate(turn.calls, 1)})


def write_message(turn: WaitingTurn, language: str | None) -> str:
    """Return the message of the continuation that a waiting turn becomes, as the transcript shows it."""
    return choose_sentences(language).message.format(turn.summary)


def write_report(
    turn: WaitingTurn, step: WaitingTurnFired, progress: Progress, now: datetime, language: str | None
) -> str:
    """Return the answer of a fired turn. `now` is the local time of the user."""
    words, summary = choose_sentences(language), turn.summary.rstrip(" .!?")
    due = None if turn.due_at is None else _write_time(turn.due_at.astimezone(now.tzinfo), now)
    if step.outcome == "missed":
        return words.given_up.format(summary) if due is None else words.missed.format(summary, due)
    if step.outcome == "not_now":
        text = words.not_now.format(summary, step.reason or "")
    else:
        result = max(_list_results(progress), key=_WORST_LAST.index, default="done")
        is_said = turn.say is not None and result == "done"
        text = turn.say if is_said and turn.say else getattr(words, result).format(summary)
    if step.late is None:
        return text
    late = words.late_down if step.late == "down" else words.late
    end = "" if text.endswith((".", "!", "?", "…")) else "."
    return f"{text}{end} {late.format(due)}"


def _holds(condition: StateCondition, index: HomeIndex | None, now: datetime) -> bool:
    state = None if index is None else index.states.get(condition.entity_id)
    if state is None or not condition.is_met(state.state):
        return False
    return not condition.for_s or now - state.changed_at >= timedelta(seconds=condition.for_s)


def _describe_obstacle(
    condition: StateCondition, index: HomeIndex | None, language: str | None, words: FiredSentences
) -> str:
    """Return the present state of an entity that does not meet a condition, such as "Anna is home"."""
    entity = None if index is None else index.entities.get(condition.entity_id)
    if entity is None or index is None:
        return words.no_state
    return words.state.format(entity.name, write_state(index, entity, language))


def _list_results(progress: Progress) -> Iterator[_Result]:
    """Yield the result of each tool call of the turn."""
    actions = {action.call_id: action for action in progress.actions}
    for message in progress.messages:
        if message["role"] == "tool":
            yield _find_result(message, actions.get(message["tool_call_id"]))


def _find_result(message: dict[str, Any], action: Any) -> _Result:
    if action is None:  # Nothing was done: it was so already, or the call was wrong.
        is_so = LocalCallResult(message["name"], message["content"]).parse_object().get("already_so")
        return "done" if is_so else "failed"
    if action.outcome == "done" and action.verified is False:
        return "unseen"
    if action.outcome == "denied" and DENIED_BY_USER in message["content"]:
        return "refused"
    outcome: _Result = action.outcome
    return outcome


def _write_time(at: datetime, now: datetime) -> str:
    """Return a local time as `21:05`, with its date if it is not today."""
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}"
