"""Real MCP clients for the tests in this folder, installed once per machine."""

from collections.abc import Generator

import pytest

from tests.mcp_clients.node import Clients, NotInstalled, install

_missing = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def clients(request: pytest.FixtureRequest) -> Clients:
    """The conformance suite and the Inspector. The output of their installation is shown."""
    config = request.config
    if reason := config.stash.get(_missing, ""):
        pytest.skip(reason)
    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            return install()
    except NotInstalled as error:
        config.stash[_missing] = str(error)
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, None, None]:
    """Report in the last lines if these tests did not run."""
    yield
    if reason := config.stash.get(_missing, ""):
        terminalreporter.write_sep("!", "NOT TESTED WITH REAL MCP CLIENTS", red=True, bold=True)
        terminalreporter.write_line(
            f"tests/mcp_clients did not run, the clients cannot be installed: {reason}", red=True
        )
        terminalreporter.write_sep("!", red=True, bold=True)
