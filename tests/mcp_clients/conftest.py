"""Real MCP clients for the tests in this folder, installed once for a machine."""

import pytest

from tests.mcp_clients.node import Clients, NotInstalled, install
from tests.notices import skip_not_tested


@pytest.fixture(scope="session")
def clients(request: pytest.FixtureRequest) -> Clients:
    """The conformance suite and the Inspector, with the output shown while they are installed."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            return install()
    except NotInstalled as error:
        skip_not_tested("WITH REAL MCP CLIENTS", f"the clients cannot be installed: {error}")
