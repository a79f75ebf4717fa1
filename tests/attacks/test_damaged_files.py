"""One damaged file of a files store sets its record aside: the store opens, and everything else runs."""

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest

from sash.testing import FakeClock
from tests.attacks.damaged_world import START, check, make_world, open_runtime, use_others

MISSING = None
DAMAGES = {
    "empty": lambda data: b"",
    "torn": lambda data: data[:-20],
    "no JSON": lambda data: b"{\n",
    "not utf-8": lambda data: b"\xff\xfe\x00\xff\n",
    "number": lambda data: b"5\n",
    "deep": lambda data: b"[" * 100_000,
    "wrong values": lambda data: re.sub(
        rb'"(id|version|session_id|usd|owner|position)":', rb'"\1":-1,"x":', data
    ),
    "missing": lambda data: MISSING,
}
# Without these files the store is complete: the other files have the same data, or there never was one.
OPTIONAL = {
    *(
        ("missing", name)
        for name in ("spent.json", "vectors.ndjson", "owner.json", "turn", "log of an ended turn")
    ),
    ("torn", "log"),  # as after a crash during a write
}
KINDS = (
    "meta.json",
    "spent.json",
    "session.json",
    "owner.json",
    "vectors.ndjson",
    "imported.ndjson",
    "artifact",
    "artifact.json",
    "turn",
    "log",
    "log of an ended turn",
)
# The second one is read only if the session's own file is damaged.
NOT_READ = ("lock", ".session.json.synced")
# An artifact has any bytes, so it has no wrong values.
CASES = [
    (kind, damage) for kind in KINDS for damage in DAMAGES if (kind, damage) != ("artifact", "wrong values")
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    return asyncio.run(make_world("files", folder)), folder


def find_file(folder, world, kind):
    """Return the path of a file of this kind, and the id of its session or None."""
    talk, fork = f"sessions/{world.talk}", f"sessions/{world.fork}"
    patterns = {
        "meta.json": "index/meta.json",
        "spent.json": "index/spent.json",
        "session.json": f"{talk}/session.json",
        "owner.json": f"{fork}/owner.json",
        "vectors.ndjson": f"{talk}/vectors.ndjson",
        "imported.ndjson": f"{fork}/turns/imported.ndjson",
        "artifact": "artifacts/*[!n]",
        "artifact.json": "artifacts/*.json",
        "turn": f"{talk}/turns/*.json",
        "log": f"sessions/{world.asks}/logs/*.log",
        "log of an ended turn": f"{talk}/logs/*.log",
    }
    path = min((folder / "data").glob(patterns[kind]))
    parts = path.relative_to(folder / "data").parts
    return path, parts[1] if parts[0] == "sessions" else None


async def test_every_file_has_a_kind(made):
    world, folder = made
    found = {find_file(folder, world, kind)[0].relative_to(folder / "data") for kind in KINDS}
    shapes = {re.sub(r"[0-9A-Z]{26}", "*", str(path)) for path in found}
    files = [path for path in (folder / "data").rglob("*") if path.is_file() and path.name not in NOT_READ]
    assert {re.sub(r"[0-9A-Z]{26}", "*", str(path.relative_to(folder / "data"))) for path in files} == shapes


@pytest.mark.parametrize(("kind", "damage"), CASES, ids=str)
async def test_the_others_go_on(made, tmp_path, kind, damage):
    world, folder = made
    for follows in (True, False):
        case = tmp_path / str(follows)
        shutil.copytree(folder, case)
        path, session = find_file(case, world, kind)
        content = DAMAGES[damage](path.read_bytes())
        if content is MISSING:
            path.unlink()
        else:
            path.write_bytes(content)
        found = check("files", case)
        is_reported = (damage, kind) not in OPTIONAL
        assert found.status == ("wrong" if is_reported else "ok"), found
        assert not is_reported or path.stem in found.found
        if follows and is_reported:
            await follow(found.advice, case)
            assert check("files", case).status == "ok", found
    assert await use_others(world, "files", case, session) == []


async def follow(advice, folder):
    """Delete the files that `sash doctor` names, and start Sash."""
    for name in advice.partition("rm -r ")[2].split():
        path = Path(name)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    async with open_runtime("files", folder, FakeClock(START)):
        pass


@pytest.mark.parametrize("name", ["index/meta.json", "index/spent.json"])
async def test_a_damaged_file_of_the_store_is_kept_as_a_copy(made, tmp_path, name):
    world, folder = made
    shutil.copytree(folder, tmp_path / "case")
    path = tmp_path / "case" / "data" / name
    path.write_bytes(b"{damaged")
    async with open_runtime("files", tmp_path / "case", FakeClock(START)) as runtime:
        await runtime.store.spend("ann", 1)
        await runtime.export_session(world.named, owner="ann")
    assert path.with_suffix(".damaged").read_bytes() == b"{damaged"
    assert json.loads(path.read_bytes())
    found = check("files", tmp_path / "case")
    assert (found.status, ".damaged" in found.found) == ("note", True)


async def test_damaged_imported_messages_are_left_out(made, tmp_path):
    world, folder = made
    shutil.copytree(folder, tmp_path / "case")
    path = tmp_path / "case" / "data" / "sessions" / world.fork / "turns" / "imported.ndjson"
    _, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([b"{damaged\n", *rest]))
    async with open_runtime("files", tmp_path / "case", FakeClock(START)) as runtime:
        assert len(await runtime.store.messages("ann", world.fork)) == len(rest)
    assert path.read_bytes().startswith(b"{damaged\n")


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_of_a_deleted_session_does_not_stop_the_start(made, tmp_path, damage):
    """As after a crash during a deletion."""
    world, folder = made
    case = tmp_path / "case"
    shutil.copytree(folder, case)
    path, session = find_file(case, world, "session.json")
    content = DAMAGES[damage](path.read_bytes())
    path.unlink() if content is MISSING else path.write_bytes(content)
    path.parent.rename(path.parent.with_name(f".{session}.deleted"))
    assert await use_others(world, "files", case, session) == []
    assert not list((case / "data" / "sessions").glob(".*"))


@pytest.mark.parametrize("name", ["session.json", "turns"])
async def test_a_file_of_another_session_does_not_take_its_place(made, tmp_path, name):
    world, folder = made
    shutil.copytree(folder, tmp_path / "case")
    sessions = tmp_path / "case" / "data" / "sessions"
    wrong, right = sessions / world.talk / name, sessions / world.sound[1][1] / name
    if name == "turns":
        wrong, right = min(wrong.glob("*.json")), min(right.glob("*.json"))
    shutil.copy(right, wrong)
    assert check("files", tmp_path / "case").status == "wrong"
    assert await use_others(world, "files", tmp_path / "case", world.talk) == []
