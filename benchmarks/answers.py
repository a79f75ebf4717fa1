"""Says the everyday sentences of `tests/answers` to Sash without a model, in the demo house.

It reports how many answers a person would expect. The table was written before the code that answers it.
`--kind NAME` says one kind only, and `--failed` lists the answers that are wrong.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

import sash.home.actions
from tests.answers.demo_talk import hold
from tests.answers.judge import find_fault
from tests.answers.table import LANGUAGES, Case, read_cases


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind")
    parser.add_argument("--failed", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="every fifth sentence")
    options = parser.parse_args()
    cases = [case for case in read_cases() if "demo" in case.houses and options.kind in (None, case.kind)]
    cases = cases[::5] if options.quick else cases
    # The simulated house reacts at once, so there is nothing to wait for.
    sash.home.actions.READ_BACK_S = 0.01
    console = Console()
    faults, times_ms = asyncio.run(judge(cases))
    if options.failed:
        for case, answer, fault in faults:
            said = " / ".join([*(item for item in case.before if isinstance(item, str)), case.say])
            console.print(f"[bold]{case.kind}[/] {case.id}: {escape(said)}")
            console.print(f"  {escape(answer)!r}\n  [red]{escape(fault)}[/]")
    failed = Counter((case.kind, case.language) for case, _, _ in faults)
    console.print(make_table(Counter((case.kind, case.language) for case in cases), failed))
    console.print(f"median time of a conversation: {median(times_ms):.0f} ms")
    if options.json:
        options.json.write_text(json.dumps({case.id: fault for case, _, fault in faults}, indent=1))


async def judge(cases: list[Case]) -> tuple[list[tuple[Case, str, str]], list[float]]:
    """Return the wrong answers with their faults, and the time of each conversation."""
    faults, times_ms = [], []
    for case in track(cases, "talking"):
        started = time.perf_counter()
        try:
            heard = await hold(case)
            answer, fault = heard.answer, find_fault(case, heard)
        except Exception as error:
            answer, fault = "", f"{type(error).__name__}: {error}"
        times_ms.append((time.perf_counter() - started) * 1000)
        if fault is not None:
            faults.append((case, answer, fault))
    return faults, times_ms


def make_table(said: Counter[tuple[str, str]], failed: Counter[tuple[str, str]]) -> Table:
    """Return the share of good answers by kind and language."""
    table = Table("kind", *LANGUAGES, "all", "share", title="Answers that a person would expect")
    kinds = sorted({kind for kind, _ in said})
    for kind in (*kinds, None):
        names = kinds if kind is None else [kind]
        if kind is None:
            table.add_section()
        counts = [
            (
                sum(said[name, language] - failed[name, language] for name in names),
                sum(said[name, language] for name in names),
            )
            for language in LANGUAGES
        ]
        good, all_said = sum(one for one, _ in counts), sum(other for _, other in counts)
        cells = [f"{one}/{other}" if other else "" for one, other in counts]
        table.add_row(kind or "all", *cells, f"{good}/{all_said}", f"{good / all_said:.0%}")
    return table


if __name__ == "__main__":
    main()
