"""The table of sentences is complete and consistent. The benchmark `answers` runs it."""

import tomllib
from collections import Counter
from pathlib import Path

from sash.demo.demo_home import demo_home
from tests.answers.table import LANGUAGES, OUTCOMES, read_cases

KINDS = frozenset(
    {
        "answers",
        "approvals",
        "colloquial",
        "commands",
        "domains",
        "follow_ups",
        "honest_no",
        "languages",
        "memory",
        "no_request",
        "offers",
        "only_candidate",
        "plurals",
        "promises",
        "real_home",
        "several_commands",
        "small_talk",
        "tag_questions",
        "time",
        "why",
    }
)
MIN_PER_LANGUAGE = 24
REAL_HOUSE = Path(__file__).with_name("real_house.toml")


def test_every_kind_and_language_has_sentences():
    assert {case.kind for case in read_cases()} == KINDS
    by_language = Counter(case.language for case in read_cases())
    assert by_language.keys() == set(LANGUAGES)
    assert min(by_language.values()) >= MIN_PER_LANGUAGE and by_language.total() >= 300


def test_ids_are_unique_and_no_conversation_stands_there_twice():
    ids = Counter(case.id for case in read_cases())
    assert [key for key, count in ids.items() if count > 1] == []
    said = Counter(
        (case.language, case.houses, case.area, str(case.states), str(case.before), case.say)
        for case in read_cases()
    )
    assert [key for key, count in said.items() if count > 1] == []


def test_outcomes_are_known_and_actions_have_an_effect():
    for case in read_cases():
        assert case.outcomes <= OUTCOMES, case.id
        assert "action" not in case.outcomes or case.after or case.values or case.calls, case.id
        assert set(case.houses) <= {"demo", "ha"}, case.id


async def test_the_entities_of_the_demo_house_exist():
    home = demo_home()
    await home.open()
    layout = await home.get_layout()
    await home.close()
    known = {entity.id for entity in layout.entities if entity.exposed}
    areas = {area.name for area in layout.areas}
    for case in read_cases():
        if "demo" in case.houses:
            assert case.entities <= known, case.id
            assert case.area is None or case.area in areas, case.id


def test_says_and_never_do_not_contradict():
    for case in read_cases():
        for wanted in case.says:
            for bad in case.never:
                assert not all(bad.lower() in each.lower() for each in wanted.split("|")), case.id


def test_the_additions_to_the_real_house_can_be_read():
    added = tomllib.loads(REAL_HOUSE.read_text("utf-8"))
    assert {"configuration", "areas", "entities"} <= added.keys()
