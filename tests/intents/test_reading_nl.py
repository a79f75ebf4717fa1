"""What everyday sentences in Dutch say."""

import pytest

from tests.intents.sentence_tables import Expected, check_sentence

SENTENCES: list[tuple[str, list[Expected]]] = [
    ("doe het licht in de keuken aan", [Expected(do=("on",), has=("kind.light", "room.kitchen"))]),
    ("kun je het licht in de gang uitdoen", [Expected(do=("off",), has=("kind.light", "room.hallway"))]),
    ("zet de tv uit", [Expected(do=("off",), has=("kind.tv",))]),
    ("ventilator uit", [Expected(do=("off",), has=("fan.bedroom",))]),
    ("licht aan", [Expected(do=("on",), has=("kind.light",))]),
    ("doe het keukenlicht uit", [Expected(do=("off",), has=("room.kitchen", "kind.light"))]),
    (
        "zet het licht in de keuken op 30 procent",
        [Expected(has=("kind.light", "room.kitchen"), amount=(30.0, "percent"))],
    ),
    (
        "maak het licht in de kinderkamer rood",
        [Expected(has=("kind.light", "room.childrens_room"), amount=("red",))],
    ),
    ("zet de woonkamer op 22 graden", [Expected(has=("room.living_room",), amount=(22.0, "degrees"))]),
    (
        "zet de thermostaat in de badkamer op 21,5 graden",
        [Expected(has=("kind.climate", "room.bathroom"), amount=(21.5, "degrees"))],
    ),
    (
        "zet de badkamerthermostaat op 23 graden",
        [Expected(has=("room.bathroom", "kind.climate"), amount=(23.0, "degrees"))],
    ),
    ("doe de rolluiken dicht", [Expected(do=("close",), has=("kind.blind",))]),
    (
        "doe het rolgordijn in de slaapkamer half dicht",
        [Expected(has=("kind.blind", "room.bedroom"), amount=(50.0, "percent"))],
    ),
    (
        "doe de gordijnen in de woonkamer open",
        [Expected(do=("open",), has=("kind.blind", "room.living_room"))],
    ),
    ("doe de voordeur op slot", [Expected(do=("lock",), has=("noun.front_door",))]),
    ("haal de voordeur van het slot", [Expected(do=("unlock",), has=("noun.front_door",))]),
    ("maak de garagedeur open", [Expected(do=("open",), has=("kind.garage_door",))]),
    ("zet het alarm aan", [Expected(do=("arm",))]),
    ("start de stofzuiger", [Expected(do=("start",), has=("kind.vacuum",))]),
    ("stuur de stofzuiger terug naar het laadstation", [Expected(do=("dock",), has=("kind.vacuum",))]),
    ("pauzeer de muziek", [Expected(do=("pause",), has=("kind.media",))]),
    ("zet de radio zachter", [Expected(do=("weaker",), has=("kind.radio",))]),
    (
        "zet het volume van de radio op 30 procent",
        [Expected(has=("property.volume", "kind.radio"), amount=(30.0, "percent"))],
    ),
    ("volgend nummer", [Expected(do=("next",))]),
    ("zet boter op het boodschappenlijstje", [Expected(has=("kind.list",), unknown=("boter",))]),
    (
        "is de voordeur op slot?",
        [Expected(do=("lock",), ask=("is",), has=("noun.front_door",), is_question=True)],
    ),
    (
        "is het raam in de slaapkamer open",
        [Expected(do=("open",), ask=("is",), has=("kind.window", "room.bedroom"), is_question=True)],
    ),
    ("staat de tv aan", [Expected(do=("on",), ask=("is",), has=("kind.tv",), is_question=True)]),
    (
        "welke lampen staan aan?",
        [Expected(do=("on",), ask=("which", "is"), has=("kind.light",), is_question=True)],
    ),
    (
        "hoe warm is het in de slaapkamer?",
        [Expected(ask=("is",), has=("property.temperature", "room.bedroom"), is_question=True)],
    ),
    (
        "hoe vochtig is het in de woonkamer",
        [Expected(ask=("is",), has=("property.humidity", "room.living_room"), is_question=True)],
    ),
    (
        "hoeveel stroom hebben we vandaag verbruikt?",
        [
            Expected(
                do=("used",),
                ask=("how_much", "is"),
                has=("property.energy",),
                time={"day": "today"},
                is_question=True,
            )
        ],
    ),
    ("wie is er thuis?", [Expected(do=("home",), ask=("who",), is_question=True)]),
    ("waar is anna", [Expected(ask=("where",), has=("person.anna",), is_question=True)]),
    ("regent het", [Expected(do=("rain",), ask=("is",), is_question=True)]),
    (
        "stond de tv gisteravond aan?",
        [
            Expected(
                do=("on",),
                ask=("is",),
                has=("kind.tv",),
                time={"day": "yesterday", "part": "evening"},
                is_question=True,
            )
        ],
    ),
    (
        "wanneer is de garagedeur voor het laatst opengegaan?",
        [Expected(do=("open",), ask=("when", "last"), has=("kind.garage_door",), is_question=True)],
    ),
    (
        "hoe vaak ging de voordeur vandaag open",
        [
            Expected(
                do=("open",),
                ask=("how_often", "is"),
                has=("noun.front_door",),
                time={"day": "today"},
                is_question=True,
            )
        ],
    ),
    (
        "hoe lang stond de tv gisteren aan",
        [
            Expected(
                do=("on",),
                ask=("how_long", "is"),
                has=("kind.tv",),
                time={"day": "yesterday"},
                is_question=True,
            )
        ],
    ),
    (
        "wat gebeurde er vannacht",
        [Expected(do=("happen",), ask=("what",), time={"day": "today", "part": "night"}, is_question=True)],
    ),
    (
        "wat gebeurde er twee dagen geleden",
        [
            Expected(
                do=("happen",), ask=("what",), time={"role": "ago", "duration_s": 172800.0}, is_question=True
            )
        ],
    ),
    (
        "doe over tien minuten het licht in de keuken uit",
        [Expected(do=("off",), has=("kind.light", "room.kitchen"), time={"role": "in", "duration_s": 600.0})],
    ),
    (
        "zet om zeven uur de radio aan",
        [Expected(do=("on",), has=("kind.radio",), time={"role": "at", "hour": 7})],
    ),
    (
        "doe om half zeven het licht uit",
        [Expected(do=("off",), has=("kind.light",), time={"role": "at", "hour": 6, "minute": 30})],
    ),
    (
        "zet om kwart voor acht de radio aan",
        [Expected(do=("on",), has=("kind.radio",), time={"role": "at", "hour": 7, "minute": 45})],
    ),
    (
        "om vijf voor half acht radio aan",
        [Expected(do=("on",), has=("kind.radio",), time={"role": "at", "hour": 7, "minute": 25})],
    ),
    (
        "zaterdagavond om acht uur licht in de gang aan",
        [
            Expected(
                do=("on",),
                has=("kind.light", "room.hallway"),
                time={"role": "at", "day": "saturday", "part": "evening", "hour": 8},
            )
        ],
    ),
    (
        "morgenochtend om zeven uur licht in de badkamer aan",
        [
            Expected(
                do=("on",),
                has=("kind.light", "room.bathroom"),
                time={"role": "at", "day": "tomorrow", "part": "morning", "hour": 7},
            )
        ],
    ),
    (
        "over twee uur het licht uit",
        [Expected(do=("off",), has=("kind.light",), time={"role": "in", "duration_s": 7200.0})],
    ),
    (
        "zet de ventilator twee uur aan",
        [Expected(do=("on",), has=("fan.bedroom",), time={"duration_s": 7200.0})],
    ),
    (
        "over een half uur licht uit",
        [Expected(do=("off",), has=("kind.light",), time={"role": "in", "duration_s": 1800.0})],
    ),
    (
        "was de deur sinds vanochtend open",
        [
            Expected(
                do=("open",),
                ask=("is",),
                has=("kind.door",),
                time={"role": "since", "day": "today", "part": "morning"},
                is_question=True,
            )
        ],
    ),
    ("doe het maar weer uit", [Expected(do=("off",), refer=("again",))]),
    ("doe ze uit", [Expected(do=("off",), refer=("them",))]),
    ("wat feller graag", [Expected(do=("brighter",))]),
    ("de andere ook", [Expected(refer=("other", "too"))]),
    ("nog een keer", [Expected(refer=("again",))]),
    ("en in de slaapkamer?", [Expected(has=("room.bedroom",), is_question=True)]),
    ("zet de jacuzzi aan", [Expected(do=("on",), unknown=("jacuzzi",))]),
    (
        "doe het licht in de keuken aan en in de gang uit",
        [
            Expected(do=("on",), has=("kind.light", "room.kitchen")),
            Expected(do=("off",), has=("room.hallway",)),
        ],
    ),
    ("doe alle lampen uit behalve de lamp in de gang", [Expected(do=("off",), has=("kind.light",))]),
]


@pytest.mark.parametrize(("text", "expected"), SENTENCES, ids=[text for text, _ in SENTENCES])
async def test_a_sentence_says_this(text: str, expected: list[Expected]):
    await check_sentence("nl", text, expected)
