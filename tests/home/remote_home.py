"""Timing, pauses and checks for tests of a remote home."""

import asyncio
from datetime import UTC, datetime

import pytest

from sash.errors import HomeUnavailable
from sash.home.remote.websocket import Timing

QUICK = Timing(retry_s=0.001, max_retry_s=0.001, starting_s=0.001)


class Pauses:
    """Records pauses without waiting. After `limit` pauses it blocks forever."""

    def __init__(self, limit=1000):
        self.taken = []
        self._limit = limit

    async def __call__(self, seconds):
        self.taken.append(seconds)
        if len(self.taken) >= self._limit:
            await asyncio.Event().wait()
        await asyncio.sleep(0)


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


async def fails(home, words="", kind=HomeUnavailable):
    """Assert that every request fails. Return the last error."""
    for question in (
        home.get_states,
        home.get_layout,
        home.get_services,
        home.get_log,
        lambda: home.get_state("light.lamp"),
    ):
        with pytest.raises(kind, match=words) as caught:
            await question()
    return caught.value
