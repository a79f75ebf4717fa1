"""Builds `dist/sash.zip`, which HACS unpacks into `custom_components/sash`: the integration and the core.

The core's imports are absolute (`from sash.values.ids import …`), and Home Assistant has no package `sash`.
So the zip has the core as `core/`, and every import of `sash` becomes one of `custom_components.sash.core`.
It has only those modules of the core that the integration needs. The same files always give the same zip.

This module needs Python 3.11 and nothing else. It reads tokens and not syntax trees, because the integration
has newer syntax than Python 3.11 can parse.
"""

import io
import json
import re
import sys
import tokenize
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
INTEGRATION = ROOT / "custom_components" / "sash"
SOURCES = ROOT / "src"
CORE = "sash"
NEW_CORE = "custom_components.sash.core"
DEFAULT_ZIP = ROOT / "dist" / "sash.zip"
# Files beside the modules that the core reads. Those of a package that is left out are left out, too.
DATA_FOLDERS = ("sash/data", "sash/stores/sqlite/sql", "sash/web")
DEMO_DATA = "sash/data/demo_home.toml"
# Without this module the core counts tokens in Python: with less memory, and without stopping the event loop.
LEFT_OUT = "sash.memory.tiktoken_encoding"

# A fixed time, because the time of a file differs from checkout to checkout.
_TIME = (1980, 1, 1, 0, 0, 0)
_READABLE = 0o644 << 16
_MODULE_NAME = re.compile(r"""(["'])(sash(?:\.\w+)*)(:\w+)?\1""")
# Functions whose first argument is the name of a module. Elsewhere, "sash" may be another name.
_MODULE_FUNCTIONS = ("files", "import_module")
_LAYOUT = (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING)


@dataclass(slots=True)
class ReadModule:
    """A module's source with its imports rewritten, and the modules that it needs when it runs."""

    source: str
    needed: set[str] = field(default_factory=set)


class UnknownImport(Exception):
    """An import of the core that cannot be rewritten, or of a module that does not exist."""


def read_module(source: str, known: frozenset[str], origin: str) -> ReadModule:
    """Rewrite the imports of a module. `known` are the modules of the core.

    A string that is the name of a module of the core is rewritten, too, and counts as an import. Imports for
    type checkers (`if TYPE_CHECKING:`) are rewritten, and do not count.
    """
    edits: list[tuple[tuple[int, int], int, str]] = []
    needed: set[str] = set()
    for statement, is_for_types in _split_statements(source):
        words = [token.string for token in statement]
        for index, token in enumerate(statement):
            match = _MODULE_NAME.fullmatch(token.string) if token.type == tokenize.STRING else None
            is_argument = words[index - 1 : index] == ["("] and words[index - 2] in _MODULE_FUNCTIONS
            if match and match[2] in known and (match[2] != CORE or is_argument):
                edits.append((token.start, len(token.string), _rewrite_string(match)))
                needed.add(match[2])
        if words[:2] != ["from", CORE]:
            if (words[0] == "import" and CORE in words) or ("from", CORE) in pairwise(words):
                raise UnknownImport(f"{origin}: write `from {CORE} import …` instead of `{' '.join(words)}`")
            continue
        edits.append((statement[1].start, len(CORE), NEW_CORE))
        end = words.index("import")
        module = "".join(words[1:end])
        if module not in known:
            raise UnknownImport(f"{origin}: there is no module {module}")
        if not is_for_types:
            names = {f"{module}.{word}" for word in words[end + 1 :]}
            needed |= {module} | (names & known)
    return ReadModule(_apply(source, edits), needed)


def list_core() -> frozenset[str]:
    """Return the names of all modules and packages of the core."""
    files = (path.relative_to(SOURCES).with_suffix("") for path in (SOURCES / CORE).rglob("*.py"))
    return frozenset(".".join(file.parts).removesuffix(".__init__") for file in files)


def find_file(module: str) -> Path:
    """Return the file of a module of the core."""
    path = SOURCES.joinpath(*module.split("."))
    file = path.with_suffix(".py")
    return file if file.is_file() else path / "__init__.py"


def collect() -> dict[str, bytes]:
    """Return the files of the zip by their path: the integration, and the part of the core that it needs."""
    known = list_core()
    packed: dict[str, bytes] = {}
    wanted: set[str] = {CORE}
    for path in sorted(INTEGRATION.rglob("*")):
        if path.is_dir() or "__pycache__" in path.parts:
            continue
        name = path.relative_to(INTEGRATION).as_posix()
        packed[name] = path.read_bytes()
        if path.suffix == ".py":
            module = read_module(path.read_text(encoding="utf-8"), known, name)
            packed[name] = module.source.encode()
            wanted |= module.needed
    done: set[str] = set()
    while remaining := sorted(wanted - done):
        for name in remaining:
            done.add(name)
            path = find_file(name)
            module = read_module(path.read_text(encoding="utf-8"), known, name)
            packed[_get_packed_path(path)] = module.source.encode()
            parents = {name.rsplit(".", depth)[0] for depth in range(1, name.count(".") + 1)}
            wanted |= (module.needed | parents) - {LEFT_OUT}
    for path in (path for folder in DATA_FOLDERS for path in _list_data(SOURCES / folder)):
        if path.relative_to(SOURCES).as_posix() != DEMO_DATA or "sash.demo" in done:
            packed[_get_packed_path(path)] = path.read_bytes()
    manifest = json.loads(packed["manifest.json"])
    packed["manifest.json"] = f"{json.dumps(manifest | {'version': read_version()}, indent=2)}\n".encode()
    packed["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    return packed


def read_version() -> str:
    """Return the version of the core."""
    match = re.search(r'^__version__ = "(.+)"$', (SOURCES / CORE / "__init__.py").read_text(), re.MULTILINE)
    if match is None:
        raise UnknownImport("the core has no __version__")
    return match[1]


def write_zip(packed: dict[str, bytes], target: Path) -> None:
    """Write the files in the order of their names, all with the same time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(packed):
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = _READABLE
            archive.writestr(info, packed[name])


def main(arguments: list[str]) -> int:
    if len(arguments) > 1:
        print("usage: dev.py package [FILE]")
        return 2
    target = Path(arguments[0]) if arguments else DEFAULT_ZIP
    packed = collect()
    write_zip(packed, target)
    core = {name: data for name, data in packed.items() if name.startswith("core/")}
    for title, files in (("integration", packed.keys() - core.keys()), ("core", core.keys())):
        size = sum(len(packed[name]) for name in files)
        print(f"{title}: {len(files)} files, {size / 1e6:.2f} MB")
    print(f"left out of the core: {', '.join(_list_left_out(packed))}")
    print(f"{target}: Sash {read_version()}, {target.stat().st_size / 1e6:.2f} MB")
    return 0


def _list_left_out(packed: dict[str, bytes]) -> list[str]:
    """Return the packages and modules of the core that the zip does not have, without those inside others."""
    missing = {module for module in list_core() if _get_packed_path(find_file(module)) not in packed}
    return sorted(name.removeprefix(f"{CORE}.") for name in missing if name.rpartition(".")[0] not in missing)


def _list_data(folder: Path) -> list[Path]:
    """Return the files of a folder and of its subfolders, without modules."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path for path in files if path.suffix != ".py")


def _get_packed_path(path: Path) -> str:
    return PurePosixPath("core", path.relative_to(SOURCES / CORE).as_posix()).as_posix()


def _rewrite_string(match: re.Match[str]) -> str:
    quote, module, rest = match[1], match[2], match[3] or ""
    return f"{quote}{NEW_CORE}{module.removeprefix(CORE)}{rest}{quote}"


def _split_statements(source: str) -> Iterator[tuple[list[tokenize.TokenInfo], bool]]:
    """Yield each logical line as its tokens, and True for the lines in a block `if TYPE_CHECKING:`."""
    statement: list[tokenize.TokenInfo] = []
    depth, types_depth = 0, None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.INDENT:
            depth += 1
        elif token.type == tokenize.DEDENT:
            depth -= 1
            if types_depth is not None and depth <= types_depth:
                types_depth = None
        elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if statement:
                yield statement, types_depth is not None
                if [part.string for part in statement] == ["if", "TYPE_CHECKING", ":"]:
                    types_depth = depth
            statement = []
        elif token.type not in _LAYOUT:
            statement.append(token)


def _apply(source: str, edits: list[tuple[tuple[int, int], int, str]]) -> str:
    """Return the source with replacements; each is a place (row and column), a length and the new text."""
    lines = io.StringIO(source).readlines()
    for (row, column), length, text in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}{text}{line[column + length :]}"
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
