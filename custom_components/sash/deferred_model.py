"""A model whose packages are imported when it is first needed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import cast, override

from sash.ports.model import Delta, Model, ModelRequest


class DeferredModel(Model):
    """Creates another model at the first request, or in `open`, and passes everything on to it.

    The SDK of a provider takes a second to import. The start of Home Assistant does not wait for it.
    """

    def __init__(self, name: str, create: Callable[[], Awaitable[Model]]) -> None:
        self._name = name
        self._create = create
        self._creating = asyncio.Lock()
        self._model: Model | None = None

    @property
    @override
    def name(self) -> str:
        return self._name

    @override
    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        model = await self._find_model()
        # A model that the runtime stops to read closes its connection at once.
        async with aclosing(cast(AsyncGenerator[Delta], model.stream(request))) as deltas:
            async for delta in deltas:
                yield delta

    @override
    async def open(self) -> None:
        model = await self._find_model()
        await model.open()

    @override
    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()

    async def _find_model(self) -> Model:
        async with self._creating:
            if self._model is None:
                self._model = await self._create()
        return self._model
