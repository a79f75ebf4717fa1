"""`sash export`: a whole session as JSON, in a file that is there whole or not at all."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from sash.cli.options import LOCAL, Config, Data, Owner, Place, SessionId, Store

STDOUT = Path("-")


def export(
    session: SessionId,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to; - is standard output.")
    ] = STDOUT,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """Write a whole session as JSON, for `sash import`."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.console import make_console, say
    from sash.cli.opening import read
    from sash.cli.progress import progress

    place = Place(data, store, config, owner)
    if output != STDOUT:
        _check_free(output, force)

    async def fetch(desk: AgentService, caller: Caller) -> dict[str, Any]:
        return await desk.export_session(caller, session)

    with progress("Reading"):
        bundle = read(place, fetch)
    if output == STDOUT:
        sys.stdout.writelines(_written(bundle))
        return
    _write(output, bundle, force)
    messages = len(bundle["messages"])
    say(make_console(stderr=True), f"{output} has the session with its {messages} messages.")


def _check_free(path: Path, force: bool) -> None:
    from sash.errors import InvalidInput

    if path.exists() and (not force or not path.is_file()):
        raise InvalidInput(f"{path} is there already: choose another name, or say --force")


def _write(path: Path, bundle: dict[str, Any], force: bool) -> None:
    """Write beside the place, and put it there when it is whole and on the disk."""
    from sash.cli.progress import progress
    from sash.errors import InvalidInput

    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        draft = Path(name)
        try:
            total = sum(len(part) for part in bundle.values() if isinstance(part, list))
            with os.fdopen(handle, "w", encoding="utf-8") as file, progress("Writing", total) as advance:
                for text in _written(bundle):
                    file.write(text)
                    advance(1)
                _sync(file)
            _check_free(path, force)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from error


def _sync(file: IO[str]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _written(bundle: dict[str, Any]) -> Iterator[str]:
    """Give the JSON in pieces: lists have an item a line, so that a person and a diff can read it."""
    for n, (name, part) in enumerate(bundle.items()):
        yield f"{',' if n else '{'}\n{json.dumps(name)}: "
        if not isinstance(part, list) or not part:
            yield json.dumps(part)
            continue
        for k, item in enumerate(part):
            yield f"{',' if k else '['}\n{json.dumps(item)}"
        yield "\n]"
    yield "\n}\n"
