"""The homes that the sentences of the tests are about."""

from collections.abc import AsyncIterator

import pytest

from tests.intents.everyday import Talk, open_talk
from tests.intents.spoken_home import House


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    opened = await open_talk()
    yield opened
    await opened.live.close()
