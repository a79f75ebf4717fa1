"""The API conforms to its OpenAPI document: schemathesis runs all its checks."""

import re
import subprocess
import sys
from pathlib import Path

from sash.app.access import SCOPES, Tokens
from tests.surfaces.serve_process import ask, program

CONFIG = Path(__file__).with_name("schemathesis.toml")
# Erasing all data would leave the other routes nothing to test.
LEFT_OUT = "/v1/owners/me"
MAX_S = 600


def test_the_api_conforms_to_its_openapi_document(tmp_path):
    _, token = Tokens(tmp_path / "data" / "tokens.json").create("local", SCOPES)
    with program(tmp_path / "data") as (_, address, _):
        done = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"),
                *("--config-file", str(CONFIG)),
                *("run", f"{address}/openapi.json"),
                *("--checks", "all"),
                *("--header", f"Authorization: Bearer {token}"),
                *("--exclude-path", LEFT_OUT),
            ],
            capture_output=True,
            text=True,
            timeout=MAX_S,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout[-20_000:]
        assert re.search(r"(\d{3,}) generated, \1 passed", done.stdout), done.stdout[-2_000:]
        assert ask(address, "/health")["status"] == "ok"
