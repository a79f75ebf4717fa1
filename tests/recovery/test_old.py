"""A store that an older version wrote can be read whole and used further."""

import json
import sqlite3
import tarfile
from contextlib import closing

import pytest

from tests.recovery.old import DATA, WAIT_S, archive, runtime

# Fields of a session that version 1 got later, with the values that an older session has.
NEW_FIELDS = {
    "area": None,
    "is_one_question": False,
    "turns_before": 0,
    "instructions": None,
    "is_task": False,
}


NEW_REQUEST_FIELDS = {"tags": [], "area": None, "language": None, "caller": None, "fired": None}


def add_new_fields(export):
    """Add the fields that version 1 got later, with the values that older records have."""
    export.setdefault("waiting_turns", [])
    session = export["session"] = NEW_FIELDS | export["session"]
    session["policy"] = {"approvers": "act"} | session["policy"]
    session["window"] = {"preserve_system": True} | session["window"]
    session["stats"] = {"evicted_messages": 0} | session["stats"]
    memory = session["memory"]
    memory.setdefault("reset_at", None)
    new_fact = {"updated_at": None, "scope": "session", "continuation_id": None}
    memory["facts"] = [new_fact | fact for fact in memory["facts"]]
    memory["pins"] = [{"entity_id": None, "scope": "session"} | pin for pin in memory["pins"]]
    for turn in export["continuations"]:
        turn["request"] = NEW_REQUEST_FIELDS | turn["request"]
        turn["response"] = turn["response"] and {"topic": None} | turn["response"]
        turn["stats"] = turn["stats"] and {"evicted_messages": 0} | turn["stats"]
    for stored in export["steps"]:
        detail = stored["step"]["detail"]
        if detail.get("event") == "approval_requested":
            detail.setdefault("language", None)


def in_order(export):
    """Sort the tags, which are a set."""
    for stored in export["messages"]:
        stored["message"]["tags"].sort()
    return export


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_the_current_version_has_an_archive(kind):
    assert archive(kind).exists(), "run python -m tests.recovery.old"


@pytest.mark.parametrize("path", sorted(DATA.glob("*_*.tar.gz")), ids=lambda path: path.name)
async def test_a_store_of_each_version_is_read_whole_and_used_further(path, tmp_path):
    with tarfile.open(path) as tar:
        tar.extractall(tmp_path, filter="data")
    before = json.loads((tmp_path / "export.json").read_bytes())
    add_new_fields(before)
    before.pop("signature", None)
    async with runtime(path.name.partition("_")[0], tmp_path / "store", "it is open", "all is well") as sash:
        [session] = (await sash.list_sessions(owner="ann")).items
        after = await sash.export_session(session.id, owner="ann")
        assert after.pop("signature")
        assert in_order(after) == in_order(before)
        assert (await sash.search("users", owner="ann"))[0].in_window is False
        [waiting] = [c for c in before["continuations"] if c["status"] == "awaiting_approval"]
        await sash.approve(waiting["id"], "call", owner="ann")
        unlocked = await sash.await_continuation(waiting["id"], owner="ann", timeout_s=WAIT_S)
        assert unlocked.response.final_message == "it is open"
        [queued] = [c for c in before["continuations"] if c["status"] == "pending"]
        served = await sash.await_continuation(queued["id"], owner="ann", timeout_s=WAIT_S)
        assert served.response.final_message == "all is well"
        again = await sash.send_message(session.id, "unlock", owner="ann", idempotency_key="unlock")
        assert again.id == waiting["id"]
        await sash.remember("likes 21 degrees", owner="ann")
        assert [fact.text for fact in await sash.list_facts(owner="ann")] == ["likes 21 degrees"]


@pytest.mark.parametrize("damage", ["id > 1", "id = 1", "id = 10", "true"])
async def test_an_older_file_with_a_damaged_index_is_migrated(tmp_path, damage):
    with tarfile.open(DATA / "sqlite_7.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    with closing(sqlite3.connect(tmp_path / "store" / "sash.db")) as db, db:
        assert db.execute(f"DELETE FROM said_data WHERE {damage}").rowcount
    async with runtime("sqlite", tmp_path / "store", "ok") as sash:
        assert len(await sash.search("users", owner="ann")) > 0
