"""Measures how well old messages are found again, in three long conversations with questions about them.

Each conversation in `recall_data` has more than 600 turns over four months, and each question the ids of the
messages with its answer. All were written before the ranking was tuned, on `terrace_house` alone.

* plain questions name their topic by its usual word, as people do, and say the rest in other words than were
  said.
* riddles also describe the topic: "the animal doctor" for the vet. They show the limit of words.

A question counts as found if one of its messages ("any"), or all of them ("all"), are among the best messages
that fit 250, 500 or 1,000 tokens. Messages that do not fit are skipped.

* plain FTS5 bm25: SQLite's full-text search for any word of the question.
* LangChain BM25: its `BM25Retriever`.
* Sash before: the first scoring, of whole turns.

Automatic recall brings at most 400 tokens of old messages into the prompt before the model is asked. The last
4,000 tokens of a conversation are in the window then. The messages of every day, on which nothing should be
brought back, are said at the end of each conversation of their language.

The time of a search is measured on SQLite, with the first conversation repeated in other words.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._recall_contestants import (
    LANGUAGES,
    OWNER,
    Contestant,
    describe_asker,
    import_conversation,
    make_before,
    make_entries,
    make_full_text,
    make_langchain,
    make_sash,
)
from benchmarks._recall_data import Conversation, read_conversation, read_everyday
from benchmarks._report import Row, arguments, machine, write_json
from sash.engine.automatic_recall import recall_for
from sash.engine.recall import OldMessages
from sash.engine.runtime import Runtime
from sash.memory.tokens import count_text
from sash.memory.words import normalize
from sash.stores.memory import MemoryStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel

TUNED, REPORTED = "terrace_house", ("city_flat", "hofhaus")
BUDGETS = (250, 500, 1_000)
MAX_AUTOMATIC_TOKENS = 400
WINDOW_TOKENS = 4_000
SIZES = (1_000, 10_000, 100_000)
TURNS = 200
# The longest median time of a search in ms, by the number of messages.
MAX_MS = {1_000: 3.0, 10_000: 6.0, 100_000: 15.0}
# The longest time for the index of a turn, as a part of the time of the turn.
MAX_INDEX_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of questions with any, and with all of their evidence, by budget."""

    any: dict[int, float]
    all: dict[int, float]


async def measure_finding(contestant: Contestant, conversation: Conversation) -> Shares:
    """Measure a way to find old messages."""
    costs = {said.id: count_text(said.text) for said in conversation.messages}
    asked = [question for question in conversation.questions if question.evidence]
    found_any, found_all = dict.fromkeys(BUDGETS, 0), dict.fromkeys(BUDGETS, 0)
    for question in asked:
        ranked = await contestant.rank(question)
        for budget in BUDGETS:
            shown = fit(ranked, costs, budget)
            found_any[budget] += bool(shown & question.evidence)
            found_all[budget] += question.evidence <= shown
    return Shares(
        {budget: number / len(asked) for budget, number in found_any.items()},
        {budget: number / len(asked) for budget, number in found_all.items()},
    )


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
    """The shares of questions that automatic recall answers, and its false alarms.

    `in_window` is the share of questions that the window alone answers. `brought` is the share of the others
    whose answer was brought.
    """

    in_window: float
    in_prompt: float
    brought: float
    alarms: int
    everyday: int


async def measure_automatic(conversation: Conversation) -> Automatic:
    """Measure what automatic recall brings into the prompt."""
    store = MemoryStore()
    await store.open()
    entries = make_entries(conversation)
    first, tokens = len(entries), 0
    while first and tokens + (cost := count_text(entries[first - 1].text)) <= WINDOW_TOKENS:
        first, tokens = first - 1, tokens + cost
    evicted = replace(conversation, messages=conversation.messages[:first])
    old = OldMessages(store, OWNER, await import_conversation(store, evicted))
    window = [normalize(entry.text) for entry in entries[first:]]
    asked = [question for question in conversation.questions if question.evidence]
    in_window = brought = 0
    for question in asked:
        if any(message_id > first for message_id in question.evidence):
            in_window += 1
            continue
        context = describe_asker(question, conversation)
        text = question.question
        _, found = await recall_for(old, text, context, window, count_text, MAX_AUTOMATIC_TOKENS)
        brought += any(each.position in question.evidence for each in found)
    language = LANGUAGES[conversation.name]
    context = describe_asker(conversation.questions[0], conversation)
    everyday = [text for spoken, text in read_everyday() if spoken == language]
    alarms = 0
    for text in everyday:
        _, found = await recall_for(old, text, context, window, count_text, MAX_AUTOMATIC_TOKENS)
        alarms += bool(found)
    count = len(asked)
    return Automatic(
        in_window / count,
        (in_window + brought) / count,
        brought / (count - in_window),
        alarms,
        len(everyday),
    )


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


async def measure_time(conversation: Conversation, size: int) -> float:
    """Return the median time of a search on SQLite in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sash.db")
        await store.open()
        sash = await make_sash(store, lengthen(conversation, size))
        await store.search_words(OWNER, (), count=1)  # fills the index
        times = []
        for question in conversation.questions:
            started = time.perf_counter()
            await sash.rank(question)
            times.append((time.perf_counter() - started) * 1000)
        await store.close()
    return statistics.median(times)


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


async def compare(conversation: Conversation, questions: str, console: Console) -> list[Row]:
    """Print and return the shares of all contestants on one set of questions."""
    store = MemoryStore()
    await store.open()
    contestants = [
        make_full_text(conversation),
        make_langchain(conversation),
        make_before(conversation),
        await make_sash(store, conversation),
    ]
    count = sum(bool(question.evidence) for question in conversation.questions)
    table = Table(title=f"{conversation.name}, {count} {questions}")
    table.add_column("any / all evidence within")
    for budget in BUDGETS:
        table.add_column(f"{budget:,} tokens", justify="right")
    rows = []
    for contestant in filter(None, contestants):
        shares = await measure_finding(contestant, conversation)
        cells = (f"{shares.any[budget]:.2f} / {shares.all[budget]:.2f}" for budget in BUDGETS)
        table.add_row(contestant.name, *cells, style="bold green" if contestant.name == "Sash" else "")
        for budget in BUDGETS:
            params = {"conversation": conversation.name, "questions": questions, "tokens": budget}
            rows.append(Row("recall", contestant.name, "any", shares.any[budget], "", params))
            rows.append(Row("recall", contestant.name, "all", shares.all[budget], "", params))
    console.print(table)
    return rows


async def run(names: Sequence[str], sizes: Sequence[int], console: Console) -> list[Row]:
    console.print(machine())
    rows = []
    for name in names:
        plain = read_conversation(name)
        rows += await compare(plain, "plain questions", console)
        rows += await compare(read_conversation(name, "riddles"), "riddles", console)
        automatic = await measure_automatic(plain)
        share = automatic.alarms / automatic.everyday
        console.print(
            f"automatic recall: the answer is in the prompt for {automatic.in_prompt:.0%} of the plain "
            f"questions (by the window alone for {automatic.in_window:.0%}), and brought for "
            f"{automatic.brought:.0%} of the others; {automatic.alarms} of {automatic.everyday} messages of "
            f"every day bring something ({share:.1%})\n"
        )
        values = {"in prompt": automatic.in_prompt, "brought": automatic.brought, "false alarms": share}
        rows += [
            Row("recall", "Sash", f"automatic, {key}", n, "", {"conversation": name})
            for key, n in values.items()
        ]
    for size in sizes:
        took_ms = await measure_time(read_conversation(TUNED), size)
        console.print(f"{size:>7,} messages: {took_ms:.1f} ms a search (at most {MAX_MS[size]:.0f} wanted)")
        rows.append(Row("recall", "Sash", "search", took_ms, "ms", {"messages": size}))
    index_ms, turn_ms = await measure_indexing(read_conversation(TUNED))
    console.print(
        f"the index of a turn takes {index_ms:.2f} ms, after the turn; a turn takes {turn_ms:.2f} ms "
        f"({index_ms / turn_ms:.1%}, at most {MAX_INDEX_SHARE:.0%} wanted)"
    )
    rows.append(Row("recall", "Sash", "indexing, of a turn", index_ms / turn_ms, "", {}))
    return rows


def main() -> None:
    options = arguments((__doc__ or "").partition("\n")[0])
    names, sizes = ((TUNED,), SIZES[:2]) if options.quick else ((TUNED, *REPORTED), SIZES)
    write_json(asyncio.run(run(names, sizes, Console())), options.json)


if __name__ == "__main__":
    main()
