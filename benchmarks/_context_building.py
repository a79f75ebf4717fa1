"""Measures the time to build a context, in sessions of different lengths that end with the same window."""

import gc
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from benchmarks._context_contestants import make_home_tools
from benchmarks._conversation_topics import TOPICS
from benchmarks._conversations import STARTED_AT, generate_turns
from benchmarks._prompt_cache import Message
from benchmarks._report import Row
from sash import Runtime
from sash.engine.ceiling import find_limits
from sash.engine.parts import Parts
from sash.engine.turn.journal import Journal
from sash.engine.turn.progress import Progress
from sash.engine.turn.turn_context import TurnContext
from sash.engine.window_cache import CachedWindow
from sash.memory.digest import build_digest
from sash.memory.tokens import TokenCounter
from sash.memory.window import Eviction, Limits, Window
from sash.memory.words import extract_stems
from sash.ports.turns import ClaimRequest, Cut, Evicted, Turn, TurnEnd
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel
from sash.values.continuations import Continuation, ContinuationRequest
from sash.values.ids import new_id
from sash.values.messages import MessageEntry, built_in_tags, turns
from sash.values.sessions import Session, WindowLimits

WINDOW_TOKENS = 4_000
# Recall reads the turns around a hit. These turns follow the single mention at all sizes.
TURNS_AFTER_MENTION = 8
# A runtime sweeps every five minutes, which updates its index.
TURNS_PER_SWEEP = 25
SINGLE_MENTION = (
    "The plumber wrote down that the expansion vessel has the serial number XK-4471-B, for the warranty.",
    "The expansion vessel has the serial number XK-4471-B.",
)
QUESTION_ABOUT_MENTION = "Which serial number did the plumber write down for the expansion vessel?"


@dataclass(frozen=True)
class WaitingTurn:
    """A turn of a session with a long transcript, just before its model call."""

    parts: Parts
    turn: Turn
    window: CachedWindow

    async def build(self, message: str) -> tuple[float, str | None]:
        """Build the context for a message; return the time in seconds and the recalled text."""
        request = ContinuationRequest(message)
        turn = replace(self.turn, continuation=replace(self.turn.continuation, request=request))
        progress, parts = Progress.from_steps(message, ()), self.parts
        journal = Journal(parts, turn, progress)
        config = find_limits(turn.session, parts.operator, turn.continuation.request).model
        tools = parts.turn_tools(turn.session, request)
        context = TurnContext(parts, turn, self.window, progress, journal, config, tools)
        started = time.perf_counter()
        await context.build()
        took = time.perf_counter() - started
        await journal.stop()
        return took, progress.recalled


class TranscriptTurn(NamedTuple):
    """The messages of a turn, and the messages that were evicted at its end."""

    messages: tuple[MessageEntry, ...]
    evicted: tuple[Eviction, ...] = ()


def make_long_transcript(size: int) -> list[TranscriptTurn]:
    """Return a transcript of at least `size` messages with its cuts; its last window is almost full."""
    counter, window, transcript = TokenCounter(), Window(Limits(evict_to=0.75)), []
    now, count = STARTED_AT, 0
    for turn in generate_turns(0):
        messages = tuple(_make_entry(m, now, counter) for m in itertools.chain.from_iterable(turn.steps()))
        evicted = tuple(itertools.chain.from_iterable(map(window.add, messages)))
        transcript.append(TranscriptTurn(messages, evicted))
        count += len(messages)
        if count >= size and window.tokens > 0.85 * WINDOW_TOKENS:
            break
        now += timedelta(minutes=turn.minutes)
    return transcript


def shorten_transcript(transcript: Sequence[TranscriptTurn], size: int) -> list[TranscriptTurn]:
    """Return about `size` messages: the single mention, some first turns, and the end of the transcript."""
    mention = tuple(
        _make_entry({"role": role, "content": text}, STARTED_AT, TokenCounter())
        for role, text in zip(("user", "assistant"), SINGLE_MENTION, strict=True)
    )
    first_turns = transcript[:TURNS_AFTER_MENTION]
    start = [TranscriptTurn(mention), *(TranscriptTurn(turn.messages) for turn in first_turns)]
    count, first_index = sum(len(turn.messages) for turn in start), len(transcript)
    while count < size and first_index > TURNS_AFTER_MENTION:
        first_index -= 1
        count += len(transcript[first_index].messages)
    pending = [Eviction(message, "max_tokens") for turn in start for message in turn.messages]
    kept_ids = {message.id for turn in transcript[first_index:] for message in turn.messages}
    end = []
    for messages, all_evicted in transcript[first_index:]:
        evicted = [eviction for eviction in all_evicted if eviction.message.id in kept_ids]
        if evicted:
            evicted, pending = pending + evicted, []
        end.append(TranscriptTurn(messages, tuple(evicted)))
    return start + end


def _make_entry(message: Message, now: datetime, counter: TokenCounter) -> MessageEntry:
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


async def open_waiting_turn(
    stack: AsyncExitStack, path: Path, transcript: Sequence[TranscriptTurn]
) -> WaitingTurn:
    """Store a transcript in a new session and a new store, and begin one more turn."""
    store = SqliteStore(path, synchronous="NORMAL")
    runtime = await stack.enter_async_context(Runtime(store, ScriptedModel("Yes."), make_home_tools(())))
    session = await runtime.start_session(window=WindowLimits(max_tokens=WINDOW_TOKENS))
    for n, (messages, evicted) in enumerate(transcript):
        if n % TURNS_PER_SWEEP == 0:
            await runtime.sweep()
        turn = await _begin_turn(store, session, session)
        cut = Cut(tuple(Evicted(one.message.id, one.reason) for one in evicted), (), "")
        end = TurnEnd("completed", (), messages=messages, cut=cut if evicted else None)
        await store.finish(turn.lease, end)
        session = end.apply_to_session(session, messages[-1].timestamp)
    await runtime.sweep()
    all_evicted = [eviction.message for turn in transcript for eviction in turn.evicted]
    digest = build_digest(turns(all_evicted[-500:]), TokenCounter().count_text)
    session = await store.get_session("local", session.id)
    await store.save_session(replace(session, memory=replace(session.memory, digest=digest)))
    turn = await _begin_turn(store, session)
    if turn.window is None:
        raise SystemExit("the store returned the turn without its window")
    parts = runtime._parts  # noqa: SLF001
    return WaitingTurn(parts, turn, CachedWindow(Window.restore(turn.window), parts.renderer.render))


async def _begin_turn(store: SqliteStore, session: Session, cached: Session | None = None) -> Turn:
    now = session.updated_at
    new = Continuation(new_id(), session.id, "local", "running", now, now, ContinuationRequest("Go on."))
    begun = await store.begin(new, ClaimRequest("bench", 3600, cached))
    if begun.turn is None:
        raise SystemExit("the store did not begin the turn")
    return begun.turn


def _count_missing(question: str, texts: Sequence[str]) -> int:
    """Return how many stems of a question none of the texts has."""
    return sum(not any(stem in text for text in texts) for stem in extract_stems(question))


def choose_questions(window: Window) -> dict[str, str]:
    """Return three questions: about the window, about the single mention, and about a frequent topic."""
    texts = [entry.text.casefold() for entry in window]
    questions_in_window = [entry.text for entry in window if entry.role == "user"]
    all_questions = (
        question.format(person="Mara", room="kitchen", clock="12:00", day="Monday", t=20, pct=5, w=90, n=6)
        for questions, _, _ in TOPICS
        for question in questions
    )
    frequent = next(question for question in all_questions if _count_missing(question, texts) >= 2)
    return {
        "nothing to recall": max(questions_in_window, key=len),
        "recalls a single mention": QUESTION_ABOUT_MENTION,
        "finds a frequent topic, recalls nothing": frequent,
    }


async def measure_building(sizes: Sequence[int], repeats: int, console: Console) -> list[Row]:
    """Return the median time to build a context, for each question and size. They run in random order."""
    transcript = make_long_transcript(max(sizes))
    times: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            waiting = {}
            for size in sizes:
                shortened = shorten_transcript(transcript, size)
                waiting[size] = await open_waiting_turn(stack, Path(folder) / f"{size}.db", shortened)
            questions = choose_questions(next(iter(waiting.values())).window.window)
            for case, question in questions.items():
                console.print(f"  {case}: “{question}”")
            for (case, question), size in itertools.product(questions.items(), sizes):
                _, recalled = await waiting[size].build(question)
                if size != min(sizes) and (recalled is not None) != (question == QUESTION_ABOUT_MENTION):
                    raise SystemExit(f"{case}, {size:,} messages: wrong recall: {recalled!r}")
            gc.collect()
            gc.disable()
            order, rng = list(itertools.product(questions.items(), sizes)), random.Random(7)
            for _ in range(repeats):
                rng.shuffle(order)
                for (case, question), size in order:
                    took, _ = await waiting[size].build(question)
                    times.setdefault((case, size), []).append(took)
            gc.enable()
    return [
        Row("context", case, "build", statistics.median(times[case, size]) * 1e6, "µs", {"messages": size})
        for case, size in itertools.product(questions, sizes)
    ]
