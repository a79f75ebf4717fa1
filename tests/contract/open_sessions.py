"""A process that opens sessions by name, at the same time as others.

    python -m tests.contract.open_sessions BACKEND FOLDER COUNT

It prints "ready", waits for a line, opens a session of each name, and prints their ids as JSON.
"""

import asyncio
import json
import sys
from pathlib import Path

from sash.values.clock import SystemClock
from sash.values.ids import new_id
from sash.values.sessions import Session
from tests.backends import BACKENDS


async def main(backend, folder, count):
    clock = SystemClock()
    store = BACKENDS[backend](Path(folder), clock)
    await store.open()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    new = (Session(new_id(), "ann", clock.now(), clock.now(), name=f"room {n}") for n in range(int(count)))
    opened = [(await store.open_session(session)).id for session in new]
    await store.close()
    sys.stdout.write(json.dumps(opened))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
