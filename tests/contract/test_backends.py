"""The registry names every backend, and each one tells `sash doctor` and the command line the same things."""

import pytest

from sash.app.settings import Settings
from sash.cli.doctor.storage import check_folder, check_store
from sash.errors import InvalidConfig
from sash.stores import registry
from sash.stores.backend import StoreCheck, StoreSettings
from sash.stores.memory import MemoryStore
from sash.stores.registry import find_backend, make_store
from tests.backends import BACKENDS


class RemoteStore(MemoryStore):
    """A backend that only this test knows."""

    is_durable = True

    @classmethod
    def check(cls, settings):
        return StoreCheck("note", f"asked {settings.store}", "ask again")


@pytest.fixture
def settings(backend, tmp_path, clock):
    return StoreSettings(backend, tmp_path / "data", clock)


def test_the_contract_is_checked_for_every_backend_of_the_registry():
    assert set(BACKENDS) == set(registry.BACKENDS)


async def test_a_check_finds_the_store_that_was_opened(settings):
    backend = find_backend(settings.store)
    assert not backend.exists(settings)
    before = backend.check(settings)
    assert not settings.folder.exists()
    store = make_store(settings)
    await store.open()
    await store.close()
    assert backend.exists(settings) is backend.is_durable
    after = backend.check(settings)
    assert before.status == after.status == ("ok" if backend.is_durable else "note")
    assert (before != after) is backend.is_durable


def test_a_new_backend_needs_one_line_in_the_registry(monkeypatch, tmp_path):
    monkeypatch.setitem(registry.BACKENDS, "remote://", f"{__name__}:RemoteStore")
    settings = Settings(data=tmp_path, store="remote://ann:secret@host/sash")
    assert find_backend(settings.store) is RemoteStore
    assert registry.describe_backends() == "sqlite, files, memory or remote://"
    assert check_folder(settings).found.startswith(str(tmp_path))
    found = check_store(settings)
    assert (found.check, found.status, found.advice) == ("store", "note", "ask again")


def test_a_backend_without_its_packages_is_reported(monkeypatch, tmp_path):
    monkeypatch.setitem(registry.BACKENDS, "remote://", "sash.stores.remote.store:RemoteStore")
    settings = Settings(data=tmp_path, store="remote://host")
    with pytest.raises(InvalidConfig, match=r"pip install 'sash\[remote\]'"):
        find_backend(settings.store)
    assert (check_store(settings).status, check_folder(settings).check) == ("wrong", "data")


def test_an_unknown_backend_is_refused_without_its_password(tmp_path):
    settings = Settings(data=tmp_path, store="oracle://ann:secret@host")
    with pytest.raises(InvalidConfig, match="sqlite, files or memory, not 'host'"):
        find_backend(settings.store)
    assert check_store(settings).found.startswith("store must be sqlite, files or memory, not 'host'")
