"""A real Home Assistant with the integration, installed from its zip, without `sash` and without a network."""

import asyncio
import shutil
import subprocess
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.ha.instance import House

WITHIN_S = 60
PUCK = Path(__file__).with_name("puck")
# Refuses every connection beyond this machine.
NO_NETWORK = """
import socket

_connect = socket.socket.connect

def connect(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(101, "the network is cut for this test")
    return _connect(self, address)

socket.socket.connect = connect
"""


class SashHouse(House):
    """A house with the integration from a zip, and two satellites."""

    def __init__(self, hass: Path, folder: Path, package: Path) -> None:
        super().__init__(hass, folder)
        components = folder / "custom_components"
        with zipfile.ZipFile(package) as archive:
            archive.extractall(components / "sash")
        shutil.copytree(PUCK, components / "puck")
        with (folder / "configuration.yaml").open("a") as configuration:
            configuration.write("assist_pipeline:\nmobile_app:\npuck:\n")
        (folder / "without_network").mkdir()
        (folder / "without_network" / "sitecustomize.py").write_text(NO_NETWORK)
        self.environment["PYTHONPATH"] = str(folder / "without_network")
        self.folder = folder

    async def post(self, path: str, body: Any = None, *, token: str | None = None) -> Any:
        """Send a request to the REST API and return its answer."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{self.url}{path}", json=body or {}) as response,
        ):
            if response.status >= 400:
                raise RuntimeError(f"{path} answered {response.status}: {await response.text()}")
            return await response.json()

    async def call(
        self, service: str, data: dict[str, Any] | None = None, *, token: str | None = None
    ) -> Any:
        """Call a service and return its response."""
        path = f"/api/services/{service.replace('.', '/')}?return_response"
        return (await self.post(path, data, token=token))["service_response"]

    async def call_plain(self, service: str, data: dict[str, Any] | None = None) -> None:
        """Call a service that has no response."""
        await self.post(f"/api/services/{service.replace('.', '/')}", data)

    async def add_phone(self, push_url: str) -> str:
        """Register a phone of the owner, as the companion app does. Return the id of its webhook."""
        app = {"app_id": "test", "app_name": "Test", "app_version": "1", "device_name": "Phone"}
        device = {"device_id": "phone", "manufacturer": "m", "model": "m", "os_name": "o", "os_version": "1"}
        data = {"app_data": {"push_token": "t", "push_url": push_url}, "supports_encryption": False}
        made = await self.post("/api/mobile_app/registrations", {**app, **device, **data})
        return str(made["webhook_id"])

    async def press(self, webhook_id: str, action: str) -> None:
        """Press the button of a notification on a phone."""
        event = {"event_type": "mobile_app_notification_action", "event_data": {"action": action}}
        await self.post(f"/api/webhook/{webhook_id}", {"type": "fire_event", "data": event})

    async def set_options(self, **options: Any) -> None:
        """Change options of the agent as a person does: in the form of its subentry."""
        entry_id = await self.wait_until_loaded()
        (subentries,) = await self.ask({"type": "config_entries/subentries/list", "entry_id": entry_id})
        (agent_id,) = [s["subentry_id"] for s in subentries if s["subentry_type"] == "conversation"]
        flow = "/api/config/config_entries/subentries/flow"
        step = await self.post(flow, {"handler": [entry_id, "conversation"], "subentry_id": agent_id})
        while step["type"] == "form":
            assert not step["errors"], step["errors"]
            step = await self.post(f"{flow}/{step['flow_id']}", _fill(step["data_schema"], options))
        assert step["reason"] == "reconfigure_successful", step
        await self.wait_until_loaded()

    async def wait_until_loaded(self) -> str:
        """Wait until the integration is set up, and return the id of its entry."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                ((entry,),) = await self.ask({"type": "config_entries/get", "domain": "sash"})
                if entry["state"] == "loaded":
                    return str(entry["entry_id"])
                await asyncio.sleep(0.05)

    async def use_agent(self, entity_id: str, *, prefer_local_intents: bool = False) -> None:
        """Let the preferred pipeline use an agent."""
        (listed,) = await self.ask({"type": "assist_pipeline/pipeline/list"})
        (pipeline,) = [p for p in listed["pipelines"] if p["id"] == listed["preferred_pipeline"]]
        fields = {name: value for name, value in pipeline.items() if name != "id"}
        fields |= {"conversation_engine": entity_id, "prefer_local_intents": prefer_local_intents}
        await self.ask({"type": "assist_pipeline/pipeline/update", "pipeline_id": pipeline["id"], **fields})

    async def place_pucks(self) -> None:
        """Put each satellite into the room that it is named after."""
        devices, areas = await self.ask(
            {"type": "config/device_registry/list"}, {"type": "config/area_registry/list"}
        )
        ids = {area["name"]: area["area_id"] for area in areas}
        for device in devices:
            room, _, kind = str(device["name"]).rpartition(" ")
            if kind == "puck":
                place = {"device_id": device["id"], "area_id": ids[room]}
                await self.ask({"type": "config/device_registry/update", **place})

    async def list_notifications(self, prefix: str) -> dict[str, str]:
        """Return Home Assistant's own notifications whose ids begin with a prefix, by id."""
        (found,) = await self.ask({"type": "persistent_notification/get"})
        messages = {each["notification_id"]: each["message"] for each in found}
        return {key: message for key, message in messages.items() if key.startswith(prefix)}

    @asynccontextmanager
    async def listen(self, event_type: str) -> AsyncIterator[asyncio.Queue[dict[str, Any]]]:
        """Collect the events of a type."""
        events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        async with self._connect(self.token) as socket:
            await socket.send_json({"id": 1, "type": "subscribe_events", "event_type": event_type})
            await socket.receive_json(timeout=10)

            async def collect() -> None:
                while True:
                    message = await socket.receive_json()
                    events.put_nowait(message["event"])

            task = asyncio.create_task(collect())
            try:
                yield events
            finally:
                task.cancel()

    async def read_state(self, entity_id: str) -> str:
        (states,) = await self.ask({"type": "get_states"})
        return str({state["entity_id"]: state["state"] for state in states}[entity_id])

    async def wait_for_state(self, entity_id: str, state: str) -> None:
        async with asyncio.timeout(WITHIN_S):
            while await self.read_state(entity_id) != state:
                await asyncio.sleep(0.05)

    async def speak(self, room: str, text: str) -> dict[str, Any]:
        """Say something to the satellite of a room, and return what it says."""
        entity_id = f"assist_satellite.{room.lower()}_puck"
        return dict(await self.call("puck.say", {"entity_id": entity_id, "text": text}))

    async def converse(
        self, text: str, *, token: str | None = None, **fields: Any
    ) -> tuple[str, list[dict[str, Any]]]:
        """Run the preferred pipeline as a signed-in user. Return what was said, and the events."""
        request = self.make_pipeline_request(text, **fields)
        events = [event async for event in self.subscribe(request, token=token)]
        (end,) = [event["data"] for event in events if event["type"] == "intent-end"]
        return end["intent_output"]["response"]["speech"]["plain"]["speech"], events

    @staticmethod
    def make_pipeline_request(text: str, **fields: Any) -> dict[str, Any]:
        stages = {"start_stage": "intent", "end_stage": "intent"}
        return {"type": "assist_pipeline/run", **stages, "input": {"text": text}, **fields}

    async def subscribe(
        self, request: dict[str, Any], *, token: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a pipeline until it ends."""
        async with self._connect(token or self.token) as socket:
            await socket.send_json({"id": 1, **request})
            while True:
                message = await socket.receive_json(timeout=WITHIN_S)
                if message["type"] == "event":
                    yield message["event"]
                    if message["event"]["type"] == "run-end":
                        return
                elif message["type"] == "result" and not message["success"]:
                    raise RuntimeError(f"{request} was refused: {message['error']}")

    @asynccontextmanager
    async def _connect(self, token: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{self.url}/api/websocket", max_msg_size=0) as socket,
        ):
            await socket.receive_json(timeout=10)
            await socket.send_json({"type": "auth", "access_token": token})
            await socket.receive_json(timeout=10)
            yield socket

    def run_python(self, source: str) -> str:
        """Run a program as Home Assistant runs, and return what it prints."""
        python = self._hass.with_name("python")
        done = subprocess.run(
            [python, "-c", source], env=self.environment, cwd=self.folder, capture_output=True, text=True
        )
        return done.stdout + done.stderr

    def read_log(self) -> str:
        return (self.folder / "output.log").read_text(errors="replace")


def _fill(schema: list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    """Fill a form: with these options, and with what it suggests for the other fields."""
    filled: dict[str, Any] = {}
    for field in schema:
        name, suggested = field["name"], (field.get("description") or {}).get("suggested_value")
        if field.get("type") == "expandable":
            filled[name] = _fill(field["schema"], options)
        elif name in options:
            filled[name] = options[name]
        elif (value := field.get("default", suggested) if suggested is None else suggested) is not None:
            filled[name] = value
    return filled
