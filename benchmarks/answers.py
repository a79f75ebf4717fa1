"""Says the everyday sentences of `tests/answers` to Sash without a model.

`--house demo` uses the demo house. `--house ha` starts a real Home Assistant, and says the same sentences to
Home Assistant's own default agent as well. `--house all` uses both. The table was written before the code
that answers it. The benchmark reports how many answers a person would expect, and the time of a local turn.

`--kind NAME` says one kind only, and `--failed` lists the answers that are wrong. `--without-follow-ups` says
everything once more to a Sash that forgets the earlier sentences, and lists what only this makes wrong.
`--markdown FILE` writes the tables into a file, below its heading "Results".
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import track

import sash.home.actions
from benchmarks._answers_report import (
    OWN_AGENT,
    SASH,
    HouseResult,
    Said,
    show,
    write_json,
    write_markdown,
)
from tests.answers import demo_talk
from tests.answers.judge import Heard, find_fault
from tests.answers.real_house import TableHouse, run_table_house
from tests.answers.real_talk import RealTalks, can_be_held
from tests.answers.sash_talk import TurnTimes, WithoutFollowUps
from tests.answers.table import Case, read_cases
from tests.ha.install import install

Hold = Callable[[Case], Awaitable[Heard]]


def main() -> None:
    options = _parse_arguments()
    cases = [case for case in read_cases() if options.kind in (None, case.kind)]
    console, results = Console(), []
    if options.house in ("demo", "all"):
        selected = [case for case in cases if "demo" in case.houses]
        selected = selected[::5] if options.quick else selected
        with _without_read_back():
            results.append(asyncio.run(talk_in_demo_house(selected, options.without_follow_ups)))
    if options.house in ("ha", "all"):
        selected = [case for case in cases if "ha" in case.houses]
        selected = selected[::5] if options.quick else selected
        with (
            tempfile.TemporaryDirectory() as folder,
            run_table_house(install(), Path(folder) / "config") as house,
        ):
            results.append(asyncio.run(talk_in_real_house(house, selected, options.without_follow_ups)))
    for result in results:
        show(console, result, failed=options.failed)
    if options.json:
        write_json(options.json, results)
    if options.markdown:
        write_markdown(options.markdown, results)


def _parse_arguments() -> argparse.Namespace:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--house", choices=("demo", "ha", "all"), default="demo")
    parser.add_argument("--kind")
    parser.add_argument("--failed", action="store_true")
    parser.add_argument("--without-follow-ups", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--quick", action="store_true", help="every fifth sentence")
    return parser.parse_args()


async def talk_in_demo_house(cases: Sequence[Case], without_follow_ups: bool) -> HouseResult:
    """Say the cases to Sash in the demo house."""
    started, times = time.perf_counter(), TurnTimes()
    said = {SASH: await judge(cases, partial(demo_talk.hold, times=times), "demo house")}
    result = HouseResult("demo", said, times, time.perf_counter() - started)
    if without_follow_ups:
        hold = partial(demo_talk.hold, wrap=WithoutFollowUps)
        result.without_follow_ups = await judge(cases, hold, "without follow-ups")
    return result


async def talk_in_real_house(
    house: TableHouse, cases: Sequence[Case], without_follow_ups: bool
) -> HouseResult:
    """Say the cases to Sash and to Home Assistant's own agent in a real house."""
    started, times = time.perf_counter(), TurnTimes()
    held = [case for case in cases if can_be_held(case)]
    async with RealTalks.open(house, times) as talks:
        said = {
            SASH: await judge(held, talks.hold_with_sash, SASH),
            OWN_AGENT: await judge(held, talks.hold_with_own_agent, OWN_AGENT),
        }
        took_s, skipped = time.perf_counter() - started, len(cases) - len(held)
        result = HouseResult("ha", said, times, took_s, skipped, frozenset(talks.unrestored))
    if without_follow_ups:
        async with RealTalks.open(house, TurnTimes(), WithoutFollowUps) as talks:
            result.without_follow_ups = await judge(held, talks.hold_with_sash, "without follow-ups")
    return result


async def judge(cases: Sequence[Case], hold: Hold, title: str) -> list[Said]:
    """Hold all conversations, one after the other. An error is a wrong answer."""
    said = []
    for case in track(cases, title):
        try:
            heard = await hold(case)
            said.append(Said(case, heard.answer, find_fault(case, heard)))
        except Exception as error:
            said.append(Said(case, "", f"{type(error).__name__}: {error}"))
    return said


@contextmanager
def _without_read_back() -> Iterator[None]:
    """Shorten the wait for the effect of an action. The simulated house reacts at once."""
    before, sash.home.actions.READ_BACK_S = sash.home.actions.READ_BACK_S, 0.01
    try:
        yield
    finally:
        sash.home.actions.READ_BACK_S = before


if __name__ == "__main__":
    main()
