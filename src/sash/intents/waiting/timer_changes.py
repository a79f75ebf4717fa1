"""Understands what is asked of a running timer, or of what was promised last: more time, or less."""

from datetime import timedelta

from sash.intents.situation import PlannedCall, Reply, Situation
from sash.intents.topic import Topic
from sash.intents.waiting.new_time import read_duration, write_arguments
from sash.intents.waiting.promise_report import LATER_TOOL
from sash.intents.waiting.waiting_list import CANCEL_TOOL, WaitingList
from sash.values.waiting_turns import WaitingTurn

_SIGNS = {"longer": 1, "shorter": -1}


class TimerChanges:
    """Answers one sentence about the timers that run."""

    def __init__(self, situation: Situation, waiting_list: WaitingList) -> None:
        self._situation = situation
        self._writer = situation.writer
        self._waiting_list = waiting_list

    async def reply(self, last: Topic | None) -> Reply | None:
        """Return the reply to a sentence about running timers; None for other sentences."""
        clause, names_timer = self._waiting_list.clause, self._waiting_list.names_timer()
        if any(word.entity_ids for word in clause.words):
            return None  # The home has a timer of this name.
        names_thing = any(word.has("kind") for word in clause.words)
        is_next = last is not None and last.kind == "waiting" and not names_thing
        if not names_timer and not is_next:
            return None
        if sign := self._find_sign(is_next=is_next):
            return await self._change(sign, timers_only=names_timer)
        removes = any(match.value == "remove" for match in self._situation.sentence.find("item"))
        if names_timer and (removes or "stop" in clause.do):
            return await self._waiting_list.cancel(last)
        if not names_timer or not {"pause", "play"}.intersection(clause.do):
            return None
        has_timers = bool(await self._list_turns(timers_only=True))
        return Reply(self._writer.say("later.no_pause" if has_timers else "later.no_timer"))

    def _find_sign(self, *, is_next: bool) -> int:
        """Return 1 for more time, -1 for less time, and 0 for neither."""
        sentence = self._situation.sentence
        found = [_SIGNS[match.value] for match in sentence.find("later") if match.value in _SIGNS]
        has_duration = self._waiting_list.clause.time.duration_s is not None
        adds = sentence.find("item") or any(match.value == "more" for match in sentence.find("refer"))
        if not found and is_next and has_duration and adds and not self._names_new_length():
            return 1  # "Add five minutes", "five more minutes".
        return found[0] if found else 0

    def _names_new_length(self) -> bool:
        """Return whether a duration is the new one: "mets-le à dix minutes", but "add ten minutes"."""
        sentence, places = self._situation.sentence, self._waiting_list.clause.time.places
        roles = (m for m in sentence.matches if m.tag in ("value.to", "time.in", "time.at"))
        return any(match.start in places or match.end in places for match in roles)

    async def _change(self, sign: int, *, timers_only: bool) -> Reply:
        """Return the calls that move a timer, or what was promised last, by the time that is named."""
        turns, time = await self._list_turns(timers_only=timers_only), self._waiting_list.clause.time
        if not turns:
            return Reply(self._writer.say("later.no_timer"))
        if time.duration_s is None:
            return Reply(self._writer.say("later.how_long"))
        turn = (self._waiting_list.choose(turns, without=time.places) or turns)[-1]
        assert turn.at is not None
        at = turn.at + timedelta(seconds=sign * time.duration_s)
        return Reply(
            calls=(
                PlannedCall(CANCEL_TOOL, {"id": turn.id}),
                PlannedCall(LATER_TOOL, write_arguments(turn, at, self._situation)),
            )
        )

    async def _list_turns(self, *, timers_only: bool) -> list[WaitingTurn]:
        """Return what waits for a time, oldest first."""
        turns = await self._situation.utterance.dialogue.list_waiting()
        timed = [turn for turn in turns if turn.at is not None]
        return [turn for turn in timed if not timers_only or read_duration(turn, self._situation)]
