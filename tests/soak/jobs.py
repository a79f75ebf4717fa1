"""The jobs of the sessions, and the simulated model and home that do them.

A job is a message such as "Job 3-17: notify". Its id, "3-17", is in the answer and in the call of the home.
"""

import asyncio
import json
import re
from collections import Counter
from contextlib import suppress
from typing import Any

from aiohttp import web

from tests.home.fake_home_assistant import FakeHomeAssistant

# What a job may ask for: only an answer, a call whose effect is unknown after a crash, or one that can be verified.
TALK, NOTIFY, DIM = "talk", "notify", "dim"
JOB = re.compile(r"Job ((\d+)-(\d+)): (\w+)")
MAX_BRIGHTNESS = 255
CHUNK_S = 0.004


def make_message(job_id: str, kind: str) -> str:
    return f"Job {job_id}: {kind}"


def make_answer(job_id: str) -> str:
    return f"This is the answer to {job_id}, word for word, in some chunks."


def light_of(session: int) -> str:
    return f"light.lamp_{session}"


def brightness_of(number: int) -> int:
    return number % MAX_BRIGHTNESS + 1


class SimulatedHome(FakeHomeAssistant):
    """A home with a light for each session and a service that notifies. It counts the calls."""

    def __init__(self, sessions: int) -> None:
        super().__init__(
            get_services={
                "light": {
                    "turn_on": {
                        "fields": {"brightness": {"selector": {"number": {"min": 0, "max": 255}}}},
                        "target": {"entity": [{"domain": ["light"]}]},
                    }
                },
                "notify": {"phone": {"fields": {"message": {"required": True, "selector": {"text": {}}}}}},
            },
            call_service=self._call,
        )
        self._clock = 1_000.0
        self.states = {light_of(n): self._make_state(n, 1) for n in range(sessions)}
        ids = list(self.states)
        self.answers["homeassistant/expose_entity/list"] = {
            "exposed_entities": {entity_id: {"conversation": True} for entity_id in ids}
        }
        self.notified: Counter[str] = Counter()
        self.dimmed: Counter[tuple[str, int]] = Counter()

    def _make_state(self, session: int, brightness: int) -> dict[str, Any]:
        self._clock += 1
        attributes = {"friendly_name": f"Lamp {session}", "brightness": brightness}
        return {"s": "on", "a": attributes, "c": "x", "lc": 100.0, "lu": self._clock}

    async def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        data = request["service_data"]
        if request["domain"] == "notify":
            self.notified[data["message"]] += 1
        else:
            [entity_id] = request["target"]["entity_id"]
            self.dimmed[entity_id, data["brightness"]] += 1
            session = int(entity_id.rpartition("_")[2])
            self.states[entity_id] = state = self._make_state(session, data["brightness"])
            await self.tell("subscribe_entities", {"c": {entity_id: {"+": state}}})
        return {"context": {"id": "x"}}


class SimulatedModel:
    """A server with OpenAI's wire format. The model does each job with one call at most, then answers."""

    async def __aenter__(self) -> "SimulatedModel":
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        with suppress(ConnectionError):  # The server was killed.
            deltas = self._plan((await request.json())["messages"])
            await self._send(request, response, deltas)
        return response

    @staticmethod
    async def _send(request: web.Request, response: web.StreamResponse, deltas: list[dict[str, Any]]) -> None:
        await response.prepare(request)
        for delta in [*deltas, {}]:
            finish = None if delta else "tool_calls" if "tool_calls" in deltas[0] else "stop"
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            await response.write(f"data: {json.dumps(chunk | {'choices': [choice]})}\n\n".encode())
            await asyncio.sleep(CHUNK_S)
        await response.write(b"data: [DONE]\n\n")

    @staticmethod
    def _plan(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the chunks of the next message."""
        last = max(n for n, message in enumerate(messages) if message["role"] == "user")
        jobs = JOB.findall(str(messages[last]["content"]))
        if not jobs:  # `sash doctor` tries the model with a question of its own.
            return [{"content": "Yes."}]
        job_id, session, number, kind = jobs[-1]
        if kind == TALK or any(message["role"] == "tool" for message in messages[last:]):
            return [{"content": word + " "} for word in make_answer(job_id).split()]
        arguments: dict[str, Any] = {"service": "notify.phone", "data": {"message": job_id}}
        if kind == DIM:
            data = {"brightness": brightness_of(int(number))}
            arguments = {"service": "light.turn_on", "entity_ids": [light_of(int(session))], "data": data}
        function = {"name": "call_service", "arguments": json.dumps(arguments)}
        return [
            {"tool_calls": [{"index": 0, "id": f"call-{job_id}", "type": "function", "function": function}]}
        ]
