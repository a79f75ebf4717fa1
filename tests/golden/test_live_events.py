"""The events that are not stored, `progress` and `partial`, stay as they are."""

import asyncio
from contextlib import aclosing

from sash import Runtime
from sash.ports.model import Stop, TextDelta
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel, calling
from tests.golden.golden import assert_json_matches, name_ids
from tests.golden.serving import serving
from tests.golden.world import WAIT_S, happens, tool
from tests.surfaces.serving import frames


class HalfwayModel(ScriptedModel):
    """A model that calls a tool, and then stops in the middle of its answer until `go_on` is set."""

    def __init__(self) -> None:
        super().__init__(calling("report"))
        self.go_on = asyncio.Event()

    async def stream(self, request):
        if not self.requests:
            async for delta in super().stream(request):
                yield delta
            return
        yield TextDelta("All is ")
        await happens(self.go_on)
        yield TextDelta("well.")
        yield Stop("stop")


async def test_the_events_that_are_not_stored_are_unchanged(tmp_path):
    heard, model = asyncio.Event(), HalfwayModel()

    async def report(arguments, context):
        while not heard.is_set():  # The client may not listen yet.
            context.progress("half way")
            await asyncio.sleep(0)
        return "reported"

    async with (
        asyncio.timeout(WAIT_S),
        Runtime(
            MemoryStore(), model, [tool("report", report)], clock=FakeClock(), partial_interval_s=0
        ) as runtime,
        serving(tmp_path, runtime) as served,
    ):
        session_id = await served.start()
        await served.send(session_id)
        found = {}
        async with (
            served.client.stream("GET", f"/events/{session_id}") as stream,
            aclosing(frames(stream)) as read,
        ):
            async for frame in read:
                if frame.get("event") == "final":
                    break
                if frame.get("event") == "progress" and frame["data"]["payload"]["message"] == "half way":
                    heard.set()
                    found.setdefault("progress", frame)
                if frame.get("event") == "partial":
                    model.go_on.set()
                    found.setdefault("partial", frame)
    assert_json_matches("events/live.json", name_ids(found))
