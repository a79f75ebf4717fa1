"""Tells what waits, and cancels it."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cached_property

from sash.intents.ordinals import find_place
from sash.intents.sentence.clause import Clause
from sash.intents.situation import PlannedCall, Reply, Situation
from sash.intents.topic import Topic
from sash.intents.undoing import asks_to_undo
from sash.intents.words.tokens import remove_accents, split_words
from sash.values.waiting_turns import WaitingTurn

CANCEL_TOOL = "cancel_waiting"
MAX_LISTED = 6
# Words that may surround "cancel that".
_AROUND = ("filler", "refer", "talk", "again", "item", "do", "all", "everything")


class WaitingList:
    """Answers one sentence about the waiting turns of the session."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._sentence = situation.sentence
        self._writer = situation.writer

    @cached_property
    def clause(self) -> Clause:
        """The whole sentence as one clause."""
        return self._situation.reader.read_clause(self._sentence, 0, len(self._sentence.words))

    async def describe(self) -> Reply:
        """Return what waits."""
        turns = await self._situation.utterance.dialogue.list_waiting()
        if not turns:
            return Reply(self._writer.say("later.nothing"))
        parts = [self._describe(turn) for turn in turns[:MAX_LISTED]]
        return Reply(" ".join(parts), topic=Topic("waiting").to_json())

    def _describe(self, turn: WaitingTurn) -> str:
        summary = turn.summary.rstrip(".!?")
        if turn.at is not None:
            return self._writer.say("later.waits_until", when=self._say_time(turn.at), summary=summary)
        return self._writer.say("later.waits_for", summary=summary)

    async def say_left(self) -> Reply | None:
        """Return how much time is left."""
        turns = [
            turn for turn in await self._situation.utterance.dialogue.list_waiting() if turn.at is not None
        ]
        if not turns:
            return Reply(self._writer.say("later.no_timer"))
        parts = [
            self._writer.say(
                "later.left",
                duration=self._writer.duration((turn.at - self._situation.now).total_seconds()),
                summary=turn.summary,
            )
            for turn in self.choose(turns)
            if turn.at is not None
        ]
        return Reply(" ".join(parts), topic=Topic("waiting").to_json())

    async def tell_time(self) -> Reply | None:
        """Return the time of what waits, for "when will that be?" and "how long until then?".

        None for other sentences.
        """
        clause = self.clause
        has_more = clause.words or clause.do or clause.properties or clause.tense == "past"
        if has_more or not clause.time.is_empty or not clause.is_question:
            return None
        if "how_long" in clause.ask:
            return await self.say_left()
        return await self.describe() if "when" in clause.ask or "that_time" in clause.refer else None

    async def cancel(self, last: Topic | None) -> Reply | None:
        """Return the call that cancels what the sentence names, or the newest if it names nothing."""
        turns = await self._situation.utterance.dialogue.list_waiting()
        is_whole = self.says_only_cancel()
        if not turns:
            return Reply(self._writer.say("later.nothing")) if self.names_timer() else None
        if is_whole and (last is None or last.kind != "waiting") and not self.names_timer():
            return None
        is_all = self.clause.is_all or self.clause.is_everything
        place = find_place(self.clause.refer, len(turns))
        if place is not None and last is not None and last.kind == "waiting":
            return Reply(calls=(PlannedCall(CANCEL_TOOL, {"id": turns[place].id}),))
        newest = list(turns) if is_all else turns[-1:]
        chosen = newest if is_whole else self.choose(turns)
        if not chosen and is_all and not self._names_things():
            chosen = list(turns)  # "Cancel everything you are waiting for."
        if not chosen:
            return Reply(self._writer.say("later.not_found"))
        if len(chosen) > 1 and len(chosen) == len(turns) and not is_all:
            chosen = chosen[-1:]
        return Reply(calls=tuple(PlannedCall(CANCEL_TOOL, {"id": turn.id}) for turn in chosen))

    def says_only_cancel(self) -> bool:
        """Return whether a sentence names nothing that is to be cancelled: "scrap that, don't do it"."""
        is_all_cancel = all(match.value == "cancel" for match in self._sentence.find("later"))
        around = (*_AROUND, "later") if is_all_cancel else _AROUND
        return self._sentence.covers("later", more=around) == "cancel" or asks_to_undo(self._sentence)

    def names_timer(self) -> bool:
        """Return whether the sentence speaks of a timer."""
        words = self.clause.words
        return "timer" in self._sentence.words or any("kind.timer" in word.keys for word in words)

    def _names_things(self) -> bool:
        """Return whether the sentence names things of the home, or a kind of them."""
        return any(word.entity_ids or word.has("kind") for word in self.clause.words)

    def choose(self, turns: Sequence[WaitingTurn], without: Collection[int] = ()) -> list[WaitingTurn]:
        """Return the turns whose summaries have most of the words of the sentence; all if none has one.

        `without` are the places of words that do not count.
        """
        taken = {
            p for m in self._sentence.matches if m.kind in ("later", "filler", "refer") for p in m.places
        }.union(without)
        wanted = {
            remove_accents(word)
            for n, word in enumerate(self._sentence.words)
            if n not in taken and word.isalnum()
        }
        scores = [(len(wanted & set(map(remove_accents, split_words(turn.summary)))), turn) for turn in turns]
        best = max(score for score, _ in scores)
        if not best and {"timer", "alarm"} & self._name_kinds():
            return [turn for turn in turns if turn.say][-1:]
        return [turn for score, turn in scores if score == best] if best or not wanted else []

    def _name_kinds(self) -> set[str]:
        """Return the kinds of things that the sentence names."""
        return {match.value for match in self._sentence.matches if match.kind == "kind"}

    def _say_time(self, at: datetime) -> str:
        return self._writer.moment(at.astimezone(self._situation.now.tzinfo), self._situation.now)
