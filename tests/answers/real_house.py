"""A real Home Assistant with the house of the table: tests/ha/instance.py, and what real_house.toml adds."""

import asyncio
import json
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ha.instance import House, furnish, place

ADDED = tomllib.loads(Path(__file__).with_name("real_house.toml").read_text("utf-8"))


class TableHouse(House):
    """A house with the configuration that the table needs. `devices` has a device in each area, by its name."""

    def __init__(self, hass: Path, folder: Path) -> None:
        super().__init__(hass, folder)
        self.devices: dict[str, str] = {}
        with (folder / "configuration.yaml").open("a") as configuration:
            for domain, settings in ADDED["configuration"].items():
                # JSON is YAML too.
                configuration.write(f"{domain}: {json.dumps(settings)}\n")


@contextmanager
def run_table_house(hass: Path, folder: Path) -> Iterator[TableHouse]:
    """Start the house, furnish it, and stop it at the end."""
    house = TableHouse(hass, folder)
    try:
        house.start_now()
        # In a thread, because the event loop of the caller may run already.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _furnish(house)).result()
        yield house
    finally:
        house.kill_now()


async def _furnish(house: TableHouse) -> None:
    """Add rooms, show entities to the assistants, and load the sentences of all languages."""
    await furnish(house)
    (floors,) = await house.ask({"type": "config/floor_registry/list"})
    floor_ids = {floor["name"]: floor["floor_id"] for floor in floors}
    for name, area in ADDED["areas"].items():
        create = {"type": "config/area_registry/create", "name": name, "floor_id": floor_ids[area["floor"]]}
        (made,) = await house.ask(create)
        for entity_id in area["entities"]:
            await place(house, entity_id, made["area_id"])
    expose = {"type": "homeassistant/expose_entity", "assistants": ["conversation"], "should_expose": True}
    await house.ask({**expose, "entity_ids": ADDED["entities"]["expose"]})
    house.devices = await _list_devices(house)


async def _list_devices(house: House) -> dict[str, str]:
    areas, devices = await house.ask(
        {"type": "config/area_registry/list"}, {"type": "config/device_registry/list"}
    )
    names: dict[Any, str] = {area["area_id"]: area["name"] for area in areas}
    return {names[each["area_id"]]: each["id"] for each in devices if each["area_id"] in names}
