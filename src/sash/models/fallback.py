"""Several models, of which the first that can answer does."""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from sash.errors import ContentFiltered, InvalidInput, ModelError
from sash.ports.model import Delta, Model, ModelRequest, close, name_of, names_of

_logger = logging.getLogger(__name__)


class FallbackModel:
    """Asks one model after the other; one that has begun to answer is not replaced, lest it be heard twice.

    A session's choice of model is for the first; the others have their own names. What a content filter has
    refused is not offered to the next.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise InvalidInput("a fallback needs at least one model")
        self._models = tuple(models)

    @property
    def name(self) -> str | None:
        return name_of(self._models[0])

    @property
    def names(self) -> tuple[str | None, ...]:
        return tuple(name for model in self._models for name in names_of(model))

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        *others, last = self._models
        for model in others:
            begun = False
            try:
                async for delta in model.stream(request):
                    begun = True
                    yield delta
                return
            except ModelError as error:
                if begun or isinstance(error, ContentFiltered):
                    raise
                _logger.warning("%s: the next model is asked", error.message)
            request = replace(request, config=replace(request.config, name=None))
        async for delta in last.stream(request):
            yield delta

    async def close(self) -> None:
        for model in self._models:
            await close(model)
