"""A process on a full or read-only disk. The kernel refuses the writes; nothing is simulated.

    python -m tests.recovery.disk full KIND FOLDER         files have a size limit, which is removed later
    python -m tests.recovery.disk read_only KIND FOLDER    the folder belongs to another user

It prints the outcome as JSON.
"""

import asyncio
import json
import os
import resource
import signal
import sys

from sash import Runtime
from sash.errors import StoreUnavailable
from sash.testing import ScriptedModel
from tests.recovery.house import open_store

NOBODY = 65534
LONG = "y" * 3000


async def turn(sash, session_id, message):
    sent = await sash.send_message(session_id, message)
    return await sash.await_continuation(sent.id, timeout_s=30)


def limit_files(size):
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


async def fill_up(sash, session_id):
    """Send messages until the disk is full, and return the error message."""
    for _ in range(200):
        try:
            result = await turn(sash, session_id, LONG)
        except StoreUnavailable as error:
            return error.message
        if result.status != "completed":
            return result.continuation.error.message if result.continuation.error else result.status
    return "never full"


async def full(kind, folder):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    async with Runtime(open_store(kind, folder), ScriptedModel(lambda request: "ok")) as sash:
        session = await sash.start_session()
        await turn(sash, session.id, "before")
        limit_files(200_000 if kind == "sqlite" else 4_000)
        refused = await fill_up(sash, session.id)
        still_readable = (await sash.get_session(session.id)).id == session.id
        limit_files(resource.RLIM_INFINITY)
        await sash.recover()
        after = await turn(sash, session.id, "after")
        said = [m.message.text for m in await sash.store.messages("local", session.id)]
    return {"refused": refused, "readable": still_readable, "after": after.status, "said": said}


async def read_only(kind, folder):
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    store = open_store(kind, folder)
    try:
        await store.open()
        await store.close()
    except StoreUnavailable as error:
        return {"refused": error.message}
    return {"refused": None}


if __name__ == "__main__":
    what, kind, folder = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run({"full": full, "read_only": read_only}[what](kind, folder))))
