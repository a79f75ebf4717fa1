"""The fixtures of the surfaces' tests."""

import pytest

from tests.surfaces.command_line import CommandLine
from tests.surfaces.serving import WaitingModel, serving


@pytest.fixture
def cli(tmp_path):
    return CommandLine(tmp_path)


@pytest.fixture
async def waiting(tmp_path):
    """A server whose model waits, and the model."""
    model = WaitingModel()
    async with serving(tmp_path, model=model) as served:
        yield served, model
        model.go.set()
