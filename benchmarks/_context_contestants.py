"""The systems that the context benchmark compares: each turns a conversation into prompts."""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)

from benchmarks._conversations import STARTED_AT, Turn
from benchmarks._prompt_cache import Message, TokenCosts
from sash import ConversationMemoryManager, Runtime
from sash.demo.demo_home import demo_home
from sash.engine.context import SYSTEM_PROMPT, Context
from sash.home.home_tools import build_home_tools
from sash.home.live_home import LiveHome
from sash.memory.window import Window
from sash.ports.model import Answer
from sash.ports.prompt import split_time
from sash.ports.tools import ToolContext, ToolSpec
from sash.stores.memory import MemoryStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.owner_notes import OwnerNotes
from sash.values.sessions import Session, WindowLimits

SASH, TIME_AT_START = "Sash", "Sash, time and state at the start"


@dataclass(frozen=True)
class Prompt:
    """The messages of one model call, each with its place: head, window, tail or turn.

    `limited_tokens` are the tokens that count for the system's limit. `evicted` is the number of messages of
    the conversation that are not in the prompt.
    """

    messages: list[Message]
    places: list[str]
    limited_tokens: int
    evicted: int


def make_home_tools(conversation: Sequence[Turn]) -> list[ToolSpec]:
    """Return the tools of the home. They return the results that the conversation contains."""
    results = {call.id: call.result for turn in conversation for plan in turn.plans for call in plan}

    async def look_up(arguments: dict[str, Any], context: ToolContext) -> str:
        return results[context.call_id]

    clock = FakeClock(STARTED_AT)
    real = build_home_tools(LiveHome(demo_home(clock)), clock, UTC)
    return [ToolSpec(t.name, t.description, t.input_schema, look_up, safety="idempotent") for t in real]


def list_tool_schemas(conversation: Sequence[Turn]) -> list[Message]:
    """Return the schemas of all tools: those of the home, and those of Sash's memory."""
    runtime = Runtime(MemoryStore(), ScriptedModel(), make_home_tools(conversation))
    return runtime._parts.tools.schemas  # noqa: SLF001


async def play_sash(conversation: Sequence[Turn], budget: int, costs: TokenCosts) -> list[Prompt]:
    """Run the conversation in a runtime and return the prompts of its model."""
    clock = FakeClock(STARTED_AT)
    model = ScriptedModel(*(answer for turn in conversation for answer in _answers(turn)))
    prompts: list[Prompt] = []
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sash.db", synchronous="NORMAL", clock=clock)
        tools = make_home_tools(conversation)
        async with Runtime(store, model, tools, clock=clock, time_zone=UTC) as runtime:
            built = _record_contexts(runtime)
            session = await runtime.start_session(window=WindowLimits(max_tokens=budget))
            for turn in conversation:
                requests_before = len(model.requests)
                sent = await runtime.send_message(session.id, turn.question)
                result = await runtime.await_continuation(sent.id)
                if result.response is None or result.response.final_message != turn.answer:
                    raise SystemExit(f"the answer of this turn is not the scripted one: {result}")
                context, evicted = built[-1]
                prompts += [
                    _make_prompt(request.messages, context, evicted)
                    for request in model.requests[requests_before:]
                ]
                clock.advance(60 * turn.minutes)
            await _check_transcript(runtime, session.id, conversation, costs)
    return prompts


def _answers(turn: Turn) -> Iterator[Answer]:
    for step in list(turn.steps())[1:]:
        yield Answer(step[0]["content"], tuple(step[0].get("tool_calls", ())))


def _record_contexts(runtime: Runtime) -> list[tuple[Context, int]]:
    """Return a list that collects each built context, with the number of evicted messages."""
    builder = runtime._parts.contexts  # noqa: SLF001
    build, built = builder.build, []

    def build_and_record(
        session: Session, notes: OwnerNotes, window: Window, *rest: Any, **named: Any
    ) -> Context:
        context = build(session, notes, window, *rest, **named)
        built.append((context, window.evicted_count))
        return context

    builder.build = build_and_record  # type: ignore[method-assign]
    return built


def _make_prompt(messages: list[Message], context: Context, evicted: int) -> Prompt:
    places = [
        "window" if part.name == "window" else "head" if part.stable else "tail"
        for part in context.parts
        for _ in part.messages
    ]
    limited_tokens = sum(part.tokens for part in context.parts if part.name == "window")
    return Prompt(messages, places + ["turn"] * (len(messages) - len(places)), limited_tokens, evicted)


async def _check_transcript(
    runtime: Runtime, session_id: str, conversation: Sequence[Turn], costs: TokenCosts
) -> None:
    """Check that Sash stored the same messages that the other systems get."""
    stored = await runtime.store.messages("local", session_id, limit=100_000)
    expected = [message for turn in conversation for step in turn.steps() for message in step]
    if costs.count_all([one.message.to_openai() for one in stored]) != costs.count_all(expected):
        raise SystemExit("the stored transcript differs from the conversation")


def move_time_to_start(prompts: Sequence[Prompt]) -> list[Prompt]:
    """Move the time from the messages of Sash's prompts to the first one, and add a line about the home."""
    moved = []
    for prompt in prompts:
        question_index = max(n for n, m in enumerate(prompt.messages) if m["role"] == "user")
        now, _ = split_time(prompt.messages[question_index]["content"])
        lit = sum(map(ord, now or "")) % 11
        state = f"{lit} lights are on, {lit % 3} windows are open, it is {18 + lit / 10} °C inside."
        head = {"role": "system", "content": f"It is {now}. {state}\n{SYSTEM_PROMPT}"}
        moved.append(replace(prompt, messages=[head, *map(_without_time, prompt.messages[1:])]))
    return moved


def _without_time(message: Message) -> Message:
    return message | {"content": split_time(message["content"])[1]} if message["role"] == "user" else message


class History:
    """Stores a conversation and selects the messages of a prompt."""

    def __init__(self, budget: int, costs: TokenCosts) -> None: ...

    async def add(self, message: Message) -> None: ...

    async def select(self) -> tuple[list[Message], int]:
        """Return the selected messages, and the number of the other messages."""
        raise NotImplementedError


class Fifo(History):
    """Sash's `ConversationMemoryManager`, which evicts exactly the oldest messages."""

    def __init__(self, budget: int, costs: TokenCosts) -> None:
        self._memory = ConversationMemoryManager(max_tokens=budget)

    async def add(self, message: Message) -> None:
        await self._memory.add_message("home", **message)

    async def select(self) -> tuple[list[Message], int]:
        return await self._memory.get_messages("home"), self._memory.get_stats("home")["evicted_count"]


class LangChain(History):
    """LangChain's `trim_messages` with exact counts."""

    def __init__(self, budget: int, costs: TokenCosts) -> None:
        system = {"role": "system", "content": SYSTEM_PROMPT}
        self._messages = [system]
        self._counts = [costs.count(system)]
        self._langchain_messages: list[BaseMessage] = [SystemMessage(SYSTEM_PROMPT, id="0")]
        self._costs, self._budget = costs, budget

    async def add(self, message: Message) -> None:
        self._langchain_messages.append(_to_langchain(message, str(len(self._messages))))
        self._messages.append(message)
        self._counts.append(self._costs.count(message))

    async def select(self) -> tuple[list[Message], int]:
        kept = trim_messages(
            self._langchain_messages,
            max_tokens=self._budget + self._counts[0],
            token_counter=self._count,
            strategy="last",
            start_on="human",
            include_system=True,
            allow_partial=False,
        )
        return [self._messages[int(m.id or 0)] for m in kept[1:]], len(self._messages) - len(kept)

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
    kind: type[History], every_call: bool, conversation: Sequence[Turn], budget: int, costs: TokenCosts
) -> list[Prompt]:
    """Run the conversation with a history that is cut at every call, or once per turn."""
    history, prompts, now = kind(budget, costs), [], STARTED_AT
    system = {"role": "system", "content": SYSTEM_PROMPT}
    for turn in conversation:
        time_message = {"role": "system", "content": f"It is {now:%A, %Y-%m-%d %H:%M} (UTC)."}
        before, evicted = await history.select()
        *steps, answer = turn.steps()
        own: list[Message] = []
        for step in steps:
            own += step
            if every_call:
                for message in step:
                    await history.add(message)
                selected, evicted = await history.select()
                before = selected[: -len(own)]
            places = ["head", *["window"] * len(before), "tail", *["turn"] * len(own)]
            limited_tokens = costs.count_all(before) + (costs.count_all(own) if every_call else 0)
            prompts.append(Prompt([system, *before, time_message, *own], places, limited_tokens, evicted))
        for message in answer if every_call else [*own, *answer]:
            await history.add(message)
        now += timedelta(minutes=turn.minutes)
    return prompts


CONTESTANTS: dict[str, Callable[[Sequence[Turn], int, TokenCosts], Any]] = {
    "exact FIFO, at every call": partial(play, Fifo, True),
    "exact FIFO, once per turn": partial(play, Fifo, False),
    "trim_messages, at every call": partial(play, LangChain, True),
    "trim_messages, once per turn": partial(play, LangChain, False),
}
