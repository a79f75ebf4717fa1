"""The index: the graph of exposed entities, and a search that tolerates typing mistakes."""

import pytest

from sash.errors import EntityNotFound
from sash.home.fuzzy_search import FuzzySearch
from sash.home.index import HomeIndex
from sash.ports.home import Entity, Layout
from tests.home.small_home import LAYOUT, STATES, index, state


def found(query, **options):
    entities, total = index().search(query, **options)
    assert total == len(entities)
    return [entity.id for entity in entities]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("kitchen ceiling", "light.kitchen_ceiling"),
        ("the light over the counter in the kitchen", "light.kitchen_counter"),
        ("big lamp", "light.kitchen_ceiling"),  # an alias
        ("kichen cieling", "light.kitchen_ceiling"),  # mistyped
        ("termostat", "climate.living_room"),
        ("ketle", "switch.kettle"),
        ("tv", "media_player.tv"),  # short, but a name
        ("front door lock", "lock.front_door"),
        ("LED strip", "light.kitchen_counter"),  # a device
        ("acme", "light.kitchen_counter"),  # a manufacturer
        ("air", "sensor.kitchen_temperature"),  # a label
        ("temperature", "sensor.kitchen_temperature"),
        ("fans", "fan.bedroom"),
        ("Movie Night", "scene.movie"),
        ("sensor.kitchen_temperature", "sensor.kitchen_temperature"),
    ],
)
def test_what_is_meant_comes_first(query, first):
    assert found(query)[0] == first


def test_an_area_its_alias_and_its_floor_find_what_is_there():
    kitchen = {
        "light.kitchen_ceiling",
        "light.kitchen_counter",
        "switch.kettle",
        "sensor.kitchen_temperature",
    }
    assert set(found("kitchen")) == kitchen
    assert set(found("cookery")) == kitchen
    assert kitchen < set(found("ground floor"))


def test_what_has_more_of_the_words_comes_before_what_has_a_rare_one():
    assert found("living room lamp")[0] == "light.living_room"
    assert found("kitchen light")[:2] == ["light.kitchen_ceiling", "light.kitchen_counter"]


def test_search_is_narrowed_by_domain_and_area():
    assert found("kitchen", domain="light") == ["light.kitchen_ceiling", "light.kitchen_counter"]
    assert found("", area_id="bedroom") == ["fan.bedroom"]
    assert len(found("")) == len(LAYOUT.entities) - 1


def test_nonsense_finds_nothing():
    assert found("xyzzy") == []
    assert found("?") == []
    assert found("🦄") == []


def test_words_without_blanks_are_found_within_longer_ones():
    lamp = Entity("light.a", "厨房灯")
    searched = HomeIndex(Layout("house", (lamp,)), [])
    assert [e.id for e in searched.search("打开厨房灯")[0]] == ["light.a"]


def test_what_is_not_exposed_does_not_exist():
    known = index()
    assert "light.secret" not in known.entities
    assert "light.secret" not in known.states
    assert found("secret lamp") == [key for key in found("lamp") if key != "light.secret"]
    with pytest.raises(EntityNotFound):
        known.find("light.secret")
    with pytest.raises(EntityNotFound) as error:
        known.find("Secret lamp")
    assert "light.secret" not in error.value.message
    known.apply("light.secret", state("light.secret", "on"))
    assert "light.secret" not in known.states
    assert known.redact("light.secret failed after light.kitchen_ceiling") == (
        "(an entity) failed after light.kitchen_ceiling"
    )


def test_an_entity_is_found_by_its_id_or_its_only_name():
    known = index()
    assert known.find("light.kitchen_ceiling").id == "light.kitchen_ceiling"
    assert known.find(" Light.Kitchen_Ceiling ").id == "light.kitchen_ceiling"
    assert known.find("big LAMP").id == "light.kitchen_ceiling"
    with pytest.raises(EntityNotFound, match=r"did you mean light\.kitchen_ceiling"):
        known.find("light.kitchen_ceilling")


def test_a_name_that_several_have_is_refused_with_their_ids():
    twice = HomeIndex(Layout("house", (Entity("light.a", "Lamp"), Entity("light.b", "lamp"))), [])
    with pytest.raises(EntityNotFound, match=r"several entities.*: light\.a, light\.b"):
        twice.find("Lamp")


def test_areas_are_found_by_name_and_alias():
    assert index().find_area("cookery").id == "kitchen"
    assert index().find_area("living_room").name == "Living room"
    with pytest.raises(EntityNotFound, match="the areas are: Kitchen"):
        index().find_area("attic")


def test_states_come_and_go():
    known = index()
    known.apply("switch.kettle", state("switch.kettle", "on"))
    assert known.get_state("switch.kettle") == "on"
    known.apply("switch.kettle", None)
    assert known.get_state("switch.kettle") == "unknown"


def test_the_graph_of_devices_and_dependents():
    known = index()
    strip = known.get_device(known.find("light.kitchen_counter"))
    assert strip.name == "LED strip"
    assert known.get_bridge(strip).id == "bridge"
    assert [e.id for e in known.list_entities_behind("bridge")] == ["light.kitchen_counter"]
    assert [d.id for d in known.bridges] == ["bridge"]
    assert [d.name for d in known.list_dependents("light.kitchen_ceiling")] == ["Good morning", "Hidden one"]


def test_a_house_with_nothing_in_it_is_searched_too():
    empty = HomeIndex(Layout("empty"), STATES)
    assert empty.search("kitchen") == ([], 0)
    assert empty.search("") == ([], 0)
    assert empty.entities == {}


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("lihgt", "light", True),  # swapped
        ("ligt", "light", True),  # missing
        ("lightt", "light", True),  # too many
        ("libht", "light", True),  # wrong
        ("lgt", "light", False),  # too short to guess
        ("ligqq", "light", False),  # two mistakes in a short word
        ("temprature", "temperature", True),
        ("temprture", "temperature", True),  # two in a long one
        ("temqqqture", "temperature", False),
    ],
)
def test_mistakes_are_forgiven_within_reason(word, known, found):
    search = FuzzySearch({"it": [(known, 1.0)]}, {"it": [known]})
    assert bool(search.search(word, 1).ids) is found


@pytest.mark.parametrize(
    ("query", "meant"),
    [("what's the kettle doing", ["kettle"]), ("l'entree", ["hall"]), ("the children's lamp", ["children"])],
)
def test_what_an_apostrophe_joins_to_a_word_is_no_word(query, meant):
    names = {"children": "Children's lamp", "hall": "Lampe de l'entrée", "kettle": "Kettle", "l": "Lamp L"}
    search = FuzzySearch({key: [(name, 1.0)] for key, name in names.items()}, {})
    assert search.search(query, 1).ids == meant
    assert "children" not in search.search("what's up", 5).ids


def test_a_short_word_that_begins_otherwise_is_another_word():
    search = FuzzySearch({"it": [("hall", 1.0)]}, {})
    assert search.search("ball", 1).ids == []
    assert search.search("hasl", 1).ids == ["it"]


def test_the_words_that_something_was_not_found_by_are_told():
    known = index()
    assert known.find_unmatched_words("the back door lock", "lock.front_door") == ["back"]
    assert known.find_unmatched_words("kichen lamp", "light.kitchen_ceiling") == []
    assert known.find_unmatched_words("kitchen and bedroom", "fan.bedroom") == ["kitchen"]


def test_only_the_best_are_returned_and_all_are_counted():
    best, total = index().search("kitchen", limit=2)
    assert (len(best), total) == (2, 4)
