"""A service call is checked before it is made: against the service's schema, and for hidden entities."""

from dataclasses import replace

import pytest

from sash.errors import EntityNotFound, InvalidInput
from sash.home.index import HomeIndex
from sash.home.service_call import parse_service_call
from sash.ports.home import Dependent, Service, ServiceField
from sash.ports.tools import ServiceUse
from tests.home.small_home import LAYOUT, STATES, entity, house, index, state

NUMBER = ServiceField(selector={"number": {"min": 0, "max": 100}})
SERVICES = {
    s.name: s
    for s in (
        Service(
            "light.turn_on",
            "",
            {
                "brightness_pct": NUMBER,
                "rgb_color": ServiceField(selector={"color_rgb": {}}),
                "flash": ServiceField(selector={"select": {"options": ["short", {"value": "long"}]}}),
                "profile": ServiceField(selector={"text": {}}),
                "odd": ServiceField(selector={"never_heard_of": None}),
            },
            {"entity": [{"domain": ["light"]}]},
        ),
        Service("homeassistant.turn_off", "", {}, {"entity": []}),
        Service("cover.set_cover_position", "", {"position": ServiceField("", True, {"number": {}})}, {}),
        Service("notify.notify", "", {"message": ServiceField("", True, {"text": {}})}),
        Service("scene.apply", "", {"entities": ServiceField("", True, {"object": {}})}),
        Service("fan.oscillate", "", {"oscillating": ServiceField("", True, {"boolean": {}})}, {}),
    )
}


def parse(service, entity_ids=None, areas=None, **data):
    return parse_service_call(
        {"service": service, "entity_ids": entity_ids, "areas": areas, "data": data}, index(), SERVICES
    )


def test_a_call_names_its_entities_one_by_one():
    assert parse("light.turn_on", ["light.kitchen_ceiling", "Counter"]).entity_ids == (
        "light.kitchen_ceiling",
        "light.kitchen_counter",
    )
    assert parse("LIGHT.TURN_ON", ["Big lamp"]).service == "light.turn_on"


def test_an_area_is_its_exposed_entities_that_the_service_can_be_done_to():
    assert parse("light.turn_on", areas=["Kitchen"]).entity_ids == (
        "light.kitchen_ceiling",
        "light.kitchen_counter",
    )
    with pytest.raises(InvalidInput, match="no entity in Hall"):
        parse("light.turn_on", areas=["hall"])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            ("light.turn_of", ["light.kitchen_ceiling"]),
            "there is no service 'light.turn_of'; there are light",
        ),
        (("light.turn_on",), "needs entity_ids"),
        (("light.turn_on", ["switch.kettle"]), "does not support switch.kettle"),
        (("cover.set_cover_position", ["cover.living_room"]), "needs position"),
    ],
)
def test_what_the_service_does_not_take_is_refused(call, says):
    with pytest.raises(InvalidInput, match=says):
        parse(*call)


def test_what_a_service_takes_is_told_with_what_it_is_for():
    described = {"x.y": Service("x.y", "Does it.", {"z": ServiceField("How much.", True)})}
    for call, says in (
        ({"service": "x.w"}, r"there are x\.y \(Does it\.\)"),
        ({"service": "x.y"}, r"x\.y needs z \(How much\.\)"),
        ({"service": "x.y", "data": {"a": 1}}, r"it takes: z \(How much\.\)"),
    ):
        with pytest.raises(InvalidInput, match=says):
            parse_service_call(call, index(), described)


def test_a_service_without_a_target_takes_no_entities():
    with pytest.raises(InvalidInput, match="takes no entities"):
        parse("notify.notify", ["light.kitchen_ceiling"], message="hello")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"brightness": 3}, "has no argument brightness; it takes: brightness_pct"),
        ({"brightness_pct": 101}, "must be at most 100"),
        ({"brightness_pct": -1}, "must be at least 0"),
        ({"brightness_pct": "bright"}, "must be a number"),
        ({"brightness_pct": True}, "must be a number"),
        ({"brightness_pct": float("nan")}, "must be a number"),
        ({"rgb_color": [1, 2]}, "three numbers"),
        ({"rgb_color": [1, 2, 256]}, "three numbers"),
        ({"flash": "never"}, "one of short, long"),
        ({"profile": ["x"]}, "must be a text"),
        ({"entity_id": "light.kitchen_ceiling"}, "does not belong in data"),
        ({"area_id": "kitchen"}, "does not belong in data"),
    ],
)
def test_arguments_are_held_to_the_selectors(data, says):
    with pytest.raises(InvalidInput, match=says):
        parse("light.turn_on", ["light.kitchen_ceiling"], **data)


def test_arguments_that_fit_pass():
    data = {"brightness_pct": 40, "rgb_color": [1, 2, 255], "flash": "long", "profile": "x", "odd": object}
    assert parse("light.turn_on", ["light.kitchen_ceiling"], **data).data == data
    with pytest.raises(InvalidInput, match="true or false"):
        parse("fan.oscillate", ["fan.bedroom"], oscillating="yes")


@pytest.mark.parametrize("entity_id", ["light.secret", "light.nowhere", "Secret lamp", "all", ""])
def test_what_is_not_exposed_cannot_be_named(entity_id):
    with pytest.raises(EntityNotFound):
        parse("light.turn_on", [entity_id])


def test_nor_smuggled_in_by_an_argument():
    with pytest.raises(EntityNotFound, match=r"light\.secret"):
        parse("scene.apply", entities={"light.secret": "on"})
    for entities in (
        {"deep": [{"er": ["light.secret"]}]},
        {"LIGHT.Secret": "on"},
        "switch.kettle, light.secret",
        [" light.secret "],
        {"counter.secret": 3},
        {"odd_domain.secret": "on"},
    ):
        with pytest.raises(EntityNotFound, match=r"\.secret"):
            parse("scene.apply", entities=entities)
    assert parse("scene.apply", entities={"light.kitchen_ceiling": "on"}).service == "scene.apply"


def test_a_service_for_everything_is_judged_by_what_it_is_done_to():
    many = parse("homeassistant.turn_off", ["light.kitchen_ceiling", "lock.front_door"])
    assert many.list_uses() == [
        ServiceUse("homeassistant.turn_off"),
        ServiceUse("light.turn_off"),
        ServiceUse("lock.turn_off"),
    ]
    assert parse("light.turn_on", ["light.kitchen_ceiling"]).list_uses() == [ServiceUse("light.turn_on")]


def test_what_is_named_in_an_argument_is_judged_too():
    scene = parse("scene.apply", entities={"LOCK.Front_Door": "unlocked"})
    assert ServiceUse("lock.*") in scene.list_uses()


def test_what_a_service_comes_to_is_judged_too():
    dimmed = parse("light.turn_on", ["light.kitchen_ceiling"], brightness_pct=0)
    assert ServiceUse("light.turn_off", within=True) in dimmed.list_uses()
    assert (
        ServiceUse("light.turn_off", within=True)
        not in parse("light.turn_on", ["light.kitchen_ceiling"]).list_uses()
    )
    moved = parse("cover.set_cover_position", ["cover.living_room"], position=100)
    assert ServiceUse("cover.open_cover", within=True) in moved.list_uses()


def test_what_is_in_a_group_is_judged_with_it():
    group = entity("group.all", "All", None)
    members = replace(state("group.all"), attributes={"entity_id": ["switch.kettle", "lock.back_door"]})
    grouped = HomeIndex(replace(LAYOUT, entities=(*LAYOUT.entities, group)), [*STATES, members])
    arguments = {"service": "homeassistant.turn_off", "entity_ids": ["group.all"]}
    uses = parse_service_call(arguments, grouped, SERVICES).list_uses()
    assert ServiceUse("lock.*", within=True) in uses
    assert ServiceUse("switch.*", within=True) in uses


def test_what_is_within_is_looked_for_however_deep():
    outer, inner = entity("script.outer", "Outer"), entity("script.inner", "Inner", exposed=False)
    dependents = (
        Dependent(
            "script.outer", "Outer", "script", frozenset({"script.inner"}), frozenset({"script.inner"})
        ),
        Dependent(
            "script.inner", "Inner", "script", frozenset({"scene.open"}), frozenset({"shell_command.x"})
        ),
    )
    scene = replace(state("scene.open"), attributes={"entity_id": ["lock.back_door"]})
    layout = replace(LAYOUT, entities=(*LAYOUT.entities, outer, inner), dependents=dependents)
    known = HomeIndex(layout, [*STATES, scene])
    services = {
        "script.turn_on": Service("script.turn_on", target={}),
        "script.outer": Service("script.outer"),
    }
    for arguments in ({"service": "script.outer"}, {"service": "script.turn_on", "entity_ids": ["Outer"]}):
        uses = parse_service_call(arguments, known, services).list_uses()
        assert ServiceUse("lock.*", within=True) in uses
        assert ServiceUse("shell_command.x", within=True) in uses


@pytest.mark.parametrize("text", ["{{ states('light.x') }}", "a {% if x %}", "{# x #}"])
def test_templates_are_not_taken(text):
    with pytest.raises(InvalidInput, match="does not accept a template"):
        parse("light.turn_on", ["light.kitchen_ceiling"], profile=text)


@pytest.mark.parametrize(
    "text",
    ["media-source://camera/light.secret", "['light.secret']", "/api/LIGHT.SECRET?x", "a light.secret b"],
)
def test_a_hidden_entity_is_not_named_in_a_text_either(text):
    with pytest.raises(EntityNotFound, match=r"light\.secret"):
        parse("light.turn_on", ["light.kitchen_ceiling"], profile=text)


def test_a_script_is_a_service_only_if_it_is_exposed():
    services = SERVICES | {"script.hidden": Service("script.hidden"), "script.good_night": Service("x")}
    night = entity("script.good_night", "Good night")
    uses = Dependent("script.good_night", "Good night", "script", frozenset({"lock.front_door"}))
    known = HomeIndex(replace(LAYOUT, entities=(*LAYOUT.entities, night), dependents=(uses,)), STATES)
    with pytest.raises(InvalidInput, match=r"there is no service 'script\.hidden'") as error:
        parse_service_call({"service": "script.hidden"}, known, services)
    assert "script.hidden" not in error.value.message.partition(";")[2]
    allowed = parse_service_call({"service": "script.good_night"}, known, services).list_uses()
    assert allowed == [ServiceUse("script.good_night"), ServiceUse("lock.*", within=True)]


async def test_every_service_of_the_simulated_house_can_be_read():
    home = house()
    await home.open()
    for service in (await home.get_services()).values():
        domains = [d for wanted in (service.target or {}).get("entity", ()) for d in wanted.get("domain", ())]
        fitting = [key for key in index().entities if not domains or key.partition(".")[0] in domains]
        required = [name for name, field in service.fields.items() if field.required]
        arguments = {"service": service.name, "entity_ids": fitting[:1] if service.target is not None else []}
        if not required and (fitting or service.target is None):
            assert parse_service_call(arguments, index(), {service.name: service}).service == service.name
    await home.close()
