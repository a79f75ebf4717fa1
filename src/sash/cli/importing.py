"""`sash import`: bring an exported session back."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sash.cli.options import LOCAL, Config, Data, Owner, Place, Store

PIECE = 1 << 20
STDIN = Path("-")


def import_session(
    file: Annotated[Path, typer.Argument(help="What `sash export` wrote; - is standard input.")],
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """Bring an exported session back, and print its id."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.opening import read
    from sash.cli.progress import progress
    from sash.errors import SessionExists

    bundle = _parse(sys.stdin.buffer.read() if file == STDIN else _read(file))

    async def bring(desk: AgentService, caller: Caller) -> str:
        try:
            return (await desk.import_session(caller, bundle)).session_id
        except SessionExists as error:
            advice = (
                "delete what is here first (DELETE /v1/sessions/… at `sash serve`), or import it into "
                "another folder with --data"
            )
            raise replace(error, message=f"{error.message}; {advice}") from error

    with progress("Importing"):
        session_id = read(Place(data, store, config, owner), bring)
    typer.echo(session_id)


def _read(path: Path) -> bytes:
    from sash.cli.progress import progress
    from sash.errors import InvalidInput

    try:
        with path.open("rb") as file, progress("Reading", path.stat().st_size) as advance:
            pieces = []
            while piece := file.read(PIECE):
                pieces.append(piece)
                advance(len(piece))
        return b"".join(pieces)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error


def _parse(text: bytes) -> Any:
    from sash.errors import InvalidExport

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidExport(f"this is no JSON: {error!s:.200}") from error
