"""The home over REST: what the agent sees of it."""

from datetime import datetime

from sash.demo.demo_home import demo_home
from tests.surfaces.serving import WAIT_S, problem, serving

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz123456"


async def show_home(served, **params):
    response = await served.client.get("/v1/home", params=params)
    assert response.status_code == 200, response.text
    return response.json()


async def show_states(served, **params):
    """Return the state of each entity in words, by its id."""
    return {one["entity_id"]: one["shown"] for one in (await show_home(served, **params))["entities"]}


async def test_the_home_lists_areas_and_exposed_entities_with_their_states(tmp_path):
    async with serving(tmp_path, home=demo_home()) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        shown = await show_home(served)
        index = served.runtime.home.index
        assert (shown["name"], shown["is_connected"], shown["language"]) == ("Demo house", True, "en")
        assert (shown["time_zone"], shown["problem"]) == (None, None)
        assert {"area_id": "kitchen", "name": "Kitchen", "floor": "Ground floor"} in shown["areas"]
        assert [one["entity_id"] for one in shown["entities"]] == sorted(index.entities)
        assert "switch.network_switch" not in str(shown), "it is not exposed"
        by_id = {one["entity_id"]: one for one in shown["entities"]}
        sensor = by_id["sensor.living_room_temperature"]
        changed_at = datetime.fromisoformat(sensor.pop("changed_at"))
        state = index.states["sensor.living_room_temperature"]
        assert changed_at == state.changed_at
        assert sensor == {
            "entity_id": "sensor.living_room_temperature",
            "name": "Living room temperature",
            "area_id": "living_room",
            "area": "Living room",
            "domain": "sensor",
            "device_class": "temperature",
            "state": state.state,
            "unit": "°C",
            "shown": f"{state.state} °C",
        }
        person = by_id["person.anna"]
        assert (person["area_id"], person["area"], person["device_class"], person["unit"]) == (None,) * 4


async def test_states_are_written_in_words_by_their_device_class_and_language(tmp_path):
    home = demo_home()
    # In the demo house these depend on the time of day.
    home.set_state("person.anna", "not_home")
    home.set_state("light.kitchen_ceiling", "off")
    home.set_state("binary_sensor.bedroom_window", "off")
    home.set_state("lock.front_door", "locked")
    async with serving(tmp_path, home=home) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        english, german = await show_states(served), await show_states(served, language="de-AT")
        french = await show_states(served, language="fr")
        for entity_id, *words in (
            ("light.kitchen_ceiling", "off", "aus", "éteint"),
            ("binary_sensor.bedroom_window", "closed", "geschlossen", "fermé"),
            ("binary_sensor.zigbee_bridge", "connected", "verbunden", "connecté"),
            ("binary_sensor.bathroom_leak", "not available", "nicht verfügbar", "indisponible"),
            ("sensor.bathroom_leak_battery", "not available", "nicht verfügbar", "indisponible"),
            ("person.anna", "away", "nicht da", "hors de la maison"),
            ("lock.front_door", "locked", "abgeschlossen", "verrouillé"),
        ):
            assert [states[entity_id] for states in (english, german, french)] == words, entity_id
        assert await show_states(served, language="pl") == english, "other languages show English words"


async def test_a_home_that_does_not_answer_has_no_entities_and_says_why(tmp_path):
    home = demo_home()
    async with serving(tmp_path, home=home) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        home.disconnect(f"its key is {SECRET}")
        shown = await show_home(served)
        assert (shown["is_connected"], shown["areas"], shown["entities"]) == (False, [], [])
        assert shown["name"] == "the demo house" and shown["language"] is None
        assert "cannot be reached" in shown["problem"] and SECRET not in shown["problem"]


async def test_a_server_without_a_home_shows_an_empty_one(served):
    empty = ("name", "language", "time_zone", "problem")
    assert await show_home(served) == {
        **dict.fromkeys(empty),
        "is_connected": False,
        "areas": [],
        "entities": [],
    }


async def test_secrets_in_states_are_redacted(tmp_path):
    home = demo_home()
    async with serving(tmp_path, home=home) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        home.set_state("todo.shopping", SECRET)
        shown = {one["entity_id"]: one for one in (await show_home(served))["entities"]}
        assert shown["todo.shopping"]["state"] == shown["todo.shopping"]["shown"] == "[redacted]"


async def test_the_home_needs_the_scope_read(tmp_path):
    async with serving(tmp_path, home=demo_home()) as served:
        served.client.headers.update(served.token("local", "converse"))
        problem(await served.client.get("/v1/home"), 403, "forbidden")
