"""Registers one promise: its task, its words and what it waits for become calls of tools."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sash.intents.acting.planner import Planner
from sash.intents.sentence.clause import Clause
from sash.intents.sentence.time_places import list_time_places
from sash.intents.sentence.time_words import NO_TIME, TimeWords
from sash.intents.situation import PlannedCall, Reply, Situation
from sash.intents.topic import Topic
from sash.intents.waiting.promise_report import LATER_TOOL
from sash.intents.waiting.summaries import EDGE_KINDS, cut_edges
from sash.intents.waiting.triggers import Trigger
from sash.intents.words.phrases import Match


@dataclass(frozen=True, slots=True)
class Task:
    """A task for later: clauses of commands, or something to tell."""

    summary: str
    clauses: tuple[Clause, ...] = ()
    say: str = ""


class Registration:
    """Reads parts of one sentence about later, and makes the calls that register a promise."""

    def __init__(
        self, situation: Situation, planner: Planner, complete: Callable[[list[Clause]], list[Clause]]
    ) -> None:
        self._situation = situation
        self._planner = planner
        self.complete = complete

    def register(self, task: Task, trigger: Trigger) -> Reply:
        """Return the calls that promise a task, or why it cannot be promised."""
        if trigger.missing:
            missing = self._situation.writer.say("later.cannot_watch", missing=trigger.missing)
            return Reply(missing, is_guess=True)
        plans = [self._planner.plan(replace(clause, time=NO_TIME)) for clause in task.clauses]
        problem = next((plan for plan in plans if not plan.calls), None)
        if problem is not None:
            text = (
                f"{problem.text} {self._situation.writer.say('command.nothing_done')}"
                if len(plans) > 1
                else problem.text
            )
            n = plans.index(problem)
            ordered = (*task.clauses[:n], *task.clauses[n + 1 :], task.clauses[n])
            offer = Topic("offer", ordered, choices=problem.choices).to_json() if problem.choices else None
            return Reply(text, topic=offer, is_guess=problem.is_unsure)
        calls = [call.arguments for plan in plans for call in plan.calls]
        arguments: dict[str, Any] = {"summary": task.summary}
        if trigger.at is not None:
            arguments["at"] = trigger.at.isoformat(timespec="seconds")
        if trigger.when is not None:
            arguments["when"] = trigger.when
        if trigger.only_if:
            arguments["only_if"] = list(trigger.only_if)
        if calls:
            arguments["calls"] = calls
        if task.say:
            arguments["say"] = task.say
        return Reply(calls=(PlannedCall(LATER_TOOL, arguments),))

    def ask_for(self, key: str) -> Reply:
        """Return a question for what is missing. A language model may know it."""
        return Reply(self._situation.writer.say(key), is_guess=self._situation.utterance.has_model)

    def read_commands(self, start: int, end: int) -> tuple[Clause, ...]:
        """Return the commands in a part of the sentence: "wake me with the bedroom light on".

        A part without a command of its own has none: what was said before completes no reminder.
        """
        read = self._situation.reader.read_clauses_between(self._situation.sentence, start, end)
        if not any(clause.is_command and (clause.words or clause.refer) for clause in read):
            return ()
        return tuple(clause for clause in self.complete(read) if clause.is_command and clause.words)

    def read(self, start: int, end: int) -> Clause:
        return self._situation.reader.read_clause(self._situation.sentence, start, end)

    def summarize(
        self,
        start: int,
        end: int,
        time: TimeWords,
        without: Match | None = None,
        edges: frozenset[str] = EDGE_KINDS,
    ) -> str:
        """Return the words of a part of the sentence, without its time and without words at its edges."""
        dropped = {*list_time_places(self._situation.sentence, time), *(without.places if without else ())}
        places, articles = (
            [n for n in range(start, end) if n not in dropped],
            self._situation.reader.lexicon.articles,
        )
        return cut_edges(self._situation.sentence, places, edges, articles)
