"""The options that many commands share."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sash.cli.completion import (
    complete_language,
    complete_named_session,
    complete_session,
    complete_store,
    complete_unfinished_turn,
)
from sash.stores.registry import describe_backends

if TYPE_CHECKING:
    from sash.app.settings_loader import LoadedSettings

Data = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="The data folder.")]
Store = Annotated[
    str | None,
    typer.Option("--store", metavar="KIND", help=f"{describe_backends()}.", autocompletion=complete_store),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The configuration file, a sash.toml.")
]
Owner = Annotated[str, typer.Option("--owner", metavar="NAME", help="The owner of the data.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SessionId = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="The id of the session: `sash sessions` lists them.",
        autocompletion=complete_session,
    ),
]
TurnId = Annotated[
    str,
    typer.Argument(
        metavar="CONTINUATION",
        help="The id of the turn: `sash show SESSION` lists unfinished turns.",
        autocompletion=complete_unfinished_turn,
    ),
]
OptionalSession = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", help="The id of the session.", autocompletion=complete_session),
]
NamedSession = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID|NAME",
        help="The session, by its id or its name. A new name starts a session.",
        autocompletion=complete_named_session,
    ),
]
OptionalArea = Annotated[
    str | None, typer.Option("--area", metavar="NAME", help="The area of the house where you are.")
]
Language = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="CODE",
        help="The language you speak: en, de, …",
        autocompletion=complete_language,
    ),
]

LOCAL_OWNER = "local"
# The largest value of --limit and --messages.
MAX_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """The data folder, the store, the configuration file and the owner that a command works with."""

    data: Data = None
    store: Store = None
    config: Config = None
    owner: Owner = LOCAL_OWNER

    def load_settings(self, *, warn: bool = True, **flags: Any) -> "LoadedSettings":
        """Load the settings. Flags take precedence over the environment and the configuration file.

        With `warn`, print a line to standard error for each unknown variable `SASH_…`.
        """
        from sash.app.settings_loader import load_settings

        loaded = load_settings({"data": self.data, "store": self.store, **flags}, file=self.config)
        for warning in loaded.warnings if warn else ():
            typer.echo(f"warning: {warning}", err=True)
        return loaded


def with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the common options after its own. Its first parameter receives them."""
    shared = signature(CommonOptions).parameters
    _, *own = signature(command).parameters.values()

    @wraps(command)
    def run(**given: Any) -> None:
        command(CommonOptions(**{name: given.pop(name) for name in shared}), **given)

    parameters = [*own, *shared.values()]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run
