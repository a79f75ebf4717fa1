"""A browser and a server for the tests of the web page."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import find_chromium
from tests.browser.demo_page import KEY, Demo, serve_demo
from tests.browser.page_server import PageServer
from tests.ha.model_server import ModelServer
from tests.installation import NotInstalled
from tests.notices import skip_not_tested

playwright = pytest.importorskip("playwright.sync_api")

WAIT_MS = 20_000
playwright.expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[object]:
    """Chromium, for the tests of one file. While it is open, an event loop runs, so no other test may run."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            program = find_chromium()
    except NotInstalled as error:
        skip_not_tested("IN A BROWSER", str(error))
    with playwright.sync_playwright() as started:
        # A container has no user namespaces, which the sandbox of Chromium needs.
        opened = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser) -> Iterator[object]:
    """A new tab at 1280 pixels. The test fails if the page logs an error that the test does not expect."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en", accept_downloads=True)
    context.set_default_timeout(WAIT_MS)
    opened = context.new_page()
    opened.faults = []
    opened.on("pageerror", lambda error: opened.faults.append(str(error)))
    yield opened
    faults = opened.faults
    context.close()
    assert not faults


@pytest.fixture(scope="session")
def model() -> Iterator[ModelServer]:
    with ModelServer(KEY) as running:
        yield running


@pytest.fixture(autouse=True)
def forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let each test start with a model that answers at once."""
    yield
    if "model" in request.fixturenames:
        request.getfixturevalue("model").reset()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[PageServer]:
    with PageServer(tmp_path_factory.mktemp("page"), model) as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path, model: ModelServer) -> Iterator[PageServer]:
    """A server that the test may kill."""
    with PageServer(tmp_path, model) as running:
        yield running


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A server with a long conversation, an empty one, an error and a waiting approval. Tests only look at it."""
    with serve_demo(tmp_path_factory.mktemp("demo")) as running:
        yield running


@pytest.fixture(scope="session")
def pictures() -> Path:
    """The folder for screenshots: `$SASH_SCREENSHOTS`, or `dist/screenshots`."""
    folder = Path(os.environ.get("SASH_SCREENSHOTS") or Path(__file__).parents[2] / "dist" / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
