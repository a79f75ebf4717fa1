"""`sash export`: writes a whole session as JSON. A failed export leaves no file."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from sash.cli.options import CommonOptions, SessionId, with_common_options

STDOUT = Path("-")


@with_common_options
def export(
    options: CommonOptions,
    session: SessionId,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file; - is standard output.")
    ] = STDOUT,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a whole session as JSON, for `sash import`."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_text
    from sash.cli.terminal.progress_bar import show_progress

    if output != STDOUT:
        _refuse_existing(output, force)

    async def read_session(service: AgentService, caller: Caller) -> dict[str, Any]:
        return await service.export_session(caller, session)

    with show_progress("Reading"):
        bundle = run_with_service(options, read_session)
    if output == STDOUT:
        sys.stdout.writelines(_encode(bundle))
        return
    _write(output, bundle, force)
    messages = len(bundle["messages"])
    print_text(make_console(stderr=True), f"Wrote the session with {messages} messages to {output}.")


def _refuse_existing(path: Path, force: bool) -> None:
    from sash.errors import InvalidInput

    if path.exists() and (not force or not path.is_file()):
        raise InvalidInput(f"{path} exists: choose another name, or replace the file with --force")


def _write(path: Path, bundle: dict[str, Any], force: bool) -> None:
    """Write a temporary file in the same folder, and rename it to `path` when it is complete and synced."""
    from sash.cli.terminal.progress_bar import show_progress
    from sash.errors import InvalidInput

    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        draft = Path(name)
        try:
            total = sum(len(part) for part in bundle.values() if isinstance(part, list))
            with os.fdopen(handle, "w", encoding="utf-8") as file, show_progress("Writing", total) as advance:
                for text in _encode(bundle):
                    file.write(text)
                    advance(1)
                file.flush()
                os.fsync(file.fileno())
            _refuse_existing(path, force)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from error


def _encode(bundle: dict[str, Any]) -> Iterator[str]:
    """Yield the JSON text in pieces. Each list item is on its own line, for people and for diff."""
    for n, (name, part) in enumerate(bundle.items()):
        yield f"{',' if n else '{'}\n{json.dumps(name)}: "
        if not isinstance(part, list) or not part:
            yield json.dumps(part)
            continue
        for k, item in enumerate(part):
            yield f"{',' if k else '['}\n{json.dumps(item)}"
        yield "\n]"
    yield "\n}\n"
