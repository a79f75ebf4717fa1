"""Measures the cost of a home: tokens per turn by size, the speed of its index, sentences without a model.

Tokens. Twenty sentences go to homes of 50, 500 and 5,000 entities. Between two sentences a hundredth of the
entities changes, and at least two. The cached part of a prompt is its longest common beginning with one of
the last eight prompts. Tool schemas come first. It counts from 1,024 tokens on, in steps of 128.

* Sash: a runtime with the default settings of a session, but without local intents, so that every turn calls
  the model. The model is simulated. It answers from its prompt, looks up missing states, and acts.
* all states, CSV: a line for each entity in the system prompt, written again for every turn. This is the
  shortest form.
* all states, YAML: the same in the format of Home Assistant's LLM API, with names, domain, state, areas and
  attributes.
* names, YAML; states from a tool: the prompt of Home Assistant since it has GetLiveContext. This tool returns
  states by name, area or domain.

These three systems have the same sentences, actions, histories and answers, the same system prompt, and the
same tools except those that look things up. They have the time with each message, and keep the whole
conversation.

Index. A home of 10,000 entities is measured twice: with few different names, and with a different name for
every device. Every search is for another text, because the index caches near words. All times are CPU times.

Local intents. A cold start is a new process. The other sentences run after `warm_up`. Sizes and sentences run
in random order. The best and the median are wall times.
"""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from operator import itemgetter

from rich.console import Console
from rich.table import Table

from benchmarks._home_dialogue import ASKS
from benchmarks._home_index import ENTITIES, OF_ALL_ENTITIES, measure_indexes
from benchmarks._home_prompts import COUNTS, PARTS, SASH, PromptTotals, compare, count_parts
from benchmarks._home_sentences import (
    COMPARED_SIZE,
    SENTENCES,
    WHOLE_TURNS,
    measure_cold,
    measure_sentences,
)
from benchmarks._prompt_cache import CACHED_PRICES
from benchmarks._report import Row, arguments, machine, write_json
from benchmarks._simulated_model import Dialogue, play_dialogue
from benchmarks._times import Times

HOME_SIZES = (50, 500, 5_000)
SENTENCE_SIZES = (10, 100, 300, 1_000, 3_000)

MAX_TOKEN_GROWTH = 2.0
MAX_BUILDING_MS, MAX_SEARCH_MS, MAX_EVENT_MS = 2_000.0, 5.0, 0.1
MAX_SENTENCE_MS = 10.0


def show_tokens(
    results: dict[int, dict[str, PromptTotals]], dialogues: dict[int, Dialogue], console: Console
) -> None:
    """Print the tokens of a turn in each home."""
    table = Table(title=f"{len(ASKS)} turns with a home, tokens of all prompts of a turn · {machine()}")
    table.add_column("entities", justify="right")
    table.add_column("", no_wrap=True)
    low, smallest = CACHED_PRICES[0], min(results)
    columns = "calls per turn", "tokens per turn", "× Sash", f"× at {smallest}", "largest prompt", "cached"
    for column in (*columns, f"paid at {low}"):
        table.add_column(column, justify="right", no_wrap=True)
    for size, at_size in results.items():
        for name, totals in at_size.items():
            table.add_row(
                f"{size:,}" if name == SASH else "",
                name,
                f"{totals.calls / totals.turns:.2f}",
                f"{totals.tokens_per_turn:,.0f}",
                f"{totals.tokens_per_turn / at_size[SASH].tokens_per_turn:.1f}",
                f"{totals.tokens_per_turn / results[smallest][name].tokens_per_turn:.2f}",
                f"{totals.largest:,}",
                f"{totals.share:.1%}",
                f"{totals.paid_per_turn(low):,.0f}",
                style="bold green" if name == SASH else "",
                end_section=name == list(at_size)[-1],
            )
    console.print(table)
    table = Table(title=f"the parts of the tokens per turn of {SASH}, and the results of its turns")
    table.add_column("entities", justify="right")
    for column in (*PARTS, *(label for label, _ in COUNTS)):
        table.add_column(column, justify="right")
    for size, dialogue in dialogues.items():
        tokens_by_part = count_parts(dialogue)
        tokens = [f"{tokens_by_part[part] / len(ASKS):,.0f}" for part in PARTS]
        table.add_row(f"{size:,}", *tokens, *(str(count(dialogue)) for _, count in COUNTS))
    console.print(table)


def show_index(index: dict[str, dict[str, Times]], console: Console) -> None:
    """Print the times of the index."""
    table = Table(title=f"the index of a home of {ENTITIES:,} entities, CPU ms · {machine()}")
    table.add_column("", no_wrap=True)
    for home, column in itertools.product(index, Times._fields):
        table.add_column(f"{home}: {column}", justify="right")
    for operation in next(iter(index.values())):
        values = itertools.chain.from_iterable(times[operation] for times in index.values())
        table.add_row(operation, *(f"{value:,.4f}" if value < 0.1 else f"{value:,.2f}" for value in values))
    console.print(table)


def show_sentences(
    times: dict[tuple[str, int], Times], cold: dict[str, Times], sizes: Sequence[int], console: Console
) -> None:
    """Print the times of the sentences."""
    table = Table(title=f"sentences without a model, ms, median (best) · {machine()}")
    table.add_column("entities", no_wrap=True)
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    for case in (*SENTENCES, *WHOLE_TURNS):
        cells = [f"{times[case, size].median:.2f} ({times[case, size].best:.2f})" for size in sizes]
        table.add_row(case, *cells)
    console.print(table)
    table = Table(title=f"the first sentence of a process, {COMPARED_SIZE} entities, ms")
    table.add_column("", no_wrap=True)
    for column in ("best", "median"):
        table.add_column(column, justify="right")
    for part, taken in cold.items():
        table.add_row(part, f"{taken.best:,.1f}", f"{taken.median:,.1f}")
    console.print(table)


def list_targets(
    results: dict[int, dict[str, PromptTotals]],
    dialogues: dict[int, Dialogue],
    index: dict[str, dict[str, Times]],
    sentences: dict[tuple[str, int], Times],
) -> Iterator[tuple[str, str, str, bool]]:
    """Yield each target: its text, the limit, the measured value, and if it is reached."""
    small, large = min(results), max(results)
    growth = results[large][SASH].tokens_per_turn / results[small][SASH].tokens_per_turn
    text = f"tokens per turn at {large:,} entities against {small}"
    yield text, f"< {MAX_TOKEN_GROWTH:.0f} ×", f"{growth:.2f} ×", growth < MAX_TOKEN_GROWTH
    wrong = sum(dialogue.wrong_answers for dialogue in dialogues.values())
    yield "answers with a wrong state", "none", str(wrong), not wrong
    for home, times in index.items():
        built_ms = times["building the index"].median
        text = f"building the index of {ENTITIES:,} entities, {home}"
        limit = f"< {MAX_BUILDING_MS / 1e3:.0f} s"
        yield text, limit, f"{built_ms / 1e3:.2f} s", built_ms < MAX_BUILDING_MS
    for home, times in index.items():
        searches = {name: taken.median for name, taken in times.items() if name.startswith("search: ")}
        for is_common in (False, True):
            slowest, found_ms = max(
                (
                    (name, taken)
                    for name, taken in searches.items()
                    if name.endswith(OF_ALL_ENTITIES) is is_common
                ),
                key=itemgetter(1),
            )
            text = f"{slowest}, {home}" if is_common else f"search for anything else, the slowest, {home}"
            yield text, f"< {MAX_SEARCH_MS:.0f} ms", f"{found_ms:.2f} ms", found_ms < MAX_SEARCH_MS
    event_ms = max(times["a state event"].median for times in index.values())
    yield "a state event", f"< {MAX_EVENT_MS} ms", f"{event_ms:.4f} ms", event_ms < MAX_EVENT_MS
    sentence_ms = max(sentences[case, COMPARED_SIZE].median for case in SENTENCES)
    text = f"a local intent after the warm-up at {COMPARED_SIZE} entities, the slowest sentence"
    yield text, f"< {MAX_SENTENCE_MS:.0f} ms", f"{sentence_ms:.2f} ms", sentence_ms < MAX_SENTENCE_MS


def make_token_rows(
    results: dict[int, dict[str, PromptTotals]], dialogues: dict[int, Dialogue]
) -> Iterator[Row]:
    """Yield the tokens of all systems as rows."""
    for size, name in itertools.product(results, next(iter(results.values()))):
        totals, params = results[size][name], {"entities": size, "turns": len(ASKS)}
        values = {
            "calls per turn": (totals.calls / totals.turns, ""),
            "tokens per turn": (totals.tokens_per_turn, "tokens"),
            "largest prompt": (totals.largest, "tokens"),
            "cached share": (totals.share, ""),
            **{f"paid at {price}": (totals.paid_per_turn(price), "tokens") for price in CACHED_PRICES},
        }
        for metric, (value, unit) in values.items():
            yield Row("home", name, metric, value, unit, params)
    for size, dialogue in dialogues.items():
        params = {"entities": size, "turns": len(ASKS)}
        for part, tokens in count_parts(dialogue).items():
            yield Row("home", SASH, f"tokens per turn, {part}", tokens / len(ASKS), "tokens", params)
        for label, count in COUNTS:
            yield Row("home", SASH, label, count(dialogue), "turns", params)


def make_time_rows(
    index: dict[str, dict[str, Times]], sentences: dict[tuple[str, int], Times], cold: dict[str, Times]
) -> Iterator[Row]:
    """Yield all times as rows."""
    timed = [
        (f"{operation}, {home}", ENTITIES, taken)
        for home, times in index.items()
        for operation, taken in times.items()
    ]
    timed += [(case, size, taken) for (case, size), taken in sentences.items()]
    timed += [(part, COMPARED_SIZE, taken) for part, taken in cold.items()]
    for name, size, taken in timed:
        for metric, value in taken._asdict().items():
            yield Row("home", name, metric, value, "ms", {"entities": size})


def main() -> None:
    options, console = arguments(__doc__ or ""), Console(width=150)
    builds, searches, sentence_repeats, processes = (3, 30, 15, 2) if options.quick else (9, 200, 150, 9)
    dialogues: dict[int, Dialogue] = {}
    results: dict[int, dict[str, PromptTotals]] = {}
    for size in HOME_SIZES:
        with console.status(f"{size:,} entities …"):
            dialogues[size] = asyncio.run(play_dialogue(size))
            results[size] = compare(dialogues[size])
    show_tokens(results, dialogues, console)
    with console.status("the index …"):
        index = asyncio.run(measure_indexes(builds, searches))
    show_index(index, console)
    with console.status("sentences …"):
        sentences = asyncio.run(measure_sentences(SENTENCE_SIZES, sentence_repeats))
        cold = measure_cold(processes)
    show_sentences(sentences, cold, SENTENCE_SIZES, console)
    table = Table(title="targets")
    table.add_column("", no_wrap=True)
    for column in ("target", "measured", "reached"):
        table.add_column(column, justify="right")
    for text, limit, value, reached in list_targets(results, dialogues, index, sentences):
        table.add_row(text, limit, f"[bold]{value}[/]", "[green]✓[/]" if reached else "[red]✗[/]")
    console.print(table)
    rows = [*make_token_rows(results, dialogues), *make_time_rows(index, sentences, cold)]
    write_json(rows, options.json)


if __name__ == "__main__":
    main()
