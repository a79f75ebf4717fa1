"""The AI Task entity: text, structured data, images and tools, without any memory."""

import asyncio
import json
from pathlib import Path
from typing import Any

import probatio
import pytest
from homeassistant.auth.models import User
from homeassistant.components import ai_task
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers import llm, selector
from homeassistant.setup import async_setup_component
from PIL import Image
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.sash.ai_task import BUDGETS
from custom_components.sash.const import DOMAIN, SUBENTRY_AI_TASK
from custom_components.sash.task_images import MAX_BYTES
from tests.ha.inside.talking_house import TalkingHouse, calls, make_subentry, open_house
from tests.models.wire import Reply, failed, said

pytestmark = pytest.mark.usefixtures("socket_enabled")

COUNT = probatio.Schema(
    {
        probatio.Required("animals", description="How many animals there are."): selector.selector(
            {"number": {"min": 0, "max": 100}}
        ),
        probatio.Optional("kind"): selector.selector({"select": {"options": ["cat", "dog"]}}),
    }
)


async def run_task(house: TalkingHouse, instructions: str = "Count the animals.", **more: Any) -> Any:
    """Return the data of a task."""
    task = {"task_name": "Animal count", "entity_id": house.task_id, "instructions": instructions}
    result = await ai_task.async_generate_data(house.hass, **task, **more)
    return result.data


async def test_a_task_without_a_structure_is_a_text(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Two ", "cats."), task={}) as house:
        assert await run_task(house) == "Two cats."
        [request] = house.wire.requests
        assert "response_format" not in request.body and "tools" not in request.body


async def test_a_structure_is_asked_for_strictly_and_parsed(hass: HomeAssistant) -> None:
    answer = {"animals": 2, "kind": None}
    async with open_house(hass, said(json.dumps(answer)), task={"temperature": 0.1}) as house:
        assert await run_task(house, structure=COUNT) == answer
        [request] = house.wire.requests
        assert request.body["temperature"] == 0.1
        asked = request.body["response_format"]["json_schema"]
        assert (asked["name"], asked["strict"]) == ("animal_count", True)
        schema = asked["schema"]
        assert schema["properties"]["animals"]["description"] == "How many animals there are."
        assert schema["properties"]["kind"]["anyOf"][1] == {"type": "null"}
        assert schema["required"] == ["animals", "kind"] and schema["additionalProperties"] is False


async def test_a_structure_with_free_objects_is_not_strict(hass: HomeAssistant) -> None:
    free = probatio.Schema({probatio.Required("any"): selector.selector({"object": {}})})
    async with open_house(hass, said('```json\n{"any": {"a": 1}}\n```'), task={}) as house:
        assert await run_task(house, structure=free) == {"any": {"a": 1}}
        [request] = house.wire.requests
        assert request.body["response_format"]["json_schema"]["strict"] is False


@pytest.mark.parametrize("wrong", ["two cats", '{"animals": "two", "kind": null}', '["cat"]'])
async def test_a_wrong_answer_is_asked_for_once_more(hass: HomeAssistant, wrong: str) -> None:
    right = '{"animals": 2, "kind": "cat"}'
    async with open_house(hass, said(wrong), said(right), task={}) as house:
        assert await run_task(house, structure=COUNT) == {"animals": 2, "kind": "cat"}
        assert len(house.wire.requests) == 2
        assert "answer" in house.read_prompts()[1] and "answer" not in house.read_prompts()[0]


async def test_a_second_wrong_answer_is_an_error(hass: HomeAssistant) -> None:
    async with open_house(hass, said("two cats"), task={}) as house:
        with pytest.raises(HomeAssistantError, match="not valid JSON"):
            await run_task(house, structure=COUNT)
        assert len(house.wire.requests) == 2


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (failed(401, "invalid_api_key"), "refuses the key"),
        (said("{", then="cut"), "cannot be reached"),
        (failed(400, "other", "bad field"), "HTTP 400: bad field"),
    ],
)
async def test_a_failure_of_the_model_is_an_error_with_the_reason(
    hass: HomeAssistant, reply: Reply, reason: str
) -> None:
    async with open_house(hass, reply, task={}) as house:
        with pytest.raises(HomeAssistantError, match=reason):
            await run_task(house)


async def test_a_task_knows_neither_facts_nor_the_home_and_is_not_remembered(
    hass: HomeAssistant, hass_admin_user: User
) -> None:
    async with open_house(hass, said("No."), said("Hello."), task={}) as house:
        runtime = house.data.runtime
        await runtime.remember("The cat is called Minka.", owner="house")
        # Our own sentences would switch the light here.
        assert await run_task(house, "Turn on the bed light") == "No."
        assert hass.states.get("light.bed_light").state == "off"
        [prompt] = house.read_prompts()
        assert "Turn on the bed light" in prompt and "Home Assistant expert" in prompt
        assert "Minka" not in prompt and "Kitchen" not in prompt and "Sash" not in prompt
        assert (await runtime.list_sessions(owner="house")).items == ()
        await house.say("write a poem about her")
        assert "Minka" in house.read_prompts()[1] and "Turn on the bed light" not in house.read_prompts()[1]


async def test_a_task_of_a_user_belongs_to_the_user(hass: HomeAssistant, hass_admin_user: User) -> None:
    async with open_house(hass, said("Yes."), task={}) as house:
        await run_task(house, context=Context(user_id=hass_admin_user.id))
        page = await house.data.runtime.list_sessions(owner=f"user:{hass_admin_user.id}", with_questions=True)
        assert [session.is_task for session in page.items] == [True]


async def test_a_task_that_is_too_long_is_an_error(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Yes."), task={}) as house:
        with pytest.raises(HomeAssistantError, match="message"):
            await run_task(house, "Count the animals. " * 100_000)
        assert house.wire.requests == []


async def test_a_task_of_a_provider_that_is_unloaded_is_an_error(hass: HomeAssistant) -> None:
    async with open_house(hass, Reply(chunks=[], then="hang"), task={}) as house:
        task = asyncio.create_task(run_task(house))
        async with asyncio.timeout(10):
            while not house.wire.requests:
                await asyncio.sleep(0.01)
            await hass.config_entries.async_unload(house.entry.entry_id)
            with pytest.raises(HomeAssistantError):
                await task


class Garden(llm.API):
    """An API that a task brings along."""

    def __init__(self, hass: HomeAssistant, integration: str = "garden") -> None:
        super().__init__(hass=hass, id="garden", name="Garden")
        self.watered: list[dict[str, Any]] = []
        self._integration = integration

    async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
        tool = Water(self.watered, self._integration)
        return llm.APIInstance(self, "Water what is dry.", llm_context, [tool])


class Water(llm.Tool):
    name = "water"
    description = "Water a plant."
    parameters = probatio.Schema({probatio.Required("plant"): str})

    def __init__(self, watered: list[dict[str, Any]], integration: str) -> None:
        self._watered = watered
        self.integration = integration

    async def async_call(
        self, hass: HomeAssistant, tool_input: llm.ToolInput, llm_context: llm.LLMContext
    ) -> llm.ToolResult:
        self._watered.append(tool_input.tool_args)
        return llm.ToolResult({"done": True})


async def test_a_task_may_bring_its_own_tools(hass: HomeAssistant) -> None:
    garden = Garden(hass)
    async with open_house(hass, calls("garden__water", plant="rose"), said("Done."), task={}) as house:
        assert await run_task(house, llm_api=garden) == "Done."
        assert garden.watered == [{"plant": "rose"}]
        named = [tool["function"]["name"] for tool in house.wire.requests[0].body["tools"]]
        assert named == ["garden__water"]
        assert "Water what is dry." in house.read_prompts()[0]


async def test_a_task_that_never_ends_is_an_error(hass: HomeAssistant) -> None:
    garden = Garden(hass)
    async with open_house(hass, calls("garden__water", plant="rose"), task={}) as house:
        with pytest.raises(HomeAssistantError, match="max_steps"):
            await run_task(house, llm_api=garden)
        assert 0 < len(garden.watered) <= BUDGETS.max_steps


async def test_a_task_that_needs_an_approval_is_an_error_and_does_nothing(hass: HomeAssistant) -> None:
    garden = Garden(hass, integration="lock")
    async with open_house(hass, calls("garden__water", plant="rose"), said("Done."), task={}) as house:
        with pytest.raises(HomeAssistantError, match="approval"):
            await run_task(house, llm_api=garden)
        assert garden.watered == []
        page = await house.data.runtime.list_sessions(owner="house", with_questions=True)
        [turn] = await house.data.store.list_continuations("house", page.items[0].id)
        assert turn.status == "cancelled"


async def test_the_options_name_the_apis_of_all_tasks(hass: HomeAssistant) -> None:
    garden = Garden(hass)
    async with open_house(hass, said("Done."), task={"llm_hass_api": ["garden", "gone"]}) as house:
        llm.async_register_api(hass, garden)
        assert await run_task(house) == "Done."
        named = [tool["function"]["name"] for tool in house.wire.requests[0].body["tools"]]
        assert named == ["garden__water"]
        assert "Water what is dry." in house.read_prompts()[0]


async def test_a_task_cannot_switch_things_through_assist(hass: HomeAssistant) -> None:
    async with open_house(
        hass,
        calls("intent__HassTurnOn", area="Bedroom"),
        said("I cannot."),
        task={"llm_hass_api": ["assist"]},
    ) as house:
        assert await run_task(house) == "I cannot."
        assert hass.states.get("light.bed_light").state == "off"


async def test_images_are_sent_with_the_message(hass: HomeAssistant, tmp_path: Path) -> None:
    await prepare_media(hass, tmp_path)
    Image.new("RGB", (40, 30), "red").save(tmp_path / "red.png")
    async with open_house(hass, said("Red."), task={}) as house:
        assert await run_task(house, attachments=attached("red.png")) == "Red."
        [image] = find_images(house)
        assert image["image_url"]["url"].startswith("data:image/png;base64,")


async def test_large_images_are_made_smaller(hass: HomeAssistant, tmp_path: Path) -> None:
    await prepare_media(hass, tmp_path)
    for name in ("a.png", "b.png"):
        Image.effect_noise((2500, 1500), 90).save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > MAX_BYTES
    async with open_house(hass, said("Noise."), task={}) as house:
        assert await run_task(house, attachments=attached("a.png", "b.png")) == "Noise."
        urls = [image["image_url"]["url"] for image in find_images(house)]
        assert len(urls) == 2 and all(url.startswith("data:image/jpeg;base64,") for url in urls)
        assert sum(map(len, urls)) < 1 << 20


@pytest.mark.parametrize(("name", "reason"), [("notes.txt", "images only"), ("broken.webp", "can read")])
async def test_other_files_are_refused(hass: HomeAssistant, tmp_path: Path, name: str, reason: str) -> None:
    await prepare_media(hass, tmp_path)
    (tmp_path / name).write_bytes(b"not an image" * MAX_BYTES)
    async with open_house(hass, said("?"), task={}) as house:
        with pytest.raises(HomeAssistantError, match=reason):
            await run_task(house, attachments=attached(name))
        assert house.wire.requests == []


async def test_a_file_that_is_gone_is_an_error(hass: HomeAssistant, tmp_path: Path) -> None:
    await prepare_media(hass, tmp_path)
    async with open_house(hass, said("?"), task={}) as house:
        with pytest.raises(HomeAssistantError, match=r"gone\.png"):
            await run_task(house, attachments=attached("gone.png"))
        assert house.wire.requests == []


async def test_too_many_images_for_one_message_are_an_error(hass: HomeAssistant, tmp_path: Path) -> None:
    await prepare_media(hass, tmp_path)
    Image.effect_noise((300, 300), 90).save(tmp_path / "noise.png")
    async with open_house(hass, said("?"), task={}) as house:
        with pytest.raises(HomeAssistantError, match="too large"):
            await run_task(house, attachments=attached(*["noise.png"] * 60))
        assert house.wire.requests == []


async def test_a_stopped_task_is_cancelled(hass: HomeAssistant) -> None:
    async with open_house(hass, Reply(chunks=[], then="hang"), task={}) as house:
        task = hass.async_create_task(run_task(house))
        async with asyncio.timeout(10):
            while not house.wire.requests:
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(10):
            await hass.async_block_till_done(wait_background_tasks=False)
            await house.data.runtime.wait_for_turns()
        assert house.data.runtime.running_turns == 0


async def test_there_is_no_task_without_a_language_model(hass: HomeAssistant) -> None:
    for component in ("homeassistant", "conversation"):
        assert await async_setup_component(hass, component, {})
    entry = MockConfigEntry(
        domain=DOMAIN, data={"provider": "local"}, subentries_data=[make_subentry(SUBENTRY_AI_TASK, {})]
    )
    entry.add_to_hass(hass)
    assert await hass.config_entries.async_setup(entry.entry_id)
    found = er.async_entries_for_config_entry(er.async_get(hass), entry.entry_id)
    assert [entity.entity_id for entity in found if entity.domain == "ai_task"] == []
    assert "ai_task" not in hass.config.components
    assert await hass.config_entries.async_unload(entry.entry_id)


async def prepare_media(hass: HomeAssistant, folder: Path) -> None:
    hass.config.media_dirs = {"local": str(folder)}
    assert await async_setup_component(hass, "media_source", {})
    await hass.async_block_till_done()


def attached(*names: str) -> list[dict[str, Any]]:
    return [{"media_content_id": f"media-source://media_source/local/{name}"} for name in names]


def find_images(house: TalkingHouse) -> list[dict[str, Any]]:
    """Return the images of the first request."""
    parts = house.wire.requests[0].body["messages"][-1]["content"]
    return [part for part in parts if part["type"] == "image_url"]
