"""What everyday sentences in German say."""

import pytest

from tests.intents.sentence_tables import Expected, check_sentence, read_clauses, read_words

SENTENCES: list[tuple[str, list[Expected]]] = [
    ("mach das küchenlicht an", [Expected(do=("on",), has=("light.kitchen_ceiling",))]),
    (
        "kannst du bitte das licht im bad ausmachen",
        [Expected(do=("off",), has=("kind.light", "room.bathroom"))],
    ),
    ("schalte die Nachttischlampe ein", [Expected(do=("on",), has=("light.bedside_lamp",))]),
    ("licht aus", [Expected(do=("off",), has=("kind.light",))]),
    ("mach das licht auf der terrasse an", [Expected(do=("on",), has=("kind.light", "room.terrace"))]),
    ("mach mal die stehlampe aus", [Expected(do=("off",), has=("light.floor_lamp",))]),
    (
        "dimm das küchenlicht auf dreißig prozent",
        [Expected(do=("darker",), has=("light.kitchen_ceiling",), amount=(30, "percent"))],
    ),
    ("stell die stehlampe auf warmweiß", [Expected(has=("light.floor_lamp",), amount=("warm_white",))]),
    ("nachttischlampe rot", [Expected(has=("light.bedside_lamp",), amount=("red",))]),
    ("stell das wohnzimmer auf 21,5 grad", [Expected(has=("room.living_room",), amount=(21.5, "degrees"))]),
    (
        "stell das badthermostat auf 23 grad",
        [Expected(has=("room.bathroom", "kind.climate"), amount=(23.0, "degrees"))],
    ),
    (
        "rollladen im schlafzimmer halb runter",
        [Expected(has=("kind.blind", "room.bedroom"), amount=(50.0, "percent"))],
    ),
    ("fahr die rollos im schlafzimmer runter", [Expected(do=("close",), has=("kind.blind", "room.bedroom"))]),
    ("mach die vorhänge im wohnzimmer zu", [Expected(do=("close",), has=("kind.blind", "room.living_room"))]),
    ("mach das garagentor auf", [Expected(do=("open",), has=("cover.garage_door",))]),
    (
        "schließ die haustür auf",
        [Expected(do=("unlock",), has=("binary_sensor.front_door", "lock.front_door"))],
    ),
    (
        "schließ die haustuer ab",
        [Expected(do=("lock",), has=("binary_sensor.front_door", "lock.front_door"))],
    ),
    ("verriegle die haustür", [Expected(do=("lock",), has=("binary_sensor.front_door", "lock.front_door"))]),
    ("alarmanlage unscharf schalten", [Expected(do=("disarm",), has=("alarm_control_panel.house",))]),
    ("lass den staubsauger laufen", [Expected(do=("start",), has=("vacuum.robby",))]),
    ("schick Robby zurück zur Ladestation", [Expected(do=("dock",), has=("vacuum.robby",))]),
    ("der staubsauger soll nach hause fahren", [Expected(do=("dock",), has=("vacuum.robby",))]),
    ("dreh das radio leiser", [Expected(do=("quieter",), has=("kind.radio",))]),
    (
        "stell das radio auf 30 prozent lautstärke",
        [Expected(has=("kind.radio", "property.volume"), amount=(30.0, "percent"))],
    ),
    ("ein lied zurück", [Expected(do=("previous",))]),
    (
        "ist das Schlafzimmerfenster zu?",
        [Expected(do=("close",), ask=("is",), has=("binary_sensor.bedroom_window",), is_question=True)],
    ),
    (
        "läuft der fernseher",
        [Expected(do=("on",), ask=("is",), has=("media_player.living_room_tv",), is_question=True)],
    ),
    (
        "welche lichter sind an",
        [Expected(do=("on",), ask=("which", "is"), has=("kind.light",), is_question=True)],
    ),
    (
        "wie warm ist es im schlafzimmer",
        [Expected(ask=("is",), has=("property.temperature", "room.bedroom"), is_question=True)],
    ),
    (
        "wie feucht ist es im wohnzimmer",
        [Expected(ask=("is",), has=("property.humidity", "room.living_room"), is_question=True)],
    ),
    (
        "wie viel strom verbrauchen wir gerade",
        [Expected(do=("used",), ask=("how_much",), has=("property.power",), is_question=True)],
    ),
    (
        "wie viel strom haben wir heute verbraucht?",
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
    (
        "wie viele lichter sind an",
        [Expected(do=("on",), ask=("how_many", "is"), has=("kind.light",), is_question=True)],
    ),
    ("wer ist zuhause", [Expected(do=("home",), ask=("who", "is"), is_question=True)]),
    ("wo ist anna gerade", [Expected(ask=("where",), has=("person.anna",), is_question=True)]),
    (
        "ist jemand im wohnzimmer",
        [Expected(ask=("is",), has=("kind.person", "room.living_room"), is_question=True)],
    ),
    ("regnet es gerade?", [Expected(do=("rain",), ask=("is",), refer=("it",), is_question=True)]),
    (
        "brauche ich morgen einen regenschirm",
        [Expected(do=("rain",), ask=("possible",), time={"day": "tomorrow"}, is_question=True)],
    ),
    (
        "lief gestern abend der fernseher?",
        [
            Expected(
                do=("on",),
                ask=("is",),
                has=("media_player.living_room_tv",),
                time={"day": "yesterday", "part": "evening"},
                is_question=True,
            )
        ],
    ),
    (
        "wie lange lief gestern der fernseher",
        [
            Expected(
                do=("on",),
                ask=("how_long", "is"),
                has=("media_player.living_room_tv",),
                time={"day": "yesterday"},
                is_question=True,
            )
        ],
    ),
    (
        "wie oft ging heute die haustür auf",
        [
            Expected(
                do=("open",),
                ask=("how_often", "is"),
                has=("binary_sensor.front_door", "lock.front_door"),
                time={"day": "today"},
                is_question=True,
            )
        ],
    ),
    (
        "wer hat heute nacht das flurlicht angemacht?",
        [
            Expected(
                do=("on",),
                ask=("who", "is"),
                has=("light.hallway",),
                time={"day": "today", "part": "night"},
                is_question=True,
            )
        ],
    ),
    (
        "wann war die garage zuletzt offen?",
        [Expected(do=("open",), ask=("when", "last"), has=("room.garage",), is_question=True)],
    ),
    (
        "ist seit mittag jemand zur haustür rein?",
        [
            Expected(
                do=("open",),
                ask=("is",),
                has=("kind.person", "binary_sensor.front_door", "lock.front_door"),
                time={"role": "since", "hour": 12},
                is_question=True,
            )
        ],
    ),
    (
        "was war vor zwei tagen los",
        [
            Expected(
                do=("happen",), ask=("what",), time={"role": "ago", "duration_s": 172800.0}, is_question=True
            )
        ],
    ),
    (
        "mach in zehn minuten das küchenlicht aus",
        [Expected(do=("off",), has=("light.kitchen_ceiling",), time={"role": "in", "duration_s": 600.0})],
    ),
    (
        "mach um halb sieben das radio an",
        [Expected(do=("on",), has=("kind.radio",), time={"role": "at", "hour": 6, "minute": 30})],
    ),
    (
        "mach um viertel vor acht das radio an",
        [Expected(do=("on",), has=("kind.radio",), time={"role": "at", "hour": 7, "minute": 45})],
    ),
    (
        "um fünf vor halb acht radio an",
        [Expected(do=("on",), has=("kind.radio",), time={"role": "at", "hour": 7, "minute": 25})],
    ),
    (
        "schalte um 22.30 Uhr die Stehlampe aus",
        [Expected(do=("off",), has=("light.floor_lamp",), time={"role": "at", "hour": 22, "minute": 30})],
    ),
    (
        "am samstagabend um acht licht im flur an",
        [
            Expected(
                do=("on",),
                has=("kind.light", "room.hallway"),
                time={"role": "at", "day": "saturday", "part": "evening", "hour": 8},
            )
        ],
    ),
    (
        "übermorgen um sieben uhr früh licht im bad an",
        [
            Expected(
                do=("on",),
                has=("kind.light", "room.bathroom"),
                time={"role": "at", "day": "day_after_tomorrow", "part": "morning", "hour": 7},
            )
        ],
    ),
    (
        "in ner halben stunde licht aus",
        [Expected(do=("off",), has=("kind.light",), time={"role": "in", "duration_s": 1800.0})],
    ),
    ("mach sie wieder aus", [Expected(do=("off",), refer=("again", "it"))]),
    ("mach das wieder aus", [Expected(do=("off",), refer=("again", "it"))]),
    ("etwas heller bitte", [Expected(do=("brighter",), amount=("little",))]),
    ("die andere auch", [Expected(refer=("other", "too"))]),
    ("und jetzt beide aus", [Expected(do=("off",), refer=("them",))]),
    ("und im schlafzimmer?", [Expected(has=("room.bedroom",), is_question=True)]),
    ("nochmal", [Expected(refer=("again",))]),
    ("mach die sauna an", [Expected(do=("on",), has=("noun.sauna",))]),
    ("wo ist tom?", [Expected(ask=("where",), is_question=True, unknown=("tom",))]),
    (
        "mach das licht in der kueche an und im flur aus",
        [
            Expected(do=("on",), has=("kind.light", "room.kitchen")),
            Expected(do=("off",), has=("room.hallway",)),
        ],
    ),
    (
        "stehlampe aus nachttischlampe an und das wohnzimmer auf 20 grad",
        [
            Expected(do=("off",), has=("light.floor_lamp",)),
            Expected(do=("on",), has=("light.bedside_lamp",)),
            Expected(has=("room.living_room",), amount=(20.0, "degrees")),
        ],
    ),
    ("alle lichter aus außer der nachttischlampe", [Expected(do=("off",), has=("kind.light",))]),
]


@pytest.mark.parametrize(("text", "expected"), SENTENCES, ids=[text for text, _ in SENTENCES])
async def test_a_sentence_says_this(text: str, expected: list[Expected]):
    await check_sentence("de", text, expected)


@pytest.mark.parametrize(
    ("written", "known"), [("kueche", "küche"), ("haustuer", "haustür"), ("kuche", "küche")]
)
async def test_umlauts_may_be_written_as_two_letters_or_left_out(written: str, known: str):
    assert await read_words("de", f"licht {written}") == await read_words("de", f"licht {known}")


@pytest.mark.parametrize("text", ["wer hat das feuer gelöscht", "mach die neue lampe an"])
async def test_other_words_keep_their_two_letters(text: str):
    assert await read_words("de", text) == tuple(text.split())


async def test_exactly_what_is_excluded_is_left_out():
    clauses = await read_clauses("de", "alle lichter aus außer der nachttischlampe")
    assert [word.text for word in clauses[0].excluded] == ["nachttischlampe"] and clauses[0].is_all
