"""Timers and reminders: "set a timer for ten minutes", "remind me at seven", "wake me"."""

from dataclasses import replace
from datetime import datetime, timedelta

from sash.intents.sentence.clause import Clause
from sash.intents.sentence.moments import find_moment
from sash.intents.sentence.time_words import NO_TIME
from sash.intents.situation import Reply, Situation
from sash.intents.waiting.conditions import Conditions
from sash.intents.waiting.registration import Registration, Task
from sash.intents.waiting.summaries import EDGE_KINDS, LINKING_KINDS
from sash.intents.waiting.triggers import Trigger

# Things that wake a person.
_WAKES = frozenset({"kind.light", "kind.radio", "kind.media", "kind.speaker", "kind.blind"})
_WAKING_DOMAINS = frozenset({"light", "media_player", "cover", "scene"})
_ARM_MODES = frozenset({"arm_home", "arm_away", "arm_night"})


class Reminders:
    """The timer or the reminder in one sentence."""

    def __init__(self, situation: Situation, registration: Registration, conditions: Conditions) -> None:
        self._situation = situation
        self._sentence = situation.sentence
        self._writer = situation.writer
        self._registration = registration
        self._conditions = conditions
        self._later = {match.value: match for match in reversed(situation.sentence.find("later"))}

    def reply(self) -> Reply | None:
        """Return the reply to a sentence with a timer or a reminder; None for other sentences."""
        return self._set_timer() or self._remind()

    def _set_timer(self) -> Reply | None:
        if (match := self._later.get("timer")) is None:
            return None
        total = len(self._sentence.words)
        if self._registration.read_commands(0, match.start) or self._registration.read_commands(
            match.end, total
        ):
            return None  # "Turn on the oven and set a timer for ten minutes" has two parts.
        clause = self._registration.read(0, total)
        if (length_s := clause.time.length_s or _read_minutes(clause)) is None:
            return self._registration.ask_for("later.how_long")
        duration = self._writer.exact_duration(length_s)
        name = self._registration.summarize(0, total, clause.time, match, edges=EDGE_KINDS | {"memory"})
        summary = self._writer.phrase("later.timer", duration=duration, name=name).strip()
        task = Task(summary, say=self._writer.say("later.timer_done", summary=summary))
        return self._registration.register(
            task, Trigger(at=self._situation.now + timedelta(seconds=length_s))
        )

    def _remind(self) -> Reply | None:
        """Promise a reminder, or to wake the user."""
        total = len(self._sentence.words)
        for key in ("remind", "wake"):
            if (match := self._later.get(key)) is None:
                continue
            if self._registration.read_commands(0, match.start):
                return None  # "Start the coffee machine and remind me in ten minutes" has two parts.
            clause = self._registration.read(0, total)
            at = find_moment(clause.time, self._situation.now, prefers_morning=key == "wake")
            if key == "wake" and self._arms_alarm(at):
                continue  # "Set the alarm to night" arms it.
            fillers = {p for m in self._sentence.matches if m.kind in EDGE_KINDS for p in m.places}
            # The words before "remind me" belong to the reminder, but not those of "can you remind me".
            start = match.start if fillers.issuperset(range(match.start)) else 0
            what = self._registration.summarize(start, total, clause.time, match, edges=LINKING_KINDS)
            if key == "remind" and not what:
                return self._registration.ask_for("later.remind_what")
            if at is None:
                return self._conditions.remind(match) or self._registration.ask_for("later.when")
            what = self._writer.strip_about(what).lstrip(" ,;")
            say = self._writer.say("later.wake_up" if key == "wake" else "later.reminder", what=what)
            if key == "remind":
                return self._registration.register(Task(what or say, say=say), Trigger(at=at))
            summary = self._writer.phrase("later.wake")
            clauses = self._registration.read_commands(match.end, total) or self._wake_with(match.end, total)
            summary = f"{summary}, {what}" if clauses else summary
            return self._registration.register(Task(summary, clauses, say), Trigger(at=at))
        return None

    def _wake_with(self, start: int, end: int) -> tuple[Clause, ...]:
        """Return the command to turn on what the user wants to be woken with: "with the bedroom light"."""
        clause = self._registration.read(start, end)
        is_wakeful = any(not _WAKES.isdisjoint(word.keys) for word in clause.words) or any(
            key.partition(".")[0] in _WAKING_DOMAINS for word in clause.words for key in word.entity_ids
        )
        if not is_wakeful or clause.is_negated or clause.unknown or clause.properties:
            return ()
        act = "open" if any("kind.blind" in word.keys for word in clause.words) else "on"
        return (replace(clause, do=(act,), time=NO_TIME, is_question=False),)

    def _arms_alarm(self, at: datetime | None) -> bool:
        """Return whether "set the alarm" means the alarm of the home: there is no time, or a mode."""
        acts = {match.value for match in self._sentence.find("do")}
        return not acts.isdisjoint(_ARM_MODES) or (at is None and "arm" in acts)


def _read_minutes(clause: Clause) -> float | None:
    """Return the seconds of a number without a unit: "an egg timer for five" means minutes."""
    if clause.time.is_bare and clause.time.hour:
        return 60.0 * clause.time.hour
    is_number = clause.amount.unit is None and clause.time.hour is None
    return 60 * clause.amount.value if is_number and clause.amount.value else None
