"""Run a turn on each store when this is imported, so that everything is loaded in the process that others are forked from."""

import asyncio
import tempfile
from pathlib import Path

from tests.recovery.house import main

NO_COMMIT = 0

with tempfile.TemporaryDirectory() as folder:
    for kind in ("sqlite", "files"):
        effects = Path(folder) / "effects"
        asyncio.run(main(kind, folder, effects, "fast", "in_turn", NO_COMMIT, "before"))
