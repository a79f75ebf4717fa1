"""A config entry is set up, unloaded, loaded anew, removed, and closed with Home Assistant."""

import asyncio
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from homeassistant.components.repairs import DOMAIN as REPAIRS_DOMAIN
from homeassistant.components.repairs import repairs_flow_manager
from homeassistant.config_entries import ConfigEntryState
from homeassistant.const import EVENT_HOMEASSISTANT_STOP
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.helpers import issue_registry as ir
from homeassistant.helpers.intent import IntentResponseType
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockConfigEntry, flush_store

from custom_components.sash.const import DOMAIN, SUBENTRY_CONVERSATION
from custom_components.sash.database_files import find_database
from custom_components.sash.hass_home.home_layout import get_layout
from sash.errors import HomeError, SashError
from sash.ports.home import Layout
from sash.values.continuations import Continuation
from tests.ha.inside.talking_house import ACTING, TalkingHouse, make_subentry, open_house, said_by
from tests.models.wire import Reply, chunk, said

pytestmark = pytest.mark.usefixtures("socket_enabled")

HANGING = Reply(chunks=[chunk("Well, ")], then="hang")


async def read_turns(house: TalkingHouse) -> list[Continuation]:
    """Return all turns of the house, oldest first."""
    store, found = house.data.store, []
    for session in (await store.list_sessions("house")).items:
        found += await store.list_continuations("house", session.id)
    return found


async def start_turn(house: TalkingHouse, room: str = "Kitchen") -> asyncio.Task[Any]:
    """Say something, and wait until the model begins to answer."""
    saying = house.hass.async_create_background_task(house.say("what do you know?", room=room), "saying")
    async with asyncio.timeout(10):
        while not house.wire.requests or not house.data.runtime.running_turns:
            await asyncio.sleep(0.01)
    return saying


async def test_the_services_are_there_without_a_provider(hass: HomeAssistant) -> None:
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, DOMAIN, {})
    assert hass.services.has_service(DOMAIN, "ask")


async def test_the_database_is_in_the_configuration_folder(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        path = find_database(hass, house.entry.entry_id)
        assert path == Path(hass.config.config_dir) / "sash" / f"{house.entry.entry_id}.db"
        assert path.exists()


async def test_a_database_that_cannot_be_opened_is_tried_again(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        path = find_database(hass, house.entry.entry_id)
        await hass.config_entries.async_unload(house.entry.entry_id)
        path.write_bytes(b"x" * 5000)
        assert not await hass.config_entries.async_setup(house.entry.entry_id)
        assert house.entry.state is ConfigEntryState.SETUP_RETRY
        path.unlink()
        assert await hass.config_entries.async_reload(house.entry.entry_id)


async def test_a_set_up_that_fails_half_way_leaves_no_open_database(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await hass.config_entries.async_unload(house.entry.entry_id)
        with patch("custom_components.sash.UsageCoordinator.open", side_effect=RuntimeError):
            assert not await hass.config_entries.async_setup(house.entry.entry_id)
        assert house.entry.state is ConfigEntryState.SETUP_ERROR
        assert await hass.config_entries.async_reload(house.entry.entry_id)


async def test_a_folder_that_cannot_be_used_is_tried_again(hass: HomeAssistant) -> None:
    folder = Path(hass.config.path("sash"))
    async with open_house(hass, said("ok")) as house:
        await hass.config_entries.async_unload(house.entry.entry_id)
        shutil.rmtree(folder)
        folder.write_text("not a folder")
        assert not await hass.config_entries.async_setup(house.entry.entry_id)
        assert house.entry.state is ConfigEntryState.SETUP_RETRY
        assert str(folder) in str(house.entry.reason)
        folder.unlink()
        assert await hass.config_entries.async_reload(house.entry.entry_id)


@pytest.mark.parametrize(
    "damaged",
    [
        {"denylisted_services": "lock"},
        {"require_confirmation": None},
        {"session_scope": "nonsense"},
        {"allow_actuation": "no"},
        {"max_steps": "many"},
        {"session_idle_days": -1},
        {"transcript_retention_days": 0},
    ],
    ids=str,
)
async def test_damaged_options_are_not_replaced_by_others(
    hass: HomeAssistant, damaged: dict[str, Any]
) -> None:
    entry = MockConfigEntry(
        domain=DOMAIN,
        data={"provider": "local"},
        subentries_data=[make_subentry(SUBENTRY_CONVERSATION, damaged)],
    )
    entry.add_to_hass(hass)
    assert await async_setup_component(hass, "homeassistant", {})
    assert not await hass.config_entries.async_setup(entry.entry_id)
    assert entry.state is ConfigEntryState.SETUP_ERROR
    assert str(entry.reason).startswith("The options of the agent Sash are damaged: ")


async def test_an_unloaded_entry_has_closed_its_database(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        runtime, path = house.data.runtime, find_database(hass, house.entry.entry_id)
        await house.say("hello there", room="Kitchen")
        assert await hass.config_entries.async_unload(house.entry.entry_id)
        assert house.entry.state is ConfigEntryState.NOT_LOADED
        with pytest.raises(SashError):
            await runtime.list_sessions(owner="house")
        assert not path.with_name(f"{path.name}-wal").exists()


async def test_a_turn_that_runs_during_a_reload_can_be_resumed(hass: HomeAssistant) -> None:
    async with open_house(hass, HANGING) as house:
        saying = await start_turn(house)
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        async with asyncio.timeout(10):
            result = await saying
        assert result.response.response_type is IntentResponseType.ERROR
        [turn] = await read_turns(house)
        assert turn.status == "interrupted"
        house.wire.replies = [said("I know a lot.")]
        answer = await hass.services.async_call(
            DOMAIN, "resume", {"continuation_id": turn.id}, blocking=True, return_response=True
        )
        assert answer is not None
        assert (answer["status"], answer["answer"]) == ("completed", "I know a lot.")


async def test_a_sentence_right_after_a_reload_waits_for_the_home(
    hass: HomeAssistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed options load the entry anew. Without the home, a command would go to the model."""
    is_asked = asyncio.Event()

    async def read_slowly(hass: HomeAssistant) -> Layout:
        await is_asked.wait()
        return await get_layout(hass)

    async with open_house(hass, said("Fine."), **ACTING) as house:
        monkeypatch.setattr("custom_components.sash.hass_home.hass_home.get_layout", read_slowly)
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        saying = asyncio.create_task(house.say("turn on the bed light", room="Kitchen"))
        await asyncio.sleep(0.1)
        is_asked.set()
        async with asyncio.timeout(10):
            await saying
        assert hass.states.get("light.bed_light").state == "on"
        assert house.wire.requests == []


async def test_a_sentence_is_answered_if_the_home_cannot_be_read(
    hass: HomeAssistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: HomeAssistant) -> Layout:
        raise HomeError("it is damaged")

    monkeypatch.setattr("custom_components.sash.agent.HOME_WAIT_S", 0.05)
    async with open_house(hass, said("Once upon a time."), **ACTING) as house:
        monkeypatch.setattr("custom_components.sash.hass_home.hass_home.get_layout", fail)
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        assert said_by(await house.say("tell me a story", room="Kitchen")) == "Once upon a time."


async def test_home_assistant_stops_with_a_closed_database(hass: HomeAssistant) -> None:
    async with open_house(hass, HANGING) as house:
        runtime, path = house.data.runtime, find_database(hass, house.entry.entry_id)
        session = await runtime.start_session(owner="house")
        await runtime.send_message(session.id, "what do you know?", owner="house")
        hass.bus.async_fire(EVENT_HOMEASSISTANT_STOP)
        await hass.async_block_till_done()
        with pytest.raises(SashError):
            await runtime.list_sessions(owner="house")
        assert not path.with_name(f"{path.name}-wal").exists()
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        [turn] = await read_turns(house)
        assert turn.status == "interrupted"


async def remove(house: TalkingHouse) -> Path:
    """Remove the config entry, and return the file of its database."""
    path = find_database(house.hass, house.entry.entry_id)
    await house.hass.config_entries.async_remove(house.entry.entry_id)
    await house.hass.async_block_till_done()
    return path


def find_issue(hass: HomeAssistant, house: TalkingHouse) -> ir.IssueEntry | None:
    return ir.async_get(hass).async_get_issue(DOMAIN, f"leftover_data_{house.entry.entry_id}")


async def choose(hass: HomeAssistant, house: TalkingHouse, step: str) -> None:
    """Answer the question about the data of a removed provider."""
    assert await async_setup_component(hass, REPAIRS_DOMAIN, {})
    manager = repairs_flow_manager(hass)
    assert manager is not None
    flow = await manager.async_init(DOMAIN, context={"issue_id": f"leftover_data_{house.entry.entry_id}"})
    assert flow["type"] is FlowResultType.MENU
    assert flow["menu_options"] == ["delete", "keep"]
    assert flow["description_placeholders"]["title"] == "Test provider"
    result = await manager.async_configure(flow["flow_id"], {"next_step_id": step})
    assert result["type"] is FlowResultType.CREATE_ENTRY


@pytest.mark.parametrize("step", ["delete", "keep"])
async def test_a_removed_provider_asks_what_to_do_with_the_conversations(
    hass: HomeAssistant, step: str
) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("hello there", room="Kitchen")
        path = await remove(house)
        assert path.exists()
        issue = find_issue(hass, house)
        assert issue is not None
        assert issue.is_persistent
        assert issue.translation_placeholders == {"title": "Test provider", "file": str(path)}
        await choose(hass, house, step)
        assert find_issue(hass, house) is None
        assert path.exists() is (step == "keep")
        if step == "delete":
            assert not path.parent.exists()


async def test_a_provider_without_conversations_is_removed_with_its_data(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        path = await remove(house)
        assert not path.exists()
        assert find_issue(hass, house) is None


async def test_a_provider_that_was_never_set_up_leaves_nothing_behind(hass: HomeAssistant) -> None:
    entry = MockConfigEntry(domain=DOMAIN, title="Local", data={"provider": "local"})
    entry.add_to_hass(hass)
    await hass.config_entries.async_remove(entry.entry_id)
    await hass.async_block_till_done()
    assert ir.async_get(hass).issues == {}


async def test_a_database_that_cannot_be_read_is_not_deleted_without_a_question(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await hass.config_entries.async_unload(house.entry.entry_id)
        find_database(hass, house.entry.entry_id).write_bytes(b"x" * 5000)
        path = await remove(house)
        assert path.exists()
        assert find_issue(hass, house) is not None


async def test_the_data_of_another_provider_stay(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        other = MockConfigEntry(domain=DOMAIN, title="Local", data={"provider": "local"})
        other.add_to_hass(hass)
        assert await hass.config_entries.async_setup(other.entry_id)
        await house.say("hello there", room="Kitchen")
        path = await remove(house)
        await choose(hass, house, "delete")
        assert not path.exists()
        assert find_database(hass, other.entry_id).exists()


async def test_the_question_is_still_there_after_a_restart(
    hass: HomeAssistant, hass_storage: dict[str, Any]
) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("hello there", room="Kitchen")
        path = await remove(house)
        await flush_store(ir.async_get(hass)._store)
        [stored] = [
            each for each in hass_storage[ir.STORAGE_KEY]["data"]["issues"] if each["domain"] == DOMAIN
        ]
        assert stored["is_persistent"]
        assert stored["data"]["file"] == str(path)


async def test_home_assistants_own_flow_keeps_the_conversations_if_sash_is_not_loaded(
    hass: HomeAssistant,
) -> None:
    """Without a provider Home Assistant does not load Sash after a restart. Its flow must not promise more."""
    async with open_house(hass, said("ok")) as house:
        await house.say("hello there", room="Kitchen")
        path = await remove(house)
        hass.config.components.remove(DOMAIN)
        assert await async_setup_component(hass, REPAIRS_DOMAIN, {})
        manager = repairs_flow_manager(hass)
        assert manager is not None
        flow = await manager.async_init(DOMAIN, context={"issue_id": f"leftover_data_{house.entry.entry_id}"})
        assert flow["step_id"] == "confirm"
        await manager.async_configure(flow["flow_id"], {})
        assert path.exists()
