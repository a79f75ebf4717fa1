"""The real server over a given runtime, for golden files."""

from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from sash import Runtime
from sash.app.settings import Settings
from sash.server.listener import listen
from sash.server.metrics import Metrics
from tests.surfaces.serving import REQUEST_S, Served


@asynccontextmanager
async def serving(folder: Path, runtime: Runtime):
    """Serve a runtime that is open."""
    settings = Settings(port=0, data=folder)
    async with (
        listen(runtime, settings, Metrics()) as url,
        httpx.AsyncClient(base_url=url, timeout=REQUEST_S) as client,
    ):
        yield Served(url, client, runtime, settings)
