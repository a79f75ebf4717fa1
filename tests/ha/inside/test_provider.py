"""Models from the data of config entries, with Home Assistant's own HTTP client."""

import asyncio
import os
import subprocess
import sys
import threading
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from homeassistant.core import HomeAssistant
from homeassistant.helpers.httpx_client import get_async_client

from custom_components.sash.provider import (
    CheckResult,
    check_model,
    check_provider,
    create_model,
    normalize_address,
    provider_title,
    provider_unique_id,
)
from sash.models.offline import OfflineModel
from sash.ports.model import ModelRequest, collect
from sash.values.sessions import ModelConfig
from tests.ha.inside.provider_server import KEY, SPOKEN_ROLES, compatible, get_paths, models, openai_at
from tests.models.wire import Reply, Wire, failed, said

pytestmark = pytest.mark.usefixtures("socket_enabled")

HI = ModelRequest([{"role": "user", "content": "hi"}], config=ModelConfig("m"))
OPENAI = {"provider": "openai", "api_key": KEY}


async def finish_streams() -> None:
    """Let the event loop close the generators that the SDK leaves open when a stream has ended."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_model_talks_through_home_assistants_client(hass: HomeAssistant) -> None:
    async with Wire(said("Hello")) as wire:
        model = create_model(hass, compatible(wire))
        answered = await collect(model.stream(HI), lambda text: None)
        await model.close()
        await finish_streams()
        assert answered.content == "Hello"
        (asked,) = wire.requests
        assert asked.body["model"] == "m"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert not get_async_client(hass).is_closed


async def test_openai_itself_gets_the_responses_api(hass: HomeAssistant) -> None:
    async with Wire(failed(401)) as wire:
        with openai_at(wire):
            await check_model(hass, OPENAI, {"model": "m"})
    assert get_paths(wire) == ["/v1/responses"]


async def test_azure_gets_its_deployment_and_version(hass: HomeAssistant) -> None:
    async with Wire(said("Hello")) as wire:
        data = {"provider": "azure", "azure_endpoint": wire.url, "api_key": KEY, "api_version": "v"}
        model = create_model(hass, data)
        await collect(model.stream(replace(HI, config=ModelConfig("home"))), lambda text: None)
        await model.close()
        await finish_streams()
    (asked,) = wire.requests
    assert asked.path == "/openai/deployments/home/chat/completions?api-version=v"
    assert asked.headers["api-key"] == KEY


async def test_the_local_provider_has_the_offline_model(hass: HomeAssistant) -> None:
    assert isinstance(create_model(hass, {"provider": "local"}), OfflineModel)
    assert await check_provider(hass, {"provider": "local"}) == CheckResult()


async def test_the_sdk_is_imported_outside_of_the_event_loop(hass: HomeAssistant) -> None:
    """Importing it freezes a thread for half a second."""
    threads = []

    def imported() -> Any:
        threads.append(threading.current_thread())
        from sash.models.openai.model import OpenAIModel

        return OpenAIModel

    with patch("custom_components.sash.provider._import_openai_model", imported):
        model = create_model(hass, OPENAI)
        assert not threads  # The start of Home Assistant does not wait for it.
        await asyncio.gather(model.open(), model.open())
        await model.close()
    assert len(threads) == 1 and threading.main_thread() not in threads


def test_the_flows_import_no_sdk() -> None:
    code = "import sys, custom_components.sash.config_flow; print('openai' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=env)
    assert (done.stdout.strip(), done.returncode) == ("False", 0), done.stderr


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (failed(401), "invalid_auth"),
        (failed(404), "model_not_found"),
        (failed(429, "insufficient_quota"), "quota_reached"),
        (failed(400, message="no temperature"), "model_refused"),
        (Reply(chunks=[], then="cut"), "cannot_connect"),
        (SPOKEN_ROLES, None),
    ],
)
async def test_a_model_is_tried_with_one_tiny_request(
    hass: HomeAssistant, reply: Reply, error: str | None
) -> None:
    async with Wire(reply) as wire:
        checked = await check_model(
            hass, compatible(wire), {"model": "m", "temperature": 0.5, "max_output_tokens": 9000}
        )
        (asked,) = wire.requests
    assert checked.error == error
    assert KEY not in checked.reason
    assert (asked.body["max_completion_tokens"], asked.body["temperature"]) == (16, 0.5)


async def test_a_server_that_loads_a_model_slowly_is_no_error(hass: HomeAssistant) -> None:
    async with Wire(Reply(chunks=[], then="hang")) as wire:
        with patch("custom_components.sash.provider.TRY_SECONDS", 0.1):
            checked = await asyncio.wait_for(check_model(hass, compatible(wire), {"model": "m"}), 10)
    assert checked == CheckResult()


async def test_an_unexpected_error_of_a_try_is_unknown(
    hass: HomeAssistant, caplog: pytest.LogCaptureFixture
) -> None:
    with patch("sash.models.openai.endpoint.Endpoint.connect", side_effect=RuntimeError("odd")):
        checked = await check_model(hass, OPENAI, {"model": "m"})
    assert checked.error == "unknown" and "odd" in caplog.text


async def test_a_rate_limit_says_that_the_key_is_right(hass: HomeAssistant) -> None:
    async with Wire(failed(429)) as wire:
        assert await check_provider(hass, compatible(wire)) == CheckResult()


async def test_one_check_is_one_request(hass: HomeAssistant) -> None:
    async with Wire(failed(500), models("m")) as wire:
        assert (await check_provider(hass, compatible(wire))).error == "cannot_connect"
        assert get_paths(wire) == ["/v1/models"]


@pytest.mark.parametrize(
    ("address", "provider", "normal"),
    [
        ("https://host/v1/", "compatible", "https://host/v1"),
        (" host:1234/v1 ", "compatible", "http://host:1234/v1"),
        ("http://host/v1/chat/completions", "compatible", "http://host/v1"),
        ("http://host/models", "compatible", "http://host"),
        ("http://[::1]:11434/v1", "compatible", "http://[::1]:11434/v1"),
        ("home.openai.azure.com", "azure", "https://home.openai.azure.com"),
        (
            "https://home.openai.azure.com/openai/deployments/x?api-version=1",
            "azure",
            "https://home.openai.azure.com",
        ),
        ("ftp://host", "compatible", None),
        ("http://[::1", "compatible", None),
        ("http://host:99999", "compatible", None),
        ("", "compatible", None),
    ],
)
def test_addresses_are_those_that_the_sdk_needs(address: str, provider: str, normal: str | None) -> None:
    assert normalize_address(address, provider) == normal


def test_the_id_of_a_provider_hides_its_key_and_differs_by_all_parts() -> None:
    base = {"provider": "compatible", "api_base": "http://host/v1", "api_key": KEY}
    others = [
        base | {"api_key": "another"},
        base | {"api_base": "http://host/v2"},
        {"provider": "openai", "api_key": KEY},
        {"provider": "compatible", "api_base": "http://host/v1"},
        {"provider": "local"},
    ]
    ids = [provider_unique_id(data) for data in (base, *others)]
    assert len(set(ids)) == len(ids)
    assert all(len(each) == 32 and KEY not in each for each in ids)
    assert provider_unique_id(base | {"api_base": "http://HOST/v1"}) == ids[0]


def test_the_title_of_an_entry_shows_no_password() -> None:
    data = {"provider": "compatible", "api_base": "http://me:secret@host:1/v1"}
    assert provider_title(data) == "host:1"
