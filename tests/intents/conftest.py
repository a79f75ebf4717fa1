"""The home that the sentences of the tests are about."""

import pytest

from tests.intents.spoken_home import House


@pytest.fixture
def house() -> House:
    return House()
