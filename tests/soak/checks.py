"""Compares what the clients were told with what is stored and with what the home was asked to do."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.soak.client import Told
from tests.soak.jobs import (
    DIM,
    NOTIFY,
    TALK,
    SimulatedHome,
    brightness_of,
    light_of,
    make_answer,
    make_message,
)

# The result of a call has the first word if it cannot be told whether the call was made. It starts with one of
# the others if the call was not made: the policy refused it, or the home was still connecting.
UNKNOWN, NOT_MADE = "unknown", ("not done", "failed")


@dataclass
class Verdict:
    """The counts of a storm, and everything that was lost, doubled or otherwise wrong."""

    turns: int = 0
    events: int = 0
    calls: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def expect(self, what: str, count: int, at_least: int, at_most: int = 1) -> None:
        """Count it as lost if there are fewer than `at_least`, and as doubled if more than `at_most`."""
        if count < at_least:
            self.lost.append(what)
        if count > at_most:
            self.doubled.append(f"{what} ({count} times)")


def check_session(
    verdict: Verdict,
    number: int,
    told: Told,
    messages: list[Any],
    events: list[tuple[int, Any]],
    preference: Any,
) -> None:
    """Check the transcript, the events and the preference of one session."""
    verdict.wrong += told.problems
    verdict.turns += sum(job.status != "" for job in told.jobs.values())
    verdict.statuses += Counter(job.status for job in told.jobs.values())
    said = Counter((message["role"], _text(message)) for message in messages)
    for job_id, job in told.jobs.items():
        sentence = make_message(job_id, job.kind)
        verdict.expect(f"message {sentence!r}", said["user", sentence], job.status == "completed")
        if job.status == "completed":
            if job.answer.strip() != make_answer(job_id):
                verdict.wrong.append(f"the answer to {job_id} is {job.answer!r}")
            verdict.expect(f"answer to {job_id}", said["assistant", make_answer(job_id)], 1)
        elif job.status != "cancelled":
            verdict.wrong.append(f"{job_id} has the status {job.status or 'unknown'!r}")
    positions = [message["position"] for message in messages]
    if positions != list(range(1, len(positions) + 1)):
        verdict.wrong.append(f"session {number}: the positions of the messages have gaps")
    ids = Counter(message["id"] for message in messages)
    verdict.doubled += [f"message id {key}" for key, count in ids.items() if count > 1]
    _check_events(verdict, number, told, events)
    if preference != told.preference:
        verdict.lost.append(f"session {number}: preference {told.preference}, found {preference!r}")


def _check_events(verdict: Verdict, number: int, told: Told, stored: list[tuple[int, Any]]) -> None:
    """Check that the listener received each stored event once, in order, as it is stored."""
    verdict.events += len(stored)
    received = Counter(cursor for cursor, _ in told.events)
    for cursor, event in stored:
        verdict.expect(f"session {number}: event {cursor} ({event['type']})", received[cursor], 1)
    kept = dict(stored)
    for cursor, event in told.events:
        if cursor not in kept:
            verdict.lost.append(f"session {number}: received event {cursor} is not stored")
        elif kept[cursor] != event:
            verdict.wrong.append(f"session {number}: event {cursor} has changed")
    finals = Counter(event["continuation_id"] for _, event in stored if event["type"] == "final")
    for job_id, job in told.jobs.items():
        verdict.expect(f"final event of {job_id}", finals[job.turn_id], 1)


def check_home(verdict: Verdict, number: int, told: Told, messages: list[Any], home: SimulatedHome) -> None:
    """Check that the home was asked once for each action that is reported as done, and never twice."""
    results = {message["tool_call_id"]: _text(message) for message in messages if message["role"] == "tool"}
    done, possible = Counter[int](), Counter[int]()
    for job_id, kind in told.requested.items():
        job = told.jobs.get(job_id)
        result = results.get(f"call-{job_id}", UNKNOWN)
        may_be_made = not result.startswith(NOT_MADE)
        is_done = job is not None and job.status == "completed" and may_be_made and UNKNOWN not in result
        if kind == NOTIFY:
            verdict.expect(f"notification {job_id}", home.notified[job_id], is_done, may_be_made)
        elif kind == DIM:
            brightness = brightness_of(int(job_id.partition("-")[2]))
            possible[brightness] += may_be_made
            done[brightness] += is_done
        elif kind == TALK and f"call-{job_id}" in results:
            verdict.wrong.append(f"{job_id} made a call")
    for brightness, count in possible.items():
        calls = home.dimmed[light_of(number), brightness]
        verdict.expect(f"light {number} to {brightness}", calls, done[brightness], count)


def _text(message: Any) -> str:
    content = message["content"]
    return (content if isinstance(content, str) else "").strip()
