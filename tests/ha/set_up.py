"""Sets up the integration in a real house, as a person does it in the browser."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.ha.instance import furnish
from tests.ha.model_server import MODEL, ModelServer
from tests.ha.sash_house import SashHouse

ROOT = Path(__file__).parents[2]
DOOR = "lock.front_door"


@contextmanager
def run_sash_house(hass: Path, folder: Path, model: ModelServer) -> Iterator[SashHouse]:
    """Run a house whose preferred pipeline has an agent of ours. Lights, locks and switches are allowed."""
    package = folder / "sash.zip"
    subprocess.run([sys.executable, ROOT / "dev.py", "package", str(package)], check=True, cwd=ROOT)
    house = SashHouse(hass, folder / "config", package)
    try:
        house.start_now()
        # In a thread, because a test's own event loop may be there already.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, set_up(house, model)).result()
        yield house
    finally:
        house.kill_now()


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
