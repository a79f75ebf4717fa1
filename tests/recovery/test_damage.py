"""Full disks, read-only files and damaged files: a clear error, and all other data can be used."""

import asyncio
import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from sash import Runtime
from sash.errors import SessionNotFound, StoreUnavailable
from sash.ports.store import Artifact
from sash.stores.files.store import FilesStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.continuations import ArtifactRef
from sash.values.ids import new_id

WAIT_S = 30


def runtime(store):
    return Runtime(store, ScriptedModel(lambda request: "ok"))


async def turn(sash, session, message):
    sent = await sash.send_message(session.id, message)
    return await sash.await_continuation(sent.id, timeout_s=WAIT_S)


async def texts(sash, session):
    return [m.message.text for m in await sash.store.messages("local", session.id)]


async def fill_files(folder, turns=3):
    async with runtime(FilesStore(folder)) as sash:
        session = await sash.start_session()
        ids = [(await turn(sash, session, f"message {n}")).continuation.id for n in range(turns)]
    return session, ids


async def test_a_full_disk_on_sqlite(tmp_path):
    store = SqliteStore(tmp_path / "sash.db")
    async with runtime(store) as sash:
        session = await sash.start_session()
        await turn(sash, session, "before")

        def limit(pages):
            return lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchone()

        [used] = await store.database.write(lambda db: db.execute("PRAGMA page_count").fetchone())
        await store.database.write(limit(used))
        with pytest.raises(StoreUnavailable, match="full"):
            for n in range(50):
                await sash.start_session(preferences={"filler": "x" * 2000, "n": n})
        with pytest.raises(StoreUnavailable, match="full"):
            for _ in range(50):
                await turn_or_raise(sash, session, "y" * 3000)
        assert (await sash.get_session(session.id)).id == session.id
        await store.database.write(limit(used + 10_000))
        await sash.recover()
        assert (await turn(sash, session, "after")).status == "completed"
        said = await texts(sash, session)
        assert (said[0], said[-2]) == ("before", "after")
        assert len(said) % 2 == 0


async def turn_or_raise(sash, session, message):
    result = await turn(sash, session, message)
    if result.status == "failed":
        raise StoreUnavailable(result.continuation.error.message)


async def test_a_read_only_database_has_a_clear_error(tmp_path):
    path = tmp_path / "sash.db"
    async with runtime(SqliteStore(path)) as sash:
        session = await sash.start_session()
        await turn(sash, session, "before")
        await sash.store.database.write(lambda db: db.execute("PRAGMA query_only = ON").fetchone())
        with pytest.raises(StoreUnavailable, match=r"readonly|read-only|query_only"):
            await sash.send_message(session.id, "now")
        assert await texts(sash, session) == ["before", "ok"]
        with pytest.raises(StoreUnavailable):
            await sash.store.database.write(lambda db: db.execute("PRAGMA query_only = OFF; x"))
    async with runtime(SqliteStore(path)) as sash:
        assert (await turn(sash, session, "after")).status == "completed"


async def test_a_file_that_is_not_a_database_has_a_clear_error(tmp_path):
    (tmp_path / "sash.db").write_text("this is no database, but a letter " * 20)
    with pytest.raises(StoreUnavailable, match="not a database"):
        await SqliteStore(tmp_path / "sash.db").open()


async def test_a_reader_that_connects_after_the_file_is_gone_reports_the_missing_file(tmp_path):
    store = SqliteStore(tmp_path / "data" / "sash.db")
    await store.open()
    (tmp_path / "data").rename(tmp_path / "away")
    with pytest.raises(StoreUnavailable, match="is not there any more"):
        await store.list_sessions("local")
    await store.close()


async def test_a_database_of_a_newer_sash_is_left_alone(tmp_path):
    with closing(sqlite3.connect(tmp_path / "sash.db")) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreUnavailable, match="newer Sash"):
        await SqliteStore(tmp_path / "sash.db").open()


async def test_a_full_disk_on_files(tmp_path, monkeypatch):
    async with runtime(FilesStore(tmp_path)) as sash:
        session = await sash.start_session()
        await turn(sash, session, "before")
        real = os.fsync

        def full(handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StoreUnavailable, match="No space left"):
            await sash.send_message(session.id, "now")
        with pytest.raises(StoreUnavailable, match="No space left"):
            await sash.start_session()
        monkeypatch.setattr(os, "fsync", real)
        await sash.recover()
        assert (await turn(sash, session, "after")).status == "completed"
        assert await texts(sash, session) == ["before", "ok", "after", "ok"]


async def test_a_second_process_is_refused_on_files(tmp_path):
    async with runtime(FilesStore(tmp_path)):
        with pytest.raises(StoreUnavailable, match="in use by another process"):
            await FilesStore(tmp_path).open()
    async with runtime(FilesStore(tmp_path)):
        pass


async def test_the_layout_is_the_seed_s(tmp_path):
    session, ids = await fill_files(tmp_path)
    folder = tmp_path / "sessions" / session.id
    assert sorted(p.name for p in (folder / "turns").iterdir()) == sorted(f"{id}.json" for id in ids)
    assert sorted(p.name for p in (folder / "logs").iterdir()) == sorted(f"{id}.log" for id in ids)
    assert json.loads((folder / "session.json").read_text())["session"]["id"] == session.id
    record = json.loads((folder / "turns" / f"{ids[0]}.json").read_text())
    assert (record["continuation"]["status"], record["messages"][0]["content"]) == ("completed", "message 0")
    lines = [json.loads(line) for line in (folder / "logs" / f"{ids[0]}.log").read_text().splitlines()]
    assert [line["type"] for line in lines] == ["observed_event", "summary"]
    assert (tmp_path / "artifacts").is_dir()
    assert json.loads((tmp_path / "index" / "meta.json").read_text())["version"] == 1


async def test_a_damaged_turn_file_is_reported_and_its_log_is_used(tmp_path):
    session, ids = await fill_files(tmp_path)
    (tmp_path / "sessions" / session.id / "turns" / f"{ids[1]}.json").write_text('{"continuation": {')
    store = FilesStore(tmp_path)
    async with runtime(store) as sash:
        assert [damage.path for damage in store.damaged] == [f"sessions/{session.id}/turns/{ids[1]}.json"]
        assert [c.id for c in await store.list_continuations("local", session.id)] == ids
        assert (await texts(sash, session))[:2] == ["message 0", "ok"]
        assert (await turn(sash, session, "after")).status == "completed"


@pytest.mark.parametrize("torn", ['{"n": 2, "ts": "2026', '{"n": 2, "type": "plan"}\n', "\x00\x00\x00"])
async def test_a_torn_last_line_is_cut_off(tmp_path, torn):
    session, ids = await fill_files(tmp_path)
    log = tmp_path / "sessions" / session.id / "logs" / f"{ids[2]}.log"
    whole = log.read_text()
    log.write_text(whole + torn)
    store = FilesStore(tmp_path)
    async with runtime(store) as sash:
        assert [damage.path for damage in store.damaged] == [f"sessions/{session.id}/logs/{ids[2]}.log"]
        assert log.read_text() == whole
        assert await texts(sash, session) == ["message 0", "ok", "message 1", "ok", "message 2", "ok"]


@pytest.mark.parametrize("swept", [False, True])
async def test_a_session_whose_file_is_damaged_is_rebuilt_from_its_turns(tmp_path, swept):
    session, ids = await fill_files(tmp_path)
    if swept:
        store = FilesStore(tmp_path)
        await store.open()
        later = datetime.now(UTC) + timedelta(days=1)
        await store.sweep(idle_before=later - timedelta(days=30), ended_before=later)
        await store.close()
    path = tmp_path / "sessions" / session.id / "session.json"
    path.write_bytes(torn := path.read_bytes()[:40])
    for _ in range(2):
        store = FilesStore(tmp_path)
        async with runtime(store) as sash:
            said = await texts(sash, session)
            assert said[:6] == ["message 0", "ok", "message 1", "ok", "message 2", "ok"]
            rebuilt = await sash.get_session(session.id)
            assert (rebuilt.owner, rebuilt.stats.turns) == ("local", len(said) // 2)
            assert [c.id for c in await store.list_continuations("local", session.id)][:3] == ids
            assert (await turn(sash, session, f"after {len(said)}")).status == "completed"
            await sash.set_preferences(session.id, {"n": len(said)})
    assert path.with_suffix(".damaged").read_bytes() == torn
    assert store.damaged == []


async def test_other_sessions_load_if_one_is_damaged(tmp_path):
    lost, _ = await fill_files(tmp_path, turns=0)
    kept, _ = await fill_files(tmp_path)
    (tmp_path / "sessions" / lost.id / "session.json").write_text("")
    store = FilesStore(tmp_path)
    async with runtime(store) as sash:
        assert [s.id for s in (await sash.list_sessions()).items] == [kept.id]
        assert [damage.path for damage in store.damaged] == [f"sessions/{lost.id}/session.json"]
        with pytest.raises(SessionNotFound):
            await sash.get_session(lost.id)


async def test_outdated_files_are_completed_from_the_logs(tmp_path):
    """As after a crash: `session.json` and the turns are old, the logs have everything."""
    async with runtime(FilesStore(tmp_path)) as sash:
        session = await sash.start_session()
        folder = tmp_path / "sessions" / session.id
        old = (folder / "session.json").read_bytes()
        for n in range(3):
            await turn(sash, session, f"message {n}")
        before = await sash.store.export_session("local", session.id)
    (folder / "session.json").write_bytes(old)
    for path in (folder / "turns").iterdir():
        path.unlink()
    async with runtime(FilesStore(tmp_path)) as sash:
        assert await sash.store.export_session("local", session.id) == before


async def test_fifty_sessions_at_once_on_one_sqlite_file(tmp_path):
    async with (
        runtime(SqliteStore(tmp_path / "sash.db")) as one,
        runtime(SqliteStore(tmp_path / "sash.db")) as two,
    ):
        sessions = await asyncio.gather(*((one, two)[n % 2].start_session() for n in range(50)))
        results = await asyncio.gather(*(turn((two, one)[n % 2], s, "hi") for n, s in enumerate(sessions)))
        assert {r.status for r in results} == {"completed"}


def log_of(folder, session, turn_id):
    return folder / "sessions" / session.id / "logs" / f"{turn_id}.log"


@pytest.mark.parametrize("line", [b"5\n", b"null\n", b'{"n": "x"}\n', b"{\n", b"\xff\n"])
@pytest.mark.parametrize("where", ["start", "middle", "end"])
async def test_a_damaged_line_is_reported_and_copied_and_the_session_works(tmp_path, line, where):
    session, ids = await fill_files(tmp_path)
    log = log_of(tmp_path, session, ids[1])
    lines = log.read_bytes().splitlines(keepends=True)
    at = {"start": 0, "middle": 1, "end": len(lines)}[where]
    log.write_bytes(b"".join([*lines[:at], line, *lines[at:]]))
    store = FilesStore(tmp_path)
    async with runtime(store) as sash:
        assert await texts(sash, session) == ["message 0", "ok", "message 1", "ok", "message 2", "ok"]
        assert [damage.path for damage in store.damaged] == [str(log.relative_to(tmp_path))]
        assert line in log.with_suffix(".damaged").read_bytes()
        assert (await turn(sash, session, "more")).status == "completed"
    async with runtime(FilesStore(tmp_path)) as sash:
        assert (await texts(sash, session))[-2:] == ["more", "ok"]


async def test_a_turn_whose_log_lost_the_end_has_ended_by_its_file(tmp_path):
    session, ids = await fill_files(tmp_path)
    log = log_of(tmp_path, session, ids[2])
    log.write_bytes(log.read_bytes()[:-20])
    for _ in range(2):
        store = FilesStore(tmp_path)
        async with runtime(store) as sash:
            assert (await sash.store.get_continuation("local", ids[2])).status == "completed"
            window = await sash.store.window("local", session.id)
            assert [m.text for m in window.messages] == await texts(sash, session)
            assert (await texts(sash, session))[-2:] == ["message 2", "ok"]


async def test_a_turn_file_damaged_after_a_sweep_is_restored_from_its_log(tmp_path):
    session, ids = await fill_files(tmp_path)
    async with runtime(FilesStore(tmp_path)) as sash:
        await sash.sweep()
    (tmp_path / "sessions" / session.id / "turns" / f"{ids[1]}.json").write_text("{")
    store = FilesStore(tmp_path)
    async with runtime(store) as sash:
        assert await texts(sash, session) == ["message 0", "ok", "message 1", "ok", "message 2", "ok"]
        window = await sash.store.window("local", session.id)
        assert [m.text for m in window.messages] == await texts(sash, session)
    assert len(store.damaged) == 1


async def test_a_turn_killed_before_its_file_was_written_survives_a_sweep(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("sash.stores.files.session_writer.SessionWriter.try_write_turn", lambda *_: None)
        session, ids = await fill_files(tmp_path, turns=1)
    clock = FakeClock(datetime.now(UTC) + timedelta(hours=25))
    for _ in range(3):
        async with Runtime(FilesStore(tmp_path, clock=clock), ScriptedModel("ok"), clock=clock) as sash:
            await sash.sweep()
            assert await texts(sash, session) == ["message 0", "ok"]
            assert (await sash.store.get_continuation("local", ids[0])).status == "completed"
    assert not log_of(tmp_path, session, ids[0]).exists()


async def test_text_with_any_line_separator_stays_one_line_of_a_log(tmp_path):
    odd = "a\u2028b\u0085c\x0bd\x1ce\r\nf"
    async with runtime(FilesStore(tmp_path)) as sash:
        session = await sash.start_session()
        await turn(sash, session, odd)
        fork = await sash.fork_session(session.id)
    async with runtime(FilesStore(tmp_path)) as sash:
        assert await texts(sash, session) == await texts(sash, fork) == [odd, "ok"]


@pytest.mark.parametrize("damage", ["torn", "no data"])
async def test_a_damaged_artifact_does_not_prevent_export_and_erasure(tmp_path, damage):
    store = FilesStore(tmp_path)
    async with runtime(store) as sash:
        session = await sash.start_session()
        ref = ArtifactRef(new_id(), "text/plain", 1)
        await store.put_artifact(Artifact(ref, session.id, "local", b"x"))
        path = tmp_path / "artifacts" / ref.id
        path.unlink() if damage == "no data" else path.with_suffix(".json").write_text("{")
        assert (await sash.export_session(session.id))["artifacts"] == []
        assert await sash.erase() == 1
        assert len(store.damaged) == 1
        assert damage == "torn" or not path.with_suffix(".json").exists()


async def test_a_turn_completes_if_its_file_cannot_be_written(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError("no space")

    async with runtime(FilesStore(tmp_path)) as sash:
        session = await sash.start_session()
        with monkeypatch.context() as patch:
            patch.setattr("sash.stores.files.session_writer.SessionWriter.write_turn", full)
            assert (await turn(sash, session, "one")).status == "completed"
        assert (await turn(sash, session, "two")).status == "completed"
    async with runtime(FilesStore(tmp_path)) as sash:
        assert await texts(sash, session) == ["one", "ok", "two", "ok"]


async def test_a_session_keeps_its_name_if_a_new_one_cannot_be_written(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError("no space")

    async with runtime(FilesStore(tmp_path)) as sash:
        session = await sash.start_session(name="old")
        with monkeypatch.context() as patch, pytest.raises(StoreUnavailable):
            patch.setattr("sash.stores.files.session_writer.SessionWriter.write_session", full)
            await sash.update_session(session.id, name="new")
        assert await sash.store.find_session("local", "new") is None
        assert (await sash.store.find_session("local", "old")).id == session.id
        await sash.delete_session(session.id)
        assert await sash.store.find_session("local", "old") is None


async def test_an_import_that_failed_can_be_repeated(tmp_path, monkeypatch):
    session, _ = await fill_files(tmp_path / "from")
    async with runtime(FilesStore(tmp_path / "from")) as sash:
        export = await sash.export_session(session.id)

    def full(*_, **__):
        raise OSError("no space")

    async with runtime(FilesStore(tmp_path / "to")) as sash:
        with monkeypatch.context() as patch, pytest.raises(StoreUnavailable):
            patch.setattr("sash.stores.files.session_writer.SessionWriter.write_session", full)
            await sash.import_session(export)
        imported = await sash.import_session(export)
    async with runtime(FilesStore(tmp_path / "to")) as sash:
        again = await sash.export_session(imported.id)
        assert [s["step"]["cursor"] for s in again["steps"]] == [s["step"]["cursor"] for s in export["steps"]]
        assert len(again["messages"]) == 6
