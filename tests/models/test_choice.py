"""The choice of the API, and the fallback to another model."""

import pytest

from sash.errors import ContentFiltered, ContextTooLong, InvalidInput, ModelUnreachable
from sash.models.fallback import FallbackModel
from sash.models.openai.model import OpenAIModel
from sash.ports.model import Model, ModelRequest, TextDelta, collect
from sash.testing import ScriptedModel
from sash.values.sessions import ModelConfig
from tests.models.wire import Wire, failed, said

HI = [{"role": "user", "content": "hi"}]


async def ask(model, config=None):
    return await collect(model.stream(ModelRequest(HI, [], config or ModelConfig())), lambda text: None)


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({}, "responses"),
        ({"base_url": "http://localhost:11434/v1"}, "chat"),
        ({"azure_endpoint": "https://x", "api_version": "1"}, "chat"),
        ({"mode": "chat"}, "chat"),
        ({"base_url": "http://localhost/v1", "mode": "responses"}, "responses"),
    ],
)
def test_the_api_is_chosen_by_the_address(options, mode):
    assert OpenAIModel("m", **options).mode == mode


def test_an_unknown_mode_is_refused():
    with pytest.raises(InvalidInput, match="mode"):
        OpenAIModel("m", mode="completions")


async def test_the_next_model_answers_when_the_first_fails(caplog):
    async with Wire(failed(500)) as broken, Wire(said("hello")) as sound:
        models = [
            OpenAIModel(name, api_key="sk-test", base_url=f"{wire.url}/v1", retries=0)
            for name, wire in (("first", broken), ("second", sound))
        ]
        result = await ask(FallbackModel(models), ModelConfig(name="chosen"))
        assert [model.is_connected for model in models] == [True, True]
        await FallbackModel([*models, ScriptedModel("has nothing to close")]).close()
        assert [model.is_connected for model in models] == [False, False]
    assert result.content == "hello"
    assert [broken.requests[0].body["model"], sound.requests[0].body["model"]] == ["chosen", "second"]
    assert "the next model is asked" in caplog.text


async def test_a_model_that_fails_after_its_first_text_is_not_replaced():
    class Cut(Model):
        async def stream(self, request):
            yield TextDelta("so")
            raise ModelUnreachable("cut off")

    other = ScriptedModel("hello")
    with pytest.raises(ModelUnreachable):
        await ask(FallbackModel([Cut(), other]))
    assert other.requests == []


async def test_a_prompt_that_a_filter_refused_is_not_sent_to_the_next_model():
    other = ScriptedModel("hello")
    with pytest.raises(ContentFiltered):
        await ask(FallbackModel([ScriptedModel(ContentFiltered("no")), other]))
    assert other.requests == []
    assert (await ask(FallbackModel([ScriptedModel(ContextTooLong("too long")), other]))).content == "hello"


async def test_the_last_error_is_raised_if_all_models_fail():
    models = [ScriptedModel(ModelUnreachable(text)) for text in ("one", "two")]
    with pytest.raises(ModelUnreachable, match="two"):
        await ask(FallbackModel(models))
    with pytest.raises(InvalidInput):
        FallbackModel([])
