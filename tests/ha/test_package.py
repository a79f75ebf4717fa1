"""`dev.py package`: the zip that HACS installs works without `sash`, and has what Home Assistant asks for."""

import ast
import json
import os
import re
import struct
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from custom_components.build_zip import UnknownImport, list_core, read_module
from sash import __version__
from sash.web import PAGE_FOLDER
from tests.ha.conftest import install_or_skip
from tests.ha.install import environment
from tests.notices import skip_not_tested

ROOT = Path(__file__).parents[2]
INTEGRATION = ROOT / "custom_components" / "sash"
MANIFEST = json.loads((INTEGRATION / "manifest.json").read_text())
MAX_BYTES = 4_300_000
WITHIN_S = 300
# A checkout of Home Assistant's repository. Its program `hassfest` is in no package.
HASSFEST = os.environ.get("SASH_HASSFEST")

# Imports every module of the zip, and prints the names of modules that came from elsewhere.
IMPORT_ALL = """
import importlib, importlib.util, pkgutil, sys
assert importlib.util.find_spec("sash") is None, "sash is installed"
import custom_components.sash as package
names = [each.name for each in pkgutil.walk_packages(package.__path__, "custom_components.sash.")]
for name in names:
    importlib.import_module(name)
assert not [name for name in sys.modules if name == "sash" or name.startswith("sash.")]
print(len(names))
"""
# Runs a turn, which reads the data files of the core.
ANSWER = """
import asyncio, sys
from custom_components.sash.core import Runtime, SqliteStore, count_text
from custom_components.sash.core.models.offline import OfflineModel

async def main():
    async with Runtime(SqliteStore("sash.db"), OfflineModel()) as runtime:
        asked = await runtime.ask("hello")
        print(asked.response.final_message, count_text("hello world"), count_text("hello", "cl100k_base"))

asyncio.run(main())
"""
# Prints the imports of `sash` in all files, read as a newer Python reads them.
FIND_IMPORTS = """
import ast, pathlib, sys
for file in pathlib.Path(sys.argv[1]).rglob("*.py"):
    for node in ast.walk(ast.parse(file.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
        print(*[f"{file}:{node.lineno}" for name in names if name.partition(".")[0] == "sash"], end="")
"""
# Prints the requirements of Home Assistant and of integrations, without versions.
REQUIRED = """
import importlib.metadata as metadata, json, pathlib, sys, homeassistant
from packaging.requirements import Requirement
folder = pathlib.Path(homeassistant.__file__).parent
own = metadata.requires("homeassistant")
for name in sys.argv[1].split(","):
    own += json.loads((folder / "components" / name / "manifest.json").read_text()).get("requirements", [])
theirs = [each for name in sys.argv[2].split(",") for each in metadata.requires(name) or []]
names = [[Requirement(each).name.lower().replace("_", "-") for each in group] for group in (own, theirs)]
constraints = (folder / "package_constraints.txt").read_text()
print(json.dumps([*names, constraints]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip, built as a user builds it."""
    target = tmp_path_factory.mktemp("package") / "sash.zip"
    subprocess.run([sys.executable, ROOT / "dev.py", "package", target], check=True, timeout=WITHIN_S)
    return target


@pytest.fixture(scope="module")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which HACS has installed the zip."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder / "custom_components" / "sash")
    return folder


@pytest.fixture(scope="module")
def python(request: pytest.FixtureRequest) -> Path:
    """The Python of a Home Assistant, in which `sash` is not installed."""
    return install_or_skip(request.config).with_name("python")


def run(python: Path, *arguments: Any, folder: Path, **variables: str) -> str:
    done = subprocess.run(
        [python, *map(str, arguments)],
        cwd=folder,
        env=environment() | {"PYTHONPATH": str(folder), **variables},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def parse_requirement(requirement: str) -> tuple[str, str]:
    """Return the name and the rest."""
    match = re.fullmatch(r"([A-Za-z0-9-]+)(.*)", requirement)
    assert match, requirement
    return match[1].lower(), match[2]


def test_the_zip_is_small_and_its_root_is_the_folder(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read("manifest.json"))
        assert archive.testzip() is None
    assert package.stat().st_size < MAX_BYTES
    assert {"__init__.py", "config_flow.py", "translations/en.json", "brand/icon.png", "LICENSE"} <= set(
        names
    )
    assert {"core/__init__.py", "core/data/NOTICE", "core/stores/sqlite/sql/0001.sql"} <= set(names)
    page = {path.relative_to(PAGE_FOLDER).as_posix() for path in PAGE_FOLDER.rglob("*") if path.is_file()}
    assert {f"core/web/{name}" for name in page if "__pycache__" not in name} <= set(names)
    assert "core/server/rest_api.py" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    server = ("app.py", "listener.py", "mcp", "metrics.py", "pages", "run.py", "middleware/authentication.py")
    unneeded = (
        *(f"server/{name}" for name in server),
        "cli",
        "demo",
        "home/remote",
        "testing.py",
        "__main__.py",
        "data/demo_home.toml",
    )
    assert not [name for name in names if name.startswith(tuple(f"core/{each}" for each in unneeded))]
    assert manifest["version"] == __version__


def test_the_same_files_give_the_same_zip(package: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    told = subprocess.run(
        [sys.executable, ROOT / "dev.py", "package", again], check=True, timeout=WITHIN_S, capture_output=True
    )
    assert again.read_bytes() == package.read_bytes()
    with zipfile.ZipFile(again) as archive:
        infos = archive.infolist()
    assert [info.filename for info in infos] == sorted(info.filename for info in infos)
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    said = told.stdout.decode()
    assert "again.zip: Sash" in said and "MB" in said and "left out of the core: " in said and "cli" in said


def test_no_import_of_sash_is_left(unpacked: Path, python: Path) -> None:
    assert run(python, "-c", FIND_IMPORTS, unpacked, folder=unpacked) == ""


def test_every_module_compiles_and_can_be_imported_without_sash(unpacked: Path, python: Path) -> None:
    run(python, "-m", "compileall", "-q", "custom_components", folder=unpacked)
    assert int(run(python, "-W", "error:::custom_components", "-c", IMPORT_ALL, folder=unpacked)) > 150


def test_the_core_in_the_zip_runs_a_turn(unpacked: Path, python: Path) -> None:
    *answer, tokens, others = run(python, "-c", ANSWER, folder=unpacked).split()
    assert answer and (tokens, others) == ("2", "1")


def test_requirements_are_ranges_that_home_assistant_can_meet(python: Path) -> None:
    wanted = dict(map(parse_requirement, MANIFEST["requirements"]))
    assert all(rest.startswith(">=") for rest in wanted.values())
    dependencies = ",".join([*MANIFEST["dependencies"], "recorder"])
    # `conversation` brings the packages of the sentences.
    said = run(python, "-c", REQUIRED, dependencies, ",".join(wanted), folder=ROOT / "docs")
    own, theirs, constraints = json.loads(said)
    assert not wanted.keys() & set(own), "Home Assistant requires these itself"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["openai"], *extras["home"]]
    # The zip counts tokens without tiktoken.
    for name, rest in map(parse_requirement, needed):
        assert name in wanted or name in {*own, *theirs, "annotated-types", "tiktoken"}, (
            f"{name} is not required"
        )
        assert wanted.get(name, rest).startswith(rest), f"{name} needs {rest}"
    for name, rest in wanted.items():
        for pinned in re.findall(rf"^{name}==([\d.]+)$", constraints, re.MULTILINE | re.IGNORECASE):
            lowest = rest.removeprefix(">=").partition(",")[0]
            assert tuple(map(int, pinned.split("."))) >= tuple(map(int, lowest.split(".")))


def test_the_manifest_is_as_home_assistant_and_hacs_want_it() -> None:
    assert MANIFEST["version"] == __version__
    assert list(MANIFEST) == ["domain", "name", *sorted(MANIFEST.keys() - {"domain", "name"})]
    assert MANIFEST["domain"] == INTEGRATION.name and MANIFEST["config_flow"] is True
    assert MANIFEST["integration_type"] == "service" and MANIFEST["iot_class"] == "cloud_polling"
    assert all(owner.startswith("@") for owner in MANIFEST["codeowners"]) and MANIFEST["codeowners"]
    assert MANIFEST["issue_tracker"].startswith("https://") and MANIFEST["documentation"].startswith(
        "https://"
    )
    for name in ("dependencies", "after_dependencies", "requirements"):
        assert MANIFEST[name] == sorted(MANIFEST[name])
    assert not set(MANIFEST["dependencies"]) & set(MANIFEST["after_dependencies"])
    hacs = json.loads((ROOT / "hacs.json").read_text())
    assert hacs == {
        "name": "Sash",
        "filename": "sash.zip",
        "hide_default_branch": True,
        "homeassistant": "2026.10.0",
        "zip_release": True,
    }


def test_every_integration_that_is_imported_is_a_dependency() -> None:
    """Home Assistant sets up integrations in the order of their dependencies."""
    imported = set()
    for file in INTEGRATION.rglob("*.py"):
        source = file.read_text()
        imported |= set(re.findall(r"^\s*from homeassistant\.components\.(\w+)", source, re.MULTILINE))
        for names in re.findall(
            r"^\s*from homeassistant\.components import ([\w, ]+)$", source, re.MULTILINE
        ):
            imported |= {name.split()[0] for name in names.split(",")}
    assert imported - {*MANIFEST["dependencies"], *MANIFEST["after_dependencies"]} == {
        # Home Assistant sets up the integrations of platforms itself.
        *({"ai_task", "backup", "diagnostics", "llm", "repairs", "sensor", "system_health"} & imported)
    }


@pytest.mark.parametrize("theme", ["", "dark_"])
@pytest.mark.parametrize(("image", "smallest", "largest"), [("icon", 256, 256), ("logo", 128, 256)])
@pytest.mark.parametrize(("density", "factor"), [("", 1), ("@2x", 2)])
def test_brand_images_have_the_sizes_of_home_assistant(
    theme: str, image: str, smallest: int, largest: int, density: str, factor: int
) -> None:
    data = (INTEGRATION / "brand" / f"{theme}{image}{density}.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert smallest * factor <= min(width, height) <= largest * factor
    assert image == "logo" or width == height


def test_hassfest_accepts_the_zip(unpacked: Path, python: Path) -> None:
    if not HASSFEST:
        skip_not_tested("BY HASSFEST", "set SASH_HASSFEST to a checkout of Home Assistant's repository")
    core = run(
        python, "-c", "import homeassistant, pathlib; print(pathlib.Path(homeassistant.__file__).parents[1])",
        folder=unpacked,
    ).strip()  # fmt: skip
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    said = run(
        python,
        *("-W", "ignore", "-m", "script.hassfest", "--action", "validate", "--core-path", core),
        *("--integration-path", unpacked / "custom_components" / "sash"),
        folder=Path(HASSFEST),
        PATH=path,
    )
    assert "Invalid integrations: 0" in said


KNOWN = frozenset({"sash", "sash.values", "sash.values.ids", "sash.errors", "sash.stores.sqlite"})


def rewrite(source: str) -> tuple[str, set[str]]:
    module = read_module(source, KNOWN, "test")
    ast.parse(module.source)
    return module.source, module.needed


def test_imports_become_imports_of_the_vendored_core() -> None:
    source = (
        "from sash import errors\nfrom sash.values.ids import (  # why\n    make,\n    sash,\n)\nimport os\n"
    )
    assert rewrite(source) == (
        "from custom_components.sash.core import errors\n"
        "from custom_components.sash.core.values.ids import (  # why\n    make,\n    sash,\n)\nimport os\n",
        {"sash", "sash.errors", "sash.values.ids"},
    )


def test_imports_inside_functions_and_classes_are_found() -> None:
    source = "def f():\n    if 1:\n        from sash.values import ids\n    return ids\n"
    assert rewrite(source) == (
        source.replace("from sash", "from custom_components.sash.core"),
        {"sash.values", "sash.values.ids"},
    )


def test_imports_for_type_checkers_are_rewritten_and_not_needed() -> None:
    source = "if TYPE_CHECKING:\n    from sash.values import ids\n\nfrom sash.errors import E\n"
    assert rewrite(source) == (
        source.replace("from sash", "from custom_components.sash.core"),
        {"sash.errors"},
    )


def test_strings_that_name_a_module_are_rewritten_and_others_stay() -> None:
    source = (
        '"""from sash.values import ids, and sash.errors."""\n'
        "# from sash.errors import E\n"
        'a = files("sash.stores.sqlite"), "sash.db", "sash.errors: no", f"sash.{1}", \'sash.errors:E\'\n'
        'b = "sash", "é sash.errors", "sash.errors", f("sash"), files("sash"), import_module("sash")\n'
    )
    rewritten, needed = rewrite(source)
    assert rewritten == (
        '"""from sash.values import ids, and sash.errors."""\n'
        "# from sash.errors import E\n"
        'a = files("custom_components.sash.core.stores.sqlite"), "sash.db", "sash.errors: no", f"sash.{1}", '
        "'custom_components.sash.core.errors:E'\n"
        'b = "sash", "é sash.errors", "custom_components.sash.core.errors", f("sash"), '
        'files("custom_components.sash.core"), import_module("custom_components.sash.core")\n'
    )
    assert needed == {"sash", "sash.stores.sqlite", "sash.errors"}


@pytest.mark.parametrize(
    "source",
    [
        "import sash\n",
        "import os, sash.errors\n",
        "import sash.errors as e\n",
        "from sash.nothing import x\n",
        "if 1: from sash import errors\n",
        "import os; from sash import errors\n",
    ],
)
def test_an_import_that_cannot_be_rewritten_stops_the_build(source: str) -> None:
    with pytest.raises(UnknownImport, match="test: "):
        read_module(source, KNOWN, "test")


def test_the_modules_of_the_core_are_known() -> None:
    assert {"sash", "sash.values", "sash.values.sessions", "sash.engine.turn.loop"} <= list_core()
