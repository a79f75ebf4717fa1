"""Curtains, awnings, shades and shutters of one home are told apart by the words that people use."""

from typing import Any

import pytest

from sash.demo.simulated_home import SimulatedHome
from sash.home.live_home import LiveHome
from sash.intents.acting.planner import Planner
from sash.ports.home import Area, Entity, Layout, State
from tests.intents.everyday import NOW, Talk

# Name, class. The names do not tell the kind.
COVERS = {
    "cover.a": ("North", "blind"),
    "cover.b": ("East", "shutter"),
    "cover.c": ("South", "curtain"),
    "cover.d": ("West", "awning"),
    "cover.e": ("Roof", "shade"),
    "cover.f": ("Middle", "window"),
}
ALL_BLINDS = ["cover.a", "cover.b", "cover.e"]


async def plan(
    covers: dict[str, tuple[str, str]], sentence: str, language: str = "en"
) -> list[dict[str, Any]]:
    """Return the calls for a sentence in a home that has only these covers."""
    entities = tuple(Entity(key, name, "attic") for key, (name, _) in covers.items())
    states = [
        State(key, "open", {"device_class": kind, "supported_features": 15}, NOW, NOW)
        for key, (_, kind) in covers.items()
    ]
    home = SimulatedHome(Layout("Home", entities, areas=(Area("attic", "Attic"),)), states)
    live = LiveHome(home)
    await live.open()
    await live.wait_until_ready()
    try:
        situation = Talk(home, live).situate(sentence, language=language)
        [clause] = situation.reader.read_clauses(situation.sentence)
        return [call.arguments for call in Planner(situation).plan(clause).calls]
    finally:
        await live.close()


def closing(*entity_ids: str) -> list[dict[str, Any]]:
    return [{"service": "cover.close_cover", "entity_ids": [*entity_ids], "data": {}}]


@pytest.mark.parametrize(
    ("language", "sentence", "closed"),
    [
        ("en", "close the curtains", ["cover.c"]),
        ("en", "close the curtain", ["cover.c"]),
        ("en", "close the awning", ["cover.d"]),
        ("en", "close all shutters", ["cover.b"]),
        ("en", "close the shade", ["cover.e"]),
        ("en", "close the blinds", ALL_BLINDS),
        ("de", "schließ die Vorhänge", ["cover.c"]),
        ("de", "schließ die Markise", ["cover.d"]),
        ("fr", "ferme les rideaux", ["cover.c"]),
        ("es", "cierra las cortinas", ["cover.c"]),
        ("it", "chiudi le tende", ["cover.c"]),
        ("nl", "doe de gordijnen dicht", ["cover.c"]),
    ],
)
async def test_the_kind_that_is_named_is_closed(language: str, sentence: str, closed: list[str]) -> None:
    assert await plan(COVERS, sentence, language) == closing(*closed)


@pytest.mark.parametrize("sentence", ["close the blinds", "close the shades", "close the shutters"])
async def test_a_home_with_blinds_alone_understands_every_word_for_them(sentence: str) -> None:
    covers = {"cover.a": ("North", "blind"), "cover.b": ("East", "blind")}
    assert await plan(covers, sentence) == closing("cover.a", "cover.b")


async def test_a_home_with_curtains_alone_closes_them_for_blinds() -> None:
    assert await plan({"cover.c": ("South", "curtain")}, "close the blinds") == closing("cover.c")
