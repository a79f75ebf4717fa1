"""The arguments, the result rows, the JSON file and the machine's name, for all benchmarks."""

import argparse
import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measured value."""

    bench: str
    system: str
    metric: str
    value: float
    unit: str
    params: dict[str, Any] = field(default_factory=dict)


def arguments(description: str, **files: str) -> argparse.Namespace:
    """Parse `--quick`, `--json FILE`, and one more option with a file for each of `files`, with its help."""
    parser = argparse.ArgumentParser(description=description)
    for name, text in files.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=text)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a first look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE")
    options = parser.parse_args()
    if options.json and not options.json.resolve().parent.is_dir():
        parser.error(f"--json: the folder {options.json.resolve().parent} does not exist")
    return options


def write_json(rows: list[Row], file: Path | None) -> None:
    """Write the rows to a file; do nothing without a file."""
    if file is not None:
        file.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def machine() -> str:
    """Describe the machine that runs the benchmark."""
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}"
