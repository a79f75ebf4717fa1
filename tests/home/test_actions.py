"""Actions are executed, read back, and undone unless the entities have changed since."""

import asyncio
from dataclasses import replace

import pytest

from sash.errors import HomeUnavailable, InvalidInput, OutcomeUnknown, ServiceFailed
from sash.home.actions import CallOutcome, HomeActions
from sash.home.expected_effects import is_already_so
from sash.home.undo import ActionUndo
from sash.ports.home import ServiceField
from sash.ports.tools import ToolContext
from sash.values.continuations import Action
from sash.values.sessions import Session
from tests.home.small_home import NOW, WAIT_S, house, open_live_home, state


class Room:
    """A home, its actions, and the actions of the session so far."""

    def __init__(self, home, known):
        self.home, self.known = home, known
        self.actions = HomeActions(known, read_back_s=0)
        self.undo = ActionUndo(self.actions)
        self.past = []
        self.since = None

    @property
    def context(self):
        async def keep(*_):
            raise AssertionError

        async def past_actions():
            for done in reversed(self.past):
                yield done

        session = Session("s", "local", NOW, NOW)
        return ToolContext(session, "c", "call", keep, lambda _: None, past_actions, self.since)

    async def do(self, service, entity_ids=(), **data):
        arguments = {"service": service, "entity_ids": list(entity_ids), "data": data}
        acted = await self.actions.call(arguments, self.context)
        key = f"c:{len(self.past)}"
        self.past.append(
            (key, Action(key, "call_service", arguments, "done", acted.verified, acted.before, acted.after))
        )
        return acted

    async def take_back(self):
        services = [use.service for use in await self.undo.list_uses({}, self.context) if not use.within]
        acted = await self.undo.invoke({}, self.context)
        self.past.append(
            ("u", Action("u", "undo_last_action", {}, "done", acted.verified, undoes=acted.undoes))
        )
        return services, acted

    def state(self, entity_id):
        return self.known.index.states[entity_id]


@pytest.fixture
async def room():
    home = house()
    async with open_live_home(home) as known:
        await asyncio.wait_for(known.wait_until_ready(), WAIT_S)
        yield Room(home, known)


async def test_an_action_is_read_back(room):
    acted = await room.do("light.turn_on", ["light.kitchen_ceiling"], brightness_pct=40)
    assert acted.verified is True
    assert acted.result["entities"] == [
        {
            "entity_id": "light.kitchen_ceiling",
            "name": "Kitchen ceiling",
            "before": "off",
            "after": "on (40 % bright)",
        }
    ]
    assert acted.before["light.kitchen_ceiling"] == {"state": "off", "attributes": {}}


async def test_an_action_that_the_house_ignores_is_not_verified(room):
    room.home.ignore_next("light.turn_on")
    acted = await room.do("light.turn_on", ["light.kitchen_ceiling"])
    assert acted.verified is False
    assert "does not show the effect" in acted.result["note"]


async def test_an_action_on_two_of_which_one_is_away_is_not_verified(room):
    room.home.set_state("light.living_room", "unavailable")
    acted = await room.do("light.turn_on", ["light.kitchen_ceiling", "light.living_room"])
    assert acted.verified is False


async def test_of_two_things_of_which_one_cannot_be_seen_it_is_not_known(room):
    """The generic service is visible on the light, not on the scene."""
    acted = await room.do("homeassistant.turn_on", ["light.kitchen_ceiling", "scene.movie"])
    assert room.state("light.kitchen_ceiling").state == "on"
    assert acted.verified is None


async def test_what_nobody_can_see_is_not_known(room):
    assert (await room.do("scene.turn_on", ["scene.movie"])).verified is None
    assert (await room.do("notify.notify", message="hello")).verified is None


async def test_a_state_that_comes_a_moment_later_is_waited_for(room):
    room.actions = HomeActions(room.known, read_back_s=WAIT_S)
    room.home.ignore_next("switch.turn_on")
    doing = asyncio.create_task(room.do("switch.turn_on", ["switch.kettle"]))
    async with asyncio.timeout(WAIT_S):
        while not any(call.service == "switch.turn_on" for call in room.home.calls):
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    room.home.set_state("switch.kettle", "on")
    assert (await doing).verified is True


def add_arguments(room, *names):
    service = room.known.services["light.turn_on"]
    added = {name: ServiceField() for name in names}
    room.known.services["light.turn_on"] = replace(service, fields=service.fields | added)


@pytest.mark.parametrize(
    ("data", "verified", "after"),
    [
        ({"color_name": "red"}, True, "on (100 % bright, red)"),
        (
            {"color_name": "light green"},
            None,
            "on (100 % bright, orange)",
        ),  # the lamp shows it in its own way
        ({"effect": "candle"}, None, "on (100 % bright)"),
    ],
)
async def test_an_effect_that_no_state_can_confirm_is_not_waited_for(room, data, verified, after):
    room.actions = HomeActions(room.known, read_back_s=20 * WAIT_S)
    shown = {"red": [255, 0, 0], "light green": [255, 165, 0]}.get(data.get("color_name"))

    async def call_service(service, data, entity_ids=(), **_):
        room.home.set_state(*entity_ids, "on", brightness=255, color_mode="hs", rgb_color=shown)

    add_arguments(room, "effect", "color_name")
    room.home.call_service = call_service
    async with asyncio.timeout(WAIT_S):
        acted = await room.do("light.turn_on", ["light.living_room"], **data)
    assert acted.verified is verified
    assert acted.result["entities"][0]["after"] == after


async def test_an_effect_that_changes_no_state_is_waited_for_a_second_at_most(room):
    room.actions = HomeActions(room.known, read_back_s=20 * WAIT_S)
    add_arguments(room, "flash")

    async def call_service(service, data, entity_ids=(), **_):
        assert data == {"flash": "short"}

    room.home.call_service = call_service
    async with asyncio.timeout(WAIT_S):
        assert (await room.do("light.turn_on", ["light.kitchen_counter"], flash="short")).verified is None


async def test_a_scene_has_no_state_in_results(room):
    room.home.set_state("scene.movie", "2026-11-16T07:52:19+00:00")
    acted = await room.do("scene.turn_on", ["scene.movie"])
    assert acted.result["entities"] == [{"entity_id": "scene.movie", "name": "Movie night"}]
    arguments = {"service": "scene.turn_on", "entity_ids": ["scene.movie"]}
    assert "2026" not in str(await room.actions.preview(arguments, room.context))


async def test_an_undo_tells_the_attributes_as_a_person_would(room):
    await room.do("media_player.volume_set", ["media_player.tv"], volume_level=1.0)
    _, undone = await room.take_back()
    [player] = undone.result["entities"]
    assert (player["before"], player["after"]) == (
        "playing (volume 100 %, source HDMI)",
        "playing (volume 40 %, source HDMI)",
    )


async def test_a_refused_service_is_an_error_in_the_houses_own_words(room):
    room.home.fail_next("light.turn_on", ServiceFailed("the bulb is broken"))
    with pytest.raises(ServiceFailed, match="the bulb is broken"):
        await room.do("light.turn_on", ["light.kitchen_ceiling"])


async def test_a_house_that_goes_away_during_a_call_leaves_the_outcome_unknown(room):
    room.home.fail_next("light.turn_on", HomeUnavailable("the connection was lost"))
    with pytest.raises(OutcomeUnknown, match=r"it is unknown whether light\.turn_on was done"):
        await room.do("light.turn_on", ["light.kitchen_ceiling"])


async def test_a_house_that_goes_away_before_it_is_read_back_is_not_verified(room):
    call = room.home.call_service

    async def and_go(*args, **options):
        await call(*args, **options)
        room.home.disconnect("gone")

    room.home.call_service = and_go
    acted = await room.do("light.turn_on", ["light.kitchen_ceiling"])
    assert acted.verified is None


async def test_a_house_that_is_away_is_not_asked(room):
    room.home.disconnect("gone")
    with pytest.raises(HomeUnavailable, match="gone"):
        await room.do("light.turn_on", ["light.kitchen_ceiling"])
    assert room.home.calls == []


async def test_a_preview_changes_nothing(room):
    arguments = {"service": "light.turn_on", "entity_ids": ["light.kitchen_ceiling"]}
    assert await room.actions.preview(arguments, room.context) == {
        "service": "light.turn_on",
        "data": {},
        "entities": [
            {
                "entity_id": "light.kitchen_ceiling",
                "name": "Kitchen ceiling",
                "aliases": ["Big lamp"],
                "now": "off",
            }
        ],
    }
    assert room.home.calls == []


@pytest.mark.parametrize(
    ("service", "entity_id", "now", "expected"),
    [
        ("lock.lock", "lock.front_door", ("locked", {}), True),
        ("lock.lock", "lock.front_door", ("unlocked", {}), False),
        ("lock.lock", "lock.front_door", ("locking", {}), False),
        ("lock.lock", "lock.front_door", ("unavailable", {}), False),
        ("lock.lock", "lock.front_door", ("locked", {"assumed_state": True}), False),
        ("cover.close_cover", "cover.living_room", ("closed", {"current_position": 0}), True),
        ("cover.close_cover", "cover.living_room", ("closing", {"current_position": 20}), False),
        ("cover.open_cover", "cover.living_room", ("open", {"current_position": 100}), True),
        ("cover.open_cover", "cover.living_room", ("open", {"current_position": 40}), False),
        ("cover.open_cover", "cover.living_room", ("open", {}), False),
        ("cover.stop_cover", "cover.living_room", ("closed", {}), False),
        ("light.toggle", "light.living_room", ("on", {}), False),
        ("homeassistant.turn_off", "light.living_room", ("off", {}), True),
        ("media_player.turn_off", "media_player.tv", ("standby", {}), True),
    ],
)
def test_what_would_change_nothing_is_known(service, entity_id, now, expected):
    said, attributes = now
    assert is_already_so(service, {}, state(entity_id, said, **attributes)) is expected


async def test_what_is_already_so_is_told_and_not_called(room):
    arguments = {"service": "lock.lock", "entity_ids": ["lock.front_door"]}
    found = await room.actions.find_already_so(arguments, room.context)
    assert found["already_so"] is True
    assert found["entities"] == [{"entity_id": "lock.front_door", "name": "Front door", "now": "locked"}]
    assert room.home.calls == []


async def test_what_a_group_would_change_is_not_known(room):
    room.home.set_state("switch.kettle", "off", entity_id=["light.kitchen_ceiling", "light.kitchen_counter"])
    await asyncio.wait_for(room.known.wait_until_ready(), WAIT_S)
    arguments = {"service": "switch.turn_off", "entity_ids": ["switch.kettle"]}
    assert room.known.index.list_contents("switch.kettle")[0]
    assert await room.actions.find_already_so(arguments, room.context) is None


async def test_after_a_crash_the_house_tells_whether_it_was_done(room):
    arguments = {"service": "light.turn_on", "entity_ids": ["light.kitchen_ceiling"]}
    assert await room.actions.verify(arguments, room.context) is None
    room.home.set_state("light.kitchen_ceiling", "on")
    assert (await room.actions.verify(arguments, room.context)).verified is True
    for unknowable in (
        {"service": "light.toggle", "entity_ids": ["light.kitchen_ceiling"]},
        {"service": "notify.notify", "data": {"message": "x"}},
        {"service": "scene.turn_on", "entity_ids": ["scene.movie"]},
    ):
        with pytest.raises(ServiceFailed, match="it is unknown"):
            await room.actions.verify(unknowable, room.context)


UNDOABLE = [
    ("light.turn_on", "light.kitchen_ceiling", {"brightness_pct": 40}, ["light.turn_off"]),
    ("light.turn_on", "light.kitchen_counter", {"brightness_pct": 10}, ["light.turn_on"]),
    ("light.turn_off", "light.kitchen_counter", {}, ["light.turn_on"]),
    ("light.toggle", "light.kitchen_ceiling", {}, ["light.turn_off"]),
    ("switch.turn_on", "switch.kettle", {}, ["switch.turn_off"]),
    ("homeassistant.turn_on", "switch.kettle", {}, ["switch.turn_off"]),
    ("cover.close_cover", "cover.living_room", {}, ["cover.set_cover_position"]),
    ("cover.set_cover_position", "cover.living_room", {"position": 30}, ["cover.set_cover_position"]),
    ("climate.set_temperature", "climate.living_room", {"temperature": 23}, ["climate.set_temperature"]),
    ("climate.set_temperature", "climate.living_room", {"temperature": 20.5}, ["climate.set_temperature"]),
    ("climate.set_hvac_mode", "climate.living_room", {"hvac_mode": "off"}, ["climate.set_hvac_mode"]),
    ("climate.set_fan_mode", "climate.living_room", {"fan_mode": "high"}, ["climate.set_fan_mode"]),
    ("media_player.media_pause", "media_player.tv", {}, ["media_player.media_play"]),
    ("media_player.volume_set", "media_player.tv", {"volume_level": 0.9}, ["media_player.volume_set"]),
    (
        "media_player.turn_off",
        "media_player.tv",
        {},
        None,  # several: on, and what it was on for
    ),
    ("fan.turn_off", "fan.bedroom", {}, ["fan.turn_on", "fan.set_percentage"]),
    ("fan.set_percentage", "fan.bedroom", {"percentage": 100}, ["fan.set_percentage"]),
]


@pytest.mark.parametrize(("service", "entity_id", "data", "by"), UNDOABLE)
async def test_an_action_is_undone_to_what_was_before(room, service, entity_id, data, by):
    before = room.state(entity_id)
    acted = await room.do(service, [entity_id], **data)
    assert acted.verified is True
    assert (room.state(entity_id).state, room.state(entity_id).attributes) != (
        before.state,
        before.attributes,
    )
    services, undone = await room.take_back()
    assert undone.verified is True
    assert room.state(entity_id).state == before.state
    for name, value in acted.before[entity_id]["attributes"].items():
        assert room.state(entity_id).attributes[name] == value
    if by is not None:
        assert services == by


async def test_what_somebody_has_changed_since_is_left_alone(room):
    await room.do("light.turn_on", ["light.kitchen_ceiling"], brightness_pct=40)
    room.home.set_state("light.kitchen_ceiling", "on", brightness=200)
    made = len(room.home.calls)
    with pytest.raises(InvalidInput, match=r"Kitchen ceiling has changed since.*Nothing was undone"):
        await room.take_back()
    assert len(room.home.calls) == made


async def test_one_that_has_changed_keeps_all_from_being_undone(room):
    await room.do("light.turn_on", ["light.kitchen_ceiling", "light.living_room"])
    room.home.set_state("light.living_room", "off")
    with pytest.raises(InvalidInput, match="Reading lamp has changed since"):
        await room.take_back()
    assert room.state("light.kitchen_ceiling").state == "on"


async def test_undoing_twice_undoes_the_action_before(room):
    await room.do("switch.turn_on", ["switch.kettle"])
    await room.do("light.turn_on", ["light.kitchen_ceiling"])
    await room.take_back()
    assert room.state("light.kitchen_ceiling").state == "off"
    assert room.state("switch.kettle").state == "on"
    await room.take_back()
    assert room.state("switch.kettle").state == "off"
    with pytest.raises(InvalidInput, match="nothing to undo"):
        await room.take_back()


async def test_several_are_brought_back_with_as_few_calls_as_possible(room):
    await room.do("light.turn_on", ["light.kitchen_ceiling", "light.living_room"])
    services, _ = await room.take_back()
    assert services == ["light.turn_off"]
    assert len([c for c in room.home.calls if c.service == "light.turn_off"]) == 1


async def test_a_cover_that_was_still_moving_has_arrived(room):
    await room.do("cover.close_cover", ["cover.living_room"])
    key, action = room.past[-1]
    moving = {"state": "closing", "attributes": {"current_position": 60}}
    room.past[-1] = key, Action(**{**_fields(action), "after": {"cover.living_room": moving}})
    _, undone = await room.take_back()
    assert undone.verified is True


def _fields(action):
    return {name: getattr(action, name) for name in Action.__dataclass_fields__}


async def test_what_cannot_be_undone_is_said(room):
    await room.do("lock.unlock", ["lock.front_door"])
    with pytest.raises(InvalidInput, match=r"lock\.unlock, which cannot be undone"):
        await room.take_back()
    await room.do("scene.turn_on", ["scene.movie"])
    with pytest.raises(InvalidInput, match=r"scene\.turn_on, which cannot be undone"):
        await room.take_back()


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [(True, True, True), (True, None, None), (None, True, None), (None, False, False), (False, None, False)],
)
def test_two_things_are_as_sure_as_the_less_sure(one, other, both):
    assert CallOutcome({}, {}, one).merge(CallOutcome({}, {}, other)).verified is both


async def test_a_call_that_fails_while_the_house_goes_away_is_not_known(room):
    async def fail(*order, **options):
        room.home.disconnect("gone")
        raise ServiceFailed("the bulb is broken")

    room.home.call_service = fail
    with pytest.raises(OutcomeUnknown, match="the bulb is broken; the result is unknown"):
        await room.do("light.turn_on", ["light.kitchen_ceiling"])


async def test_an_undo_that_fails_halfway_says_so(room):
    await room.do("fan.turn_off", ["fan.bedroom"])
    room.home.fail_next("fan.set_percentage", ServiceFailed("stuck"))
    _, undone = await room.take_back()
    assert undone.verified is False
    assert "only a part of the action was undone: stuck" in undone.result["note"]


@pytest.mark.parametrize(
    ("service", "entity_id", "data", "verified"),
    [
        ("light.turn_on", "light.kitchen_counter", {"color_name": "red"}, None),  # nobody looks at the name
        ("light.turn_on", "light.kitchen_counter", {"brightness_step_pct": -20}, None),
        ("light.turn_on", "light.kitchen_counter", {"brightness": 130}, None),  # near, but it was so before
        ("climate.set_temperature", "climate.living_room", {"temperature": 20.5}, None),
        ("climate.set_temperature", "climate.living_room", {"temperature": 20}, True),  # it was exactly so
        ("climate.set_temperature", "climate.living_room", {"temperature": 25}, False),
        ("media_player.media_stop", "media_player.tv", {}, False),
        ("light.turn_on", "light.kitchen_counter", {"brightness_pct": 80, "transition": 60}, False),
        ("cover.set_cover_position", "cover.living_room", {"position": 40}, False),
        ("cover.open_cover", "cover.living_room", {}, True),
        ("light.turn_on", "light.kitchen_counter", {}, True),  # it was on
    ],
)
async def test_a_house_that_does_nothing_is_not_said_to_have_done_it(
    room, service, entity_id, data, verified
):
    room.home.ignore_next(service)
    assert (await room.do(service, [entity_id], **data)).verified is verified


@pytest.mark.parametrize(
    ("service", "state", "attributes", "verified"),
    [
        ("cover.set_cover_position", "opening", {"current_position": 20}, None),
        ("cover.open_cover", "opening", {"current_position": 20}, True),
        ("cover.open_cover", "open", {"current_position": 30}, False),
        ("cover.close_cover", "opening", {"current_position": 30}, None),
        ("lock.lock", "locking", {}, None),  # it may jam
        ("lock.lock", "locked", {}, True),
        ("lock.lock", "jammed", {}, False),
    ],
)
async def test_what_still_moves_is_not_there_yet(room, service, state, attributes, verified):
    entity_id = "lock.front_door" if service.startswith("lock") else "cover.living_room"
    call = room.home.call_service

    async def moving(*order, **options):
        room.home.set_state(entity_id, state, **attributes)

    room.home.call_service = moving
    data = {"position": 50} if service.endswith("position") else {}
    assert (await room.do(service, [entity_id], **data)).verified is verified
    room.home.call_service = call


async def test_a_call_that_fails_for_one_of_several_is_told_as_it_is(room):
    call = room.home.call_service

    async def in_part(service, data, entity_ids, **options):
        await call(service, data, list(entity_ids)[:1])
        raise ServiceFailed("one bulb is broken")

    room.home.call_service = in_part
    acted = await room.do("light.turn_on", ["light.kitchen_ceiling", "light.living_room"])
    room.home.call_service = call
    assert acted.verified is False
    assert "only a part of the call worked, tell the user: one bulb is broken" in acted.result["note"]
    await room.take_back()
    assert room.state("light.kitchen_ceiling").state == "off"


async def test_what_has_changed_nothing_that_is_known_cannot_be_undone(room):
    await room.do("light.turn_on", ["light.kitchen_ceiling"])
    await room.do("media_player.media_next_track", ["media_player.tv"])
    with pytest.raises(InvalidInput, match=r"media_next_track, which cannot be undone"):
        await room.take_back()


async def test_what_was_so_already_is_passed_over_by_undo(room):
    await room.do("light.turn_on", ["light.kitchen_ceiling"])
    await room.do("light.turn_on", ["light.kitchen_ceiling"])
    await room.do("light.turn_on", ["light.kitchen_counter"])  # it was on before
    await room.do("lock.lock", ["lock.front_door"])  # as it was
    await room.take_back()
    assert room.state("light.kitchen_ceiling").state == "off"
    assert room.state("light.kitchen_counter").state == "on"
    with pytest.raises(InvalidInput, match=r"^there is nothing to undo"):
        await room.take_back()


async def test_if_nothing_was_changed_that_is_said(room):
    await room.do("light.turn_on", ["light.kitchen_counter"])
    with pytest.raises(
        InvalidInput, match=r"light\.turn_on has changed nothing, and there is nothing to undo"
    ):
        await room.take_back()


async def test_what_is_not_kept_may_have_changed(room):
    await room.do("switch.turn_on", ["switch.kettle"])
    same = {"climate.living_room": {"state": "heat", "attributes": {}}}
    arguments = {"service": "climate.set_humidity", "data": {"humidity": 60}}
    room.past.append(("x", Action("x", "call_service", arguments, "done", True, same, same)))
    with pytest.raises(InvalidInput, match=r"set_humidity, which cannot be undone"):
        await room.take_back()


async def test_a_group_that_was_on_may_still_have_changed_what_is_in_it(room):
    await room.do("switch.turn_on", ["switch.kettle"])
    room.home.set_state("light.kitchen_counter", "on", entity_id=["light.living_room"])
    await room.do("light.turn_on", ["light.kitchen_counter"])
    with pytest.raises(InvalidInput, match=r"light\.turn_on, which cannot be undone"):
        await room.take_back()


async def test_an_undo_that_has_not_worked_can_be_tried_again(room):
    await room.do("switch.turn_on", ["switch.kettle"])
    await room.do("light.turn_on", ["light.kitchen_ceiling"])
    room.home.ignore_next("light.turn_off")
    _, undone = await room.take_back()
    assert undone.verified is False
    await room.take_back()
    assert room.state("light.kitchen_ceiling").state == "off"
    assert room.state("switch.kettle").state == "on"


async def test_an_action_of_which_nobody_knows_is_not_passed_over(room):
    await room.do("switch.turn_on", ["switch.kettle"])
    arguments = {"service": "light.turn_on"}
    room.past.append(("x", Action("x", "call_service", arguments, "unknown")))
    with pytest.raises(InvalidInput, match="it is unknown whether the last action"):
        await room.take_back()


async def test_what_was_away_before_is_not_brought_back(room):
    room.home.set_state("cover.living_room", "unavailable")
    arguments = {"service": "cover.close_cover"}
    before = {"cover.living_room": {"state": "unavailable", "attributes": {}}}
    after = {"cover.living_room": {"state": "closed", "attributes": {}}}
    room.past.append(("x", Action("x", "call_service", arguments, "done", True, before, after)))
    with pytest.raises(InvalidInput, match="the state of cover"):
        await room.take_back()


async def test_after_a_crash_a_persons_change_is_respected(room):
    """The call was made and then reverted by a user: it is not repeated."""
    arguments = {"service": "light.turn_on", "entity_ids": ["light.kitchen_ceiling"]}
    room.since = room.state("light.kitchen_ceiling").changed_at
    with pytest.raises(ServiceFailed, match="something has changed since"):
        await room.actions.verify(arguments, room.context)


@pytest.mark.parametrize("data", [{"color_name": "green"}, {"brightness_step_pct": -20}])
async def test_after_a_crash_what_is_only_half_seen_is_not_known(room, data):
    arguments = {"service": "light.turn_on", "entity_ids": ["light.kitchen_counter"], "data": data}
    with pytest.raises(ServiceFailed, match="it is unknown"):
        await room.actions.verify(arguments, room.context)
