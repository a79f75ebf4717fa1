"""A turn that runs while its owner is erased, also by another process, leaves no note of the owner behind."""

import pytest

from sash import Runtime
from sash.testing import ScriptedModel, calling
from sash.values.owner_notes import OwnerNotes
from sash.values.sessions import DEFAULT_OWNER

FACT = "The key of the shed is under the blue pot."


class ErasingStore:
    """A store in which another process erases the owner, just before the notes of the owner are written."""

    def __init__(self, store):
        self._store, self.erased = store, False

    def __getattr__(self, verb):
        return getattr(self._store, verb)

    async def save_owner_notes(self, *args, **kwargs):
        await self._store.erase(DEFAULT_OWNER)
        self.erased = True
        return await self._store.save_owner_notes(*args, **kwargs)


@pytest.mark.parametrize("has_notes", [False, True])
async def test_a_fact_that_a_turn_remembers_is_not_written_after_the_erasure(make_store, has_notes):
    store = make_store()
    erasing = ErasingStore(store)
    async with Runtime(erasing, ScriptedModel(calling("remember", text=FACT), "Noted.")) as runtime:
        session = await runtime.start_session()
        if has_notes:
            await store.save_owner_notes(OwnerNotes(DEFAULT_OWNER, preferences={"language": "en"}))
        await runtime.send_message(session.id, "Remember where the key is.")
        await runtime.wait_for_turns()
        assert erasing.erased
        assert (await store.owner_notes(DEFAULT_OWNER)).facts == ()


async def test_a_fact_that_a_model_finds_is_not_written_after_the_erasure(make_store):
    store = make_store()
    erasing = ErasingStore(store)
    async with Runtime(erasing, ScriptedModel("Fine.", FACT), fact_extraction=True) as runtime:
        session = await runtime.start_session()
        await runtime.send_message(session.id, FACT)
        await runtime.wait_for_turns()
        await runtime.wait_for_background()
        assert erasing.erased
        assert (await store.owner_notes(DEFAULT_OWNER)).facts == ()
