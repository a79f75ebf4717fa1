"""The tables, the JSON and the Markdown of the benchmark of answers."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks._report import machine
from tests.answers.sash_talk import TurnTimes
from tests.answers.table import LANGUAGES, Case

TITLES = {"demo": "The demo house", "ha": "A real Home Assistant"}
SASH, OWN_AGENT = "Sash", "Home Assistant"
# What is written below this line is replaced.
RESULTS = "## Results"


@dataclass(frozen=True)
class Said:
    """The answer to a case, and what is wrong with it, or None."""

    case: Case
    answer: str
    fault: str | None


@dataclass
class HouseResult:
    """What the agents said in one house. `without_follow_ups` is said by a Sash that forgets."""

    house: str
    said: dict[str, list[Said]]
    times: TurnTimes
    took_s: float
    skipped: int = 0
    unrestored: frozenset[str] = frozenset()
    without_follow_ups: list[Said] = field(default_factory=list)

    def list_broken(self) -> list[Said]:
        """Return the answers that are wrong only without follow-ups."""
        good = {each.case.id for each in self.said[SASH] if each.fault is None}
        return [each for each in self.without_follow_ups if each.fault and each.case.id in good]


def show(console: Console, result: HouseResult, *, failed: bool) -> None:
    """Print the shares of one house, and with `failed` the wrong answers."""
    if failed:
        _show_failed(console, result)
    console.print(_make_language_table(result) if len(result.said) == 1 else _make_agent_table(result))
    console.print(describe_times(result))
    if result.skipped:
        console.print(f"{result.skipped} sentences were left out: they need a jump of the clock")
    if result.unrestored:
        console.print(f"[red]not restored between sentences:[/] {', '.join(sorted(result.unrestored))}")
    if result.without_follow_ups:
        broken = result.list_broken()
        console.print(f"without follow-ups {len(broken)} more answers are wrong:")
        for each in broken:
            console.print(f"  {each.case.kind} {each.case.id}: {escape(each.fault or '')}")


def describe_times(result: HouseResult) -> str:
    return f"{TITLES[result.house]}: {result.times.describe()}; {result.took_s:.0f} s in all"


def _show_failed(console: Console, result: HouseResult) -> None:
    """Print the wrong answers of Sash, and the other agent's answers beside them."""
    others = {name: {each.case.id: each for each in said} for name, said in result.said.items()}
    for case in [each.case for each in result.said[SASH]]:
        answers = {name: by_id[case.id] for name, by_id in others.items()}
        if all(each.fault is None for each in answers.values()):
            continue
        sentence = " / ".join([*(item for item in case.before if isinstance(item, str)), case.say])
        console.print(f"[bold]{case.kind}[/] {case.id}: {escape(sentence)}")
        for name, each in answers.items():
            verdict = f"[red]{escape(each.fault)}[/]" if each.fault else "[green]good[/]"
            console.print(f"  {name}: {escape(repr(each.answer))} {verdict}")


def _make_language_table(result: HouseResult) -> Table:
    """Return the share of good answers of Sash by kind and language."""
    table = Table("kind", *LANGUAGES, "all", "share", title=TITLES[result.house])
    said = result.said[SASH]
    for kind in _list_kinds(said):
        if kind == "all":
            table.add_section()
        rows = [[each for each in _select(said, kind) if each.case.language == name] for name in LANGUAGES]
        cells = [f"{_count_good(row)}/{len(row)}" if row else "" for row in rows]
        table.add_row(kind, *cells, *_describe_share(_select(said, kind)))
    return table


def _make_agent_table(result: HouseResult) -> Table:
    """Return the shares of good answers of each agent by kind."""
    table = Table("kind", "sentences", *result.said, title=TITLES[result.house])
    for kind in _list_kinds(result.said[SASH]):
        if kind == "all":
            table.add_section()
        shares = [_describe_share(_select(said, kind))[1] for said in result.said.values()]
        table.add_row(kind, str(len(_select(result.said[SASH], kind))), *shares)
    return table


def write_markdown(file: Path, results: Sequence[HouseResult]) -> None:
    """Write the tables into a Markdown file, below its heading `## Results`. The text above stays."""
    above = file.read_text("utf-8").partition(RESULTS)[0].rstrip() if file.exists() else ""
    parts = [*filter(None, [above]), RESULTS, f"Measured with {machine()}."]
    for result in results:
        agents = list(result.said)
        lines = [f"| kind | sentences | {' | '.join(agents)} |", f"|---|---|{'---|' * len(agents)}"]
        for kind in _list_kinds(result.said[SASH]):
            cells = [" · ".join(_describe_share(_select(said, kind))) for said in result.said.values()]
            count = len(_select(result.said[SASH], kind))
            lines.append(f"| {kind.replace('_', ' ')} | {count} | {' | '.join(cells)} |")
        notes = [f"M{result.times.describe()[1:]}."] if result.times.turns_ms else []
        if result.skipped:
            notes.append(f"{result.skipped} sentences were left out: they need a jump of the clock.")
        if result.without_follow_ups:
            notes.append(
                f"Without its follow-ups, Sash gives {len(result.list_broken())} more answers that are wrong."
            )
        parts += [f"### {TITLES[result.house]}", "\n".join(lines), " ".join(notes)]
    file.write_text("\n\n".join(parts) + "\n", "utf-8")


def write_json(file: Path, results: Sequence[HouseResult]) -> None:
    """Write the faults of each agent in each house, by the ids of the cases, and the times of Sash."""
    found = {
        result.house: {
            "sentences": len(result.said[SASH]),
            "skipped": result.skipped,
            "turn_ms": result.times.median_turn_ms,
            "understanding_ms": result.times.median_understanding_ms,
            "faults": {
                name: {each.case.id: each.fault for each in said if each.fault}
                for name, said in result.said.items()
            },
            "broken_without_follow_ups": [each.case.id for each in result.list_broken()],
        }
        for result in results
    }
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _list_kinds(said: Sequence[Said]) -> list[str]:
    return [*sorted(Counter(each.case.kind for each in said)), "all"]


def _select(said: Sequence[Said], kind: str) -> list[Said]:
    return [each for each in said if kind in ("all", each.case.kind)]


def _count_good(said: Sequence[Said]) -> int:
    return sum(each.fault is None for each in said)


def _describe_share(said: Sequence[Said]) -> tuple[str, str]:
    good = _count_good(said)
    return f"{good}/{len(said)}", f"{good / len(said):.0%}"
