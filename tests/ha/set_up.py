"""Sets up the integration in a real house, as a person does it in the browser."""

from tests.ha.instance import furnish
from tests.ha.model_server import MODEL, ModelServer
from tests.ha.sash_house import SashHouse

DOOR = "lock.front_door"


async def set_up(house: SashHouse, model: ModelServer) -> None:
    """Furnish the house, add the integration as a person does, and make it the agent of the pipeline."""
    await furnish(house)
    await house.place_pucks()
    # Home Assistant does not expose locks by itself.
    expose = {"type": "homeassistant/expose_entity", "assistants": ["conversation"], "should_expose": True}
    await house.ask({**expose, "entity_ids": [DOOR]})
    flow = "/api/config/config_entries/flow"
    menu = await house.post(flow, {"handler": "sash"})
    assert menu["menu_options"] == ["openai", "azure", "compatible", "local"]
    form = await house.post(f"{flow}/{menu['flow_id']}", {"next_step_id": "compatible"})
    wrong = {"api_base": model.url, "api_key": "sk-a-wrong-key"}
    refused = await house.post(f"{flow}/{form['flow_id']}", wrong)
    assert refused["errors"] == {"api_key": "invalid_auth"}
    agent = await house.post(f"{flow}/{form['flow_id']}", {"api_base": model.url, "api_key": model.key})
    made = await house.post(f"{flow}/{agent['flow_id']}", {"model": MODEL, "control": "everyday"})
    assert made["type"] == "create_entry"
    await house.set_options(allow_actuation=True, allowlisted_services=["light", "lock", "switch"])
    await house.use_agent("conversation.sash")
