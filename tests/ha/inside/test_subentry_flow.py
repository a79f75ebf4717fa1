"""The forms of agents and AI tasks: what they show, check and keep."""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from unittest.mock import patch

import probatio
import pytest
from homeassistant.config_entries import SOURCE_USER, SubentryFlowResult
from homeassistant.core import HomeAssistant, ServiceCall
from homeassistant.data_entry_flow import FlowResultType, section
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.sash.agent_options import AgentOptions
from custom_components.sash.const import (
    AGENT_DEFAULTS,
    AI_TASK_DEFAULTS,
    EVERYDAY_SERVICES,
    GENERIC_SERVICES,
    SUBENTRY_AI_TASK,
    SUBENTRY_CONVERSATION,
)
from custom_components.sash.option_checks import NUMBER_RANGES
from custom_components.sash.provider import CheckResult
from tests.ha.inside.provider_server import SPOKEN_ROLES, compatible, get_paths, make_entry, models, openai_at
from tests.models.wire import Reply, Wire, failed

pytestmark = pytest.mark.usefixtures("socket_enabled")

REFUSED = failed(400, message="temperature is not supported with this model")


@pytest.fixture(autouse=True)
async def set_up(hass: HomeAssistant) -> AsyncIterator[None]:
    """Entries are loaded, and nothing runs. There are the services of lights."""
    assert await async_setup_component(hass, "homeassistant", {})

    async def ignore(call: ServiceCall) -> None:
        return

    for service in ("turn_on", "turn_off"):
        hass.services.async_register("light", service, ignore)
    with (
        patch("custom_components.sash.async_setup_entry", return_value=True),
        patch("custom_components.sash.async_unload_entry", return_value=True),
    ):
        yield
        await hass.async_block_till_done()


@pytest.fixture
def no_calls() -> Iterator[None]:
    """Check no model, for tests that are not about models."""
    with patch("custom_components.sash.subentry_flow.check_model", side_effect=AssertionError):
        yield


async def load(hass: HomeAssistant, entry: MockConfigEntry) -> MockConfigEntry:
    entry.add_to_hass(hass)
    assert await hass.config_entries.async_setup(entry.entry_id)
    await hass.async_block_till_done()
    return entry


async def add(
    hass: HomeAssistant, entry: MockConfigEntry, kind: str = SUBENTRY_CONVERSATION
) -> SubentryFlowResult:
    """Start to add a subentry."""
    return await hass.config_entries.subentries.async_init(
        (entry.entry_id, kind), context={"source": SOURCE_USER}
    )


async def change(
    hass: HomeAssistant, entry: MockConfigEntry, kind: str = SUBENTRY_CONVERSATION
) -> SubentryFlowResult:
    """Start to change the first subentry of a kind."""
    (subentry_id, *_) = [each.subentry_id for each in entry.subentries.values() if each.subentry_type == kind]
    return await entry.start_subentry_reconfigure_flow(hass, subentry_id)


async def fill(hass: HomeAssistant, form: SubentryFlowResult, entered: dict[str, Any]) -> SubentryFlowResult:
    return await hass.config_entries.subentries.async_configure(form["flow_id"], entered)


def get_options(entry: MockConfigEntry, kind: str = SUBENTRY_CONVERSATION) -> dict[str, Any]:
    """Return the options of the last subentry of a kind."""
    return [dict(each.data) for each in entry.subentries.values() if each.subentry_type == kind][-1]


def get_shown(schema: probatio.Schema) -> dict[str, Any]:
    """Return the fields of a form with the values that it shows; sections are dictionaries."""
    shown: dict[str, Any] = {}
    for marker, kind in schema.schema.items():
        if isinstance(kind, section):
            shown[str(marker)] = get_shown(kind.schema)
        else:
            shown[str(marker)] = (marker.description or {}).get("suggested_value")
    return shown


async def test_a_newcomer_sees_four_fields_and_folded_sections(hass: HomeAssistant) -> None:
    async with Wire(models("m", "n")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await add(hass, entry)
    assert (form["type"], form["step_id"], form["errors"]) == (FlowResultType.FORM, "init", {})
    shown = get_shown(form["data_schema"])
    assert [name for name, value in shown.items() if not isinstance(value, dict)] == [
        "name",
        "model",
        "prompt",
        "allow_actuation",
    ]
    assert list(shown)[4:] == ["actions", "memory", "budgets", "advanced"]
    sections = [kind for kind in form["data_schema"].schema.values() if isinstance(kind, section)]
    assert all(each.options["collapsed"] for each in sections)
    assert shown["model"] == "m", "the model of the other agents"
    assert form["data_schema"].schema["model"].config["options"] == ["m", "n"]


async def test_openai_suggests_a_model_before_there_is_one(hass: HomeAssistant) -> None:
    async with Wire(models("gpt-4o", "gpt-5-mini")) as wire:
        with openai_at(wire):
            entry = await load(hass, make_entry({"provider": "openai", "api_key": "k"}, model=None))
            shown = get_shown((await add(hass, entry))["data_schema"])
    assert shown["model"] == "gpt-5-mini"


async def test_every_option_of_an_agent_has_a_field(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        for kind, defaults in ((SUBENTRY_CONVERSATION, AGENT_DEFAULTS), (SUBENTRY_AI_TASK, AI_TASK_DEFAULTS)):
            form = await add(hass, entry, kind)
            shown = get_shown(form["data_schema"])
            fields = {name for name, value in shown.items() if not isinstance(value, dict)}
            fields |= {name for value in shown.values() if isinstance(value, dict) for name in value}
            renamed = {"max_duration_ms" if name == "max_duration_seconds" else name for name in fields}
            assert renamed == {"name", *defaults}


@pytest.mark.usefixtures("no_calls")
async def test_an_agent_is_added_with_few_answers(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await add(hass, entry)
        done = await fill(hass, form, {"name": " Anna ", "model": "m"})
        await hass.async_block_till_done()
    assert (done["type"], done["title"]) == (FlowResultType.CREATE_ENTRY, "Anna")
    assert get_options(entry) == {"model": "m", "allow_actuation": False}
    assert AgentOptions.of(get_options(entry)) == AgentOptions.of({"model": "m"})


@pytest.mark.usefixtures("no_calls")
async def test_the_defaults_of_the_form_are_those_of_an_agent(hass: HomeAssistant) -> None:
    """A user who opens all sections and changes nothing gets the agent of a user who opens none."""
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await change(hass, entry)
        shown = get_shown(form["data_schema"])
        entered = {
            name: {field: each for field, each in value.items() if each is not None}
            if isinstance(value, dict)
            else value
            for name, value in shown.items()
            if value is not None
        }
        done = await fill(hass, form, entered)
    assert done["reason"] == "reconfigure_successful"
    assert AgentOptions.of(get_options(entry)) == AgentOptions.of({"model": "m"})


@pytest.mark.usefixtures("no_calls")
async def test_all_options_are_kept_as_the_agent_reads_them(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await change(hass, entry)
        done = await fill(
            hass,
            form,
            {
                "model": "m",
                "prompt": "You are {{ ha_name }}.",
                "allow_actuation": True,
                "actions": {
                    "allowlisted_services": ["light", " Light.turn_on ", "light", "vacuum.start", "lig*"],
                    "require_confirmation": [],
                    "denylisted_services": ["light.turn_off"],
                    "approval_wait_seconds": 30.0,
                    "max_actions_per_minute": 5.0,
                    "dry_run": True,
                },
                "memory": {
                    "session_scope": "house",
                    "session_idle_days": 30.0,
                    "transcript_retention_days": 90.0,
                    "sliding_window_enable": False,
                    "sliding_window_max_tokens": 8000.0,
                    "sliding_window_preserve_system": False,
                    "max_history_turns": 20.0,
                },
                "budgets": {
                    "max_cost_per_day_usd": 1.5,
                    "max_cost_per_turn_usd": 0.05,
                    "max_duration_seconds": 45.0,
                    "max_tokens_per_turn": 5000.0,
                    "max_steps": 4.0,
                    "max_tool_calls": 0.0,
                },
                "advanced": {
                    "max_output_tokens": 500.0,
                    "early_wait_enable": True,
                    "early_wait_seconds": 2.5,
                    "llm_hass_api": ["assist"],
                    "use_home_assistant_intents": False,
                },
            },
        )
        assert done["type"] is FlowResultType.ABORT, done.get("errors")
        kept = get_options(entry)
        assert kept == {
            "model": "m",
            "prompt": "You are {{ ha_name }}.",
            "allow_actuation": True,
            "allowlisted_services": ["light", "light.turn_on", "vacuum.start", "lig*", *GENERIC_SERVICES],
            "require_confirmation": [],
            "denylisted_services": ["light.turn_off"],
            "approval_wait_seconds": 30,
            "max_actions_per_minute": 5,
            "dry_run": True,
            "session_scope": "house",
            "session_idle_days": 30,
            "transcript_retention_days": 90,
            "sliding_window_enable": False,
            "sliding_window_max_tokens": 8000,
            "sliding_window_preserve_system": False,
            "max_history_turns": 20,
            "max_cost_per_day_usd": 1.5,
            "max_cost_per_turn_usd": 0.05,
            "max_duration_ms": 45_000,
            "max_tokens_per_turn": 5000,
            "max_steps": 4,
            "max_tool_calls": 0,
            "max_output_tokens": 500,
            "early_wait_enable": True,
            "early_wait_seconds": 2.5,
            "llm_hass_api": ["assist"],
            "use_home_assistant_intents": False,
        }
        AgentOptions.of(kept)
        shown = get_shown((await change(hass, entry))["data_schema"])
    assert shown["budgets"]["max_duration_seconds"] == 45
    assert shown["actions"]["allowlisted_services"] == ["light", "light.turn_on", "vacuum.start", "lig*"]
    assert shown["memory"]["session_scope"] == "house"


@pytest.mark.usefixtures("no_calls")
async def test_an_empty_field_is_cleared_and_a_closed_section_stays(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        options = {
            "max_cost_per_day_usd": 2.0,
            "max_duration_ms": 9000,
            "sliding_window_max_tokens": 900,
            "prompt": "x",
        }
        entry = await load(hass, make_entry(compatible(wire), **options))
        form = await change(hass, entry)
        await fill(hass, form, {"model": "m", "memory": {}})
    kept = get_options(entry)
    assert (kept["max_cost_per_day_usd"], kept["max_duration_ms"]) == (2.0, 9000)
    assert "sliding_window_max_tokens" not in kept and "prompt" not in kept


@pytest.mark.parametrize("field", sorted(NUMBER_RANGES))
@pytest.mark.usefixtures("no_calls")
async def test_a_number_out_of_range_is_told_with_the_name_of_its_field(
    hass: HomeAssistant, field: str
) -> None:
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await add(hass, entry)
        shown = get_shown(form["data_schema"])
        (place,) = [name for name, value in shown.items() if isinstance(value, dict) and field in value]
        numbers = NUMBER_RANGES[field]
        for wrong in (numbers.minimum - 1, numbers.maximum + 1, float("nan")):
            form = await fill(hass, form, {"name": "A", "model": "m", place: {field: wrong}})
            assert form["errors"] in ({place: "out_of_range"}, {place: "not_whole"})
            placeholders = form["description_placeholders"]
            assert float(placeholders["min"]) == numbers.minimum
            assert float(placeholders["max"]) == numbers.maximum
            assert placeholders["field"] not in ("", field), "the label of the field"
        with patch("custom_components.sash.subentry_flow.check_model", return_value=CheckResult()):
            done = await fill(hass, form, {"name": "A", "model": "m", place: {field: numbers.maximum}})
        assert done["type"] is FlowResultType.CREATE_ENTRY


@pytest.mark.parametrize(
    ("entered", "errors", "placeholders"),
    [
        ({"model": " "}, {"model": "model_missing"}, {}),
        (
            {"prompt": "{{ llm_context.nothing.at.all }}"},
            {"prompt": "invalid_template"},
            {"reason": "UndefinedError"},
        ),
        (
            {"actions": {"allowlisted_services": ["light", "lihgt", "light.kitchen"]}},
            {"actions": "unknown_service"},
            {"names": "lihgt, light.kitchen", "field": "What it may control"},
        ),
        (
            {"actions": {"require_confirmation": ["x*"]}},
            {"actions": "unknown_service"},
            {"names": "x*", "field": "Ask first"},
        ),
        (
            {"actions": {"denylisted_services": ["!mqtt"]}},
            {"actions": "unknown_service"},
            {"names": "!mqtt", "field": "Never use"},
        ),
        (
            {"allow_actuation": True, "actions": {"allowlisted_services": []}},
            {"actions": "nothing_allowed"},
            {"field": "What it may control"},
        ),
        (
            {"advanced": {"llm_hass_api": ["assist", "gone"]}},
            {"advanced": "unknown_llm_api"},
            {"names": "gone", "field": "Other tools of Home Assistant"},
        ),
        ({"memory": {"max_history_turns": 1.5}}, {"memory": "not_whole"}, {"max": "1000"}),
    ],
)
@pytest.mark.usefixtures("no_calls")
async def test_an_entry_that_cannot_work_is_told_and_can_be_corrected(
    hass: HomeAssistant, entered: dict[str, Any], errors: dict[str, str], placeholders: dict[str, str]
) -> None:
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await add(hass, entry)
        form = await fill(hass, form, {"name": "A", "model": "m", **entered})
        assert form["errors"] == errors
        for name, text in placeholders.items():
            assert text in form["description_placeholders"][name]
        done = await fill(hass, form, {"name": "A", "model": "m"})
    assert done["type"] is FlowResultType.CREATE_ENTRY


@pytest.mark.usefixtures("no_calls")
async def test_tools_and_intents_of_the_user_can_be_named(hass: HomeAssistant) -> None:
    hass.config.components.add("mcp")
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        names = ["mcp.delete_file", "intent_script.GoodNight", "assist_satellite", "mcp"]
        form = await change(hass, entry)
        await fill(hass, form, {"model": "m", "actions": {"denylisted_services": names}})
    assert get_options(entry)["denylisted_services"] == [name.lower() for name in names]


async def test_what_the_user_entered_stays_in_the_form_after_an_error(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await add(hass, entry)
        entered = {"name": "A", "model": "m", "prompt": "x", "actions": {"allowlisted_services": ["lihgt"]}}
        shown = get_shown((await fill(hass, form, entered))["data_schema"])
    assert (shown["name"], shown["prompt"]) == ("A", "x")
    assert shown["actions"]["allowlisted_services"] == ["lihgt"]


async def test_a_model_that_is_not_listed_is_tried(hass: HomeAssistant) -> None:
    async with Wire(models("m"), failed(404), SPOKEN_ROLES) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await change(hass, entry)
        form = await fill(hass, form, {"model": "x"})
        assert form["errors"] == {"model": "model_not_found"}
        done = await fill(hass, form, {"model": "y"})
    assert done["reason"] == "reconfigure_successful"
    assert get_paths(wire) == ["/v1/models", "/v1/chat/completions", "/v1/chat/completions"]
    assert wire.requests[-1].body["model"] == "y"


async def test_parameters_are_tried_because_models_refuse_some(hass: HomeAssistant) -> None:
    async with Wire(models("m"), REFUSED, SPOKEN_ROLES) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await change(hass, entry)
        form = await fill(hass, form, {"model": "m", "advanced": {"temperature": 0.3}})
        assert form["errors"] == {"model": "model_refused"}
        assert "temperature is not supported" in form["description_placeholders"]["reason"]
        done = await fill(hass, form, {"model": "m", "advanced": {"reasoning_effort": "low"}})
    assert done["reason"] == "reconfigure_successful"
    assert wire.requests[-1].body["reasoning_effort"] == "low"
    assert get_options(entry)["reasoning_effort"] == "low"


async def test_parameters_that_did_not_change_are_not_tried_again(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire), temperature=0.3))
        form = await change(hass, entry)
        await fill(hass, form, {"model": "m", "prompt": "x", "advanced": {"temperature": 0.3}})
    assert get_paths(wire) == ["/v1/models"]


@pytest.mark.parametrize("reply", [failed(401), failed(404), Reply(body="<html>"), failed(500)])
async def test_without_a_list_the_user_types_a_name(hass: HomeAssistant, reply: Reply) -> None:
    async with Wire(reply, SPOKEN_ROLES) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await add(hass, entry, SUBENTRY_AI_TASK)
        assert form["data_schema"].schema["model"].selector_type == "text"
        done = await fill(hass, form, {"name": "", "model": "x"})
    assert (done["type"], done["title"]) == (FlowResultType.CREATE_ENTRY, "Sash AI Task")


async def test_an_ai_task_is_changed(hass: HomeAssistant) -> None:
    async with Wire(models("m", "n")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await change(hass, entry, SUBENTRY_AI_TASK)
        shown = get_shown(form["data_schema"])
        assert list(shown) == ["model", "advanced"]
        assert list(shown["advanced"]) == [
            "reasoning_effort",
            "temperature",
            "max_output_tokens",
            "llm_hass_api",
        ]
        await fill(hass, form, {"model": "n", "advanced": {"max_output_tokens": 300}})
    assert get_options(entry, SUBENTRY_AI_TASK) == {"model": "n", "max_output_tokens": 300}


async def test_an_agent_without_a_model_has_no_fields_for_one(hass: HomeAssistant) -> None:
    entry = await load(hass, make_entry({"provider": "local"}))
    form = await add(hass, entry)
    shown = get_shown(form["data_schema"])
    assert list(shown) == ["name", "allow_actuation", "actions", "memory", "advanced"]
    assert list(shown["advanced"]) == ["use_home_assistant_intents"]
    assert list(shown["memory"]) == ["session_scope", "session_idle_days", "transcript_retention_days"]
    done = await fill(hass, form, {"name": "B", "allow_actuation": True, "memory": {"session_scope": "user"}})
    assert done["type"] is FlowResultType.CREATE_ENTRY
    kept = get_options(entry)
    assert (kept["allow_actuation"], kept["session_scope"]) == (True, "user")
    assert AgentOptions.of(kept).policy.allowlisted_services == (*EVERYDAY_SERVICES, *GENERIC_SERVICES)


async def test_an_api_that_is_gone_is_not_shown(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire), llm_hass_api=["gone", "assist"]))
        shown = get_shown((await change(hass, entry))["data_schema"])
    assert shown["advanced"]["llm_hass_api"] == ["assist"]


async def test_an_entry_that_is_not_loaded_takes_no_agents(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        await hass.config_entries.async_unload(entry.entry_id)
        done = await add(hass, entry)
    assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "entry_not_loaded")


async def test_the_new_options_are_loaded(hass: HomeAssistant) -> None:
    async with Wire(models("m")) as wire:
        entry = await load(hass, make_entry(compatible(wire)))
        form = await change(hass, entry)
        with patch.object(hass.config_entries, "async_schedule_reload") as reload:
            await fill(hass, form, {"model": "m", "prompt": "x"})
        reload.assert_called_once_with(entry.entry_id)

        async def listen(*_: Any) -> None:
            return

        entry.add_update_listener(listen)
        form = await change(hass, entry)
        with patch.object(hass.config_entries, "async_schedule_reload") as reload:
            await fill(hass, form, {"model": "m", "prompt": "y"})
        reload.assert_not_called()
    assert get_options(entry)["prompt"] == "y"
