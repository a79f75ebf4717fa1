"""The HTTP client of a program, such as Home Assistant, can be passed to a model."""

import asyncio
import subprocess
import sys

import httpx
import pytest

from sash.errors import AnswerCutOff, ModelUnreachable
from sash.models.openai.embedder import OpenAIEmbedder
from sash.models.openai.endpoint import Endpoint
from sash.models.openai.model import OpenAIModel
from sash.ports.model import ModelRequest, collect
from tests.models.wire import Reply, Wire, chunk, said

REQUEST = ModelRequest([{"role": "user", "content": "hi"}])

# Prints the modules that the first request of an open model imports.
FIRST_REQUEST = """
import asyncio, sys
from sash.models.openai.model import OpenAIModel
from sash.ports.model import ModelRequest, collect

async def main():
    model = OpenAIModel("m", mode=sys.argv[2], base_url=sys.argv[1] + "/v1", retries=0)
    await model.open()
    before = set(sys.modules)
    try:
        await collect(model.stream(ModelRequest([{"role": "user", "content": "hi"}])), lambda text: None)
    except Exception:
        pass
    print(*sorted(name for name in set(sys.modules) - before if name.startswith("openai.")))
    await model.close()

asyncio.run(main())
"""


@pytest.fixture
async def client():
    async with httpx.AsyncClient(headers={"x-program": "house"}) as client:
        yield client


async def test_a_client_of_httpx_is_used_and_not_closed(client):
    async with Wire(said("Hello")) as wire:
        for _ in range(2):
            model = OpenAIModel("m", base_url=f"{wire.url}/v1", http_client=client)
            answered = await collect(model.stream(REQUEST), lambda text: None)
            await model.close()
            assert answered.content == "Hello"
    assert [request.headers["x-program"] for request in wire.requests] == ["house", "house"]
    assert not client.is_closed


async def test_errors_of_httpx_are_model_errors(client):
    async with Wire(Reply(chunks=[chunk("Hel")], then="cut")) as wire:
        model = OpenAIModel("m", base_url=f"{wire.url}/v1", http_client=client, retries=0)
        with pytest.raises(AnswerCutOff):
            await collect(model.stream(REQUEST), lambda text: None)
    gone = OpenAIModel("m", base_url=f"{wire.url}/v1", http_client=client, retries=0)
    with pytest.raises(ModelUnreachable):
        await collect(gone.stream(REQUEST), lambda text: None)
    with pytest.raises(ModelUnreachable):
        await OpenAIEmbedder("e", base_url=f"{wire.url}/v1", http_client=client, retries=0).embed(["hi"])


@pytest.mark.parametrize("mode", ["chat", "responses"])
async def test_the_first_request_of_an_open_model_imports_nothing_of_the_sdk(mode):
    async with Wire(said("Hello")) as wire:
        ran = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", FIRST_REQUEST, wire.url, mode],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    assert ran.stdout.split() == []


async def test_a_model_that_connects_twice_at_once_has_one_client():
    endpoint = Endpoint("m", base_url="http://127.0.0.1:1/v1")
    first, second = await asyncio.gather(endpoint.connect(), endpoint.connect())
    assert first is second
    await endpoint.close()
