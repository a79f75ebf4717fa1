"""A scripted model that waits before it answers."""

import asyncio

from sash.testing import ScriptedModel


class WaitingModel(ScriptedModel):
    """Waits before each answer until `go_on` is set."""

    def __init__(self, *lines):
        super().__init__(*lines)
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def stream(self, request):
        self.asked.set()
        await self.go_on.wait()
        async for delta in super().stream(request):
            yield delta
