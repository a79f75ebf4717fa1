"""The README, the library guide and the benchmarks match the code."""

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sash.errors
import sash.testing
from sash.app.settings_loader import load_settings
from tests.surfaces.serve_process import program

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "docs" / "library.md"]
EXAMPLES = [
    code for page in PAGES for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
]
DEV, *COMMANDS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
PUBLIC = {"sash", "sash.errors", "sash.testing"}
ADDRESS = "http://127.0.0.1:8765"


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_imports_only_public_modules(code):
    imported = {
        name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names])
    }
    assert {name for name in imported if name.partition(".")[0] == "sash"} <= PUBLIC


def test_the_guide_to_the_library_names_only_public_names():
    """A name with a capital letter that Sash defines anywhere can be imported from a public module."""
    defined = {
        node.name
        for path in (ROOT / "src" / "sash").rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    public = {*sash.__all__, *vars(sash.errors), *vars(sash.testing)}
    prose = "".join(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL) for page in PAGES)
    named = {name for code in re.findall(r"`([^`]+)`", prose) for name in re.findall(r"\b[A-Z]\w+", code)}
    assert named & defined - public == set()


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.name)
def test_a_benchmark_imports_only_names_that_exist(path):
    """The packages of the peers are not installed for the tests, so the benchmarks cannot run here."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "sash":
            module = importlib.import_module(node.module)
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def test_the_two_commands_are_those_of_dev_py():
    assert re.findall(r"^python3 dev\.py (\w+)", DEV, re.MULTILINE) == ["run", "test"]
    done = subprocess.run(
        [sys.executable, "dev.py", "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    commands = re.findall(r"^  (\w+)", done.stdout, re.MULTILINE)
    assert commands == ["setup", "run", "test", "check", "bench", "soak", "package"]
    assert "python3 dev.py test" in (ROOT / ".ci" / "run").read_text()


def test_every_command_runs_word_for_word(tmp_path):
    """One shell a block, as a reader has it, beside a server that runs on another port."""
    data = tmp_path / "data"
    bin = Path(sys.executable).parent
    with program(data) as (_, address, printed):
        shown = re.search(r"```text\n(Sash .*?)```", README, re.DOTALL).group(1)
        for line in shown.splitlines()[1:5]:
            assert line.strip() in printed
        environment = {"PATH": f"{bin}:/usr/bin:/bin", "HOME": str(tmp_path), "SASH_DATA": str(data)}
        for block in COMMANDS:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block.replace(ADDRESS, address)],
                capture_output=True,
                text=True,
                timeout=120,
                cwd=tmp_path,
                env=environment,
            )
            assert done.returncode == 0, (block, done.stdout, done.stderr)
            assert "Nothing was found" not in done.stderr, block
            assert '"messages":[]' not in done.stdout, block
            assert "problem" not in done.stdout and done.stdout.strip(), (block, done.stdout)


def test_the_settings_in_the_readme_are_settings(tmp_path):
    [text] = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    file = tmp_path / "sash.toml"
    file.write_text(text)
    loaded = load_settings(file=file, environ={"SASH_HOME_TOKEN": "x"})
    assert loaded.settings.allow_actuation and loaded.settings.max_cost_per_day_usd == 0.5


def test_the_snippet_for_an_mcp_client_is_json():
    [snippet] = [text for text in re.findall(r"```json\n(.*?)```", README, re.DOTALL) if "mcpServers" in text]
    assert json.loads(snippet)["mcpServers"]["sash"] == {"command": "sash", "args": ["mcp"]}


def test_the_error_codes_in_the_readme_exist():
    from sash import errors

    codes = {
        kind.code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.SashError)
    }
    [sentence] = re.findall(r"stable `code` \((.*?)\)", README, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) <= codes


def test_no_link_in_the_docs_is_dead():
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
