"""The journals and event streams of turns equal the golden files, on every store that needs no server."""

import pytest

from tests.golden import scenarios_turns, scenarios_waits  # noqa: F401
from tests.golden.golden import FOLDER, assert_json_matches, name_ids
from tests.golden.world import SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_journal_and_the_events_are_unchanged(world, tmp_path, name):
    session_id = await SCENARIOS[name](world)
    found = await world.read_session(tmp_path, session_id)
    assert_json_matches(f"journals/{name}.json", name_ids(found))


def test_every_journal_belongs_to_a_scenario():
    assert {path.stem for path in (FOLDER / "journals").glob("*.json")} == set(SCENARIOS)
