"""Understands what is to be done or told later, and questions about what waits."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sash.intents.acting.plan import Plan, choose_all
from sash.intents.acting.planner import Planner
from sash.intents.question_detection import is_question
from sash.intents.said_before import asks_about_conversation
from sash.intents.sentence.clause import Clause
from sash.intents.sentence.moments import find_moment
from sash.intents.sentence.time_places import list_time_places
from sash.intents.sentence.time_words import NO_TIME, TimeWords
from sash.intents.situation import PlannedCall, Reply, Situation
from sash.intents.topic import Topic
from sash.intents.undoing import asks_to_undo
from sash.intents.waiting.conditions import Conditions
from sash.intents.waiting.going_back import restore_states
from sash.intents.waiting.new_time import read_new_time, read_said_duration, write_arguments
from sash.intents.waiting.promise_report import LATER_TOOL, report
from sash.intents.waiting.registration import Registration, Task
from sash.intents.waiting.reminders import Reminders
from sash.intents.waiting.summaries import EDGE_KINDS, ENDS, cut_edges
from sash.intents.waiting.timer_changes import TimerChanges
from sash.intents.waiting.triggers import Trigger
from sash.intents.waiting.waiting_list import CANCEL_TOOL, WaitingList

_LINKING_KINDS = frozenset({"join", "value"})
_ARM_MODES = frozenset({"arm_home", "arm_away", "arm_night"})
_FUTURE_ROLES = frozenset({"in", "at", None})
# The time of a promise was named in one of the last turns.
MAX_SAID = 3


class Promises:
    """The promises in one sentence."""

    def __init__(
        self, situation: Situation, planner: Planner, complete: Callable[[list[Clause]], list[Clause]]
    ) -> None:
        self._situation = situation
        self._sentence = situation.sentence
        self._writer = situation.writer
        self._planner = planner
        self._later = {match.value: match for match in reversed(situation.sentence.find("later"))}
        self._registration = Registration(situation, planner, complete)
        self._conditions = Conditions(situation, self._registration)
        self._reminders = Reminders(situation, self._registration, self._conditions)
        self._waiting_list = WaitingList(situation)
        self._timer_changes = TimerChanges(situation, self._waiting_list)

    async def reply(self, last: Topic | None) -> Reply | None:
        """Return the reply to a sentence about later; None for other sentences."""
        if LATER_TOOL not in self._situation.utterance.tools:
            return None
        if self._situation.utterance.results:
            return report(self._situation)
        is_about_days = (
            self._sentence.find("calendar") and self._registration.read(0, len(self._sentence.words)).time.day
        )
        if self._asks_to_repeat():
            return self._registration.ask_for("later.not_repeated")
        if ("list" in self._later and not is_about_days) or self._asks_for_reminders():
            return await self._waiting_list.describe()
        if asks_about_conversation(self._sentence):
            return None
        if reply := await self._timer_changes.reply(last):
            return reply
        if last is not None and last.kind == "waiting" and (reply := await self._go_on()):
            return reply
        if "left" in self._later and not self._asks_for_state():
            return await self._waiting_list.say_left()
        if ("cancel" in self._later or asks_to_undo(self._sentence)) and (
            reply := await self._waiting_list.cancel(last)
        ):
            return reply
        return self._reminders.reply() or self._conditions.reply()

    def _asks_to_repeat(self) -> bool:
        """Return whether a thing is wished for again and again: "coffee every morning at seven"."""
        if is_question(self._situation.sentence.text, self._writer.language) or self._sentence.find("ask"):
            return False
        clauses = self._situation.reader.read_clauses(self._sentence)
        return any(
            clause.time.is_repeated and clause.words and (clause.has_make or clause.do) for clause in clauses
        )

    def refuse_to_cancel(self) -> Reply | None:
        """Return that nothing waits, to a sentence that only asks to forget something; None for others."""
        is_asked = "cancel" in self._later and self._waiting_list.says_only_cancel()
        return Reply(self._writer.say("later.nothing_to_forget"), is_guess=True) if is_asked else None

    def promise(self, clauses: Sequence[Clause]) -> Reply | None:
        """Return the calls for commands with a time in the future; None if they are for now."""
        times = [clause.time for clause in clauses if not clause.time.is_empty]
        if not times or LATER_TOOL not in self._situation.utterance.tools:
            return None
        if parts := self._split_by_time(clauses):
            return _join_calls([self._promise_part(part) for part in parts])
        time = times[0]
        if time.is_invalid:
            return self._registration.ask_for("later.no_such_time")
        if time.is_repeated:
            return self._registration.ask_for("later.not_repeated")
        if time.role in ("for", "until"):
            return self._do_for_a_while(clauses, time)
        if time.role not in _FUTURE_ROLES or time.is_later:
            return self._registration.ask_for("later.when") if time.is_later else None
        at = find_moment(time, self._situation.now)
        if at is None:
            return None
        task = Task(self._name_reference(self._summarize_clauses(clauses), clauses), tuple(clauses))
        return self._registration.register(task, Trigger(at=at))

    def _asks_for_reminders(self) -> bool:
        """Return whether a sentence asks for a promise: "what did I want to be reminded of?"."""
        fillers = {p for m in self._sentence.matches if m.kind in ("filler", "talk") for p in m.places}
        asks = [m for m in self._sentence.matches if m.kind == "ask" and m.value in ("what", "when", "which")]
        promises = [self._later[key] for key in ("remind", "wake", "timer") if key in self._later]
        promised = {place for match in promises for place in match.places}
        # "Tell me in ten minutes to …" begins with no question.
        asks = [match for match in asks if promised.isdisjoint(match.places)]
        starts = any(fillers.issuperset(range(match.start)) for match in asks)
        return starts and bool(promises) and is_question(self._sentence.text, self._writer.language)

    def _asks_for_state(self) -> bool:
        """Return whether "left" is said of a state: the Italian "è rimasta accesa"."""
        own = set(self._later["left"].places)
        acts = (match for match in self._sentence.find("do") if match.value in ENDS)
        return any(own.isdisjoint(match.places) for match in acts) and "timer" not in self._sentence.words

    def _promise_part(self, clauses: Sequence[Clause]) -> Reply:
        """Return the calls for a part of a sentence, which may be for now."""
        if promised := self.promise(clauses):
            return promised
        plans = [self._planner.plan(clause) for clause in clauses]
        problem = next((plan for plan in plans if not plan.calls), None)
        if problem is not None:
            return Reply(problem.text, is_guess=problem.is_unsure)
        return Reply(calls=tuple(call for plan in plans for call in plan.calls))

    def _split_by_time(self, clauses: Sequence[Clause]) -> list[list[Clause]]:
        """Return the clauses by their times: "on at seven and off at eight". Empty if all have one time."""
        parts: list[list[Clause]] = []
        for clause in clauses:
            before = parts[-1][-1] if parts else None
            is_same = before is not None and replace(clause.time, places=before.time.places) == before.time
            if before is None or not (clause.time.is_empty or is_same or self._waits_with(before, clause)):
                parts.append([clause])
            else:
                parts[-1].append(clause)
        return parts if len(parts) > 1 else []

    def _waits_with(self, before: Clause, clause: Clause) -> bool:
        """Return whether a clause without a time waits for the time of the next one.

        What the next clause takes back is done at once: "turn it on, and off again in ten minutes".
        """
        ends = {ENDS.get(do) for do in before.do}
        return before.time.is_empty and ends.isdisjoint(clause.do)

    def _name_reference(self, summary: str, clauses: Sequence[Clause]) -> str:
        """Return a summary that names the thing instead of "it", which means something else later."""
        words = [word for clause in clauses for word in clause.words if word.entity_ids]
        sentence = self._situation.reader.read(summary)
        found = next((m for m in sentence.matches if m.tag in ("refer.it", "refer.them")), None)
        ids = dict.fromkeys(key for word in words for key in word.entity_ids)
        things = [self._situation.index.entities[key] for key in ids if key in self._situation.index.entities]
        named = [word.text for clause in clauses for word in clause.words]
        if named and found is None and not any(text.casefold() in summary.casefold() for text in named):
            return f"{summary} ({self._writer.names(things) or ' '.join(dict.fromkeys(named))})"
        if found is None or not things or any(word.text in summary for word in words):
            return summary
        before, after = sentence.cut(0, found.start), sentence.cut(found.end, len(sentence.words))
        return " ".join(filter(None, [before, self._writer.names(things), after]))

    def _summarize_clauses(self, clauses: Sequence[Clause]) -> str:
        """Return what the clauses say, without their time."""
        total = len(self._sentence.words)
        own = {clause.text for clause in self._situation.reader.read_clauses(self._sentence)}
        if len(own) == len(clauses) or not own.issuperset(clause.text for clause in clauses):
            times = [clause.time for clause in clauses if not clause.time.is_empty]
            return self._registration.summarize(0, total, times[0])
        parts = []
        for clause in clauses:
            sentence = self._situation.reader.read(clause.text)
            inner = self._situation.reader.read_clause(sentence, 0, len(sentence.words))
            taken = list_time_places(sentence, inner.time)
            places = [n for n in range(len(sentence.words)) if n not in taken]
            parts.append(cut_edges(sentence, places, EDGE_KINDS))
        return self._writer.join(parts)

    async def _go_on(self) -> Reply | None:
        """Reply to a sentence about the last promise: "make it an hour", "when will that be?"."""
        return await self._change_time() or await self._waiting_list.tell_time()

    async def _change_time(self) -> Reply | None:
        """Promise what was promised last for another time."""
        dialogue = self._situation.utterance.dialogue
        turns = await dialogue.list_waiting()
        if not turns or turns[-1].at is None:
            return None
        last_turn = turns[-1]
        said_s = read_said_duration(self._situation, await dialogue.list_recent(MAX_SAID))
        clause = self._registration.read(0, len(self._sentence.words))
        at = read_new_time(clause, self._situation, last_turn, said_s)
        if at is None:
            return None
        cancelled = PlannedCall(CANCEL_TOOL, {"id": last_turn.id})
        arguments = write_arguments(last_turn, at, self._situation)
        return Reply(calls=(cancelled, PlannedCall(LATER_TOOL, arguments)))

    def _do_for_a_while(self, clauses: Sequence[Clause], time: TimeWords) -> Reply | None:
        """Do something now, and the opposite after a while or at a time: "for an hour", "until ten"."""
        at = self._find_end(time)
        plans = [self._planner.plan(replace(clause, time=NO_TIME)) for clause in clauses]
        ids = [key for plan in plans for key in plan.entity_ids]
        if at is None or not ids or not all(plan.calls or _stays(plan) for plan in plans):
            return None
        back = self._plan_ends(clauses, plans)
        if not back:
            return Reply(self._writer.say("later.not_for_a_while"))
        summary = self._name_end(clauses, ids)
        arguments = {"summary": summary, "at": at.isoformat(timespec="seconds"), "calls": back}
        return Reply(calls=(*(c for plan in plans for c in plan.calls), PlannedCall(LATER_TOOL, arguments)))

    def _name_end(self, clauses: Sequence[Clause], entity_ids: Sequence[str]) -> str:
        """Return what is done at the end of a while: "turn off the fan"."""
        entities = self._situation.index.entities
        names = self._writer.names([entities[key] for key in dict.fromkeys(entity_ids) if key in entities])
        acts = {ENDS.get(do) for clause in clauses for do in clause.do or ("",)}
        act = acts.pop() if len(acts) == 1 and all(clause.amount.is_empty for clause in clauses) else None
        return self._writer.phrase(f"later.end_{act or 'back'}", names=names)

    def _find_end(self, time: TimeWords) -> datetime | None:
        """Return the moment at which something that is done now ends."""
        if time.duration_s is not None:
            return self._situation.now + timedelta(seconds=time.duration_s)
        return find_moment(replace(time, role="at"), self._situation.now) if time.role == "until" else None

    def _plan_ends(self, clauses: Sequence[Clause], plans: Sequence[Plan]) -> list[dict[str, Any]]:
        """Return the calls that take commands back; empty if nothing is known to do that."""
        entities = self._situation.index.entities
        ends = []
        for clause, plan in zip(clauses, plans, strict=True):
            # "Leave them on until ten" means only those that are on.
            clause = replace(choose_all(clause, plan.entity_ids, entities), keeps=False, is_everything=False)
            opposites = tuple(ENDS[do] for do in clause.do if do in ENDS)
            ends.append(replace(clause, do=opposites, time=NO_TIME))
        if all(clause.do and clause.amount.is_empty for clause in ends):
            back = [dict(call.arguments) for clause in ends for call in self._planner.plan(clause).calls]
            if back:
                return back
        return restore_states([call for plan in plans for call in plan.calls], self._situation.index)


def _stays(plan: Plan) -> bool:
    """Return whether things already are as they shall stay."""
    return plan.is_settled and not plan.is_refused


def _join_calls(replies: Sequence[Reply]) -> Reply | None:
    """Return all calls of some replies, or the first reply that says why there are none."""
    refused = next((reply for reply in replies if not reply.calls), None)
    if refused is not None or not replies:
        return refused
    return Reply(calls=tuple(call for reply in replies for call in reply.calls))
