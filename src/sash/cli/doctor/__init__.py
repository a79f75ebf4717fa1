"""`sash doctor`: what is in force, what is wrong, and what to do about it. It changes nothing."""

import asyncio
from typing import TYPE_CHECKING, Any

import typer

from sash.cli.options import Config, Data, Json, Place, Store

if TYPE_CHECKING:
    from rich.console import Console

    from sash.app.settings import Loaded, Settings
    from sash.cli.doctor.finding import Finding

_STYLES = {"ok": "green", "note": "yellow", "wrong": "red"}


def doctor(as_json: Json = False, data: Data = None, store: Store = None, config: Config = None) -> None:
    """Check the configuration, the store, the model, the house; exit with 1 if something is wrong."""
    from sash.cli.console import make_console, print_json
    from sash.cli.doctor.finding import Finding
    from sash.cli.doctor.packages import check_packages
    from sash.cli.logs import quiet
    from sash.errors import SashError

    loaded = None
    try:
        loaded = Place(data, store, config).load()
        read = f"{loaded.file} was read" if loaded.file else "there is no sash.toml, and none is needed"
        findings = [Finding("configuration", "ok", read), *asyncio.run(_examine(quiet(loaded)))]
    except SashError as error:
        findings = [Finding("configuration", "wrong", error.message), check_packages(None)]
    well = all(finding.status != "wrong" for finding in findings)
    if as_json:
        print_json(_as_json(loaded, findings, well))
    else:
        with make_console() as console:  # At one go, for who reads only the first lines.
            if loaded is not None:
                _print_settings(console, loaded)
            _print_findings(console, findings)
    raise typer.Exit(0 if well else 1)


async def _examine(settings: "Settings") -> "list[Finding]":
    from sash.cli.doctor.bind import check_bind
    from sash.cli.doctor.disk import check_folder, check_store
    from sash.cli.doctor.packages import check_packages
    from sash.cli.doctor.parts import check_parts
    from sash.cli.doctor.reach import check_home, check_model

    model, home = await asyncio.gather(check_model(settings), check_home(settings))
    return [
        check_folder(settings),
        await asyncio.to_thread(check_store, settings),
        model,
        home,
        *check_parts(settings),
        check_bind(settings),
        check_packages(settings),
    ]


def _rows(loaded: "Loaded") -> list[tuple[str, str, str]]:
    from sash.app.settings import shown

    settings = loaded.settings
    values = {name: getattr(settings, name) for name in loaded.origins} | {"data": settings.folder}
    return [(name, shown(name, values[name]), origin) for name, origin in loaded.origins.items()]


def _as_json(loaded: "Loaded | None", findings: "list[Finding]", well: bool) -> dict[str, Any]:
    from dataclasses import asdict

    names = ("name", "value", "from")
    return {
        "ok": well,
        "config_file": str(loaded.file) if loaded is not None and loaded.file is not None else None,
        "settings": [dict(zip(names, row, strict=True)) for row in _rows(loaded)] if loaded else [],
        "checks": [asdict(finding) for finding in findings],
    }


def _print_settings(console: "Console", loaded: "Loaded") -> None:
    from sash.cli.tables import Column, cell, print_table

    columns = (Column("setting"), Column("from"), Column("value", wraps=True))
    rows = [
        (cell(name), cell(origin, "dim" if origin == "default" else "cyan"), cell(value))
        for name, value, origin in _rows(loaded)
    ]
    print_table(console, columns, rows)
    console.print()


def _print_findings(console: "Console", findings: "list[Finding]") -> None:
    """Print each check in a line, and what to do below it."""
    from rich.text import Text

    from sash.cli.console import plain, sign

    marks = {"ok": sign(console, "✓", "+"), "note": "!", "wrong": sign(console, "✗", "x")}
    for finding in findings:
        line = Text(f"{marks[finding.status]} {finding.status:5} ", style=_STYLES[finding.status])
        line.append(f"{finding.check:14}", style="bold").append(plain(finding.found), style="not bold")
        console.print(line, soft_wrap=True)
        if finding.advice:
            console.print(Text(f"{'':8}{plain(finding.advice)}", style="dim"), soft_wrap=True)
