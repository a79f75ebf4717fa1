"""Repairs: problems that turns, pipelines, the database and removed providers show, and the flows that mend them."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from homeassistant.components import ai_task
from homeassistant.components.assist_pipeline import async_get_pipelines, async_update_pipeline
from homeassistant.components.assist_pipeline.pipeline import async_get_pipeline
from homeassistant.components.repairs import DOMAIN as REPAIRS_DOMAIN
from homeassistant.components.repairs import repairs_flow_manager
from homeassistant.config_entries import SOURCE_REAUTH
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import issue_registry as ir
from homeassistant.setup import async_setup_component
from homeassistant.util import dt as dt_util
from pytest_homeassistant_custom_component.common import async_fire_time_changed

from custom_components.sash.const import DOMAIN
from custom_components.sash.database_files import find_database
from custom_components.sash.pipeline_issues import INTERVAL
from custom_components.sash.store_issue import FIRST_CHECK
from tests.ha.inside.talking_house import ACTING, TalkingHouse, calls, open_house
from tests.models.wire import Reply, failed, said

pytestmark = pytest.mark.usefixtures("socket_enabled")

REFUSED = failed(401, "invalid_api_key")
UNKNOWN = failed(404, "model_not_found")
TOO_LONG = failed(400, "context_length_exceeded")


def list_issues(hass: HomeAssistant) -> dict[str, ir.IssueEntry]:
    """Return our issues by their kind."""
    found = ir.async_get(hass).issues.values()
    return {issue.translation_key or "": issue for issue in found if issue.domain == DOMAIN and issue.active}


async def start_fix(hass: HomeAssistant, kind: str) -> dict[str, Any]:
    """Start the flow of an issue, as Home Assistant's page does."""
    assert await async_setup_component(hass, REPAIRS_DOMAIN, {})
    manager = repairs_flow_manager(hass)
    assert manager is not None
    return dict(await manager.async_init(DOMAIN, context={"issue_id": list_issues(hass)[kind].issue_id}))


async def answer_fix(
    hass: HomeAssistant, flow: dict[str, Any], answer: dict[str, Any] | None
) -> dict[str, Any]:
    manager = repairs_flow_manager(hass)
    assert manager is not None
    result = dict(await manager.async_configure(flow["flow_id"], answer))
    await hass.async_block_till_done()
    return result


def list_reauth(house: TalkingHouse) -> list[Any]:
    return list(house.entry.async_get_active_flows(house.hass, {SOURCE_REAUTH}))


async def ask(house: TalkingHouse, text: str = "what do you know?") -> None:
    await house.say(text, room="Kitchen")
    await house.hass.async_block_till_done()


async def test_a_refused_key_asks_for_another_one(hass: HomeAssistant) -> None:
    async with open_house(hass, REFUSED) as house:
        await ask(house)
        await ask(house)
        assert len(list_reauth(house)) == 1
        issue_id = f"config_entry_reauth_{DOMAIN}_{house.entry.entry_id}"
        assert ir.async_get(hass).async_get_issue("homeassistant", issue_id) is not None


async def test_a_key_that_is_accepted_again_ends_the_question(hass: HomeAssistant) -> None:
    async with open_house(hass, REFUSED, said("ok")) as house:
        await ask(house)
        assert len(list_reauth(house)) == 1
        await ask(house)
        assert list_reauth(house) == []


async def test_a_key_that_is_refused_after_an_action_asks_for_another_one(hass: HomeAssistant) -> None:
    look = calls("get_states", entity_ids=["light.bed_light"])
    async with open_house(hass, look, REFUSED) as house:
        await ask(house)
        assert len(list_reauth(house)) == 1


async def test_a_local_answer_says_nothing_about_the_key(hass: HomeAssistant) -> None:
    async with open_house(hass, REFUSED, **ACTING) as house:
        await ask(house)
        await ask(house, "turn on the bed light")
        assert len(list_reauth(house)) == 1


async def test_an_unknown_model_can_be_replaced(hass: HomeAssistant) -> None:
    models = Reply(
        body={"object": "list", "data": [{"id": name, "object": "model"} for name in ("new", "other")]}
    )
    async with open_house(hass, UNKNOWN) as house:
        await ask(house)
        issue = list_issues(hass)["model_unknown"]
        assert issue.translation_placeholders == {"agent": "Sash", "model": "m"}
        house.wire.requests.clear()
        house.wire.replies = [models, UNKNOWN, models, said("hi")]
        flow = await start_fix(hass, "model_unknown")
        assert flow["step_id"] == "init"
        [field] = flow["data_schema"].schema.values()
        assert field.config["options"] == ["new", "other"]
        flow = await answer_fix(hass, flow, {"model": "wrong"})
        assert flow["errors"] == {"model": "model_not_found"}
        flow = await answer_fix(hass, flow, {"model": "new"})
        assert flow["type"] is FlowResultType.CREATE_ENTRY
        [subentry] = house.entry.subentries.values()
        assert subentry.data["model"] == "new"
        assert list_issues(hass) == {}
        [agent] = house.data.agents.values()
        assert agent.options.model.name == "new"


async def run_task(house: TalkingHouse) -> None:
    with pytest.raises(HomeAssistantError):
        await ai_task.async_generate_data(
            house.hass, task_name="Count", entity_id=house.task_id, instructions="Count the animals."
        )
    await house.hass.async_block_till_done()


async def test_the_model_of_an_ai_task_can_be_unknown_too(hass: HomeAssistant) -> None:
    async with open_house(hass, UNKNOWN, task={"model": "t"}) as house:
        await run_task(house)
        issue = list_issues(hass)["model_unknown"]
        assert (issue.translation_placeholders or {})["model"] == "t"


async def test_an_ai_task_has_no_window_that_could_be_smaller(hass: HomeAssistant) -> None:
    async with open_house(hass, TOO_LONG, task={}) as house:
        await run_task(house)
        assert list_issues(hass) == {}


async def test_the_issue_of_a_model_vanishes_when_a_turn_succeeds(hass: HomeAssistant) -> None:
    async with open_house(hass, UNKNOWN, said("ok")) as house:
        await ask(house)
        assert "model_unknown" in list_issues(hass)
        await ask(house)
        assert list_issues(hass) == {}


async def test_the_issue_of_a_model_vanishes_when_the_options_change(hass: HomeAssistant) -> None:
    async with open_house(hass, UNKNOWN) as house:
        await ask(house)
        assert "model_unknown" in list_issues(hass)
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        assert list_issues(hass) == {}


async def test_prompts_that_are_too_long_become_shorter_with_a_smaller_window(hass: HomeAssistant) -> None:
    async with open_house(
        hass, TOO_LONG, sliding_window_max_tokens=8000, sliding_window_enable=False
    ) as house:
        await ask(house)
        flow = await start_fix(hass, "context_too_long")
        [field] = flow["data_schema"].schema
        assert field.default() == 4000
        flow = await answer_fix(hass, flow, {"sliding_window_max_tokens": 3000.0})
        assert flow["type"] is FlowResultType.CREATE_ENTRY
        [agent] = house.data.agents.values()
        assert agent.options.window is not None
        assert agent.options.window.max_tokens == 3000
        assert list_issues(hass) == {}


async def test_a_fix_for_an_agent_that_is_gone_says_so(hass: HomeAssistant) -> None:
    async with open_house(hass, UNKNOWN) as house:
        await ask(house)
        flow = await start_fix(hass, "model_unknown")
        await hass.config_entries.async_unload(house.entry.entry_id)
        result = await answer_fix(hass, flow, {"model": "new"})
        assert (result["type"], result["reason"]) == (FlowResultType.ABORT, "agent_gone")


async def make_pipeline(house: TalkingHouse, *, local: bool) -> None:
    """Let the only pipeline use our agent."""
    hass = house.hass
    await async_update_pipeline(
        hass,
        async_get_pipeline(hass),
        conversation_engine=house.agent_id,
        prefer_local_intents=local,
    )
    await hass.async_block_till_done()


async def test_a_pipeline_that_bypasses_the_policy_can_be_changed(hass: HomeAssistant) -> None:
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, "assist_pipeline", {})
    async with open_house(hass, said("ok"), **ACTING) as house:
        assert list_issues(hass) == {}
        await make_pipeline(house, local=True)
        issue = list_issues(hass)["pipeline_bypass"]
        assert issue.translation_placeholders == {"pipeline": "Home Assistant", "agent": "Sash"}
        flow = await start_fix(hass, "pipeline_bypass")
        assert (flow["type"], flow["step_id"]) == (FlowResultType.FORM, "confirm")
        assert flow["description_placeholders"] == issue.translation_placeholders
        # The page is loaded again.
        flow = await answer_fix(hass, flow, None)
        assert (flow["type"], flow["step_id"]) == (FlowResultType.FORM, "confirm")
        result = await answer_fix(hass, flow, {})
        assert result["type"] is FlowResultType.CREATE_ENTRY
        assert [pipeline.prefer_local_intents for pipeline in async_get_pipelines(hass)] == [False]
        assert list_issues(hass) == {}


async def test_the_issue_of_a_pipeline_vanishes_when_the_user_changes_the_pipeline(
    hass: HomeAssistant,
) -> None:
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, "assist_pipeline", {})
    async with open_house(hass, said("ok"), **ACTING) as house:
        await make_pipeline(house, local=True)
        assert "pipeline_bypass" in list_issues(hass)
        await make_pipeline(house, local=False)
        assert list_issues(hass) == {}
        await make_pipeline(house, local=True)
        assert "pipeline_bypass" in list_issues(hass)
        # A second start finds it by itself, and an hour later, too.
        await hass.config_entries.async_unload(house.entry.entry_id)
        assert list_issues(hass) == {}
        await hass.config_entries.async_setup(house.entry.entry_id)
        assert "pipeline_bypass" in list_issues(hass)
        ir.async_delete_issue(hass, DOMAIN, list_issues(hass)["pipeline_bypass"].issue_id)
        async_fire_time_changed(hass, dt_util.utcnow() + INTERVAL + timedelta(seconds=1))
        await hass.async_block_till_done()
        assert "pipeline_bypass" in list_issues(hass)


async def test_an_agent_that_never_asks_and_may_act_is_not_bypassed(hass: HomeAssistant) -> None:
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, "assist_pipeline", {})
    async with open_house(hass, said("ok"), **ACTING, require_confirmation=[]) as house:
        await make_pipeline(house, local=True)
        assert list_issues(hass) == {}


@pytest.mark.parametrize(
    ("options", "is_bypassed"),
    [
        ({"allowlisted_services": ["light", "lock", "switch"]}, False),
        ({"allowlisted_services": ["light", "switch"]}, True),
        ({"denylisted_services": ["lock.unlock"]}, True),
    ],
)
async def test_an_agent_that_would_refuse_an_exposed_device_is_bypassed(
    hass: HomeAssistant, options: dict[str, Any], is_bypassed: bool
) -> None:
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, "assist_pipeline", {})
    async with open_house(hass, said("ok"), **{**ACTING, "require_confirmation": [], **options}) as house:
        await make_pipeline(house, local=True)
        assert ("pipeline_bypass" in list_issues(hass)) is is_bypassed


def damage(house: TalkingHouse, sql: str) -> None:
    with closing(sqlite3.connect(find_database(house.hass, house.entry.entry_id))) as db, db:
        assert db.execute(sql).rowcount > 0


async def check_store(hass: HomeAssistant) -> None:
    async_fire_time_changed(hass, dt_util.utcnow() + FIRST_CHECK + timedelta(seconds=1))
    await hass.async_block_till_done(wait_background_tasks=True)


async def test_damaged_conversations_can_be_deleted(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("what do you know?", room="Kitchen")
        await house.say("what do you know?", room="Bedroom")
        await check_store(hass)
        assert list_issues(hass) == {}
        damage(house, "UPDATE messages SET body = 'x' WHERE row = 1")
        await house.data.usage.async_refresh()
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        await check_store(hass)
        issue = list_issues(hass)["store_damaged"]
        assert "cannot be read" in (issue.translation_placeholders or {})["found"]
        flow = await start_fix(hass, "store_damaged")
        # The page is loaded again.
        flow = await answer_fix(hass, flow, None)
        assert (flow["type"], flow["step_id"]) == (FlowResultType.FORM, "confirm")
        result = await answer_fix(hass, flow, {})
        assert result["type"] is FlowResultType.CREATE_ENTRY
        assert list_issues(hass) == {}
        kept = (await house.data.runtime.list_sessions(owner="house")).items
        assert len(kept) == 1
        await check_store(hass)
        assert list_issues(hass) == {}


async def test_a_damage_that_cannot_be_mended_stays_an_issue(
    hass: HomeAssistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("what do you know?", room="Kitchen")
        damage(house, "UPDATE messages SET body = 'x' WHERE row = 1")
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        await check_store(hass)

        async def delete_nothing(_: object) -> int:
            return 0

        monkeypatch.setattr("custom_components.sash.repairs.delete_damaged", delete_nothing)
        flow = await start_fix(hass, "store_damaged")
        result = await answer_fix(hass, flow, {})
        assert (result["type"], result["reason"]) == (FlowResultType.ABORT, "not_repaired")
        assert "cannot be read" in result["description_placeholders"]["message"]
        assert "store_damaged" in list_issues(hass)


async def test_a_database_that_cannot_be_opened_is_not_repaired(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("what do you know?", room="Kitchen")
        damage(house, "UPDATE messages SET body = 'x' WHERE row = 1")
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        await check_store(hass)
        flow = await start_fix(hass, "store_damaged")
        await house.data.store.close()
        result = await answer_fix(hass, flow, {})
        assert (result["type"], result["reason"]) == (FlowResultType.ABORT, "not_repaired")
        assert result["description_placeholders"]["message"]
        await house.data.store.open()


async def test_a_database_of_a_provider_that_is_not_loaded_is_not_repaired(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("what do you know?", room="Kitchen")
        damage(house, "UPDATE messages SET body = 'x' WHERE row = 1")
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        await check_store(hass)
        flow = await start_fix(hass, "store_damaged")
        await hass.config_entries.async_unload(house.entry.entry_id)
        result = await answer_fix(hass, flow, {})
        assert (result["type"], result["reason"]) == (FlowResultType.ABORT, "not_loaded")
