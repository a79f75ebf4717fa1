"""`sash export`: writes a whole session as JSON. A failed export leaves no file."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from sash.cli.options import CommonOptions, SessionId, with_common_options
from sash.values.large_json import encode_in_steps

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
        async with service.open_export(caller, session) as exported:
            return exported

    with show_progress("Reading"):
        bundle = run_with_service(options, read_session)
    if output == STDOUT:
        sys.stdout.writelines(encode_in_steps(bundle, ensure_ascii=True))
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
                for text in encode_in_steps(bundle, ensure_ascii=True):
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
