"""What only time and size show, in a process of its own: opening a large store, and memory over many turns.

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

MESSAGES_A_SESSION = 100


async def opening(folder: Path, sessions: int) -> dict[str, float]:
    """Fill a store, then open it anew and read one session's window."""
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
                    n > MESSAGES_A_SESSION - 20,
                )
                for n in range(1, MESSAGES_A_SESSION + 1)
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


async def memory(folder: Path, turns: int) -> dict[str, float]:
    """Run many turns through one session and watch the resident memory."""
    sash = Sash("sqlite", folder)
    await sash.open()
    session = await sash.session()
    warm = turns // 10
    resident = 0.0
    for n in range(1, turns + 1):
        await sash.turn(session)
        if n == warm:
            resident = _resident()
    grown = _resident() / resident
    await sash.close()
    return {"resident after a tenth": resident, "resident at the end": resident * grown, "growth": grown}


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    mode, folder, count = sys.argv[1:]
    job = {"open": opening, "memory": memory}[mode]
    print(json.dumps(asyncio.run(job(Path(folder), int(count)))))


if __name__ == "__main__":
    main()
