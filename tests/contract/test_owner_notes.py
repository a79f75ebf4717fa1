"""The notes of an owner: facts and pins for all sessions, and preferences for new ones."""

import sqlite3
from dataclasses import replace

import pytest

from sash.errors import NotesChanged, StoreUnavailable
from sash.stores.backend import StoreSettings
from sash.stores.registry import find_backend
from sash.values.owner_notes import OwnerNotes
from sash.values.sessions import Fact, Pin


def note(clock, owner="ann", text="I like 21 degrees"):
    fact = Fact("f1", text, clock.now(), scope="owner")
    pin = Pin("p1", "be brief", clock.now(), entity_id="light.hall", scope="owner")
    return OwnerNotes(owner, (fact,), (pin,), {"language": "de"})


async def test_an_owner_without_notes_has_empty_ones(store):
    assert await store.owner_notes("ann") == OwnerNotes("ann")


async def test_saved_notes_stay_and_belong_to_one_owner(store, reopen, clock):
    saved = await store.save_owner_notes(note(clock))
    assert saved == replace(note(clock), version=1)
    await store.save_owner_notes(note(clock, "../bob", "tea"))
    again = await reopen()
    assert await again.owner_notes("ann") == saved
    assert [fact.text for fact in (await again.owner_notes("../bob")).facts] == ["tea"]
    assert await again.owner_notes("Ann") == OwnerNotes("Ann")


async def test_a_change_of_old_notes_is_refused(store, clock):
    first = await store.save_owner_notes(note(clock))
    second = await store.save_owner_notes(replace(first, facts=()))
    for stale in (note(clock), first):
        with pytest.raises(NotesChanged):
            await store.save_owner_notes(stale)
    assert await store.owner_notes("ann") == second


async def test_an_erased_owner_leaves_no_note(store, reopen, clock, tmp_path):
    for owner in ("ann", "bob"):
        await store.save_owner_notes(note(clock, owner, f"xylophone-{owner}"))
    assert await store.erase("ann") == 0
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"xylophone-ann" not in left
    again = await reopen()
    assert await again.owner_notes("ann") == OwnerNotes("ann")
    assert (await again.owner_notes("bob")).facts != ()


async def test_damaged_notes_are_named_and_can_be_erased(backend, store, clock, tmp_path):
    if backend == "memory":
        return
    await store.save_owner_notes(note(clock))
    await store.save_owner_notes(note(clock, "bob"))
    damage(backend, tmp_path)
    with pytest.raises(StoreUnavailable, match=r"damaged|cannot be read"):
        await store.owner_notes("ann")
    with pytest.raises(StoreUnavailable):
        await store.save_owner_notes(note(clock))
    assert (await store.owner_notes("bob")).facts != ()
    await store.close()
    folder = tmp_path / "data" if backend == "files" else tmp_path
    check = find_backend(backend).check(StoreSettings(backend, folder, clock))
    assert check.status == "wrong"
    assert "owner" in check.found
    await store.open()
    await store.erase("ann")
    assert await store.owner_notes("ann") == OwnerNotes("ann")
    await store.close()
    assert find_backend(backend).check(StoreSettings(backend, folder, clock)).status == "ok"


def damage(backend, folder):
    if backend == "sqlite":
        with sqlite3.connect(folder / "sash.db") as db:
            db.execute("UPDATE owner_notes SET body = '{' WHERE owner = 'ann'")
        db.close()
        return
    [path] = [path for path in folder.rglob("owners/*.json") if b'"ann"' in path.read_bytes()]
    path.write_text("{")
