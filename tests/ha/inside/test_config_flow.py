"""The flow that adds a provider, and the flows that change one."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import AsyncMock, patch

import pytest
from homeassistant.config_entries import SOURCE_USER, ConfigEntry, ConfigFlowResult
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.setup import async_setup_component

from custom_components.sash.const import CONF_MODEL, DOMAIN, EVERYDAY_SERVICES, GENERIC_SERVICES
from sash.models.openai.endpoint import Endpoint
from tests.ha.inside.provider_server import (
    KEY,
    SPOKEN_ROLES,
    compatible,
    get_paths,
    make_entry,
    models,
    openai_at,
)
from tests.models.wire import Reply, Wire, failed

pytestmark = pytest.mark.usefixtures("socket_enabled")

AGENT = {"model": "m", "control": "nothing"}


@pytest.fixture(autouse=True)
async def set_up(hass: HomeAssistant) -> AsyncIterator[AsyncMock]:
    """Entries are created and reloaded, and nothing runs."""
    assert await async_setup_component(hass, "homeassistant", {})
    with patch("custom_components.sash.async_setup_entry", return_value=True) as set_up:
        yield set_up
        # A flow reloads its entry later. Home Assistant fails if it stops while two reloads wait for one set-up.
        await hass.async_block_till_done()


async def choose(hass: HomeAssistant, provider: str) -> ConfigFlowResult:
    """Start the flow and choose a provider in its menu."""
    menu = await hass.config_entries.flow.async_init(DOMAIN, context={"source": SOURCE_USER})
    assert menu["type"] is FlowResultType.MENU
    return await fill(hass, menu, {"next_step_id": provider})


async def fill(hass: HomeAssistant, form: ConfigFlowResult, entered: dict[str, Any]) -> ConfigFlowResult:
    """Fill in the form of a flow."""
    return await hass.config_entries.flow.async_configure(form["flow_id"], entered)


async def change(hass: HomeAssistant, entry: Any, provider: str) -> ConfigFlowResult:
    """Start to reconfigure an entry, and choose a provider."""
    entry.add_to_hass(hass)
    menu = await entry.start_reconfigure_flow(hass)
    assert (menu["type"], menu["step_id"]) == (FlowResultType.MENU, "reconfigure")
    return await fill(hass, menu, {"next_step_id": provider})


def suggested(form: ConfigFlowResult) -> dict[str, Any]:
    """Return the values that a form shows."""
    return {
        str(marker): marker.description["suggested_value"]
        for marker in form["data_schema"].schema
        if marker.description
    }


def get_subentries(entry: ConfigEntry) -> dict[str, dict[str, Any]]:
    """Return the options of an entry's subentries, by title."""
    return {subentry.title: dict(subentry.data) for subentry in entry.subentries.values()}


async def test_the_menu_offers_four_providers(hass: HomeAssistant) -> None:
    menu = await hass.config_entries.flow.async_init(DOMAIN, context={"source": SOURCE_USER})
    assert (menu["type"], menu["step_id"]) == (FlowResultType.MENU, "user")
    assert menu["menu_options"] == ["openai", "azure", "compatible", "local"]


async def test_a_compatible_server_becomes_an_entry_with_an_agent_and_a_task(
    hass: HomeAssistant, set_up: AsyncMock
) -> None:
    async with Wire(models("m", "a-embed", "b")) as wire:
        form = await choose(hass, "compatible")
        assert (form["type"], form["step_id"], form["errors"]) == (FlowResultType.FORM, "compatible", {})
        form = await fill(hass, form, {"api_base": f" {wire.url}/v1/ ", "api_key": KEY})
        assert (form["step_id"], form["errors"]) == ("agent", {})
        assert form["data_schema"].schema["model"].config["options"] == ["b", "m"]
        assert suggested(form) == {"model": "b"}
        done = await fill(hass, form, AGENT)
        await hass.async_block_till_done()
    assert done["type"] is FlowResultType.CREATE_ENTRY
    assert done["title"] == wire.url.removeprefix("http://")
    assert done["data"] == {"provider": "compatible", "api_base": f"{wire.url}/v1", "api_key": KEY}
    entry = done["result"]
    assert get_subentries(entry) == {
        "Sash": {"model": "m", "allow_actuation": False},
        "Sash AI Task": {"model": "m"},
    }
    assert entry.unique_id and KEY not in entry.unique_id
    assert len(set_up.mock_calls) == 1
    (listed,) = wire.requests
    assert (listed.path, listed.headers["authorization"]) == ("/v1/models", f"Bearer {KEY}")


async def test_a_server_at_home_needs_no_key_and_no_scheme(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        form = await choose(hass, "compatible")
        address = f"{wire.url.removeprefix('http://')}/v1/chat/completions"
        form = await fill(hass, form, {"api_base": address})
        done = await fill(hass, form, AGENT)
    assert done["data"] == {"provider": "compatible", "api_base": f"{wire.url}/v1"}


async def test_openai_needs_a_key_and_offers_the_models_that_can_talk(hass: HomeAssistant) -> None:
    listed = ("gpt-5-mini", "gpt-4o-audio-preview", "whisper-1", "text-embedding-3-small", "gpt-4o", "o3")
    async with Wire(models(*listed)) as wire:
        with openai_at(wire):
            form = await choose(hass, "openai")
            form = await fill(hass, form, {"api_key": f"{KEY} "})
            assert form["data_schema"].schema["model"].config["options"] == ["gpt-4o", "gpt-5-mini", "o3"]
            assert suggested(form) == {"model": "gpt-5-mini"}
            done = await fill(hass, form, {"model": "gpt-5-mini", "control": "nothing"})
    assert (done["title"], done["data"]) == ("OpenAI", {"provider": "openai", "api_key": KEY})
    assert get_subentries(done["result"])["Sash AI Task"] == {
        "model": "gpt-5-mini",
        "reasoning_effort": "low",
    }


async def test_a_model_of_openai_that_does_not_reason_gets_no_effort(hass: HomeAssistant) -> None:
    async with Wire(models("gpt-4o", "gpt-5-chat-latest")) as wire:
        with openai_at(wire):
            form = await fill(hass, await choose(hass, "openai"), {"api_key": KEY})
            done = await fill(hass, form, {"model": "gpt-5-chat-latest", "control": "nothing"})
    assert get_subentries(done["result"])["Sash AI Task"] == {"model": "gpt-5-chat-latest"}


async def test_azure_tries_the_deployment(hass: HomeAssistant) -> None:
    async with Wire(models("gpt-4o"), failed(404, "DeploymentNotFound"), SPOKEN_ROLES) as wire:
        form = await choose(hass, "azure")
        pasted = f"{wire.url}/openai/deployments/home/chat/completions?api-version=1"
        form = await fill(hass, form, {"azure_endpoint": pasted, "api_key": KEY, "api_version": "2026-01-01"})
        assert form["step_id"] == "agent"
        form = await fill(hass, form, {"model": "hom", "control": "nothing"})
        assert form["errors"] == {"model": "model_not_found"}
        done = await fill(hass, form, {"model": " home ", "control": "nothing"})
    assert done["data"] == {
        "provider": "azure",
        "azure_endpoint": wire.url,
        "api_key": KEY,
        "api_version": "2026-01-01",
    }
    assert done["title"] == "Azure OpenAI (127)"
    assert get_subentries(done["result"])["Sash"][CONF_MODEL] == "home"
    assert get_paths(wire) == [
        "/openai/models",
        "/openai/deployments/hom/chat/completions",
        "/openai/deployments/home/chat/completions",
    ]


async def test_without_a_model_there_is_an_agent_and_no_task(hass: HomeAssistant) -> None:
    form = await choose(hass, "local")
    assert form["step_id"] == "agent"
    assert list(map(str, form["data_schema"].schema)) == ["control"]
    done = await fill(hass, form, {"control": "everyday"})
    assert (done["title"], done["data"]) == ("Local only", {"provider": "local"})
    assert get_subentries(done["result"]) == {
        "Sash": {
            "allow_actuation": True,
            "allowlisted_services": [*EVERYDAY_SERVICES, *GENERIC_SERVICES],
        }
    }
    types = done["result"].supported_subentry_types
    assert list(types) == ["conversation"]


async def test_locks_and_covers_are_a_choice_of_their_own(hass: HomeAssistant) -> None:
    done = await fill(hass, await choose(hass, "local"), {"control": "everything"})
    allowed = get_subentries(done["result"])["Sash"]["allowlisted_services"]
    assert {"lock", "cover", "alarm_control_panel", "valve", "light"} <= set(allowed)
    assert not {"lock", "cover"} & set(EVERYDAY_SERVICES)


@pytest.mark.parametrize(
    ("reply", "errors"),
    [
        (failed(401, "invalid_api_key"), {"api_key": "invalid_auth"}),
        (failed(403), {"api_key": "invalid_auth"}),
        (failed(500), {"base": "cannot_connect"}),
        (Reply(body="<html>"), {"base": "wrong_address"}),
        (Reply(chunks=[], then="cut"), {"base": "cannot_connect"}),
    ],
)
async def test_a_provider_that_fails_its_check_can_be_corrected(
    hass: HomeAssistant, reply: Reply, errors: dict[str, str]
) -> None:
    async with Wire(reply, models("m")) as wire:
        entered = {"api_base": f"{wire.url}/v1", "api_key": KEY}
        form = await fill(hass, await choose(hass, "compatible"), entered)
        assert (form["step_id"], form["errors"]) == ("compatible", errors)
        assert suggested(form)["api_base"] == f"{wire.url}/v1"
        form = await fill(hass, form, entered)
        done = await fill(hass, form, AGENT)
    assert done["type"] is FlowResultType.CREATE_ENTRY


async def test_an_address_without_a_server_can_be_corrected(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        address = f"{wire.url}/v1"
    form = await fill(hass, await choose(hass, "compatible"), {"api_base": address})
    assert form["errors"] == {"base": "cannot_connect"}
    async with Wire(models("m")) as wire:
        form = await fill(hass, form, {"api_base": f"{wire.url}/v1"})
    assert form["step_id"] == "agent"


async def test_an_address_that_lacks_v1_is_told_so(hass: HomeAssistant) -> None:
    async with Wire(failed(404), models("m")) as wire:
        form = await fill(hass, await choose(hass, "compatible"), {"api_base": wire.url})
        assert form["errors"] == {"base": "wrong_address"}
        form = await fill(hass, form, {"api_base": f"{wire.url}/v1"})
    assert form["step_id"] == "agent"


async def test_a_server_without_a_list_takes_any_name_that_answers(hass: HomeAssistant) -> None:
    async with Wire(failed(404), failed(404), failed(400, message="no such thing"), SPOKEN_ROLES) as wire:
        form = await fill(hass, await choose(hass, "compatible"), {"api_base": f"{wire.url}/v1"})
        assert form["step_id"] == "agent" and suggested(form) == {}
        form = await fill(hass, form, {"model": " ", "control": "nothing"})
        assert form["errors"] == {"model": "model_missing"}
        form = await fill(hass, form, {"model": "x", "control": "nothing"})
        assert form["errors"] == {"model": "model_not_found"}
        form = await fill(hass, form, {"model": "y", "control": "nothing"})
        assert form["errors"] == {"model": "model_refused"}
        assert "no such thing" in form["description_placeholders"]["reason"]
        done = await fill(hass, form, {"model": "z", "control": "nothing"})
    assert get_subentries(done["result"])["Sash"][CONF_MODEL] == "z"


async def test_a_server_that_hangs_ends_the_check(hass: HomeAssistant) -> None:
    async with Wire(Reply(chunks=[], then="hang"), models("m")) as wire:
        entered = {"api_base": f"{wire.url}/v1"}
        with patch("custom_components.sash.provider.CHECK_SECONDS", 0.1):
            form = await fill(hass, await choose(hass, "compatible"), entered)
        assert form["errors"] == {"base": "timeout"}
        form = await fill(hass, form, entered)
    assert form["step_id"] == "agent"


async def test_a_slow_import_of_the_sdk_is_no_timeout_of_the_server(hass: HomeAssistant) -> None:
    """On a small computer, the first use of the SDK takes longer than an answer of the server may take."""
    create = Endpoint._create_client

    def create_slowly(endpoint: Endpoint) -> Any:
        time.sleep(1.5)
        return create(endpoint)

    async with Wire(models("m")) as wire:
        with (
            patch("custom_components.sash.provider.CHECK_SECONDS", 1),
            patch.object(Endpoint, "_create_client", create_slowly),
        ):
            form = await fill(hass, await choose(hass, "compatible"), {"api_base": f"{wire.url}/v1"})
    assert form["step_id"] == "agent"


async def test_an_unexpected_error_is_logged_and_can_be_overcome(
    hass: HomeAssistant, caplog: pytest.LogCaptureFixture
) -> None:
    async with Wire(models("m")) as wire:
        entered = {"api_base": f"{wire.url}/v1"}
        with patch("sash.models.openai.model.OpenAIModel.list_models", side_effect=RuntimeError("odd")):
            form = await fill(hass, await choose(hass, "compatible"), entered)
        assert form["errors"] == {"base": "unknown"}
        assert "odd" in caplog.text
        form = await fill(hass, form, entered)
    assert form["step_id"] == "agent"


@pytest.mark.parametrize("address", ["", "ftp://host/v1", "http://", "http://a b", "http://host:port/v1"])
async def test_what_is_no_address_is_refused_at_its_field(hass: HomeAssistant, address: str) -> None:
    form = await fill(hass, await choose(hass, "compatible"), {"api_base": address})
    assert form["errors"] == {"api_base": "invalid_address"}


async def test_an_empty_key_is_refused_at_its_field(hass: HomeAssistant) -> None:
    form = await fill(hass, await choose(hass, "openai"), {"api_key": " "})
    assert form["errors"] == {"api_key": "key_missing"}


async def test_the_same_provider_with_the_same_key_is_there_once(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        make_entry(compatible(wire)).add_to_hass(hass)
        form = await choose(hass, "compatible")
        done = await fill(hass, form, {"api_base": f"{wire.url}/v1/", "api_key": KEY})
        assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "already_configured")
        assert wire.requests == []
        form = await choose(hass, "compatible")
        form = await fill(hass, form, {"api_base": f"{wire.url}/v1", "api_key": "another"})
        assert form["step_id"] == "agent"


async def test_two_flows_for_one_provider_make_one_entry(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entered = {"api_base": f"{wire.url}/v1", "api_key": KEY}
        forms = [await fill(hass, await choose(hass, "compatible"), entered) for _ in range(2)]
        ends = [await fill(hass, form, AGENT) for form in forms]
    assert [end["type"] for end in ends] == [FlowResultType.CREATE_ENTRY, FlowResultType.ABORT]


async def test_the_local_provider_is_there_once(hass: HomeAssistant) -> None:
    await fill(hass, await choose(hass, "local"), {"control": "nothing"})
    done = await choose(hass, "local")
    assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "already_configured")


async def test_a_refused_key_is_replaced(hass: HomeAssistant, set_up: AsyncMock) -> None:
    async with Wire(failed(401), models("m")) as wire:
        entry = make_entry(compatible(wire))
        entry.add_to_hass(hass)
        before = entry.unique_id
        form = await entry.start_reauth_flow(hass)
        assert (form["step_id"], form["errors"]) == ("reauth_confirm", {})
        assert form["description_placeholders"]["name"] == entry.title
        form = await fill(hass, form, {"api_key": "wrong"})
        assert form["errors"] == {"base": "invalid_auth"}
        done = await fill(hass, form, {"api_key": " right "})
        await hass.async_block_till_done()
    assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "reauth_successful")
    assert entry.data["api_key"] == "right"
    assert entry.unique_id != before
    assert len(set_up.mock_calls) == 1


async def test_a_new_key_that_another_entry_has_is_refused(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        make_entry(compatible(wire, "taken")).add_to_hass(hass)
        entry = make_entry(compatible(wire))
        entry.add_to_hass(hass)
        done = await fill(hass, await entry.start_reauth_flow(hass), {"api_key": "taken"})
    assert done["reason"] == "already_configured"
    assert entry.data["api_key"] == KEY


async def test_the_key_stays_when_none_is_entered(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entry = make_entry(compatible(wire))
        form = await change(hass, entry, "compatible")
        assert suggested(form) == {"api_base": f"{wire.url}/v1"}
        done = await fill(hass, form, {"api_base": f"{wire.url}/v1"})
    assert done["reason"] == "reconfigure_successful"
    assert entry.data == compatible(wire)


async def test_the_key_is_not_sent_to_another_address(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as old, Wire(models("m")) as new:
        entry = make_entry(compatible(old))
        form = await change(hass, entry, "compatible")
        done = await fill(hass, form, {"api_base": f"{new.url}/v1"})
    assert done["reason"] == "reconfigure_successful"
    assert entry.data == compatible(new, None)
    assert KEY not in str([request.headers for request in new.requests])
    assert entry.title == new.url.removeprefix("http://")


async def test_another_provider_keeps_the_entry_and_gets_new_models(
    hass: HomeAssistant, set_up: AsyncMock
) -> None:
    async with Wire(models("m")) as old, Wire(models("gpt-5-mini"), failed(404), SPOKEN_ROLES) as new:
        entry = make_entry(compatible(old), temperature=0.1, prompt="Be kind.")
        with openai_at(new):
            form = await change(hass, entry, "openai")
            form = await fill(hass, form, {"api_key": "of-openai"})
            assert (form["step_id"], suggested(form)) == ("new_model", {"model": "gpt-5-mini"})
            assert entry.data == compatible(old), "nothing changes before the last form"
            form = await fill(hass, form, {"model": "gpt-9"})
            assert form["errors"] == {"model": "model_not_found"}
            done = await fill(hass, form, {"model": "gpt-5-mini"})
            await hass.async_block_till_done()
    assert done["reason"] == "reconfigure_successful"
    assert entry.data == {"provider": "openai", "api_key": "of-openai"}
    assert entry.title == "OpenAI"
    assert get_subentries(entry) == {
        "Sash": {"model": "gpt-5-mini", "prompt": "Be kind."},
        "Sash AI Task": {"model": "gpt-5-mini", "prompt": "Be kind."},
    }
    assert set_up.mock_calls


async def test_a_title_that_the_user_chose_stays(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as old, Wire(models("m")) as new:
        entry = make_entry(compatible(old))
        entry.add_to_hass(hass)
        hass.config_entries.async_update_entry(entry, title="My models")
        form = await change(hass, entry, "compatible")
        await fill(hass, form, {"api_base": f"{new.url}/v1"})
    assert entry.title == "My models"


async def test_an_entry_can_become_local_and_have_a_model_again(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entry = make_entry(compatible(wire))
        done = await change(hass, entry, "local")
        assert done["reason"] == "reconfigure_successful"
        assert entry.data == {"provider": "local"}
        assert get_subentries(entry)["Sash"] == {"model": "m"}
        form = await change(hass, entry, "compatible")
        done = await fill(hass, form, {"api_base": f"{wire.url}/v1"})
    assert done["reason"] == "reconfigure_successful"
    assert entry.data == compatible(wire, None)


async def test_an_entry_cannot_become_another_entry(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        make_entry({"provider": "local"}).add_to_hass(hass)
        entry = make_entry(compatible(wire))
        done = await change(hass, entry, "local")
    assert done["reason"] == "already_configured"
    assert entry.data == compatible(wire)


async def test_an_entry_with_a_listener_is_reloaded_by_it_alone(hass: HomeAssistant) -> None:
    told = asyncio.Event()

    async def listen(hass: HomeAssistant, entry: ConfigEntry) -> None:
        told.set()

    async with Wire(models("m")) as wire:
        entry = make_entry(compatible(wire))
        entry.add_to_hass(hass)
        entry.add_update_listener(listen)
        form = await change(hass, entry, "compatible")
        with patch.object(hass.config_entries, "async_schedule_reload") as reload:
            await fill(hass, form, {"api_base": f"{wire.url}/v1", "api_key": "new"})
        await asyncio.wait_for(told.wait(), 10)
    reload.assert_not_called()
