"""The options that many commands have, and where they lead: the settings in force, and whose sessions."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sash.cli.completion import complete_session, complete_store, complete_turn

if TYPE_CHECKING:
    from sash.app.settings import Loaded

Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The folder in which everything is kept.")
]
Store = Annotated[
    str | None,
    typer.Option("--store", metavar="KIND", help="sqlite, files or memory.", autocompletion=complete_store),
]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Another sash.toml.")]
Owner = Annotated[str, typer.Option("--owner", help="Whose sessions.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", autocompletion=complete_session)]
TurnId = Annotated[str, typer.Argument(metavar="CONTINUATION", autocompletion=complete_turn)]
SomeSession = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", help="The session.", autocompletion=complete_session),
]

LOCAL = "local"
# More than anybody has; a store counts no further than its numbers reach.
MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command works, as its options say."""

    data: Path | None
    store: str | None
    config: Path | None
    owner: str = LOCAL

    def load(self, **flags: Any) -> "Loaded":
        """Read the settings: flags over the environment over the file."""
        from sash.app.settings import load_settings

        return load_settings({"data": self.data, "store": self.store, **flags}, file=self.config)
