"""A remote home connects, loses the connection and comes back."""

import asyncio
import gc

import pytest
from aiohttp import web

from sash.errors import HomeUnavailable
from sash.home.remote import RemoteHome
from sash.home.remote.websocket import Timing
from sash.ports.home import Connected, Disconnected, LayoutChanged, StateChanged
from tests.home.event_watcher import EventWatcher
from tests.home.fake_home_assistant import CONFIG, ERROR, LIGHT, TOKEN, FakeHomeAssistant
from tests.home.remote_home import QUICK, Pauses, fails


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
