"""Measures how well old messages are found again, in three long conversations with questions about them.

Each conversation in `recall_data` has more than 600 turns over four months, and each question the ids of the
messages with its answer. All were written before the ranking was tuned, on `terrace_house` alone.

* plain questions name their topic by its usual word, as people do, and say the rest in other words than were
  said.
* questions that name a person ask for a fact about them, mostly in the present: "what size are Ida's boots?".
* riddles also describe the topic: "the animal doctor" for the vet. They show the limit of words.

A question counts as found if one of its messages ("any"), or all of them ("all"), are among the best messages
that fit 250, 500 or 1,000 tokens. Messages that do not fit are skipped.

* plain FTS5 bm25: SQLite's full-text search for any word of the question.
* LangChain BM25: its `BM25Retriever`.
* Sash before: the first scoring, of whole turns.
* Sash with an embedder of words: if `wordllama` is installed. Its weight was tuned on `terrace_house` alone.

With `--locomo FILE`, the public set LoCoMo is measured instead (`_locomo.py`). Nothing was tuned on it.

Automatic recall brings at most 400 tokens of old messages into the prompt before the model is asked. The last
4,000 tokens of a conversation are in the window then. The messages of every day, on which nothing should be
brought back, are said at the end of each conversation of their language. Those beside the questions that name
a person name one of this household, too, and were written for it.

The time of a search is measured on SQLite, with the first conversation repeated in other words.
"""

import asyncio
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._locomo import read_locomo
from benchmarks._recall_contestants import (
    OWNER,
    Contestant,
    describe_asker,
    make_before,
    make_entries,
    make_full_text,
    make_langchain,
    make_old_messages,
    make_sash,
)
from benchmarks._recall_data import Conversation, read_conversation, read_everyday
from benchmarks._recall_embedder import INSTALL, load_embedder
from benchmarks._report import Row, arguments, machine, write_json
from sash.engine.automatic_recall import recall_for
from sash.engine.memory_tools import MAX_TOKENS
from sash.engine.runtime import Runtime
from sash.memory.tokens import count_text
from sash.memory.words import normalize
from sash.ports.embedder import Embedder
from sash.stores.memory import MemoryStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel

TUNED, REPORTED = "terrace_house", ("city_flat", "hofhaus")
BUDGETS = (250, 500, 1_000)
QUESTION_SETS = {"plain": "plain questions", "people": "questions that name a person", "riddles": "riddles"}
MAX_AUTOMATIC_TOKENS = 400
WINDOW_TOKENS = 4_000
SIZES = (1_000, 10_000, 100_000)
TURNS = 200
# The longest median time of a search in ms, by the number of messages.
MAX_MS = {1_000: 3.0, 10_000: 6.0, 100_000: 15.0}
# The longest time for the index of a turn, as a part of the time of the turn.
MAX_INDEX_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Counts:
    """How many questions were asked, and of how many any and all of the evidence was found, by budget."""

    asked: int
    any: Counter[int]
    all: Counter[int]

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.asked + other.asked, self.any + other.any, self.all + other.all)


NOTHING = Counts(0, Counter(), Counter())


async def measure_finding(contestant: Contestant, conversation: Conversation) -> Counts:
    """Measure a way to find old messages."""
    costs = {said.id: count_text(said.text) for said in conversation.messages}
    asked = [question for question in conversation.questions if question.evidence]
    counts = Counts(len(asked), Counter(), Counter())
    for question in asked:
        ranked = await contestant.rank(question)
        for budget in BUDGETS:
            shown = fit(ranked, costs, budget)
            counts.any[budget] += bool(shown & question.evidence)
            counts.all[budget] += question.evidence <= shown
    return counts


def fit(ranked: Sequence[int], costs: dict[int, int], budget: int) -> set[int]:
    """Return the ids of the best messages that fit a budget together."""
    shown: set[int] = set()
    for message_id in ranked:
        if costs[message_id] <= budget:
            budget -= costs[message_id]
            shown.add(message_id)
    return shown


@dataclass(frozen=True, slots=True)
class Automatic:
    """How many questions automatic recall answers, and its false alarms.

    The window alone answers `in_window` questions. For `brought` of the others the answer was brought.
    """

    asked: int = 0
    in_window: int = 0
    brought: int = 0
    alarms: int = 0
    everyday: int = 0

    def __add__(self, other: "Automatic") -> "Automatic":
        return Automatic(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def shares(self) -> dict[str, float]:
        return {
            "in prompt": (self.in_window + self.brought) / self.asked,
            "in window": self.in_window / self.asked,
            "brought": self.brought / (self.asked - self.in_window),
            "false alarms": self.alarms / self.everyday,
        }


async def measure_automatic(
    conversation: Conversation, everyday: Sequence[str], embedder: Embedder | None = None
) -> Automatic:
    """Measure what automatic recall brings into the prompt, for questions and for messages of every day."""
    store = MemoryStore()
    await store.open()
    entries = make_entries(conversation)
    first, tokens = len(entries), 0
    while first and tokens + (cost := count_text(entries[first - 1].text)) <= WINDOW_TOKENS:
        first, tokens = first - 1, tokens + cost
    evicted = replace(conversation, messages=conversation.messages[:first])
    old = await make_old_messages(store, evicted, embedder)
    window = [normalize(entry.text) for entry in entries[first:]]
    names = tuple({entry.name for entry in entries[first:] if entry.name})
    asked = [question for question in conversation.questions if question.evidence]
    in_window = brought = 0
    for question in asked:
        if any(message_id > first for message_id in question.evidence):
            in_window += 1
            continue
        context = replace(describe_asker(question, conversation), names=names)
        text = question.question
        found = (await recall_for(old, text, context, window, count_text, MAX_AUTOMATIC_TOKENS)).messages
        brought += any(each.position in question.evidence for each in found)
    context = replace(describe_asker(conversation.questions[0], conversation), names=names)
    alarms = 0
    for text in everyday:
        found = (await recall_for(old, text, context, window, count_text, MAX_AUTOMATIC_TOKENS)).messages
        alarms += bool(found)
    return Automatic(len(asked), in_window, brought, alarms, len(everyday))


def lengthen(conversation: Conversation, size: int) -> Conversation:
    """Return a conversation of `size` messages: the same one again and again, in other words."""
    messages = conversation.messages
    span = messages[-1].at - messages[0].at + timedelta(days=1)
    times = -(-size // len(messages))
    found = []
    for n in range(times - 1, -1, -1):
        for said in messages:
            words = said.text.split()
            changed = (word[::-1] if n and k % 3 == n % 3 else word for k, word in enumerate(words))
            found.append(replace(said, at=said.at - n * span, text=" ".join(changed)))
    kept = found[-size:]
    return replace(conversation, messages=tuple(replace(m, id=n) for n, m in enumerate(kept, 1)))


async def measure_time(
    conversation: Conversation, size: int, embedder: Embedder | None = None
) -> tuple[float, float, float]:
    """Return milliseconds on SQLite: medians of ranking, and of the tool `recall`; its 95th percentile.

    The tool ranks and reads what fits 1,000 tokens. The newest messages have vectors.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sash.db")
        await store.open()
        old = await make_old_messages(store, lengthen(conversation, size), embedder)
        await store.search_words(OWNER, (), count=1)  # fills the index
        ranking, tool = [], []
        for question in conversation.questions:
            context = describe_asker(question, conversation)
            started = time.perf_counter()
            found = await old.find(question.question, context)
            ranking.append((time.perf_counter() - started) * 1000)
            await old.read_best(found, count_text, MAX_TOKENS)
            tool.append((time.perf_counter() - started) * 1000)
        await store.close()
    return statistics.median(ranking), statistics.median(tool), statistics.quantiles(tool, n=20)[-1]


async def measure_indexing(conversation: Conversation) -> tuple[float, float]:
    """Return the milliseconds that the index takes for a turn, and those of the turn itself."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sash.db")
        said = conversation.messages
        answers = ScriptedModel(*(message.text for message in said[1::2][:TURNS]))
        async with Runtime(store, answers) as runtime:
            session = await runtime.start_session()
            times = []
            for message in said[::2][:TURNS]:
                started = time.perf_counter()
                sent = await runtime.send_message(session.id, message.text)
                await runtime.await_continuation(sent.id)
                times.append((time.perf_counter() - started) * 1000)
            started = time.perf_counter()
            await store.search_words(OWNER, (), count=1)  # fills the index
            index_ms = (time.perf_counter() - started) * 1000 / len(times)
    return index_ms, statistics.median(times)


async def compare(title: str, conversations: Sequence[Conversation], console: Console) -> list[Row]:
    """Print and return the shares of all contestants over all questions of some conversations."""
    counts: dict[str, Counts] = {}
    embedder = load_embedder()
    for conversation in conversations:
        stores = MemoryStore(), MemoryStore()
        for store in stores:
            await store.open()
        contestants = [
            make_full_text(conversation),
            make_langchain(conversation),
            make_before(conversation),
            await make_sash(stores[0], conversation),
            embedder and await make_sash(stores[1], conversation, embedder),
        ]
        for contestant in filter(None, contestants):
            found = await measure_finding(contestant, conversation)
            counts[contestant.name] = found + counts.get(contestant.name, NOTHING)
    return print_shares(title, counts, console)


def print_shares(title: str, counts: dict[str, Counts], console: Console) -> list[Row]:
    asked = next(iter(counts.values())).asked
    table = Table(title=f"{title}, {asked} questions")
    table.add_column("any / all evidence within")
    for budget in BUDGETS:
        table.add_column(f"{budget:,} tokens", justify="right")
    rows = []
    for name, found in counts.items():
        cells = (f"{found.any[budget] / asked:.2f} / {found.all[budget] / asked:.2f}" for budget in BUDGETS)
        table.add_row(name, *cells, style="bold green" if name == "Sash" else "")
        for budget in BUDGETS:
            params = {"questions": title, "tokens": budget}
            rows.append(Row("recall", name, "any", found.any[budget] / asked, "", params))
            rows.append(Row("recall", name, "all", found.all[budget] / asked, "", params))
    console.print(table)
    return rows


async def measure_all_automatic(
    title: str, conversations: Sequence[Conversation], console: Console, everyday: Sequence[str]
) -> list[Row]:
    """Print and return what automatic recall does in some conversations, without and with an embedder."""
    rows = []
    installed = load_embedder()
    for embedder in (None,) if installed is None else (None, installed):
        found = Automatic()
        for conversation in conversations:
            found += await measure_automatic(conversation, everyday, embedder)
        name = "Sash" if embedder is None else "Sash with an embedder of words"
        shares = found.shares
        console.print(
            f"automatic recall of {name}: the answer is in the prompt for {shares['in prompt']:.0%} of the "
            f"questions (by the window alone for {shares['in window']:.0%}), and brought for "
            f"{shares['brought']:.0%} of the others; {found.alarms} of {found.everyday} messages of every "
            f"day bring something ({shares['false alarms']:.1%})"
        )
        rows += [
            Row("recall", name, f"automatic, {key}", share, "", {"questions": title})
            for key, share in shares.items()
        ]
    return rows


async def run(names: Sequence[str], sizes: Sequence[int], console: Console) -> list[Row]:
    """Measure our conversations, and the time."""
    rows = []
    for name in names:
        for questions_of, title in QUESTION_SETS.items():
            conversation, title = read_conversation(name, questions_of), f"{name}, {title}"
            rows += await compare(title, [conversation], console)
            if (everyday := read_everyday(conversation, questions_of)) is not None:
                rows += await measure_all_automatic(title, [conversation], console, everyday)
    for size in sizes:
        for embedder in dict.fromkeys((None, load_embedder())):
            ranking, tool, slow = await measure_time(read_conversation(TUNED), size, embedder)
            system = "Sash" if embedder is None else "Sash with an embedder of words"
            console.print(
                f"{size:>7,} messages, {system}: {ranking:.1f} ms to rank (at most {MAX_MS[size]:.0f} "
                f"wanted), {tool:.1f} ms for the tool (95th percentile {slow:.1f} ms)"
            )
            for name, took_ms in (("ranking", ranking), ("tool", tool), ("tool, p95", slow)):
                rows.append(Row("recall", system, name, took_ms, "ms", {"messages": size}))
    index_ms, turn_ms = await measure_indexing(read_conversation(TUNED))
    console.print(
        f"the index of a turn takes {index_ms:.2f} ms, after the turn; a turn takes {turn_ms:.2f} ms "
        f"({index_ms / turn_ms:.1%}, at most {MAX_INDEX_SHARE:.0%} wanted)"
    )
    rows.append(Row("recall", "Sash", "indexing, of a turn", index_ms / turn_ms, "", {}))
    return rows


async def run_locomo(file: Path, console: Console) -> list[Row]:
    """Measure the conversations of a file. Nothing was tuned on them."""
    conversations = read_locomo(file)
    everyday = read_everyday(conversations[0], "plain") or ()
    return [
        *await compare("LoCoMo", conversations, console),
        *await measure_all_automatic("LoCoMo", conversations, console, everyday),
    ]


def main() -> None:
    options = arguments(
        (__doc__ or "").partition("\n")[0],
        locomo="measure this file of the public set LoCoMo instead (locomo10.json; licence CC BY-NC 4.0)",
    )
    console = Console()
    console.print(machine())
    if load_embedder() is None:
        console.print(f"without an embedder of words: {INSTALL}")
    if options.locomo is not None:
        rows = asyncio.run(run_locomo(options.locomo, console))
    else:
        names, sizes = ((TUNED,), SIZES[:2]) if options.quick else ((TUNED, *REPORTED), SIZES)
        rows = asyncio.run(run(names, sizes, console))
    write_json(rows, options.json)


if __name__ == "__main__":
    main()
