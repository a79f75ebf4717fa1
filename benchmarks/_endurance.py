"""Opens a large store, or measures memory over many turns, in its own process.

python -m benchmarks._endurance open|memory FOLDER COUNT
"""

import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks._durable import Sash
from sash.ports.store import Bundle, StoredMessage
from sash.stores.sqlite.store import SqliteStore
from sash.values.ids import new_id
from sash.values.messages import MessageEntry
from sash.values.sessions import Session

MESSAGES_PER_SESSION = 100


async def measure_opening(folder: Path, sessions: int) -> dict[str, float]:
    """Fill a store, open it again, and run one turn; return both times in ms."""
    now = datetime.now(UTC)
    store = SqliteStore(folder / "sash.db", synchronous="NORMAL")
    await store.open()
    for start in range(0, sessions, 100):
        bundles = []
        for _ in range(start, min(start + 100, sessions)):
            session = Session(new_id(), "local", now, now)
            messages = tuple(
                StoredMessage(
                    session.id,
                    n,
                    MessageEntry("user" if n % 2 else "assistant", f"message {n} of a session", now, 10),
                    n > MESSAGES_PER_SESSION - 20,
                )
                for n in range(1, MESSAGES_PER_SESSION + 1)
            )
            bundles.append(store.import_session(Bundle(session, messages=messages)))
        await asyncio.gather(*bundles)
    await store.close()

    sash = Sash("sqlite", folder)
    started = time.perf_counter()
    await sash.open()
    opened = time.perf_counter() - started
    started = time.perf_counter()
    await sash.turn(session.id)
    first = time.perf_counter() - started
    await sash.close()
    return {"open": opened * 1e3, "first turn": first * 1e3}


async def measure_memory(folder: Path, turns: int) -> dict[str, float]:
    """Run many turns in one session; return the resident memory in MiB and its growth."""
    sash = Sash("sqlite", folder)
    await sash.open()
    session = await sash.session()
    warm_up_turns = turns // 10
    resident_mib = 0.0
    for n in range(1, turns + 1):
        await sash.turn(session)
        if n == warm_up_turns:
            resident_mib = _read_resident_mib()
    growth = _read_resident_mib() / resident_mib
    await sash.close()
    return {
        "resident after a tenth": resident_mib,
        "resident at the end": resident_mib * growth,
        "growth": growth,
    }


def _read_resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    mode, folder, count = sys.argv[1:]
    job = {"open": measure_opening, "memory": measure_memory}[mode]
    print(json.dumps(asyncio.run(job(Path(folder), int(count)))))


if __name__ == "__main__":
    main()
