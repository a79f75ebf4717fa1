"""The project declares every package that its code imports, so that it runs without the test packages."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

WAIT_S = 60
ROOT = Path(__file__).parents[2]
# What only tests and benchmarks need is not there for those who use Sash.
NOT_FOR_USERS = {"dev", "bench"}
# A program that passes a client of httpx has httpx.
OPTIONAL = {"httpx"}


def imported():
    """The packages that the code imports, each with a file that does."""
    found = {}
    for path in sorted((ROOT / "src" / "sash").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in names:
                found.setdefault(name.partition(".")[0], path.relative_to(ROOT))
    return found


def asked_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(r for e in extras.keys() - NOT_FOR_USERS for r in extras[e])]
    return {re.match(r"[\w.-]+", requirement)[0].lower() for requirement in wanted}


def test_every_package_that_is_imported_is_asked_for():
    distributions = packages_distributions()
    missing = {
        name: str(path)
        for name, path in imported().items()
        if name not in sys.stdlib_module_names
        and name not in {"sash", *OPTIONAL}
        and not {d.lower().replace("_", "-") for d in distributions.get(name, [])} & asked_for()
    }
    assert missing == {}


@pytest.mark.parametrize(
    ("name", "package", "extra"), [("OpenAIModel", "httpx2", "openai"), ("RemoteHome", "aiohttp", "home")]
)
def test_a_public_name_says_which_packages_it_needs(name, package, extra):
    script = f"import sys; sys.modules[{package!r}] = None; from sash import {name}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=WAIT_S)
    assert f"ImportError: {name} needs more packages: pip install 'sash[{extra}]'" in done.stderr
