"""How much of a prompt a provider can serve from its cache, and what building one costs.

A conversation of 300 turns with a house, a third of them with tools, is played to the end at windows of 4,000
and 16,000 tokens. A provider serves what a prompt has in common with one of the last eight prompts: whole
messages from the beginning (tool schemas first), at least 1,024 tokens, in steps of 128. The steady state is
every call after a contestant's first eviction.

* Sash: a real runtime on SQLite with a session's defaults (low-water mark 0.75, digest, recall), a scripted
  model that records what it is asked, and a clock that goes on by some minutes a turn.
* Sash, time at the head: the same prompts, but for the time, which stands in the first system message with a
  line about the state of the house, as many agents have it.
* exact FIFO: `ConversationMemoryManager` as it comes, which is the seeds' exact FIFO.
* LangChain `trim_messages`, strategy "last", opening on a human message, with Sash's exact counts; its limit
  is given the system prompt's tokens on top.

FIFO and LangChain come in two kinds: cut at every call, with the turn under way inside the limit, which is how
they are used; and cut once a turn, without it, which is how Sash does it and is kinder to the cache. All have
the same system prompt and tools, and the time behind the history and before the turn's own messages.

What building a context costs is measured with `Asking` on sessions whose transcripts are of 100 to 100,000
messages and end with the same window: wall time, the median of many, the sizes taking turns.
"""

import asyncio
import gc
import itertools
import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from rich.console import Console
from rich.table import Table

from benchmarks._home_talk import STARTED_AT, TOPICS, Turn, talk
from benchmarks._report import Row, arguments, machine, write_json
from sash import ConversationMemoryManager, Runtime
from sash.agent.asking import Asking
from sash.agent.context import SYSTEM_PROMPT, Context, time_text
from sash.agent.engine import Engine
from sash.agent.journal import Journal
from sash.agent.progress import Progress
from sash.agent.recall import beginnings, missing
from sash.agent.windows import KnownWindow
from sash.digest import digest
from sash.ids import new_id
from sash.models.base import Answer
from sash.sessions import Session, SessionMemory, WindowLimits
from sash.state import MessageEntry, built_in_tags, turns
from sash.steps import Continuation, ContinuationRequest
from sash.store import Bundle, Hands, StoredMessage
from sash.store import Turn as StoreTurn
from sash.stores.memory import MemoryStore
from sash.stores.sqlite import SqliteStore
from sash.testing import FakeClock, ScriptedModel
from sash.tokens import PER_REPLY, TokenCounter
from sash.tools import ToolContext, ToolSpec
from sash.window import Limits, Window

TURNS = 300
SEEDS = (1, 2, 3, 4, 5)
BUDGETS = (4_000, 16_000)
LEAST_CACHED, CACHE_STEP = 1024, 128
CALLS_CACHED = 8
CACHED_PRICES = (0.1, 0.5)
TO_REACH = {4_000: (0.90, 0.83), 16_000: (0.96, 0.86)}

SIZES = (100, 1_000, 10_000, 100_000)
COMPARED_SIZE = 1_000
FLAT = 1.5
SAID_ONCE = (
    "The plumber wrote down that the expansion vessel has the serial number XK-4471-B, keep that for the warranty.",
    "The expansion vessel has the serial number XK-4471-B.",
)
ASKS_WHAT_WAS_SAID_ONCE = "Which serial number did the plumber write down for the expansion vessel?"

SASH, AT_THE_HEAD = "Sash", "Sash, time at the head"
CAUSES = {
    "new": "what is new: the question, results, the last answer",
    "again": "the last turn again, now before the time",
    "tail": "the time, recalled turns",
    "cut": "cuts: all behind the system prompt changes",
    "step": "steps of 128",
}

Message = dict[str, Any]


@dataclass(frozen=True)
class Prompt:
    """What a model is asked: each message with its place, which is head, window, tail or turn.

    `shown` is how many tokens of what its limit is about are in it; `evicted`, how many messages are not.
    """

    messages: list[Message]
    places: list[str]
    shown: int
    evicted: int


class Measured(NamedTuple):
    """What came out for one contestant at one budget, over all conversations."""

    calls: int
    tokens: int
    cached: int
    shown: float
    cuts: int
    broken: int
    causes: Counter[str]

    @property
    def share(self) -> float:
        return self.cached / self.tokens

    def price(self, cached_price: float) -> float:
        """Return the price of the prompts, 1 without a cache."""
        return 1 - self.share * (1 - cached_price)


class Costs:
    """Counts the tokens of messages and of the tools, which come before them."""

    def __init__(self, tools: list[Message]) -> None:
        self._counter = TokenCounter()
        self.tools = self._counter.count_tools(tools)

    def __call__(self, message: Message) -> int:
        return self._counter.count_message(
            message["content"], message.get("tool_calls", ()), message.get("name")
        )

    def all(self, messages: Sequence[Message]) -> int:
        return sum(map(self, messages))


def home_tools(conversation: Sequence[Turn]) -> list[ToolSpec]:
    """Return the home's tools; they answer what the conversation says that they did."""
    results = {call.id: call.result for turn in conversation for plan in turn.plans for call in plan}

    async def look_up(arguments: dict[str, Any], context: ToolContext) -> str:
        return results[context.call_id]

    def tool(name: str, description: str, **properties: Message) -> ToolSpec:
        schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
        return ToolSpec(name, description, schema, look_up, safety="idempotent")

    text, number = {"type": "string"}, {"type": "integer"}
    return [
        tool(
            "get_states",
            "Read the present states of entities, with their attributes.",
            entity_ids={"type": "array", "items": text, "description": "The ids, as the index has them."},
        ),
        tool(
            "get_history",
            "Read how the state of an entity has changed.",
            entity_id=text | {"description": "The id, as the index has it."},
            hours=number | {"description": "How far to look back, at most 240 hours."},
        ),
        tool(
            "search_index",
            "Find entities, devices and areas of the home by words.",
            query=text | {"description": "Words of names, areas or kinds of device."},
            limit=number | {"description": "How many to return at most."},
        ),
    ]


async def play_sash(conversation: Sequence[Turn], budget: int, costs: Costs) -> list[Prompt]:
    """Play the conversation through a runtime, and return what its model was asked."""
    clock = FakeClock(STARTED_AT)
    model = ScriptedModel(*(answer for turn in conversation for answer in _answers(turn)))
    prompts: list[Prompt] = []
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sash.db", synchronous="NORMAL", clock=clock)
        async with Runtime(store, model, home_tools(conversation), clock=clock, time_zone=UTC) as runtime:
            built = _watch(runtime)
            session = await runtime.start_session(window=WindowLimits(max_tokens=budget))
            for turn in conversation:
                asked = len(model.requests)
                sent = await runtime.send_message(session.id, turn.question)
                result = await runtime.await_continuation(sent.id)
                if result.response is None or result.response.final_message != turn.answer:
                    raise SystemExit(f"this turn was played otherwise: {result}")
                context, evicted = built[-1]
                prompts += [
                    _of_sash(request.messages, context, evicted) for request in model.requests[asked:]
                ]
                clock.advance(60 * turn.minutes)
            await _check_transcript(runtime, session.id, conversation, costs)
    return prompts


def _answers(turn: Turn) -> Iterator[Answer]:
    for said in list(turn.steps())[1:]:
        yield Answer(said[0]["content"], tuple(said[0].get("tool_calls", ())))


def _watch(runtime: Runtime) -> list[tuple[Context, int]]:
    """Let the contexts that are built be seen, with how much was evicted by then."""
    builder = runtime._engine.contexts  # noqa: SLF001
    build, built = builder.build, []

    def watched(session: Session, window: Window, *rest: Any, **named: Any) -> Context:
        context = build(session, window, *rest, **named)
        built.append((context, window.evicted_count))
        return context

    builder.build = watched  # type: ignore[method-assign]
    return built


def _of_sash(asked: list[Message], context: Context, evicted: int) -> Prompt:
    places = [
        "window" if part.name == "window" else "head" if part.stable else "tail"
        for part in context.parts
        for _ in part.messages
    ]
    shown = sum(part.tokens for part in context.parts if part.name == "window")
    return Prompt(asked, places + ["turn"] * (len(asked) - len(places)), shown, evicted)


async def _check_transcript(
    runtime: Runtime, session_id: str, conversation: Sequence[Turn], costs: Costs
) -> None:
    """Make sure that what Sash has kept is what the others are given."""
    kept = await runtime.store.messages("local", session_id, limit=100_000)
    said = [message for turn in conversation for step in turn.steps() for message in step]
    if costs.all([stored.message.to_openai() for stored in kept]) != costs.all(said):
        raise SystemExit("the transcript is not the conversation")


def with_time_at_the_head(prompts: Sequence[Prompt]) -> list[Prompt]:
    """Move the time of Sash's prompts into the first system message, with the state of the house."""
    moved = []
    for prompt in prompts:
        at = max(n for n, place in enumerate(prompt.places) if place == "tail")
        now = prompt.messages[at]["content"]
        lit = len(now) * 7 % 5 + sum(map(ord, now)) % 6
        state = f"{lit} lights are on, {lit % 3} windows are open, it is {18 + lit / 10} °C inside."
        head = {"role": "system", "content": f"{now} {state}\n{SYSTEM_PROMPT}"}
        messages = [head, *prompt.messages[1:at], *prompt.messages[at + 1 :]]
        places = [*prompt.places[:at], *prompt.places[at + 1 :]]
        moved.append(replace(prompt, messages=messages, places=places))
    return moved


class History:
    """A contestant's way to choose what of the conversation is shown."""

    def __init__(self, budget: int, costs: Costs) -> None: ...

    async def add(self, message: Message) -> None: ...

    async def chosen(self) -> tuple[list[Message], int]:
        """Return what is shown now, and how many messages are not."""
        raise NotImplementedError


class Fifo(History):
    def __init__(self, budget: int, costs: Costs) -> None:
        self._memory = ConversationMemoryManager(max_tokens=budget)

    async def add(self, message: Message) -> None:
        await self._memory.add_message("home", **message)

    async def chosen(self) -> tuple[list[Message], int]:
        return await self._memory.get_messages("home"), self._memory.get_stats("home")["evicted_count"]


class LangChain(History):
    def __init__(self, budget: int, costs: Costs) -> None:
        system = {"role": "system", "content": SYSTEM_PROMPT}
        self._said = [system]
        self._counts = [costs(system)]
        self._messages: list[BaseMessage] = [SystemMessage(SYSTEM_PROMPT, id="0")]
        self._costs, self._budget = costs, budget

    async def add(self, message: Message) -> None:
        self._messages.append(_to_langchain(message, str(len(self._said))))
        self._said.append(message)
        self._counts.append(self._costs(message))

    async def chosen(self) -> tuple[list[Message], int]:
        kept = trim_messages(
            self._messages,
            max_tokens=self._budget + self._counts[0],
            token_counter=self._count,
            strategy="last",
            start_on="human",
            include_system=True,
            allow_partial=False,
        )
        return [self._said[int(m.id or 0)] for m in kept[1:]], len(self._said) - len(kept)

    def _count(self, messages: list[BaseMessage]) -> int:
        return sum(self._counts[int(message.id or 0)] for message in messages)


def _to_langchain(message: Message, message_id: str) -> BaseMessage:
    content = message["content"]
    match message["role"]:
        case "user":
            return HumanMessage(content, id=message_id)
        case "tool":
            return ToolMessage(
                content, tool_call_id=message["tool_call_id"], name=message["name"], id=message_id
            )
    calls = [
        {"id": c["id"], "name": c["function"]["name"], "args": json.loads(c["function"]["arguments"])}
        for c in message.get("tool_calls", ())
    ]
    return AIMessage(content, tool_calls=calls, id=message_id)


async def play(
    kind: type[History], every_call: bool, conversation: Sequence[Turn], budget: int, costs: Costs
) -> list[Prompt]:
    """Play the conversation to a contestant that chooses at every call, or once a turn."""
    history, prompts, now = kind(budget, costs), [], STARTED_AT
    system = {"role": "system", "content": SYSTEM_PROMPT}
    for turn in conversation:
        told = {"role": "system", "content": time_text(now)}
        before, evicted = await history.chosen()
        *asking, answer = turn.steps()
        own: list[Message] = []
        for step in asking:
            own += step
            if every_call:
                for message in step:
                    await history.add(message)
                shown, evicted = await history.chosen()
                before = shown[: -len(own)]
            places = ["head", *["window"] * len(before), "tail", *["turn"] * len(own)]
            limited = costs.all(before) + (costs.all(own) if every_call else 0)
            prompts.append(Prompt([system, *before, told, *own], places, limited, evicted))
        for message in answer if every_call else [*own, *answer]:
            await history.add(message)
        now += timedelta(minutes=turn.minutes)
    return prompts


CONTESTANTS: dict[str, Callable[[Sequence[Turn], int, Costs], Any]] = {
    "exact FIFO, at every call": partial(play, Fifo, True),
    "exact FIFO, once a turn": partial(play, Fifo, False),
    "LangChain trim_messages, at every call": partial(play, LangChain, True),
    "LangChain trim_messages, once a turn": partial(play, LangChain, False),
}


def judge(prompts: Sequence[Prompt], budget: int, costs: Costs) -> Measured:
    """Say how much of a conversation's prompts is cached in the steady state, and why the rest is not."""
    tokens = cached = calls = 0
    shown, causes = 0.0, Counter[str]()
    counts = [list(map(costs, prompt.messages)) for prompt in prompts]
    for n, prompt in enumerate(prompts):
        if not prompt.evicted:
            continue
        earlier = prompts[max(0, n - CALLS_CACHED) : n]
        same = max((_same(prompt.messages, other.messages) for other in earlier), default=0)
        common = costs.tools + sum(counts[n][:same])
        hit = common // CACHE_STEP * CACHE_STEP if common >= LEAST_CACHED else 0
        total = PER_REPLY + costs.tools + sum(counts[n])
        calls, tokens, cached = calls + 1, tokens + total, cached + hit
        shown += prompt.shown / budget
        causes["step" if hit else "cut"] += common - hit
        causes["new"] += PER_REPLY
        known = {_key(m): place for m, place in zip(earlier[-1].messages, earlier[-1].places, strict=True)}
        for message, place, count in list(zip(prompt.messages, prompt.places, counts[n], strict=True))[same:]:
            causes[_cause(place, known.get(_key(message)))] += count
    cuts = sum(one.evicted != other.evicted for one, other in itertools.pairwise(prompts))
    broken = sum(_is_broken(prompt.messages) for prompt in prompts)
    return Measured(calls, tokens, cached, shown / max(calls, 1), cuts, broken, causes)


def _same(one: Sequence[Message], other: Sequence[Message]) -> int:
    """Return how many messages two prompts have in common from the beginning."""
    differ = (n for n, (mine, yours) in enumerate(zip(one, other, strict=False)) if mine != yours)
    return next(differ, min(len(one), len(other)))


def _key(message: Message) -> str:
    return json.dumps(message, sort_keys=True)


def _cause(place: str, was_at: str | None) -> str:
    """Say why a message is not cached, by its place in this prompt and in the last one."""
    if place == "tail":
        return "tail"
    if place == "head" or was_at in ("head", "window"):
        return "cut"
    return "new" if was_at is None else "again"


def _is_broken(messages: Sequence[Message]) -> bool:
    """Whether a tool result stands without its call before it, or a call without its result behind it."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return True
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return True
        waiting = {call["id"] for call in message.get("tool_calls", ())}
    return bool(waiting)


def add_up(measured: Sequence[Measured]) -> Measured:
    """Put several conversations together."""
    calls = sum(m.calls for m in measured)
    return Measured(
        calls,
        sum(m.tokens for m in measured),
        sum(m.cached for m in measured),
        sum(m.shown * m.calls for m in measured) / max(calls, 1),
        sum(m.cuts for m in measured),
        sum(m.broken for m in measured),
        sum((m.causes for m in measured), Counter()),
    )


async def compare(seed: int, budget: int) -> dict[str, Measured]:
    """Play one conversation to all contestants."""
    conversation = list(itertools.islice(talk(seed), TURNS))
    async with Runtime(MemoryStore(), ScriptedModel(), home_tools(conversation)) as runtime:
        costs = Costs(runtime._engine.tools.schemas)  # noqa: SLF001
    sash = await play_sash(conversation, budget, costs)
    prompts = {SASH: sash, AT_THE_HEAD: with_time_at_the_head(sash)}
    for name, player in CONTESTANTS.items():
        prompts[name] = await player(conversation, budget, costs)
    return {name: judge(asked, budget, costs) for name, asked in prompts.items()}


if __name__ == "__main__":
    main()
