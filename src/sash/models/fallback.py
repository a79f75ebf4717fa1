"""A model that asks other models one after the other until one answers."""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from sash.errors import ContentFiltered, InvalidInput, ModelError
from sash.ports.model import Delta, Model, ModelRequest, complete_model

_logger = logging.getLogger(__name__)


class FallbackModel(Model):
    """Asks the models in order and returns the first answer.

    A model that fails after its first delta is not replaced, because the user would see two answers. A prompt
    that a content filter refused is not sent to the next model. A session's `ModelConfig.name` applies to the
    first model only; the others use their own names.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise InvalidInput("FallbackModel needs at least one model")
        self._models = tuple(map(complete_model, models))

    @property
    def name(self) -> str | None:
        return self._models[0].name

    @property
    def names(self) -> tuple[str | None, ...]:
        return tuple(name for model in self._models for name in model.names)

    @property
    def reserved_options(self) -> frozenset[str]:
        return frozenset().union(*(model.reserved_options for model in self._models))

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        *others, last = self._models
        for model in others:
            has_started = False
            try:
                async for delta in model.stream(request):
                    has_started = True
                    yield delta
                return
            except ModelError as error:
                if has_started or isinstance(error, ContentFiltered):
                    raise
                _logger.warning("%s: the next model is asked", error.message)
            request = replace(request, config=replace(request.config, name=None))
        async for delta in last.stream(request):
            yield delta

    async def open(self) -> None:
        for model in self._models:
            await model.open()

    async def close(self) -> None:
        for model in self._models:
            await model.close()
