"""A backup of Home Assistant has a consistent copy of each database, and turns go on meanwhile."""

import asyncio
import shutil
import sqlite3
import tarfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from homeassistant.components.backup.const import DATA_MANAGER
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.setup import async_setup_component
from homeassistant.util import dt as dt_util
from pytest_homeassistant_custom_component.common import async_fire_time_changed

from custom_components.sash.backup import MAX_HOLD_S, async_post_backup, async_pre_backup
from custom_components.sash.const import DOMAIN
from custom_components.sash.database_files import find_database
from sash.stores.sqlite.check import check_file
from sash.stores.sqlite.store import SqliteStore
from tests.ha.inside.talking_house import TalkingHouse, open_house
from tests.models.wire import said

pytestmark = pytest.mark.usefixtures("socket_enabled")


def empty_log(path: Path) -> bool:
    """Move all data from the log into the file, as a deletion does. Return False if a reader prevents it."""
    with closing(sqlite3.connect(path, timeout=2)) as db:
        [is_busy, *_] = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy


async def copy_slowly(house: TalkingHouse, folder: Path) -> Path:
    """Copy the file, let turns and deletions write, and then copy the log: the worst order for a copy."""
    path, copy = find_database(house.hass, house.entry.entry_id), folder / "copy.db"
    await asyncio.to_thread(shutil.copy, path, copy)
    await house.say("a message during the backup", room="Bedroom")
    await asyncio.to_thread(empty_log, path)
    await house.say("another message during the backup", room="Bedroom")
    log = path.with_name(f"{path.name}-wal")
    await asyncio.to_thread(shutil.copy, log, copy.with_name("copy.db-wal"))
    return copy


async def read_messages(path: Path) -> set[str]:
    """Return all messages of users in a copy."""
    store = SqliteStore(path)
    await store.open()
    try:
        found: set[str] = set()
        for session in (await store.list_sessions("house")).items:
            messages = await store.messages("house", session.id)
            found |= {stored.message.text for stored in messages if stored.message.role == "user"}
        return found
    finally:
        await store.close()


async def test_a_copy_has_all_turns_although_others_were_written_meanwhile(
    hass: HomeAssistant, tmp_path: Path
) -> None:
    (tmp_path / "backup").mkdir()
    async with open_house(hass, said("ok")) as house:
        for number in range(5):
            await house.say(f"message number {number}", room="Kitchen")
        await async_pre_backup(hass)
        copy = await copy_slowly(house, tmp_path / "backup")
        await async_post_backup(hass)
        found = await read_messages(copy)
        assert found == {
            *(f"message number {number}" for number in range(5)),
            "a message during the backup",
            "another message during the backup",
        }
        assert check_file(copy).status == "ok"


async def test_a_backup_of_home_assistant_has_the_conversations(hass: HomeAssistant, tmp_path: Path) -> None:
    assert await async_setup_component(hass, "backup", {})
    async with open_house(hass, said("ok")) as house:
        await house.say("a message before the backup", room="Kitchen")
        assert DOMAIN in hass.data[DATA_MANAGER].platforms  # It calls our `async_pre_backup`.
        await hass.services.async_call("backup", "create", blocking=True)
        await hass.async_block_till_done(wait_background_tasks=True)
        await house.say("a message after the backup", room="Kitchen")
        name = find_database(hass, house.entry.entry_id).name
        copy = await asyncio.to_thread(
            restore, Path(hass.config.path("backups")), tmp_path / "restored", name
        )
        assert await read_messages(copy) == {"a message before the backup"}


def restore(backups: Path, target: Path, name: str) -> Path:
    """Unpack the only backup, and return the database with this name."""
    [backup] = backups.glob("*.tar")
    with (
        tarfile.open(backup) as outer,
        outer.extractfile("homeassistant.tar.gz") as inner,
        tarfile.open(fileobj=inner, mode="r:gz") as archive,
    ):
        archive.extractall(target, filter="data")
    return target / "data" / "sash" / name


async def test_without_a_hold_the_same_copy_loses_turns(hass: HomeAssistant, tmp_path: Path) -> None:
    """This shows that the test above can fail."""
    (tmp_path / "backup").mkdir()
    async with open_house(hass, said("ok")) as house:
        for number in range(5):
            await house.say(f"message number {number}", room="Kitchen")
        copy = await copy_slowly(house, tmp_path / "backup")
        try:
            found = await read_messages(copy)
        except Exception:
            found = set()
        assert "a message during the backup" not in found or check_file(copy).status != "ok"


async def test_after_a_backup_the_log_is_emptied_again(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        path = find_database(hass, house.entry.entry_id)
        await async_pre_backup(hass)
        await house.say("hello there", room="Kitchen")
        assert not await asyncio.to_thread(empty_log, path)
        await async_post_backup(hass)
        assert await asyncio.to_thread(empty_log, path)
        await async_post_backup(hass)


async def test_a_backup_that_never_ends_loses_its_hold(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        path = find_database(hass, house.entry.entry_id)
        await async_pre_backup(hass)
        await house.say("hello there", room="Kitchen")
        assert not await asyncio.to_thread(empty_log, path)
        async_fire_time_changed(hass, dt_util.utcnow() + timedelta(seconds=MAX_HOLD_S + 1))
        await hass.async_block_till_done(wait_background_tasks=True)
        assert await asyncio.to_thread(empty_log, path)


async def test_an_entry_may_be_unloaded_during_a_backup(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("hello there", room="Kitchen")
        await async_pre_backup(hass)
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        await async_post_backup(hass)
        path = find_database(hass, house.entry.entry_id)
        await hass.config_entries.async_unload(house.entry.entry_id)
        assert await read_messages(path) == {"hello there"}


async def test_a_file_that_is_no_database_stops_the_backup(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        path = find_database(hass, house.entry.entry_id)
        await hass.config_entries.async_unload(house.entry.entry_id)
        path.write_bytes(b"x" * 5000)
        with pytest.raises(HomeAssistantError, match="cannot be backed up"):
            await async_pre_backup(hass)
        path.unlink()
        await async_pre_backup(hass)
        await async_post_backup(hass)
