"""A remote home against a fake Home Assistant that also misbehaves."""

import asyncio
import gc
import json
import logging
import math
import socket
from datetime import UTC, datetime

import pytest
from aiohttp import web

from sash.errors import HomeError, HomeUnauthorized, HomeUnavailable, InvalidInput, SashError, ServiceFailed
from sash.home.remote import RemoteHome
from sash.home.remote.connection import compute_retry_delay
from sash.home.remote.websocket import Timing
from sash.ports.home import Connected, Disconnected, LayoutChanged, State, StateChanged
from tests.home.event_watcher import EventWatcher
from tests.home.fake_home_assistant import CONFIG, ERROR, LIGHT, TOKEN, FakeHomeAssistant

QUICK = Timing(retry_s=0.001, max_retry_s=0.001, starting_s=0.001)


class Pauses:
    """Records pauses without waiting. After `limit` pauses it blocks forever."""

    def __init__(self, limit=1000):
        self.taken = []
        self._limit = limit

    async def __call__(self, seconds):
        self.taken.append(seconds)
        if len(self.taken) >= self._limit:
            await asyncio.Event().wait()
        await asyncio.sleep(0)


@pytest.fixture
async def hub():
    async with FakeHomeAssistant() as hub:
        yield hub


@pytest.fixture
async def connect():
    """Return a function that opens a home with a watcher."""
    opened = []

    async def connect(url, token=TOKEN, timing=QUICK, until=Connected, **options):
        home = RemoteHome(url, token, timing=timing, **options)
        opened.append(home)
        watcher = EventWatcher(home)
        await home.open()
        if until is not None:
            await watcher.until(until)
        return home, watcher

    yield connect
    for home in opened:
        await home.close()


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


async def fails(home, words="", kind=HomeUnavailable):
    """Assert that every request fails. Return the last error."""
    for question in (
        home.get_states,
        home.get_layout,
        home.get_services,
        home.get_log,
        lambda: home.get_state("light.lamp"),
    ):
        with pytest.raises(kind, match=words) as caught:
            await question()
    return caught.value


class TestConnecting:
    async def test_it_logs_in_waits_until_home_assistant_runs_and_subscribes_before_it_is_connected(
        self, hub, connect
    ):
        home, watcher = await connect(hub.url)
        assert hub.asked[0] == {"type": "auth", "access_token": TOKEN}
        kinds = hub.kinds()
        assert kinds[1:3] == ["supported_features", "get_config"]
        assert kinds[-1] == "subscribe_entities"
        assert {q["event_type"] for q in hub.asked if q["type"] == "subscribe_events"} >= {
            "entity_registry_updated",
            "area_registry_updated",
            "automation_reloaded",
        }
        numbers = [question["id"] for question in hub.asked[1:]]
        assert numbers == sorted(set(numbers))
        assert watcher.events == [Connected()]
        assert [state.entity_id for state in await home.get_states()] == ["light.lamp"]

    async def test_opening_returns_at_once_and_what_is_asked_meanwhile_fails(self, hub, connect):
        home, _ = await connect(hub.url, until=None)
        await fails(home, "still connecting")

    async def test_a_house_that_was_not_opened_or_was_closed_cannot_be_asked(self, hub):
        home = RemoteHome(hub.url, TOKEN)
        await fails(home, "not opened")
        await home.open()
        await home.close()
        await fails(home, "was closed")

    async def test_while_home_assistant_starts_it_is_not_connected(self, hub, connect):
        states = iter(["NOT_RUNNING", "STARTING", "RUNNING"])
        hub.answers["get_config"] = lambda _: {**CONFIG, "state": next(states)}
        _, watcher = await connect(hub.url, until=Disconnected, sleep=(pauses := Pauses()))
        assert "Home Assistant is starting" in watcher.events[0].reason
        await watcher.until(Connected)
        assert pauses.taken == [QUICK.starting_s] * 2
        assert hub.kinds().count("auth") == 1

    async def test_a_house_that_stops_says_so(self, hub, connect):
        hub.answers["get_config"] = {**CONFIG, "state": "STOPPING"}
        home, _ = await connect(hub.url, until=Disconnected, sleep=Pauses(1))
        await fails(home, "is stopping")

    async def test_who_subscribes_later_is_told_at_once_and_who_left_is_not(self, hub, connect):
        home, watcher = await connect(hub.url)
        late = EventWatcher(home)
        assert late.events == [Connected()]
        late.stop()
        late.stop()
        await hub.tell("subscribe_entities", {"c": {"light.lamp": {"+": {"s": "off", "lc": 300.0}}}})
        await watcher.until(StateChanged)
        assert late.events == [Connected()]

    async def test_a_listener_that_fails_disturbs_nobody(self, hub, connect, caplog):
        home = RemoteHome(hub.url, TOKEN, timing=QUICK)
        home.subscribe(lambda event: 1 / 0)
        watcher = EventWatcher(home)
        await home.open()
        await watcher.until(Connected)
        await home.close()
        assert "a listener failed" in caplog.text

    async def test_opening_twice_connects_once(self, hub, connect):
        home, _ = await connect(hub.url)
        await home.open()
        await home.get_states()
        assert hub.kinds().count("auth") == 1

    async def test_a_house_of_many_megabytes_is_taken(self, hub, connect):
        hub.states["sensor.large"] = {"s": "1", "a": {"text": "x" * 6_000_000}, "lc": 1.0}
        home, _ = await connect(hub.url)
        assert (
            len(next(s for s in await home.get_states() if s.entity_id == "sensor.large").attributes["text"])
            == 6_000_000
        )


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


class TestLosingTheConnection:
    async def test_a_cut_fails_what_is_asked_at_once_and_is_told(self, hub, connect):
        hub.answers["system_log/list"] = lambda _: hub.cut()
        home, watcher = await connect(hub.url, sleep=Pauses(1))
        with pytest.raises(HomeUnavailable, match="the connection was lost"):
            await asyncio.wait_for(home.get_log(), 10)
        assert (await watcher.until(Disconnected)).reason == "the connection was lost"
        await fails(home, "the connection was lost")

    async def test_a_service_call_that_was_cut_may_have_been_done(self, hub, connect):
        hub.answers["call_service"] = lambda _: hub.cut()
        home, _ = await connect(hub.url, sleep=Pauses(1))
        with pytest.raises(HomeUnavailable, match=r"light\.turn_on, but the result is unknown"):
            await home.call_service("light.turn_on", {}, ["light.lamp"])

    async def test_it_comes_back_by_itself_with_fresh_states_and_new_subscriptions(self, hub, connect):
        home, watcher = await connect(hub.url, sleep=(pauses := Pauses()))
        await hub.tell("subscribe_entities", {"a": {"switch.old": LIGHT}})
        await watcher.until(StateChanged)
        hub.states = {"light.lamp": {**LIGHT, "s": "off"}}
        hub.cut()
        await watcher.until(Disconnected)
        await watcher.until(Connected)
        assert [(state.entity_id, state.state) for state in await home.get_states()] == [
            ("light.lamp", "off")
        ]
        await hub.tell("subscribe_entities", {"c": {"light.lamp": {"+": {"s": "on", "lc": 300.0}}}})
        assert (await watcher.until(StateChanged)).state.state == "on"
        await hub.tell("area_registry_updated", {"data": {}})
        await watcher.until(LayoutChanged)
        assert hub.kinds().count("subscribe_entities") == 2
        assert len(pauses.taken) == 1

    async def test_it_waits_longer_while_it_cannot_connect_and_starts_over_when_it_could(self, hub, connect):
        pauses = Pauses()
        timing = Timing(retry_s=1, max_retry_s=1000, stable_s=0)
        _, watcher = await connect(hub.url, timing=timing, sleep=pauses)
        await hub.stop()
        async with asyncio.timeout(10):
            while len(pauses.taken) < 5:
                await asyncio.sleep(0)
        await hub.start()
        await watcher.until(Connected)
        failed = len(pauses.taken)
        assert all(2**n / 2 <= delay <= 2**n for n, delay in enumerate(pauses.taken[:9]))
        hub.cut()
        await watcher.until(Disconnected)
        await watcher.until(Connected)
        assert pauses.taken[failed] <= 1

    async def test_a_connection_that_falls_silent_is_noticed(self, hub, connect):
        home, watcher = await connect(hub.url, timing=Timing(heartbeat_s=0.4), sleep=Pauses(1))
        hub.answers_pings = False
        hub.answers["system_log/list"] = None
        with pytest.raises(HomeUnavailable, match="stopped responding"):
            await asyncio.wait_for(home.get_log(), 10)
        assert "stopped responding" in (await watcher.until(Disconnected)).reason

    async def test_a_connection_that_answers_pings_stays(self, hub, connect):
        pings = asyncio.Semaphore(0)
        talk = web.WebSocketResponse.pong

        async def pong(self, *args):
            pings.release()
            await talk(self, *args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(web.WebSocketResponse, "pong", pong)
            _, watcher = await connect(hub.url, timing=Timing(heartbeat_s=0.2))
            async with asyncio.timeout(10):
                for _ in range(3):
                    await pings.acquire()
        assert watcher.events == [Connected()]

    async def test_a_question_without_an_answer_gives_up_and_the_connection_stays(self, hub, connect):
        hub.answers["system_log/list"] = None
        home, watcher = await connect(hub.url, timing=Timing(response_s=0.4))
        with pytest.raises(HomeUnavailable, match=r"did not answer within 0\.4 s \(system_log/list\)"):
            await home.get_log()
        assert watcher.events == [Connected()]
        assert await home.get_states()

    async def test_a_late_answer_is_nobodys(self, hub, connect):
        late = []
        hub.answers["system_log/list"] = lambda question: late.append(question["id"])
        home, _ = await connect(hub.url, timing=Timing(response_s=0.4))
        with pytest.raises(HomeUnavailable):
            await home.get_log()
        for socket_ in hub.sockets:
            await socket_.send_json({"id": late[0], "type": "result", "success": True, "result": []})
        hub.answers["system_log/list"] = []
        assert await home.get_log() == []

    async def test_a_subscription_that_brings_nothing_is_no_connection(self, hub, connect):
        hub.answers["subscribe_entities"] = None
        home, _ = await connect(hub.url, timing=Timing(response_s=0.4), until=Disconnected, sleep=Pauses(1))
        await fails(home, "did not answer")

    async def test_a_subscription_that_is_refused_is_no_connection(self, hub, connect):
        hub.answers["subscribe_entities"] = (ERROR, "unauthorized", "Unauthorized")
        home, _ = await connect(hub.url, until=Disconnected, sleep=Pauses(1))
        await fails(home, "refuses a required request: Unauthorized")

    async def test_two_houses_do_not_disturb_each_other(self, hub, connect):
        async with FakeHomeAssistant() as other:
            other.states = {"light.other": LIGHT}
            home, watcher = await connect(hub.url, sleep=Pauses(1))
            second, quiet = await connect(other.url)
            hub.cut()
            await watcher.until(Disconnected)
            assert quiet.events == [Connected()]
            assert [state.entity_id for state in await second.get_states()] == ["light.other"]
            await home.close()
            assert await second.get_states()

    @pytest.mark.parametrize("moment", ["connecting", "connected", "asking", "waiting"])
    async def test_closing_leaves_nothing_behind(self, hub, connect, moment):
        before = asyncio.all_tasks()
        hub.answers["system_log/list"] = None
        if moment == "waiting":
            hub.page = lambda _: web.Response(status=404)
        until = {"connecting": None, "waiting": Disconnected}.get(moment, Connected)
        home, _ = await connect(hub.url, until=until, sleep=Pauses(1))
        asking = asyncio.ensure_future(home.get_log()) if moment == "asking" else None
        if asking:
            while "system_log/list" not in hub.kinds():
                await asyncio.sleep(0)
        await asyncio.wait_for(home.close(), 10)
        await home.close()
        if asking:
            with pytest.raises(HomeUnavailable):
                await asking
        servers = {task for task in asyncio.all_tasks() if "web_protocol" in repr(task)}
        assert asyncio.all_tasks() - before - servers == set()
        gc.collect()

    async def test_a_closed_house_can_be_opened_again(self, hub, connect):
        home, watcher = await connect(hub.url)
        await home.close()
        await home.open()
        await watcher.until(Connected)
        assert await home.get_states()


class TestStates:
    async def test_a_state_has_its_times_and_attributes(self, hub, connect):
        hub.states["switch.new"] = {"s": "off", "a": {}, "c": "x", "lc": 50.5}
        home, _ = await connect(hub.url)
        assert await home.get_states() == [
            State("light.lamp", "on", {"friendly_name": "Lamp", "brightness": 10}, at(100), at(200)),
            State("switch.new", "off", {}, at(50.5), at(50.5)),
        ]

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            (
                {"+": {"s": "off", "lc": 300.0}},
                State("light.lamp", "off", {"friendly_name": "Lamp", "brightness": 10}, at(300), at(300)),
            ),
            (
                {"+": {"a": {"brightness": 20, "effect": "x"}, "lu": 300.0}},
                State(
                    "light.lamp",
                    "on",
                    {"friendly_name": "Lamp", "brightness": 20, "effect": "x"},
                    at(100),
                    at(300),
                ),
            ),
            (
                {"+": {"lu": 300.0}, "-": {"a": ["brightness", "never"]}},
                State("light.lamp", "on", {"friendly_name": "Lamp"}, at(100), at(300)),
            ),
            (
                {"+": {"c": {"id": "y"}}},
                State("light.lamp", "on", {"friendly_name": "Lamp", "brightness": 10}, at(100), at(200)),
            ),
        ],
    )
    async def test_changes_are_applied(self, hub, connect, change, expected):
        home, watcher = await connect(hub.url)
        before = await home.get_states()
        await hub.tell("subscribe_entities", {"c": {"light.lamp": change}})
        assert await watcher.until(StateChanged) == StateChanged("light.lamp", expected)
        assert await home.get_states() == [expected]
        assert before[0].attributes == {"friendly_name": "Lamp", "brightness": 10}
        assert LayoutChanged() not in watcher.events

    async def test_many_events_in_one_frame_come_in_order(self, hub, connect):
        _, watcher = await connect(hub.url)
        events = [{"c": {"light.lamp": {"+": {"s": str(n), "lc": 300.0 + n}}}} for n in range(50)]
        await hub.tell("subscribe_entities", *events)
        await watcher.until(StateChanged, lambda event: event.state.state == "49")
        assert [event.state.state for event in watcher.events[1:]] == [str(n) for n in range(50)]

    async def test_entities_that_come_go_or_get_another_name_change_the_layout(self, hub, connect):
        home, watcher = await connect(hub.url)
        await hub.tell("subscribe_entities", {"a": {"light.new": LIGHT}})
        assert (await watcher.until(StateChanged)).entity_id == "light.new"
        await watcher.until(LayoutChanged)
        await hub.tell("subscribe_entities", {"c": {"light.new": {"+": {"a": {"friendly_name": "X"}}}}})
        await watcher.until(LayoutChanged)
        await hub.tell("subscribe_entities", {"r": ["light.new", "light.never"]})
        await watcher.until(StateChanged, lambda event: event == StateChanged("light.new", None))
        await watcher.until(LayoutChanged)
        assert [state.entity_id for state in await home.get_states()] == ["light.lamp"]

    async def test_a_change_of_an_unknown_entity_is_ignored(self, hub, connect):
        _, watcher = await connect(hub.url)
        await hub.tell(
            "subscribe_entities",
            {"c": {"light.never": {"+": {"s": "on", "lc": 1.0}}}},
            {"c": {"light.lamp": {"+": {"s": "off", "lc": 300.0}}}},
        )
        assert (await watcher.until(StateChanged)).entity_id == "light.lamp"

    @pytest.mark.parametrize(
        "event", ["entity_registry_updated", "floor_registry_updated", "automation_reloaded"]
    )
    async def test_a_change_of_a_registry_changes_the_layout(self, hub, connect, event):
        _, watcher = await connect(hub.url)
        await hub.tell(event, {"event_type": event, "data": {"action": "update"}})
        await watcher.until(LayoutChanged)

    async def test_one_state_is_asked_for_anew(self, hub, connect):
        home, _ = await connect(hub.url)
        hub.rest["light.lamp"] = (
            200,
            {
                "entity_id": "light.lamp",
                "state": "off",
                "attributes": {"brightness": None},
                "last_changed": "2026-01-01T10:00:00+00:00",
                "last_updated": "2026-01-01T10:00:01.500000+00:00",
            },
        )
        state = await home.get_state("light.lamp")
        assert (state.state, state.changed_at) == ("off", datetime(2026, 1, 1, 10, tzinfo=UTC))
        assert hub.got[0].headers["Authorization"] == f"Bearer {TOKEN}"
        assert await home.get_state("light.never") is None

    @pytest.mark.parametrize("entity_id", ["../config", "light.lamp/../x", "", "light", "light.lamp?x=1"])
    async def test_what_is_no_entity_id_is_not_asked_for(self, hub, connect, entity_id):
        home, _ = await connect(hub.url)
        assert await home.get_state(entity_id) is None
        assert hub.got == []

    @pytest.mark.parametrize(
        ("answer", "kind", "words"),
        [
            ((401, {}), HomeUnauthorized, "refuses the token"),
            ((503, {}), HomeUnavailable, "HTTP 503"),
            ((200, {"state": "on"}), HomeError, "not understood"),
        ],
    )
    async def test_a_state_that_cannot_be_had_is_a_clear_error(
        self, hub, connect, answer, kind, words, caplog
    ):
        home, _ = await connect(hub.url)
        hub.rest["light.lamp"] = answer
        with pytest.raises(kind, match=words) as caught:
            await home.get_state("light.lamp")
        chain = [caught.value, caught.value.__cause__, caught.value.__context__]
        assert not any(TOKEN in f"{error!s} {error!r}" for error in chain)


class TestAsking:
    @pytest.mark.parametrize(
        ("code", "words"),
        [
            ("service_validation_error", "Validation error: 1000 is not valid"),
            ("home_assistant_error", "The lamp is on fire"),
            ("not_found", "Service light.nope not found."),
            ("invalid_format", "expected int at 'brightness'"),
        ],
    )
    async def test_a_refused_service_says_home_assistants_own_words(self, hub, connect, code, words):
        hub.answers["call_service"] = (ERROR, code, words)
        home, _ = await connect(hub.url)
        with pytest.raises(ServiceFailed) as caught:
            await home.call_service("light.turn_on", {})
        assert caught.value.message == words

    async def test_a_service_is_called_on_its_targets(self, hub, connect):
        hub.answers["call_service"] = {"context": {}}
        home, _ = await connect(hub.url)
        await home.call_service("light.turn_on", {"brightness": 5}, ("light.lamp",))
        await home.call_service("homeassistant.reload_all", {})
        first, second = hub.asked[-2:]
        del first["id"], second["id"]
        assert first == {
            "type": "call_service",
            "domain": "light",
            "service": "turn_on",
            "service_data": {"brightness": 5},
            "target": {"entity_id": ["light.lamp"]},
        }
        assert "target" not in second

    async def test_a_service_call_that_is_not_answered_may_have_been_done(self, hub, connect):
        hub.answers["call_service"] = None
        home, _ = await connect(hub.url, timing=Timing(long_response_s=0.05))
        with pytest.raises(HomeUnavailable, match="the result is unknown"):
            await home.call_service("light.turn_on", {})

    @pytest.mark.parametrize("value", [math.nan, "\ud800", {1, 2}])
    async def test_what_no_json_can_hold_is_not_sent_and_breaks_nothing(self, hub, connect, value):
        home, watcher = await connect(hub.url)
        with pytest.raises(InvalidInput, match="JSON only"):
            await home.call_service("light.turn_on", {"brightness": value})
        assert watcher.events == [Connected()]
        assert "call_service" not in hub.kinds()

    @pytest.mark.parametrize(
        ("name", "question"),
        [
            ("history", lambda home: home.get_history(["light.lamp"], at(1), at(2))),
            ("logbook", lambda home: home.get_logbook(at(1), at(2))),
            ("system log", lambda home: home.get_log()),
        ],
    )
    async def test_what_is_not_set_up_is_said_so(self, hub, connect, name, question):
        home, _ = await connect(hub.url)
        with pytest.raises(HomeError, match=f"Home Assistant's {name} is not set up"):
            await question(home)

    async def test_what_may_not_be_asked_is_said_so(self, hub, connect):
        hub.answers["system_log/list"] = (ERROR, "unauthorized", "Unauthorized")
        home, _ = await connect(hub.url)
        with pytest.raises(HomeError, match="not an administrator"):
            await home.get_log()

    async def test_history_has_a_point_for_each_change(self, hub, connect):
        hub.answers["history/history_during_period"] = {
            "light.lamp": [
                {"s": "on", "a": {}, "lc": 50.0, "lu": 60.0},
                {"s": "on", "lu": 120.0},
                {"s": "off", "lu": 150.0},
                {"s": "on", "lu": 170.0},
            ]
        }
        home, _ = await connect(hub.url)
        history = await home.get_history(["light.lamp", "light.never"], at(100), at(200))
        assert [(point.at, point.state) for point in history["light.lamp"]] == [
            (at(100), "on"),
            (at(150), "off"),
            (at(170), "on"),
        ]
        assert history["light.never"] == []
        asked = hub.asked[-1]
        assert (asked["start_time"], asked["end_time"]) == (at(100).isoformat(), at(200).isoformat())
        assert asked["minimal_response"]
        assert not asked["significant_changes_only"]
        assert await home.get_history([], at(1), at(2)) == {}

    async def test_the_logbook_says_what_happened_and_why(self, hub, connect):
        hub.states["person.ada"] = {"s": "home", "a": {"friendly_name": "Ada L.", "user_id": "u2"}, "lc": 1.0}
        hub.answers["logbook/get_events"] = [
            {
                "when": 3.0,
                "state": "on",
                "entity_id": "light.lamp",
                "context_entity_id": "light.lamp",
                "context_state": "off",
            },
            {
                "when": 2.0,
                "state": "on",
                "entity_id": "light.lamp",
                "context_domain": "light",
                "context_service": "turn_on",
                "context_user_id": "u2",
            },
            {
                "when": 1.0,
                "name": "Evening",
                "message": "triggered by sunset",
                "entity_id": "automation.evening",
            },
            {
                "when": 4.0,
                "state": "off",
                "entity_id": "light.gone",
                "context_name": "Evening",
                "context_message": "triggered by sunset",
                "context_user_id": "u1",
            },
        ]
        home, _ = await connect(hub.url)
        entries = await home.get_logbook(at(0), at(10), ["light.lamp"])
        assert [(entry.at, entry.name, entry.message, entry.cause) for entry in entries] == [
            (at(1), "Evening", "triggered by sunset", ""),
            (at(2), "Lamp", "turned on", "light.turn_on by Ada L."),
            (at(3), "Lamp", "turned on", "Lamp changed to off"),
            (at(4), "light.gone", "turned off", "Evening, triggered by sunset"),
        ]
        assert hub.asked[-1]["entity_ids"] == ["light.lamp"]

    async def test_the_log_has_warnings_and_worse_oldest_first(self, hub, connect):
        line = {"name": "homeassistant.components.hue", "source": ["hue.py", 5], "exception": "", "count": 1}
        hub.answers["system_log/list"] = [
            {
                **line,
                "level": "ERROR",
                "message": ["b", "c"],
                "timestamp": 9.0,
                "first_occurred": 5.0,
                "count": 3,
            },
            {**line, "level": "INFO", "message": ["x"], "timestamp": 8.0, "first_occurred": 8.0},
            {
                **line,
                "level": "FATAL",
                "message": ["a"],
                "timestamp": 7.0,
                "first_occurred": 7.0,
                "exception": "Traceback\n  x\nValueError: no\n",
            },
        ]
        home, _ = await connect(hub.url)
        records = await home.get_log()
        assert [(record.level, record.message, record.count) for record in records] == [
            ("critical", "a\nValueError: no", 1),
            ("error", "b\nc", 3),
        ]
        assert (records[1].first_at, records[1].at) == (at(5), at(9))
        assert records[0].source == "homeassistant.components.hue"

    async def test_services_have_their_words_and_all_their_fields(self, hub, connect):
        hub.answers["get_services"] = {
            "light": {
                "turn_on": {
                    "fields": {
                        "brightness": {"required": True, "selector": {"number": {"max": 255}}},
                        "more": {
                            "collapsed": True,
                            "fields": {"flash": {"description": "own", "selector": {}}},
                        },
                    },
                    "target": {"entity": [{"domain": ["light"]}]},
                }
            },
            "script": {"good_night": {"name": "Good night", "description": "", "fields": {}}},
        }
        hub.answers["frontend/get_translations"] = {
            "resources": {
                "component.light.services.turn_on.description": "Turns on a light.",
                "component.light.services.turn_on.fields.brightness.description": "How bright.",
                "component.light.services.turn_on.fields.flash.description": "Flashes.",
            }
        }
        home, _ = await connect(hub.url)
        services = await home.get_services()
        turn_on = services["light.turn_on"]
        assert turn_on.description == "Turns on a light."
        assert {name: field.description for name, field in turn_on.fields.items()} == {
            "brightness": "How bright.",
            "flash": "own",
        }
        assert turn_on.fields["brightness"].required
        assert turn_on.fields["brightness"].selector == {"number": {"max": 255}}
        assert turn_on.target == {"entity": [{"domain": ["light"]}]}
        assert services["script.good_night"].description == "Good night"
        assert services["script.good_night"].target is None

    async def test_services_come_without_words_if_there_are_none(self, hub, connect):
        hub.answers["get_services"] = {"light": {"turn_on": {"fields": {}}}}
        home, _ = await connect(hub.url)
        assert (await home.get_services())["light.turn_on"].description == ""

    async def test_questions_do_not_wait_for_each_other(self, hub, connect):
        both = asyncio.Event()
        hub.answers["get_services"] = None
        hub.answers["frontend/get_translations"] = lambda _: both.set()
        home, _ = await connect(hub.url)
        asking = asyncio.ensure_future(home.get_services())
        await asyncio.wait_for(both.wait(), 10)
        assert "get_services" in hub.kinds()
        await home.close()
        with pytest.raises(HomeUnavailable):
            await asking


ENTRIES = {
    "light.lamp": {
        "entity_id": "light.lamp",
        "id": "0" * 32,
        "device_id": "d1",
        "area_id": None,
        "labels": ["cosy"],
        "aliases": [None, "Reading light"],
        "options": {},
        "platform": "hue",
    },
    "sensor.gone": {
        "entity_id": "sensor.gone",
        "device_id": "d2",
        "area_id": "hall",
        "has_entity_name": True,
        "original_name": "Power",
        "aliases": [],
    },
    "light.named": {"entity_id": "light.named", "name": "My name", "original_name": "Theirs"},
    "light.disabled": {"entity_id": "light.disabled", "disabled_by": "user"},
}


def furnish(hub):
    hub.answers |= {
        "config/entity_registry/list": [
            {key: value for key, value in entry.items() if key != "aliases"} for entry in ENTRIES.values()
        ],
        "config/entity_registry/get_entries": lambda question: {
            name: ENTRIES[name] for name in question["entity_ids"]
        },
        "config/device_registry/list": [
            {
                "id": "d1",
                "name": "Hue",
                "name_by_user": "My Hue",
                "area_id": "kitchen",
                "manufacturer": "Philips",
            },
            {"id": "d2", "name": "Plug", "parent_device_id": "d1"},
            {"id": "d3", "name": "Off", "disabled_by": "user"},
        ],
        "config/area_registry/list": [
            {"area_id": "kitchen", "name": "Kitchen", "floor_id": "ground", "aliases": ["Galley"]},
            {"area_id": "hall", "name": "Hall", "floor_id": None, "aliases": []},
        ],
        "config/floor_registry/list": [
            {"floor_id": "ground", "name": "Ground floor", "aliases": ["Downstairs"]}
        ],
        "config/label_registry/list": [{"label_id": "cosy", "name": "Cosy"}],
        "homeassistant/expose_entity/list": {
            "exposed_entities": {"light.lamp": {"conversation": True}, "sun.sun": {"cloud.alexa": True}}
        },
        "automation/config": lambda question: (
            {"config": {"triggers": [{"entity_id": ["light.lamp", "automation.evening"]}]}}
            if question["entity_id"] == "automation.evening"
            else (ERROR, "not_found", "Entity not found")
        ),
    }
    hub.states |= {
        "sun.sun": {"s": "below_horizon", "a": {}, "lc": 1.0},
        "automation.evening": {"s": "on", "a": {"friendly_name": "Evening"}, "lc": 1.0},
        "automation.broken": {"s": "on", "a": {}, "lc": 1.0},
        "group.all": {"s": "on", "a": {"entity_id": ["light.lamp"]}, "lc": 1.0},
        "scene.dinner": {"s": "x", "a": {"entity_id": ["light.lamp", "light.named"]}, "lc": 1.0},
    }


class TestLayout:
    async def test_the_registries_come_together(self, hub, connect):
        furnish(hub)
        home, _ = await connect(hub.url)
        layout = await home.get_layout()
        entities = {entity.id: entity for entity in layout.entities}
        lamp = entities["light.lamp"]
        assert (lamp.name, lamp.area_id, lamp.device_id, lamp.platform) == ("Lamp", "kitchen", "d1", "hue")
        assert (lamp.aliases, lamp.labels) == (("Reading light",), ("cosy",))
        assert entities["sensor.gone"].name == "Plug Power"
        assert entities["sensor.gone"].area_id == "hall"
        assert entities["light.named"].name == "My name"
        assert entities["sun.sun"].name == "Sun"
        assert "light.disabled" not in entities
        assert set(hub.states) <= set(entities)
        devices = {device.id: device for device in layout.devices}
        assert (devices["d1"].name, devices["d1"].manufacturer) == ("My Hue", "Philips")
        assert (devices["d2"].area_id, devices["d2"].via_id) == ("kitchen", "d1")
        assert "d3" not in devices
        assert [(area.id, area.floor_id, area.aliases) for area in layout.areas] == [
            ("kitchen", "ground", ("Galley",)),
            ("hall", None, ()),
        ]
        assert (layout.floors[0].name, layout.floors[0].aliases) == ("Ground floor", ("Downstairs",))
        assert (layout.labels, layout.name, layout.language) == ({"cosy": "Cosy"}, "Hub House", "de")

    async def test_automations_groups_and_scenes_depend_on_what_they_use(self, hub, connect):
        furnish(hub)
        home, _ = await connect(hub.url)
        found = {(d.entity_id, d.name, d.kind): d.uses for d in (await home.get_layout()).dependents}
        assert found == {
            ("automation.evening", "Evening", "automation"): {"light.lamp"},
            ("group.all", "All", "group"): {"light.lamp"},
            ("scene.dinner", "Dinner", "scene"): {"light.lamp", "light.named"},
        }

    async def test_only_what_home_assistant_lists_is_exposed(self, hub, connect):
        furnish(hub)
        home, _ = await connect(hub.url)
        exposed = [entity.id for entity in (await home.get_layout()).entities if entity.exposed]
        assert exposed == ["light.lamp"]

    async def test_what_is_shown_or_hidden_without_an_event_is_noticed(self, hub, connect):
        furnish(hub)
        home, watcher = await connect(hub.url, timing=Timing(exposure_s=0.01))
        await home.get_layout()
        hub.answers["homeassistant/expose_entity/list"] = {
            "exposed_entities": {"sun.sun": {"conversation": True}}
        }
        await watcher.until(LayoutChanged)
        assert [entity.id for entity in (await home.get_layout()).entities if entity.exposed] == ["sun.sun"]
        looked = hub.kinds().count("homeassistant/expose_entity/list")
        async with asyncio.timeout(10):
            while hub.kinds().count("homeassistant/expose_entity/list") < looked + 3:
                await asyncio.sleep(0)
        assert watcher.events.count(LayoutChanged()) == 1

    @pytest.mark.parametrize("why", ["not an administrator", "no conversation"])
    async def test_without_a_list_its_note_or_else_its_rule_decides(
        self, hub, connect, why, caplog, monkeypatch
    ):
        furnish(hub)
        monkeypatch.setitem(ENTRIES, "switch.shown", {"entity_id": "switch.shown"})
        monkeypatch.setitem(
            ENTRIES,
            "switch.hidden",
            {"entity_id": "switch.hidden", "options": {"conversation": {"should_expose": False}}},
        )
        monkeypatch.setitem(
            ENTRIES,
            "lock.shown",
            {"entity_id": "lock.shown", "options": {"conversation": {"should_expose": True}}},
        )
        monkeypatch.setitem(
            ENTRIES, "switch.config", {"entity_id": "switch.config", "entity_category": "config"}
        )
        furnish(hub)
        hub.states |= {
            "sensor.warmth": {"s": "20", "a": {"device_class": "temperature"}, "lc": 1.0},
            "sensor.energy": {"s": "20", "a": {"device_class": "energy"}, "lc": 1.0},
            "lock.front": {"s": "locked", "a": {}, "lc": 1.0},
        }
        if why == "not an administrator":
            hub.answers["auth/current_user"] = {"id": "u9", "name": "Kid", "is_admin": False}
            hub.answers["homeassistant/expose_entity/list"] = (ERROR, "unauthorized", "Unauthorized")
        else:
            hub.answers["get_config"] = {**CONFIG, "components": []}
            hub.answers["homeassistant/expose_entity/list"] = {"exposed_entities": {}}
        home, _ = await connect(hub.url)
        exposed = {entity.id for entity in (await home.get_layout()).entities if entity.exposed}
        assert exposed == {
            "light.lamp",
            "light.named",
            "switch.shown",
            "lock.shown",
        }

    async def test_who_is_no_administrator_asks_for_nothing_forbidden_and_is_told_once(
        self, hub, connect, caplog
    ):
        furnish(hub)
        hub.answers["auth/current_user"] = {"id": "u9", "name": "Kid", "is_admin": False}
        home, watcher = await connect(hub.url)
        layout = await home.get_layout()
        hub.cut()
        await watcher.until(Disconnected)
        await watcher.until(Connected)
        await home.get_layout()
        assert {dependent.kind for dependent in layout.dependents} == {"group", "scene"}
        assert not {"homeassistant/expose_entity/list", "automation/config"} & set(hub.kinds())
        assert "automation_reloaded" not in [question.get("event_type") for question in hub.asked]
        assert caplog.text.count("not an administrator") == 1

    async def test_a_layout_that_is_written_in_another_way_is_a_clear_error(self, hub, connect):
        furnish(hub)
        hub.answers["config/area_registry/list"] = [{"id": "kitchen"}]
        home, watcher = await connect(hub.url)
        with pytest.raises(HomeError, match="not understood"):
            await home.get_layout()
        assert watcher.events == [Connected()]

    async def test_a_cut_while_the_layout_is_read_fails_it(self, hub, connect):
        furnish(hub)
        hub.answers["automation/config"] = lambda _: hub.cut()
        home, _ = await connect(hub.url, sleep=Pauses(1))
        with pytest.raises(HomeUnavailable, match="lost"):
            await asyncio.wait_for(home.get_layout(), 10)


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
