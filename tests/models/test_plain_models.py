"""A model is any object with `stream`; all other members are optional."""

import pytest

from sash import FallbackModel, ModelConfig, Runtime
from sash.errors import InvalidInput, ModelUnreachable
from sash.ports.model import RESERVED_OPTIONS, ModelRequest, Stop, TextDelta, complete_model
from sash.stores.memory import MemoryStore

WAIT_S = 30


class PlainModel:
    """A model with `stream` only."""

    def __init__(self, text="ok", error=None):
        self.text, self.error = text, error

    async def stream(self, request):
        if self.error is not None:
            raise self.error
        yield TextDelta(self.text)
        yield Stop("stop")


class DescribedModel(PlainModel):
    """A model with all members, which does not inherit from the protocol."""

    name = "first"
    names = ("first", "second")
    reserved_options = frozenset({"seed"})
    closed = 0

    async def close(self):
        self.closed += 1


async def ask(answering, **options):
    async with Runtime(MemoryStore(), answering) as runtime:
        return await runtime.ask("hi", timeout_s=WAIT_S, **options)


async def read(model):
    return "".join([d.text async for d in model.stream(ModelRequest([])) if isinstance(d, TextDelta)])


async def test_a_plain_model_answers():
    assert (await ask(PlainModel())).response.final_message == "ok"


async def test_a_fallback_of_plain_models_answers():
    model = FallbackModel([PlainModel(error=ModelUnreachable("no")), PlainModel("second")])
    assert await read(model) == "second"
    assert (model.name, model.names, model.reserved_options) == (None, (None, None), RESERVED_OPTIONS)
    assert (await ask(model)).response.final_message == "second"
    await model.close()


async def test_a_fallback_uses_the_members_that_its_models_have():
    first = DescribedModel()
    model = FallbackModel([first, PlainModel()])
    assert (model.name, model.names) == ("first", ("first", "second", None))
    assert model.reserved_options == RESERVED_OPTIONS | {"seed"}
    await model.close()
    assert first.closed == 1


def test_the_members_of_a_described_model_are_kept():
    model = complete_model(DescribedModel())
    assert (model.name, model.names) == ("first", ("first", "second"))
    assert model.reserved_options == {"seed"}


def test_a_model_without_names_has_its_name():
    plain = PlainModel()
    plain.name, plain.names = "only", None
    assert complete_model(plain).names == ("only",)


async def test_the_runtime_refuses_the_options_that_a_described_model_reserves():
    with pytest.raises(InvalidInput, match="seed"):
        await ask(DescribedModel(), model=ModelConfig(options={"seed": 1}))
    result = await ask(DescribedModel(), model=ModelConfig(options={"top_p": 1}))
    assert result.status == "completed"
