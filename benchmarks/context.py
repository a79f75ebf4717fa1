"""How much of a prompt a provider can serve from its cache, and what building one costs.

A conversation of 300 turns with a house, a third of them with tools, is played to the end at windows of 4,000
and 16,000 tokens. A provider serves what a prompt has in common with one of the last eight prompts from the
beginning (tool schemas first), at least 1,024 tokens, in steps of 128. The steady state is every call after a
contestant's first eviction.

* Sash: a real runtime on SQLite with a session's defaults (low-water mark 0.75, digest, recall), a scripted
  model that records what it is asked, and a clock that goes on by some minutes a turn.
* Sash, time at the head: the same prompts, but the time stands in the first system message with a line about
  the state of the house, as many agents have it, and not before each question.
* exact FIFO: `ConversationMemoryManager` as it comes, which is the seeds' exact FIFO.
* LangChain `trim_messages`, strategy "last", opening on a human message, with Sash's exact counts; its limit
  is given the system prompt's tokens on top.

FIFO and LangChain come in two kinds: cut at every call, with the turn under way inside the limit, which is
how they are used; and cut once a turn, without it, which is how Sash does it and is kinder to the cache. All
have the same system prompt and tools, and the time behind the history and before the turn's own messages.

The time to build a context is measured with `TurnContext`, on sessions of 100 to 100,000 messages that end
with the same window. It is the median wall time of many builds; the sizes take turns.
"""

import asyncio
import gc
import itertools
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
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
from sash.demo.demo_home import demo_home
from sash.engine.context import SYSTEM_PROMPT, Context
from sash.engine.parts import Parts
from sash.engine.recall import find_missing
from sash.engine.turn.journal import Journal
from sash.engine.turn.progress import Progress
from sash.engine.turn.turn_context import TurnContext
from sash.engine.window_cache import CachedWindow
from sash.home.home_tools import build_home_tools
from sash.home.live_home import LiveHome
from sash.memory.digest import build_digest
from sash.memory.tokens import TOKENS_PER_REPLY, TokenCounter
from sash.memory.window import Eviction, Limits, Window
from sash.memory.words import extract_stems
from sash.ports.model import Answer
from sash.ports.prompt import split_time
from sash.ports.store import ClaimRequest, Cut, Evicted, TurnEnd
from sash.ports.store import Turn as StoreTurn
from sash.ports.tools import ToolContext, ToolSpec
from sash.stores.memory import MemoryStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.continuations import Continuation, ContinuationRequest
from sash.values.ids import new_id
from sash.values.messages import MessageEntry, built_in_tags, turns
from sash.values.sessions import Session, WindowLimits

TURNS = 300
SEEDS = (1, 2, 3, 4, 5)
BUDGETS = (4_000, 16_000)
LEAST_CACHED, CACHE_STEP = 1024, 128
CALLS_CACHED = 8
CACHED_PRICES = (0.1, 0.5)
TO_REACH = {4_000: (0.90, 0.83), 16_000: (0.96, 0.86)}

SIZES = (100, 1_000, 10_000, 100_000)
COMPARED_SIZE = 1_000
# Recall looks at what was said around a hit: behind what is said once these turns stand at all sizes.
NEIGHBOURS = 8
FLAT = 1.5
# A runtime sweeps every five minutes, and then brings its index up to date.
TURNS_A_SWEEP = 25
SAID_ONCE = (
    "The plumber wrote down that the expansion vessel has the serial number XK-4471-B, for the warranty.",
    "The expansion vessel has the serial number XK-4471-B.",
)
ASKS_WHAT_WAS_SAID_ONCE = "Which serial number did the plumber write down for the expansion vessel?"

SASH, AT_THE_HEAD = "Sash", "Sash, time at the head"
CAUSES = {
    "new": "what is new: the question, results, the last answer",
    "again": "the last turn again, now before the time",
    "tail": "the time, or recalled turns",
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

    def beginning(self, one: Message, other: Message) -> int:
        """Count what two messages have in common from the beginning."""
        if one["role"] != other["role"]:
            return 0
        pairs = zip(one["content"], other["content"], strict=False)
        same = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
        return self._counter.count_text(one["content"][:same])


def home_tools(conversation: Sequence[Turn]) -> list[ToolSpec]:
    """Return the home's tools; they answer what the conversation says that they did."""
    results = {call.id: call.result for turn in conversation for plan in turn.plans for call in plan}

    async def look_up(arguments: dict[str, Any], context: ToolContext) -> str:
        return results[context.call_id]

    clock = FakeClock(STARTED_AT)
    real = build_home_tools(LiveHome(demo_home(clock)), clock, UTC)
    return [ToolSpec(t.name, t.description, t.input_schema, look_up, safety="idempotent") for t in real]


def schemas(conversation: Sequence[Turn]) -> list[Message]:
    """Return the schemas of all tools: the home's, and those of Sash's memory."""
    runtime = Runtime(MemoryStore(), ScriptedModel(), home_tools(conversation))
    return runtime._parts.tools.schemas  # noqa: SLF001


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
    builder = runtime._parts.contexts  # noqa: SLF001
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
    """Take the time out of the messages of Sash's prompts and say it at the head, with the house's state."""
    moved = []
    for prompt in prompts:
        asked = max(n for n, m in enumerate(prompt.messages) if m["role"] == "user")
        now, _ = split_time(prompt.messages[asked]["content"])
        lit = sum(map(ord, now or "")) % 11
        state = f"{lit} lights are on, {lit % 3} windows are open, it is {18 + lit / 10} °C inside."
        head = {"role": "system", "content": f"It is {now}. {state}\n{SYSTEM_PROMPT}"}
        moved.append(replace(prompt, messages=[head, *map(_without_time, prompt.messages[1:])]))
    return moved


def _without_time(message: Message) -> Message:
    return message | {"content": split_time(message["content"])[1]} if message["role"] == "user" else message


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
        told = {"role": "system", "content": f"It is {now:%A, %Y-%m-%d %H:%M} (UTC)."}
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
    "exact FIFO, every call": partial(play, Fifo, True),
    "exact FIFO, once a turn": partial(play, Fifo, False),
    "trim_messages, every call": partial(play, LangChain, True),
    "trim_messages, once a turn": partial(play, LangChain, False),
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
        same, other = max(
            ((_same(prompt.messages, o.messages), k) for k, o in enumerate(earlier)), default=(0, 0)
        )
        begun = 0
        if earlier and same < min(len(prompt.messages), len(earlier[other].messages)):
            begun = costs.beginning(prompt.messages[same], earlier[other].messages[same])
        common = costs.tools + sum(counts[n][:same]) + begun
        hit = common // CACHE_STEP * CACHE_STEP if common >= LEAST_CACHED else 0
        total = TOKENS_PER_REPLY + costs.tools + sum(counts[n])
        calls, tokens, cached = calls + 1, tokens + total, cached + hit
        shown += prompt.shown / budget
        causes["step" if hit else "cut"] += common - hit
        causes["new"] += TOKENS_PER_REPLY
        known = {_key(m): place for m, place in zip(earlier[-1].messages, earlier[-1].places, strict=True)}
        for message, place, count in list(zip(prompt.messages, prompt.places, counts[n], strict=True))[same:]:
            causes[_cause(place, known.get(_key(message)))] += count - begun
            begun = 0
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
    costs = Costs(schemas(conversation))
    sash = await play_sash(conversation, budget, costs)
    prompts = {SASH: sash, AT_THE_HEAD: with_time_at_the_head(sash)}
    for name, player in CONTESTANTS.items():
        prompts[name] = await player(conversation, budget, costs)
    return {name: judge(asked, budget, costs) for name, asked in prompts.items()}


async def without_tools(seed: int, budget: int) -> Measured:
    """Play the questions and answers of a conversation to Sash, without its tool calls."""
    conversation = [replace(turn, plans=()) for turn in itertools.islice(talk(seed), TURNS)]
    costs = Costs(schemas(conversation))
    return judge(await play_sash(conversation, budget, costs), budget, costs)


@dataclass(frozen=True)
class Place:
    """A session with a long transcript, and a turn of it that is about to ask the model."""

    parts: Parts
    turn: StoreTurn
    window: CachedWindow

    async def build(self, message: str) -> tuple[float, str | None]:
        """Build the context for a message; return how many seconds that took, and what was recalled."""
        request = ContinuationRequest(message)
        turn = replace(self.turn, continuation=replace(self.turn.continuation, request=request))
        progress, parts = Progress.from_steps(message, ()), self.parts
        journal = Journal(parts.store, turn, progress, parts.hub, parts.new_id)
        context = TurnContext(parts, turn, self.window, progress, journal)
        started = time.perf_counter()
        await context.build()
        took = time.perf_counter() - started
        await journal.stop()
        return took, progress.recalled


class Said(NamedTuple):
    """A turn of a long transcript, and what left the window with its end."""

    messages: tuple[MessageEntry, ...]
    evicted: tuple[Eviction, ...] = ()


def long_transcript(size: int) -> list[Said]:
    """Make up a transcript of at least `size` messages, with its cuts; it ends with a window quite full."""
    counter, window, said, now, count = TokenCounter(), Window(Limits(evict_to=0.75)), [], STARTED_AT, 0
    for turn in talk(0):
        messages = tuple(_entry(m, now, counter) for m in itertools.chain.from_iterable(turn.steps()))
        said.append(Said(messages, tuple(itertools.chain.from_iterable(map(window.add, messages)))))
        count += len(messages)
        if count >= size and window.tokens > 0.85 * BUDGETS[0]:
            break
        now += timedelta(minutes=turn.minutes)
    return said


def end_of(transcript: Sequence[Said], size: int) -> list[Said]:
    """Return a transcript of about `size` messages that begins with what is said once and ends as all do."""
    said_once = tuple(
        _entry({"role": role, "content": text}, STARTED_AT, TokenCounter())
        for role, text in zip(("user", "assistant"), SAID_ONCE, strict=True)
    )
    beginning = [Said(said_once), *(Said(turn.messages) for turn in transcript[:NEIGHBOURS])]
    count, first = sum(len(turn.messages) for turn in beginning), len(transcript)
    while count < size and first > NEIGHBOURS:
        first -= 1
        count += len(transcript[first].messages)
    gone = [Eviction(message, "max_tokens") for turn in beginning for message in turn.messages]
    there = {message.id for turn in transcript[first:] for message in turn.messages}
    end = []
    for messages, evicted in transcript[first:]:
        mine = [eviction for eviction in evicted if eviction.message.id in there]
        if mine:
            mine, gone = gone + mine, []
        end.append(Said(messages, tuple(mine)))
    return beginning + end


def _entry(message: Message, now: datetime, counter: TokenCounter) -> MessageEntry:
    role, calls, name = message["role"], message.get("tool_calls", ()), message.get("name")
    return MessageEntry(
        role,
        message["content"],
        now,
        counter.count_message(message["content"], calls, name),
        built_in_tags(role, bool(calls)),
        tool_calls=tuple(calls),
        tool_call_id=message.get("tool_call_id"),
        name=name,
    )


async def open_place(stack: AsyncExitStack, path: Path, transcript: Sequence[Said]) -> Place:
    """Let a session live through a transcript, in a store of its own, and begin one more turn."""
    store = SqliteStore(path, synchronous="NORMAL")
    runtime = await stack.enter_async_context(Runtime(store, ScriptedModel("Yes."), home_tools(())))
    session = await runtime.start_session(window=WindowLimits(max_tokens=BUDGETS[0]))
    for n, (messages, evicted) in enumerate(transcript):
        if n % TURNS_A_SWEEP == 0:
            await runtime.sweep()
        turn = await _begin(store, session, session)
        cut = Cut(tuple(Evicted(gone.message.id, gone.reason) for gone in evicted), (), "")
        end = TurnEnd("completed", (), messages=messages, cut=cut if evicted else None)
        await store.finish(turn.lease, end)
        session = end.apply_to_session(session, messages[-1].timestamp)
    await runtime.sweep()
    gone = [eviction.message for turn in transcript for eviction in turn.evicted]
    left = build_digest(turns(gone[-500:]), TokenCounter().count_text)
    session = await store.get_session("local", session.id)
    await store.save_session(replace(session, memory=replace(session.memory, digest=left)))
    turn = await _begin(store, session)
    if turn.window is None:
        raise SystemExit("the turn came without its window")
    parts = runtime._parts  # noqa: SLF001
    return Place(parts, turn, CachedWindow(Window.restore(turn.window), parts.renderer.render))


async def _begin(store: SqliteStore, session: Session, known: Session | None = None) -> StoreTurn:
    now = session.updated_at
    new = Continuation(new_id(), session.id, "local", "running", now, now, ContinuationRequest("Go on."))
    begun = await store.begin(new, ClaimRequest("bench", 3600, known))
    if begun.turn is None:
        raise SystemExit("the turn was not begun")
    return begun.turn


def questions(window: Window) -> dict[str, str]:
    """Return a message about what the window speaks of, one about what was said once, one about a topic."""
    texts = [entry.text.casefold() for entry in window]
    asked = [entry.text for entry in window if entry.role == "user"]
    elsewhere = (
        question.format(person="Mara", room="kitchen", clock="12:00", day="Monday", t=20, pct=5, w=90, n=6)
        for topic, _, _ in TOPICS
        for question in topic
    )
    often = next(question for question in elsewhere if len(find_missing(extract_stems(question), texts)) >= 2)
    return {
        "nothing to recall": max(asked, key=len),
        "recalls what was said once": ASKS_WHAT_WAS_SAID_ONCE,
        "looks up a habit, and recalls nothing": often,
    }


async def measure_building(sizes: Sequence[int], repeats: int, console: Console) -> list[Row]:
    """Time the building of a context at each size, the sizes and messages taking turns."""
    transcript = long_transcript(max(sizes))
    times: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            places = {
                size: await open_place(stack, Path(folder) / f"{size}.db", end_of(transcript, size))
                for size in sizes
            }
            asked = questions(next(iter(places.values())).window.window)
            for what, message in asked.items():
                console.print(f"  {what}: “{message}”")
            for (what, message), size in itertools.product(asked.items(), sizes):
                _, recalled = await places[size].build(message)
                if size != min(sizes) and (recalled is not None) != (message == ASKS_WHAT_WAS_SAID_ONCE):
                    raise SystemExit(f"{what}, {size:,} messages: {recalled!r}")
            gc.collect()
            gc.disable()
            order, rng = list(itertools.product(asked.items(), sizes)), random.Random(7)
            for _ in range(repeats):
                rng.shuffle(order)
                for (what, message), size in order:
                    took, _ = await places[size].build(message)
                    times.setdefault((what, size), []).append(took)
            gc.enable()
    return [
        Row("context", what, "build", statistics.median(times[what, size]) * 1e6, "µs", {"messages": size})
        for what, size in itertools.product(asked, sizes)
    ]


def rows_of(name: str, budget: int, measured: Measured) -> list[Row]:
    """Return what was measured for a contestant."""
    params = {"max_tokens": budget, "turns": TURNS, "calls": measured.calls}
    values = {
        "cached share": (measured.share, ""),
        **{f"price, cached at {price}": (measured.price(price), "") for price in CACHED_PRICES},
        "prompt tokens a call": (measured.tokens / measured.calls, "tokens"),
        "window shown": (measured.shown, ""),
        "cuts": (measured.cuts, ""),
        "broken prompts": (measured.broken, ""),
        **{f"uncached, {cause}": (count / measured.tokens, "") for cause, count in measured.causes.items()},
    }
    return [Row("context", name, metric, value, unit, params) for metric, (value, unit) in values.items()]


def show(budget: int, results: dict[str, list[Measured]], console: Console) -> None:
    """Print how the contestants did at one budget."""
    table = Table(
        title=f"{TURNS} turns with a house, window of {budget:,} tokens, steady state · {machine()}"
    )
    table.add_column("", no_wrap=True)
    columns = "cached", "from – to", "price at 0.1", "at 0.5", "tokens a call", "paid at 0.1"
    for column in (*columns, "window shown", "cuts", "broken"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, measured in results.items():
        total, shares = add_up(measured), [m.share for m in measured]
        mean = total.tokens / total.calls
        table.add_row(
            name,
            f"{total.share:.1%}",
            f"{min(shares):.1%} – {max(shares):.1%}",
            *(f"{total.price(price):.2f}" for price in CACHED_PRICES),
            f"{mean:,.0f}",
            f"{mean * total.price(CACHED_PRICES[0]):,.0f}",
            f"{total.shown:.1%}",
            f"{total.cuts / len(measured):.0f}",
            f"{total.broken}",
            style="bold green" if name == SASH else "",
        )
    console.print(table)
    sash = add_up(results[SASH])
    console.print(f"  what of Sash's prompts is not cached, {1 - sash.share:.1%}:")
    for cause, text in CAUSES.items():
        console.print(f"    {sash.causes[cause] / sash.tokens:5.1%}  {text}")


def show_building(rows: Sequence[Row], sizes: Sequence[int], console: Console) -> None:
    """Print what building a context costs."""
    of = {(row.system, row.params["messages"]): row.value for row in rows}
    table = Table(title=f"building a context at a window of {BUDGETS[0]:,} tokens, µs · {machine()}")
    table.add_column("messages in the transcript")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    for what in dict.fromkeys(row.system for row in rows):
        table.add_row(what, *(f"{of[what, size]:,.0f}" for size in sizes))
    console.print(table)


def verdicts(
    results: dict[int, dict[str, list[Measured]]], building: Sequence[Row], sizes: Sequence[int]
) -> Iterator[tuple[str, str, bool]]:
    """Say which figures are reached."""
    for budget, (share, shown) in TO_REACH.items():
        sash = add_up(results[budget][SASH])
        text = f"cached share at {budget:,} tokens: at least {share:.0%}"
        yield text, f"{sash.share:.1%}", sash.share >= share
        text = f"window shown at {budget:,} tokens: at least {shown:.0%}"
        yield text, f"{sash.shown:.1%}", sash.shown >= shown
    broken = sum(m.broken for at_budget in results.values() for m in at_budget[SASH])
    yield "prompts of Sash with a broken tool pair: none", str(broken), not broken
    of = {(row.system, row.params["messages"]): row.value for row in building}
    largest = max(sizes)
    for what in dict.fromkeys(row.system for row in building):
        grown = of[what, largest] / of[what, COMPARED_SIZE]
        text = f"building, {what}, {largest:,} messages against {COMPARED_SIZE:,}: at most {FLAT} ×"
        yield text, f"{grown:.2f} ×", grown <= FLAT


def main() -> None:
    options, console = arguments(__doc__ or ""), Console(width=150)
    seeds, sizes, repeats = (SEEDS[:1], SIZES[:3], 50) if options.quick else (SEEDS, SIZES, 300)
    rows: list[Row] = []
    results: dict[int, dict[str, list[Measured]]] = {}
    for budget in BUDGETS:
        at_budget: dict[str, list[Measured]] = {}
        for seed in seeds:
            with console.status(f"{budget:,} tokens, conversation {seed} …"):
                for name, measured in asyncio.run(compare(seed, budget)).items():
                    at_budget.setdefault(name, []).append(measured)
        results[budget] = at_budget
        show(budget, at_budget, console)
        with console.status("without tool calls …"):
            plain = add_up([asyncio.run(without_tools(seed, budget)) for seed in seeds])
        console.print(
            f"  the same questions and answers without tool calls: {plain.share:.1%} cached, "
            f"{plain.shown:.1%} shown, {plain.cuts / len(seeds):.0f} cuts"
        )
        rows += [
            row for name, measured in at_budget.items() for row in rows_of(name, budget, add_up(measured))
        ]
        rows += rows_of(f"{SASH}, without tool calls", budget, plain)
    with console.status("building contexts …"):
        building = asyncio.run(measure_building(sizes, repeats, console))
    show_building(building, sizes, console)
    show_talk(seeds, console)
    for text, value, reached in verdicts(results, building, sizes):
        console.print(f"{'[green]✓[/]' if reached else '[red]✗[/]'} {text}: [bold]{value}[/]")
    write_json(rows + building, options.json)


def show_talk(seeds: Sequence[int], console: Console) -> None:
    """Print what the conversations are like."""
    said = [turn for seed in seeds for turn in itertools.islice(talk(seed), TURNS)]
    costs, looked = Costs([]), [turn for turn in said if turn.plans]
    tokens = statistics.mean(costs.all([*itertools.chain(*turn.steps())]) for turn in said)
    bare = statistics.mean(costs.all([*itertools.chain(*replace(turn, plans=()).steps())]) for turn in said)
    results = [TokenCounter().count_text(c.result) for turn in looked for plan in turn.plans for c in plan]
    console.print(
        f"  the conversations: {len(seeds)} of {TURNS} turns, {tokens:.0f} tokens a turn ({bare:.0f} without "
        f"tool calls), {len(looked) / len(said):.0%} of the turns with tools, results of {min(results)} to "
        f"{max(results)} tokens, {statistics.mean(results):.0f} on average"
    )


if __name__ == "__main__":
    main()
