"""A report of damaged files."""

import logging
import shutil
from pathlib import Path
from typing import NamedTuple

from sash.stores import disk

_logger = logging.getLogger(__name__)


class Damage(NamedTuple):
    """A file that could not be read completely. `what` says how the store handled it."""

    path: str
    what: str


class DamageReport:
    """The damaged files of a folder. Each one is logged once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.found: list[Damage] = []

    def add(self, path: Path, what: str) -> None:
        damage = Damage(str(path.relative_to(self._folder)), what)
        if damage not in self.found:
            self.found.append(damage)
            _logger.error("%s: %s", damage.path, what)


def keep_copy(path: Path) -> None:
    """Copy a damaged file to a file with the suffix `.damaged`, before it is written again."""
    with disk.use_file(path):
        shutil.copyfile(path, path.with_suffix(".damaged"))
