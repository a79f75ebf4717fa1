"""Everyday sentences in the demo house, as the modules of `sash.intents` get them: with earlier turns and facts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sash.demo.demo_home import demo_home
from sash.demo.simulated_home import SimulatedHome
from sash.home.live_home import LiveHome
from sash.intents.answers.writer import choose_writer
from sash.intents.home_words import HomeWords
from sash.intents.sentence.reader import SentenceReader
from sash.intents.situation import Situation
from sash.intents.words.lexicon import load_lexicon
from sash.ports.intents import LocalCallResult, NoDialogue, SaidMessage, Utterance
from sash.testing import FakeClock
from sash.values.action_explanation import ActionExplanation
from sash.values.continuations import (
    Action,
    Continuation,
    ContinuationRequest,
    ContinuationResponse,
    TurnCaller,
)
from sash.values.sessions import Session, SessionPolicy
from sash.values.stats import Stats

# A Saturday afternoon in winter.
NOW = datetime(2026, 1, 17, 14, tzinfo=UTC)
TOOLS = frozenset({"call_service", "remember", "forget", "recall"})


class Earlier(NoDialogue):
    """Earlier turns, facts and explanations as a test gives them."""

    def __init__(
        self,
        turns: Sequence[Continuation] = (),
        facts: Sequence[str] = (),
        explanations: Mapping[str | None, ActionExplanation] | None = None,
    ) -> None:
        self._turns, self._facts, self._explanations = list(turns), list(facts), dict(explanations or {})

    async def list_recent(self, limit: int) -> list[Continuation]:
        return self._turns[-limit:]

    async def list_between(self, start: datetime, end: datetime, limit: int) -> list[Continuation]:
        return [turn for turn in self._turns if start <= turn.created_at < end][:limit]

    async def list_said(self, limit: int) -> list[SaidMessage]:
        return [
            SaidMessage(turn.id, turn.request.message, turn.created_at, turn.id)
            for turn in self._turns[-limit:]
        ]

    async def list_said_between(self, start: datetime | None, end: datetime) -> list[SaidMessage]:
        said = await self.list_said(len(self._turns))
        return [each for each in said if (start is None or start <= each.at) and each.at <= end]

    async def explain_action(self, entity_id: str | None = None) -> ActionExplanation | None:
        return self._explanations.get(entity_id)

    async def list_facts(self) -> list[str]:
        return self._facts


class Talk:
    """Makes situations in one demo house."""

    def __init__(self, home: SimulatedHome, live: LiveHome) -> None:
        self.home, self.live = home, live
        self.session = Session(
            "s", "anna", NOW, NOW, policy=SessionPolicy(allow_actuation=True, allowlisted_services=("*",))
        )

    def situate(
        self,
        text: str,
        *,
        language: str = "en",
        earlier: Earlier | None = None,
        results: Sequence[LocalCallResult] = (),
        area_id: str | None = None,
        caller: TurnCaller | None = None,
        focus_ids: tuple[str, ...] = (),
    ) -> Situation:
        index, lexicon = self.live.index, load_lexicon(language)
        words = HomeWords(index, [lexicon])
        reader = SentenceReader(lexicon, words)
        utterance = Utterance(
            text, self.session, TOOLS, tuple(results), caller=caller, dialogue=earlier or Earlier()
        )
        return Situation(
            utterance,
            reader.read(text, corrects=True),
            reader,
            choose_writer(language),
            words,
            index,
            self.live,
            NOW,
            area_id,
            focus_ids,
        )

    def allow_nothing(self) -> None:
        self.session = replace(self.session, policy=SessionPolicy())


async def open_talk() -> Talk:
    """Return the talk in a new demo house. Close its `live` home afterwards."""
    home = demo_home(FakeClock(NOW))
    live = LiveHome(home)
    await live.open()
    await live.wait_until_ready()
    return Talk(home, live)


def turn(
    message: str,
    answer: str = "OK.",
    *,
    at: datetime = NOW,
    actions: tuple[Action, ...] = (),
    model_calls: int = 0,
) -> Continuation:
    """Return a completed turn."""
    return Continuation(
        f"t-{message}",
        "s",
        "anna",
        "completed",
        at,
        at,
        ContinuationRequest(message),
        ContinuationResponse(answer, actions=actions),
        stats=Stats(local_turns=0 if model_calls else 1, model_calls=model_calls),
    )


def action(outcome: Any = "done", *, verified: bool | None = True, approved: bool | None = None) -> Action:
    arguments = {"service": "light.turn_on", "entity_ids": ["light.kitchen_ceiling"]}
    after = {"light.kitchen_ceiling": {"state": "on"}} if outcome == "done" else {}
    return Action("c", "call_service", arguments, outcome, verified, after=after, approved=approved)


def explanation(sentence: str = "turn on the kitchen light", **changes: Any) -> ActionExplanation:
    known = ActionExplanation(
        "anna",
        "s",
        "t",
        sentence,
        NOW,
        NOW,
        None,
        "local",
        "call_service",
        "light.turn_on",
        ("light.kitchen_ceiling",),
        "done",
        True,
        "*",
        None,
    )
    return replace(known, **changes)
