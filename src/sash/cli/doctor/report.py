"""Runs all checks, and prints the settings and the findings."""

import asyncio
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from sash.app.settings import Settings
from sash.app.settings_loader import LoadedSettings, show_value
from sash.cli.doctor.configured_parts import check_configured_parts
from sash.cli.doctor.connections import check_embedder, check_home, check_model
from sash.cli.doctor.finding import Finding
from sash.cli.doctor.packages import check_packages
from sash.cli.doctor.server_address import check_server_address
from sash.cli.doctor.storage import check_folder, check_store
from sash.cli.terminal.console import make_console, pick_symbol, print_json, strip_controls
from sash.cli.terminal.tables import Column, cell, print_table

_STYLES = {"ok": "green", "note": "yellow", "wrong": "red"}


async def run_checks(settings: Settings) -> list[Finding]:
    """Run all checks and return their findings. The connections are checked at the same time."""
    connections = await asyncio.gather(check_model(settings), check_embedder(settings), check_home(settings))
    return [
        check_folder(settings),
        await asyncio.to_thread(check_store, settings),
        *connections,
        *check_configured_parts(settings),
        check_server_address(settings),
        check_packages(settings),
    ]


def print_report_as_json(loaded: LoadedSettings | None, findings: list[Finding]) -> None:
    names = ("name", "value", "from")
    print_json(
        {
            "ok": all(finding.status != "wrong" for finding in findings),
            "config_file": str(loaded.file) if loaded is not None and loaded.file is not None else None,
            "settings": [dict(zip(names, row, strict=True)) for row in _settings_rows(loaded)],
            "checks": [asdict(finding) for finding in findings],
        }
    )


def print_report(loaded: LoadedSettings | None, findings: list[Finding]) -> None:
    """Print the settings as a table, and each finding with its remedy."""
    # The console writes everything at once: `sash doctor | head -1` must not break the pipe midway.
    with make_console() as console:
        if loaded is not None:
            _print_settings(console, loaded)
        _print_findings(console, findings)


def _settings_rows(loaded: LoadedSettings | None) -> list[tuple[str, str, str]]:
    """Return the name, the value as text, and the origin of each setting; empty without settings."""
    if loaded is None:
        return []
    settings = loaded.settings
    values = {name: getattr(settings, name) for name in loaded.origins} | settings.in_force
    return [(name, show_value(name, values[name]), origin) for name, origin in loaded.origins.items()]


def _print_settings(console: Console, loaded: LoadedSettings) -> None:
    columns = (Column("setting"), Column("from"), Column("value", wraps=True))
    rows = [
        (cell(name), cell(origin, "dim" if origin == "default" else "cyan"), cell(value))
        for name, value, origin in _settings_rows(loaded)
    ]
    print_table(console, columns, rows)
    console.print()


def _print_findings(console: Console, findings: list[Finding]) -> None:
    marks = {"ok": pick_symbol(console, "✓", "+"), "note": "!", "wrong": pick_symbol(console, "✗", "x")}
    for finding in findings:
        line = Text(f"{marks[finding.status]} {finding.status:5} ", style=_STYLES[finding.status])
        line.append(f"{finding.check:14}", style="bold")
        line.append(strip_controls(finding.found), style="not bold")
        console.print(line, soft_wrap=True)
        if finding.advice:
            console.print(Text(f"{'':8}{strip_controls(finding.advice)}", style="dim"), soft_wrap=True)
