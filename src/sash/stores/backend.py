"""The interface between a backend and the rest of Sash: its settings, its properties and its check."""

from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Protocol, Self

from sash.errors import InvalidConfig
from sash.ports.store import Store
from sash.values.clock import Clock


class StoreSettings(NamedTuple):
    """The settings of a store: the `store` setting, the folder of all data, and the clock."""

    store: str
    folder: Path
    clock: Clock

    def make_folder(self) -> Path:
        """Create the folder with access for its user only, and return it."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidConfig(
                f"{self.folder} cannot be created ({error.strerror}): choose another folder with --data or "
                "SASH_DATA",
                option="data",
            ) from error
        return self.folder


class StoreCheck(NamedTuple):
    """The result of a check: `found` describes the store, `advice` is the remedy. A "note" is no problem."""

    status: Literal["ok", "note", "wrong"]
    found: str
    advice: str = ""


NO_STORE_YET = StoreCheck("ok", "there is no store yet: it will be created")
RESTORE_BACKUP = "restore it from a backup"


class Backend(Store, Protocol):
    """A store class that the registry can name.

    `is_durable` is True if the data survive the process. `is_shared` is True if several processes may open
    the same store at once.
    """

    is_durable: ClassVar[bool]
    is_shared: ClassVar[bool]

    @classmethod
    def from_settings(cls, settings: StoreSettings) -> Self:
        """Return the store of these settings. It is not open yet."""

    @classmethod
    def exists(cls, settings: StoreSettings) -> bool:
        """Return True if the settings name a store that a process has created before."""

    @classmethod
    def check(cls, settings: StoreSettings) -> StoreCheck:
        """Check that this version of Sash can read the store. This writes nothing, but may block."""
