"""A remote home that cannot be reached or answers wrongly; the token stays secret."""

import asyncio
import json
import logging
import socket

import pytest
from aiohttp import web

from sash.errors import HomeUnauthorized, InvalidInput, SashError
from sash.home.remote import RemoteHome
from sash.home.remote.connection import compute_retry_delay
from sash.home.remote.websocket import Timing
from sash.ports.home import Connected, Disconnected
from tests.home.fake_home_assistant import LIGHT, TOKEN, FakeHomeAssistant
from tests.home.remote_home import Pauses, at, fails


class TestTrouble:
    async def test_nothing_listens(self, connect):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
            home, watcher = await connect(url, until=Disconnected, sleep=Pauses(3))
            error = await fails(home, "nothing listens there: check that Home Assistant runs")
        assert error.message == f"Home Assistant at {url} cannot be reached: {watcher.events[0].reason}"

    async def test_the_same_reason_is_told_once(self, connect, caplog):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            pauses = Pauses(4)
            _, watcher = await connect(
                f"http://127.0.0.1:{taken.getsockname()[1]}", until=Disconnected, sleep=pauses
            )
            async with asyncio.timeout(10):
                while len(pauses.taken) < 4:
                    await asyncio.sleep(0)
        assert len(watcher.events) == 1
        assert caplog.text.count("nothing listens") == 1

    async def test_the_host_is_unknown(self, connect, monkeypatch):
        def unknown(*_, **__):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        home, _ = await connect("http://nowhere.test:8123", until=Disconnected, sleep=Pauses(1))
        await fails(home, "no host has that name: check the address")

    async def test_a_server_without_tls_is_asked_for_it(self, hub, connect):
        home, _ = await connect(hub.url.replace("http:", "https:"), until=Disconnected, sleep=Pauses(1))
        await fails(home, "does not speak https there: try http://")

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (404, "not Home Assistant: check the address and the port.*HTTP 404"),
            (200, "not Home Assistant: check the address and the port"),
            (403, "refuses this machine .HTTP 403.: it may be banned"),
            (502, "a proxy cannot reach Home Assistant"),
        ],
    )
    async def test_a_page_that_is_not_home_assistant(self, hub, connect, status, words):
        hub.page = lambda _: web.Response(text="<html>Hello</html>", status=status)
        home, _ = await connect(hub.url, until=Disconnected, sleep=Pauses(1))
        await fails(home, words)

    @pytest.mark.parametrize("greeting", [{"hello": "you"}, "hello", "[1]", {"type": "auth_ok"}])
    async def test_another_kind_of_websocket(self, hub, connect, greeting):
        hub.greeting = greeting
        home, _ = await connect(hub.url, until=Disconnected, sleep=Pauses(1))
        await fails(home, "not Home Assistant")
        assert hub.asked == []

    async def test_a_websocket_that_says_nothing(self, hub, connect):
        hub.greeting = None
        home, _ = await connect(hub.url, timing=Timing(connect_s=0.05), until=Disconnected, sleep=Pauses(1))
        await fails(home, "does not answer: check the address")

    async def test_a_server_that_hangs_up(self, connect):
        rude = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        async with rude:
            url = f"http://127.0.0.1:{rude.sockets[0].getsockname()[1]}"
            home, _ = await connect(url, until=Disconnected, sleep=Pauses(1))
            await fails(home, "closed the connection: if it speaks https")

    async def test_the_token_is_not_sent_on_to_another_address(self, hub, connect):
        async with FakeHomeAssistant() as other:
            where = f"{other.url}/api/websocket"

            def redirect(_):
                raise web.HTTPFound(where)

            hub.page = redirect
            home, _ = await connect(hub.url, until=Disconnected, sleep=Pauses(1))
            await fails(home, f"redirects to {where}: use that address")
            assert other.asked == []

    async def test_a_refused_token_is_tried_again_slowly_and_told_to_nobody(self, hub, connect, caplog):
        caplog.set_level(logging.DEBUG)
        wrong = "a-wrong-but-still-secret-token"
        timing = Timing(retry_s=0.001, refused_retry_s=77)
        home, watcher = await connect(hub.url, wrong, timing, until=Disconnected, sleep=(pauses := Pauses(3)))
        error = await fails(home, "refuses the token.*make a new long-lived access token", HomeUnauthorized)
        async with asyncio.timeout(10):
            while len(pauses.taken) < 3:
                await asyncio.sleep(0)
        assert pauses.taken == [77] * 3
        told = [
            caplog.text,
            str(error),
            repr(error),
            repr(vars(error)),
            repr(home),
            repr(home._connection),
            str(watcher.events),
        ]
        assert not any(wrong in text for text in told)

    async def test_what_is_sent_in_another_way_than_it_is_read_is_trouble_not_the_end(
        self, hub, connect, caplog
    ):
        hub.states = {"light.lamp": {"state": "on"}}
        home, watcher = await connect(hub.url, until=Disconnected, sleep=Pauses())
        await fails(home, "not understood")
        hub.states = {"light.lamp": LIGHT}
        await watcher.until(Connected)

    async def test_what_is_no_json_is_trouble_not_the_end(self, hub, connect, caplog):
        _, watcher = await connect(hub.url)
        for socket_ in hub.sockets:
            await socket_.send_str("{nonsense")
        assert "not understood" in (await watcher.until(Disconnected)).reason
        await watcher.until(Connected)

    def test_retries_wait_longer_and_longer_and_never_all_at_once(self):
        timing = Timing(retry_s=0.5, max_retry_s=30)
        delays = [[compute_retry_delay(failures, timing) for _ in range(50)] for failures in range(40)]
        for failures, some in enumerate(delays):
            longest = min(0.5 * 2**failures, 30)
            assert all(longest / 2 <= delay <= longest for delay in some)
            assert len(set(some)) > 1
        assert compute_retry_delay(10_000, timing) <= 30

    @pytest.mark.parametrize(
        "url",
        [
            "ha:8123",
            "ws://homeassistant.local:8123",
            "ftp://homeassistant.local",
            "http://",
            "http://user:password@host",
            "http://host:port",
            "http://host:99999",
            "http://my host",
            "http://host/?x=1",
            "http://[::1",
            "",
            None,
            TOKEN,
        ],
    )
    def test_an_address_of_the_wrong_form_is_refused_and_not_repeated(self, url):
        with pytest.raises(InvalidInput, match="write it like") as caught:
            RemoteHome(url, TOKEN)
        assert "password" not in str(caught.value)
        assert TOKEN not in str(caught.value)

    @pytest.mark.parametrize(
        "url", ["http://ha:8123", " http://ha:8123/ ", "http://ha:8123/api/websocket", "http://ha:8123/api/"]
    )
    def test_what_follows_the_address_is_left_out(self, url):
        assert RemoteHome(url, TOKEN).name == "Home Assistant at http://ha:8123"

    def test_the_path_of_a_proxy_stays(self):
        assert (
            RemoteHome("http://supervisor/core/api", TOKEN).name == "Home Assistant at http://supervisor/core"
        )

    @pytest.mark.parametrize("token", ["", "  ", "two words", "line\nline", "ümlaut", None, 5])
    def test_a_token_of_the_wrong_form_is_refused_and_not_repeated(self, token):
        with pytest.raises(InvalidInput, match="long-lived access token") as caught:
            RemoteHome("http://ha:8123", token)
        assert not token or str(token) not in str(caught.value)

    async def test_the_line_end_of_a_file_is_no_part_of_the_token(self, hub, connect):
        await connect(hub.url, f"{TOKEN}\n")


class TestSecrecy:
    async def test_the_token_is_in_no_log_no_error_and_no_representation(self, hub, connect, caplog):
        caplog.set_level(logging.DEBUG)
        hub.answers["system_log/list"] = lambda _: hub.cut()
        hub.rest["light.lamp"] = (500, {})
        home, watcher = await connect(hub.url)
        errors = []
        for question in (
            home.get_state("light.lamp"),
            home.get_history(["light.lamp"], at(1), at(2)),
            home.get_log(),
        ):
            with pytest.raises(SashError) as caught:
                await question
            errors.append(caught.value)
        await watcher.until(Disconnected)
        await watcher.until(Connected)
        await home.close()
        link = json.dumps([repr(home), repr(vars(home).keys()), repr(home._connection)])
        told = [caplog.text, link, str(watcher.events)]
        for error in errors:
            told += [str(error), repr(error), repr(vars(error)), repr(error.__cause__), str(error.__cause__)]
        assert len(told) > 10
        assert not any(TOKEN in text for text in told)
