"""Homes for tests: a simulated one, and remote ones with a fake Home Assistant."""

import pytest

from sash.home.remote import RemoteHome
from sash.ports.home import Connected
from sash.testing import FakeClock
from tests.home.event_watcher import EventWatcher
from tests.home.fake_home_assistant import TOKEN, FakeHomeAssistant
from tests.home.one_room_home import house
from tests.home.remote_home import QUICK


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def home(clock):
    home = house(clock)
    await home.open()
    yield home
    await home.close()


@pytest.fixture
async def hub():
    async with FakeHomeAssistant() as hub:
        yield hub


@pytest.fixture
async def connect():
    """Return a function that opens a home with a watcher."""
    opened = []

    async def connect(url, token=TOKEN, timing=QUICK, until=Connected, **options):
        home = RemoteHome(url, token, timing=timing, **options)
        opened.append(home)
        watcher = EventWatcher(home)
        await home.open()
        if until is not None:
            await watcher.until(until)
        return home, watcher

    yield connect
    for home in opened:
        await home.close()
