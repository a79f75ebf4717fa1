"""`sash import`: stores an exported session."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sash.cli.options import CommonOptions, with_common_options

CHUNK_BYTES = 1 << 20
STDIN = Path("-")


@with_common_options
def import_(
    options: CommonOptions,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file from `sash export`; - is standard input.")
    ],
) -> None:
    """Import an exported session and print its id."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.progress_bar import show_progress
    from sash.errors import SessionExists

    bundle = _parse(sys.stdin.buffer.read() if file == STDIN else _read(file))

    async def import_session(service: AgentService, caller: Caller) -> str:
        try:
            return (await service.import_session(caller, bundle)).id
        except SessionExists as error:
            advice = (
                "delete the existing session first (DELETE /v1/sessions/… at `sash serve`), or import "
                "it into another folder with --data"
            )
            raise replace(error, message=f"{error.message}; {advice}") from error

    with show_progress("Importing"):
        session_id = run_with_service(options, import_session)
    typer.echo(session_id)


def _read(path: Path) -> bytes:
    from sash.cli.terminal.progress_bar import show_progress
    from sash.errors import InvalidInput

    try:
        with path.open("rb") as file, show_progress("Reading", path.stat().st_size) as advance:
            chunks = []
            while chunk := file.read(CHUNK_BYTES):
                chunks.append(chunk)
                advance(len(chunk))
        return b"".join(chunks)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error


def _parse(text: bytes) -> Any:
    from sash.errors import InvalidExport

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidExport(f"the file is not JSON: {error!s:.200}") from error
