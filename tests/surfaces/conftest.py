"""The fixtures of the surfaces' tests."""

import pytest

from tests.surfaces.command_line import CommandLine


@pytest.fixture
def cli(tmp_path):
    return CommandLine(tmp_path)
