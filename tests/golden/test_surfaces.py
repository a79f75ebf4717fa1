"""The OpenAPI document, the MCP lists, the help texts and the error codes stay as they are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sash import Runtime
from sash.demo.demo_home import demo_home
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, FaultyStore, ScriptedModel
from tests.golden.error_classes import all_errors, sash_errors
from tests.golden.golden import FOLDER, assert_json_matches, assert_text_matches
from tests.golden.serving import serving
from tests.surfaces.speaking import rpc

ROOT = Path(__file__).parents[2]
PROBE_S = 120
HOME_S = 60
MCP_LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


@pytest.fixture
async def demo(tmp_path):
    """Serve the demo home with a scripted model."""
    async with (
        Runtime(MemoryStore(), ScriptedModel("ok"), home=demo_home()) as runtime,
        serving(tmp_path, runtime) as served,
    ):
        await runtime.home_ready(timeout_s=HOME_S)
        yield served


@pytest.fixture(scope="module")
def probed() -> dict:
    """Return the help texts and exit codes of the program."""
    environment = {**os.environ, "COLUMNS": "100", "LINES": "50", "NO_COLOR": "1", "TERM": "dumb"}
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.cli_probe"],
        capture_output=True,
        encoding="utf-8",
        timeout=PROBE_S,
        cwd=ROOT,
        env=environment | {"PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_the_openapi_document_is_unchanged(demo):
    document = (await demo.client.get("/openapi.json")).json()
    document["info"]["version"] = "<version>"
    assert_json_matches("openapi.json", document)


async def test_the_mcp_lists_are_unchanged(demo):
    listed = {}
    for method in MCP_LISTS:
        result = (await rpc(demo, method, {}))["result"]
        result.pop("_meta", None)
        listed[method] = result
    assert_json_matches("mcp_tools.json", listed)


async def test_the_mcp_guide_is_unchanged(demo):
    read = await rpc(demo, "resources/read", {"uri": "sash://guide"})
    [content] = read["result"]["contents"]
    assert_text_matches("mcp_guide.md", content["text"])


def test_the_help_texts_are_unchanged(probed):
    for name, text in probed["help"].items():
        assert_text_matches(f"help/{name}.txt", "\n".join(map(str.rstrip, text.strip().splitlines())) + "\n")
    assert {path.stem for path in (FOLDER / "help").glob("*.txt")} == set(probed["help"])


async def test_the_codes_of_the_errors_are_unchanged(tmp_path, probed):
    surfaces = await ask_surfaces(tmp_path)
    described = {
        kind.__name__: {
            "base": [base.__name__ for base in kind.__bases__],
            "code": getattr(kind, "code", None),
            "exit_code": probed["exit_codes"].get(kind.__name__),
            **surfaces.get(kind.__name__, {"http_status": None, "json_rpc_code": None}),
        }
        for kind in all_errors()
    }
    assert_json_matches("errors.json", described)


async def ask_surfaces(folder: Path) -> dict[str, dict[str, int]]:
    """Return the HTTP status and the JSON-RPC code of every error class, as a failing store causes them."""
    store, found = FaultyStore(MemoryStore()), {}
    async with (
        Runtime(store, ScriptedModel("ok"), clock=FakeClock()) as runtime,
        serving(folder, runtime) as served,
    ):
        for kind in sash_errors():
            store.fail("list_sessions", kind("the message"))
            shown = await served.client.get("/v1/sessions")
            assert shown.json()["code"] == kind.code
            store.fail("list_sessions", kind("the message"))
            read = await rpc(served, "resources/read", {"uri": "sash://sessions"})
            found[kind.__name__] = {
                "http_status": shown.status_code,
                "json_rpc_code": read["error"]["code"],
            }
    return found
