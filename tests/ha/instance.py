"""A real Home Assistant on a free port of loopback, with a temporary configuration."""

import asyncio
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import aiohttp

from tests.ha import storage
from tests.ha.install import environment

CONFIG = Path(__file__).with_name("config")
STARTED_WITHIN_S = 120
STOPPED_WITHIN_S = 30
AREAS = {
    "Kitchen": ("Ground floor", ["light.kitchen_lights", "light.ceiling_lights", "cover.kitchen_window"]),
    "Bedroom": ("First floor", ["light.bed_light", "switch.ac", "automation.bed_light_follows_ac"]),
}
ALIASES = {"light.kitchen_lights": ["Cooking lights"]}
LABELS = {"light.bed_light": "Cosy"}
HIDDEN = "light.office_rgbw_lights"


class House:
    """A Home Assistant that a test can use, stop and start. The user of `guest_token` is not an administrator."""

    def __init__(self, hass: Path, folder: Path) -> None:
        shutil.copytree(CONFIG, folder)
        port = _free_port()
        tokens = storage.seed(folder, port)
        self.url = f"http://127.0.0.1:{port}"
        self.token = tokens["Owner"]
        self.guest_token = tokens["Guest"]
        self._hass = hass
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.environment = environment()

    @property
    def pid(self) -> int:
        """The id of the process that was started last."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Start it, and wait until it runs."""
        await asyncio.to_thread(self.start_now)

    async def stop(self) -> None:
        """Stop it cleanly, so that it stores its states."""
        await asyncio.to_thread(self.stop_now)

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def kill(self) -> None:
        """Kill it, as a power cut would."""
        await asyncio.to_thread(self.kill_now)

    def start_now(self) -> None:
        with (self._folder / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                [self._hass, "--config", self._folder, "--skip-pip"],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            self._wait_until_it_runs()
        except BaseException:
            self.kill_now()
            raise

    def stop_now(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOPPED_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.kill_now()

    def kill_now(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _wait_until_it_runs(self) -> None:
        """Wait for the end of the startup. The API answers earlier."""
        deadline = time.monotonic() + STARTED_WITHIN_S
        request = urllib.request.Request(
            f"{self.url}/api/config", headers={"Authorization": f"Bearer {self.token}"}
        )
        while time.monotonic() < deadline and self.is_running:
            try:
                with urllib.request.urlopen(request, timeout=5) as answer:
                    if json.load(answer)["state"] == "RUNNING":
                        return
            except urllib.error.HTTPError as error:
                with error:
                    raise RuntimeError(f"the test house refuses its token: HTTP {error.code}") from None
            except OSError:
                pass
            time.sleep(0.1)
        output = (self._folder / "output.log").read_text(errors="replace")
        raise RuntimeError(f"the test house did not start:\n{output[-3000:]}")

    async def ask(self, *questions: dict[str, Any], token: str | None = None) -> list[Any]:
        """Send a request over a separate WebSocket connection."""
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{self.url}/api/websocket", max_msg_size=0) as socket,
        ):
            await socket.receive_json(timeout=10)
            await socket.send_json({"type": "auth", "access_token": token or self.token})
            await socket.receive_json(timeout=10)
            answers = []
            for number, question in enumerate(questions, start=1):
                await socket.send_json({"id": number, **question})
                while (answer := await socket.receive_json(timeout=30)).get("id") != number:
                    pass
                if not answer["success"]:
                    raise RuntimeError(f"the test house refuses {question}: {answer['error']}")
                answers.append(answer["result"])
            return answers


async def furnish(house: House) -> None:
    """Create floors, areas, names, labels, and an entity that is not exposed."""
    floors = await house.ask(
        *({"type": "config/floor_registry/create", "name": floor} for floor, _ in AREAS.values())
    )
    labels = await house.ask(
        *({"type": "config/label_registry/create", "name": label} for label in LABELS.values())
    )
    areas = await house.ask(
        *(
            {"type": "config/area_registry/create", "name": area, "floor_id": floor["floor_id"]}
            for area, floor in zip(AREAS, floors, strict=True)
        )
    )
    for area, (_, entity_ids) in zip(areas, AREAS.values(), strict=True):
        for entity_id in entity_ids:
            await place(house, entity_id, area["area_id"])
    update = {"type": "config/entity_registry/update"}
    await house.ask(
        *({**update, "entity_id": name, "aliases": aliases} for name, aliases in ALIASES.items()),
        *(
            {**update, "entity_id": name, "labels": [label["label_id"]]}
            for name, label in zip(LABELS, labels, strict=True)
        ),
        {
            "type": "homeassistant/expose_entity",
            "assistants": ["conversation"],
            "entity_ids": [HIDDEN],
            "should_expose": False,
        },
    )


async def place(house: House, entity_id: str, area_id: str) -> None:
    """Assign an entity to an area. The only entity of a device gets the area through its device."""
    (entry,) = await house.ask({"type": "config/entity_registry/get", "entity_id": entity_id})
    if entry["device_id"]:
        place = {"type": "config/device_registry/update", "device_id": entry["device_id"]}
    else:
        place = {"type": "config/entity_registry/update", "entity_id": entity_id}
    await house.ask({**place, "area_id": area_id})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
