"""The services of the home inside Home Assistant."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from homeassistant.auth.const import GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.core import (
    Context,
    Event,
    HomeAssistant,
    ServiceCall,
    SupportsResponse,
    callback,
)
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError
from homeassistant.helpers.service import async_register_admin_service

from custom_components.sash.hass_home import HassHome
from sash.errors import ServiceFailed
from sash.values.continuations import TurnCaller
from sash.values.ids import new_id

KITCHEN = "light.kitchen_lights"


@pytest.fixture
async def anna(hass: HomeAssistant) -> TurnCaller:
    await hass.auth.async_create_user("Owner")  # The first user owns the home, and may do everything.
    user = await hass.auth.async_create_user("Anna", group_ids=[GROUP_ID_USER])
    return TurnCaller(user.id, "Anna", certainty="signed_in")


def register(hass: HomeAssistant, handle: Callable[[ServiceCall], Any], **options: Any) -> None:
    hass.services.async_register("test", "do", handle, **options)


class TestDescriptions:
    async def test_services_have_words_fields_targets_and_responses(
        self, house: HomeAssistant, hass_home: HassHome
    ):
        services = await hass_home.get_services()
        turn_on = services["light.turn_on"]
        assert "light" in turn_on.description
        assert turn_on.target == {"entity": [{"domain": ["light"]}]}
        assert turn_on.target_domains == {"light"}
        assert turn_on.fields["brightness_pct"].selector["number"]["max"] == 100
        assert "short or long" in turn_on.fields["flash"].description
        assert services["weather.get_forecasts"].fields["type"].required
        assert services["homeassistant.restart"].target is None
        assert (turn_on.response, services["weather.get_forecasts"].response) == ("none", "only")
        good_night = services["script.good_night"]
        assert (good_night.description, good_night.response) == ("Good night", "optional")
        assert good_night.fields["slowly"].description == "Whether to take time."
        assert good_night.fields["slowly"].selector == {"boolean": {}}

    async def test_they_are_in_english_in_every_home(self, house: HomeAssistant, hass_home: HassHome):
        house.config.language = "de"
        assert "Turns on" in (await hass_home.get_services())["light.turn_on"].description

    async def test_a_new_service_is_there_at_once(self, hass: HomeAssistant, hass_home: HassHome):
        before = await hass_home.get_services()
        assert "test.do" not in before
        register(hass, lambda call: None, supports_response=SupportsResponse.OPTIONAL)
        assert (await hass_home.get_services())["test.do"].response == "optional"
        hass.services.async_remove("test", "do")
        assert await hass_home.get_services() == before

    async def test_services_are_built_again_only_after_a_change(
        self, hass: HomeAssistant, hass_home: HassHome
    ):
        before = await hass_home.get_services()
        before.pop("homeassistant.restart")
        after = await hass_home.get_services()
        assert all(after[name] is service for name, service in before.items())
        assert "homeassistant.restart" in after


class TestCalls:
    async def test_a_call_changes_the_state_before_it_returns(
        self, house: HomeAssistant, hass_home: HassHome
    ):
        data = {"brightness": 77}
        for service, state in (("turn_off", "off"), ("turn_on", "on")):
            await hass_home.call_service(
                f"light.{service}", data if state == "on" else {}, ["light.bed_light"]
            )
            found = await hass_home.get_state("light.bed_light")
            assert found is not None and found.state == state
        assert found.attributes["brightness"] == 77
        assert data == {"brightness": 77}

    async def test_services_that_answer_return_their_response(
        self, house: HomeAssistant, hass_home: HassHome
    ):
        forecast = await hass_home.call_service(
            "weather.get_forecasts", {"type": "daily"}, ["weather.demo_weather_south"], return_response=True
        )
        assert forecast is not None
        assert len(forecast["weather.demo_weather_south"]["forecast"]) > 3
        assert await hass_home.call_service("script.count", {}, return_response=True) == {
            "lamps": 3,
            "names": ["a", "b"],
        }
        assert await hass_home.call_service("script.count", {}) is None

    async def test_a_response_has_plain_values(self, hass: HomeAssistant, hass_home: HassHome):
        register(hass, lambda call: {"names": {"b", "a"}}, supports_response=SupportsResponse.ONLY)
        assert await hass_home.call_service("test.do", {}, return_response=True) == {"names": ["a", "b"]}

    async def test_the_context_names_the_user_and_the_turn(
        self, house: HomeAssistant, hass_home: HassHome, anna: TurnCaller
    ):
        turn_id = new_id()
        for service in ("light.turn_off", "light.turn_on"):
            await hass_home.call_service(service, {}, [KITCHEN], caller=anna, turn_id=turn_id)
        state = house.states.get(KITCHEN)
        assert state is not None
        assert (state.context.user_id, state.context.parent_id) == (anna.user_id, turn_id)

    @pytest.mark.parametrize(
        "caller", [None, TurnCaller(), TurnCaller("nobody", "Nobody"), TurnCaller(device_id="puck")]
    )
    async def test_without_a_known_user_the_call_is_made_without_a_user(
        self, house: HomeAssistant, hass_home: HassHome, caller: TurnCaller | None
    ):
        for service in ("light.turn_off", "light.turn_on"):
            await hass_home.call_service(service, {}, [KITCHEN], caller=caller, turn_id="not a ULID")
        state = house.states.get(KITCHEN)
        assert state is not None and state.state == "on"
        assert (state.context.user_id, state.context.parent_id) == (None, None)

    async def test_a_removed_user_does_not_break_the_call(
        self, house: HomeAssistant, hass_home: HassHome, anna: TurnCaller
    ):
        assert anna.user_id is not None
        user = await house.auth.async_get_user(anna.user_id)
        assert user is not None
        await house.auth.async_remove_user(user)
        await hass_home.call_service("light.turn_off", {}, [KITCHEN], caller=anna)
        state = house.states.get(KITCHEN)
        assert state is not None and (state.state, state.context.user_id) == ("off", None)

    async def test_each_call_has_a_context_of_its_own(self, hass: HomeAssistant, hass_home: HassHome):
        contexts: list[Context] = []
        register(hass, lambda call: contexts.append(call.context))
        turn_id = new_id()
        for _ in range(2):
            await hass_home.call_service("test.do", {}, turn_id=turn_id)
        assert len({context.id for context in contexts}) == 2
        assert {context.parent_id for context in contexts} == {turn_id}


class TestFailures:
    @pytest.mark.parametrize(
        ("service", "data", "words"),
        [
            ("climate.set_temperature", {"temperature": 1000}, "Accepted range is 7 to 35"),
            ("light.turn_on", {"brightness": "very"}, "expected int"),
            ("light.no_such_thing", {}, "light.no_such_thing not found"),
            ("light", {}, "not found"),
        ],
    )
    async def test_a_refused_call_says_why(
        self, house: HomeAssistant, hass_home: HassHome, service: str, data: dict[str, Any], words: str
    ):
        with pytest.raises(ServiceFailed, match=words) as caught:
            await hass_home.call_service(service, data, ["climate.hvac"])
        assert "Traceback" not in caught.value.message

    @pytest.mark.parametrize(
        ("error", "words"),
        [
            (HomeAssistantError("the bulb is broken"), "the bulb is broken"),
            (ServiceValidationError("no such colour"), "no such colour"),
            (HomeAssistantError(), "HomeAssistantError"),
            (KeyError("missing"), "'missing'"),
            (TimeoutError(), "TimeoutError"),
        ],
    )
    async def test_an_error_has_home_assistants_own_words(
        self,
        hass: HomeAssistant,
        hass_home: HassHome,
        caplog: pytest.LogCaptureFixture,
        error: Exception,
        words: str,
    ):
        async def fail(call: ServiceCall) -> None:
            raise error

        register(hass, fail)
        with pytest.raises(ServiceFailed) as caught:
            await hass_home.call_service("test.do", {})
        assert caught.value.message == words
        assert f"test.do failed in Home Assistant: {words}\n" in caplog.text

    async def test_a_translated_error_is_a_sentence(self, house: HomeAssistant, hass_home: HassHome):
        with pytest.raises(ServiceFailed, match="Fan mode storm is not valid"):
            await hass_home.call_service("climate.set_fan_mode", {"fan_mode": "storm"}, ["climate.hvac"])

    @pytest.mark.parametrize(
        ("service", "return_response"), [("weather.get_forecasts", False), ("light.turn_on", True)]
    )
    async def test_a_response_that_does_not_fit_the_service_is_refused(
        self, house: HomeAssistant, hass_home: HassHome, service: str, return_response: bool
    ):
        with pytest.raises(ServiceFailed, match="response"):
            await hass_home.call_service(service, {}, [KITCHEN], return_response=return_response)

    async def test_a_user_may_do_only_what_home_assistant_allows(
        self, house: HomeAssistant, hass_home: HassHome, anna: TurnCaller
    ):
        guest = await house.auth.async_create_user("Guest", group_ids=[GROUP_ID_READ_ONLY])
        with pytest.raises(
            ServiceFailed, match=r"^Home Assistant does not allow Guest to use light\.turn_off$"
        ):
            await hass_home.call_service(
                "light.turn_off", {}, [KITCHEN], caller=TurnCaller(guest.id, "Guest")
            )
        async_register_admin_service(house, "test", "do", lambda call: None)
        with pytest.raises(ServiceFailed, match=r"does not allow Anna to use test\.do"):
            await hass_home.call_service("test.do", {}, caller=anna)


class TestCutOff:
    async def test_a_call_runs_on_after_its_caller_is_cancelled(
        self, house: HomeAssistant, hass_home: HassHome
    ):
        await hass_home.call_service("light.turn_on", {}, [KITCHEN])
        call = asyncio.create_task(hass_home.call_service("script.wait", {}))
        await wait_for_state(house, "script.wait", "on")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert house.states.is_state("script.wait", "on")
        house.bus.async_fire("go_on")
        await house.async_block_till_done()
        assert house.states.is_state(KITCHEN, "off")

    async def test_the_failure_of_a_call_that_runs_on_is_logged(
        self, hass: HomeAssistant, hass_home: HassHome, caplog: pytest.LogCaptureFixture
    ):
        started, go_on = asyncio.Event(), asyncio.Event()

        async def fail(call: ServiceCall) -> None:
            started.set()
            await go_on.wait()
            raise HomeAssistantError("the bulb is broken")

        register(hass, fail)
        call = asyncio.create_task(hass_home.call_service("test.do", {}))
        await asyncio.wait_for(started.wait(), 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        go_on.set()
        await hass.async_block_till_done()
        assert "test.do failed in Home Assistant: the bulb is broken" in caplog.text
        assert "never retrieved" not in caplog.text

    async def test_a_call_that_home_assistant_stops_has_failed(
        self, hass: HomeAssistant, hass_home: HassHome
    ):
        async def stop(call: ServiceCall) -> None:
            raise asyncio.CancelledError

        register(hass, stop)
        with pytest.raises(ServiceFailed, match=r"test\.do was stopped before it had finished"):
            await hass_home.call_service("test.do", {})


async def wait_for_state(hass: HomeAssistant, entity_id: str, state: str) -> None:
    reached = asyncio.Event()

    @callback
    def look(event: Event | None = None) -> None:
        if hass.states.is_state(entity_id, state):
            reached.set()

    stop = hass.bus.async_listen("state_changed", look)
    look()
    await asyncio.wait_for(reached.wait(), 10)
    stop()
