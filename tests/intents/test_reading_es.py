"""What everyday sentences in Spanish say."""

import pytest

from tests.intents.sentence_tables import Expected, check_sentence, read_clauses, read_words

SENTENCES: list[tuple[str, list[Expected]]] = [
    ("enciende la luz de la cocina", [Expected(do=("on",), has=("kind.light", "room.kitchen"))]),
    ("apaga todas las luces", [Expected(do=("off",), has=("kind.light",))]),
    ("pon el salón a 22 grados", [Expected(has=("room.living_room",), amount=(22.0, "degrees"))]),
    ("manda la aspiradora a su base", [Expected(do=("dock",), has=("kind.vacuum",))]),
    (
        "pon el volumen de la radio al 30 %",
        [Expected(has=("property.volume", "kind.radio"), amount=(30.0, "percent"))],
    ),
    (
        "pon la luz del cuarto de los niños en rojo",
        [Expected(has=("kind.light", "room.childrens_room"), amount=("red",))],
    ),
    (
        "¿qué luces están encendidas?",
        [Expected(do=("on",), ask=("what",), has=("kind.light",), is_question=True)],
    ),
    (
        "¿está cerrada con llave la puerta de entrada?",
        [Expected(do=("lock",), ask=("is",), has=("noun.front_door",), is_question=True)],
    ),
    ("pausa la música", [Expected(do=("pause",), has=("kind.media",))]),
    ("enciende el jacuzzi", [Expected(do=("on",), unknown=("jacuzzi",))]),
    (
        "apaga la luz de la cocina en diez minutos",
        [Expected(do=("off",), has=("kind.light", "room.kitchen"), time={"role": "in", "duration_s": 600.0})],
    ),
    ("¿quién está en casa?", [Expected(do=("home",), ask=("who",), is_question=True)]),
    ("enciende la lámpara de la mesilla", [Expected(do=("on",), has=("kind.light", "noun.bedside"))]),
    ("apágala otra vez", [Expected(do=("off",), refer=("again", "it"))]),
    ("vuelve a encenderla", [Expected(do=("on",), refer=("again", "it"))]),
    ("¿puedes apagarla?", [Expected(do=("off",), refer=("it",), is_question=True)]),
    ("¿podrías encenderlas por favor?", [Expected(do=("on",), refer=("them",), is_question=True)]),
    ("un poco más claro", [Expected(do=("brighter",), amount=("little",))]),
    ("está demasiado fuerte", [Expected(do=("quieter",))]),
    ("y la otra también", [Expected(refer=("other",))]),
    ("ponla en azul", [Expected(amount=("blue",), refer=("it",))]),
    ("apaga las dos", [Expected(do=("off",))]),
    ("¿y fuera?", [Expected(has=("room.outside",), is_question=True)]),
    ("la del salón", [Expected(has=("room.living_room",))]),
    (
        "enciende la cocina y apaga el pasillo",
        [Expected(do=("on",), has=("room.kitchen",)), Expected(do=("off",), has=("room.hallway",))],
    ),
    (
        "apaga la tele y baja la lámpara de pie al 20 %",
        [
            Expected(do=("off",), has=("kind.tv",)),
            Expected(do=("down",), has=("noun.floor_lamp",), amount=(20.0, "percent")),
        ],
    ),
    (
        "enciende la luz de la cocina y luego pon en marcha la aspiradora",
        [
            Expected(do=("on",), has=("kind.light", "room.kitchen")),
            Expected(do=("on",), has=("kind.vacuum",)),
        ],
    ),
    ("todas las luces al 50 %", [Expected(has=("kind.light",), amount=(50.0, "percent"))]),
    ("apaga todo abajo", [Expected(do=("off",), has=("room.downstairs",))]),
    (
        "pon el salón a veintiún grados y medio",
        [Expected(has=("room.living_room",), amount=(21.5, "degrees"))],
    ),
    (
        "tengo frío, sube la calefacción del salón a 23",
        [Expected(do=("warmer",)), Expected(do=("warmer",), has=("room.living_room",), amount=(23.0,))],
    ),
    ("sube las persianas a la mitad", [Expected(do=("up",), has=("kind.blind",), amount=(50.0, "percent"))]),
    (
        "¿hace calor en el dormitorio?",
        [Expected(ask=("is",), has=("property.temperature", "room.bedroom"), is_question=True)],
    ),
    ("haz que oscile el ventilador", [Expected(do=("swing",), has=("kind.fan",))]),
    (
        "desactiva la automatización de las luces de la tarde",
        [Expected(do=("off",), has=("kind.automation", "noun.evening_lights"))],
    ),
    ("activa la alarma, nos vamos", [Expected(do=("arm",)), Expected(do=("arm_away",))]),
    (
        "¿estaba encendida la tele ayer por la noche?",
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
        "¿cuántas veces se ha abierto hoy la puerta de entrada?",
        [
            Expected(
                do=("open",),
                ask=("how_often",),
                has=("noun.front_door",),
                time={"day": "today"},
                is_question=True,
            )
        ],
    ),
    (
        "¿ha abierto alguien la puerta desde el mediodía?",
        [
            Expected(
                do=("open",),
                ask=("is",),
                has=("kind.person", "kind.door"),
                time={"role": "since", "hour": 12},
                is_question=True,
            )
        ],
    ),
    (
        "¿qué temperatura hacía fuera a las 3 de la mañana?",
        [
            Expected(
                has=("property.temperature", "room.outside"),
                time={"role": "at", "part": "morning", "hour": 3},
                is_question=True,
            )
        ],
    ),
    (
        "¿cuál es la temperatura más alta de hoy?",
        [Expected(ask=("highest",), has=("property.temperature",), time={"day": "today"}, is_question=True)],
    ),
    (
        "apaga la luz dentro de media hora",
        [Expected(do=("off",), has=("kind.light",), time={"role": "in", "duration_s": 1800.0})],
    ),
    (
        "enciende la cafetera a las siete y media",
        [Expected(do=("on",), has=("noun.coffee_machine",), time={"role": "at", "hour": 7, "minute": 30})],
    ),
    (
        "enciende la cafetera mañana a las 9",
        [
            Expected(
                do=("on",), has=("noun.coffee_machine",), time={"role": "at", "day": "tomorrow", "hour": 9}
            )
        ],
    ),
    (
        "enciende la lámpara de pie a las 18:30",
        [Expected(do=("on",), has=("noun.floor_lamp",), time={"role": "at", "hour": 18, "minute": 30})],
    ),
    (
        "apaga la luz del salón a las doce menos cuarto",
        [
            Expected(
                do=("off",),
                has=("kind.light", "room.living_room"),
                time={"role": "at", "hour": 11, "minute": 45},
            )
        ],
    ),
    (
        "enciende la terraza a las ocho menos diez de la tarde",
        [
            Expected(
                do=("on",),
                has=("room.terrace",),
                time={"role": "at", "part": "afternoon", "hour": 7, "minute": 50},
            )
        ],
    ),
    (
        "enciende la luz del baño a las siete y diez",
        [
            Expected(
                do=("on",), has=("kind.light", "room.bathroom"), time={"role": "at", "hour": 7, "minute": 10}
            )
        ],
    ),
    (
        "enciende el ventilador durante 20 minutos",
        [Expected(do=("on",), has=("kind.fan",), time={"role": "for", "duration_s": 1200.0})],
    ),
    ("no enciendas la luz de la cocina", [Expected(do=("on",), has=("kind.light", "room.kitchen"))]),
    ("¿dónde está Anna?", [Expected(ask=("where",), has=("person.anna",), is_question=True)]),
    (
        "¿queda batería en el sensor de fugas?",
        [Expected(has=("property.battery", "noun.leak_sensor"), is_question=True)],
    ),
    (
        "¿puedes cerrar las cortinas del dormitorio porfa?",
        [Expected(do=("close",), has=("kind.blind", "room.bedroom"), is_question=True)],
    ),
    ("quiero que apagues la luz del salón", [Expected(do=("off",), has=("kind.light", "room.living_room"))]),
]


@pytest.mark.parametrize(("text", "expected"), SENTENCES, ids=[text for text, _ in SENTENCES])
async def test_a_sentence_says_this(text: str, expected: list[Expected]):
    await check_sentence("es", text, expected)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("apágala", ("apaga", "la")),
        ("enciéndelo", ("enciende", "lo")),
        ("pónmela", ("pon", "me", "la")),
        ("encenderlas", ("encender", "las")),
        ("lámparas", ("lámparas",)),
    ],
)
async def test_pronouns_at_the_end_of_a_verb_are_words(written: str, words: tuple[str, ...]):
    assert await read_words("es", written) == words


async def test_an_article_is_no_pronoun():
    [light], [it] = await read_clauses("es", "apaga la luz"), await read_clauses("es", "apágala")
    assert light.refer == frozenset() and it.refer == {"it"}


async def test_exactly_what_is_excluded_is_left_out():
    [clause] = await read_clauses("es", "apaga todas las luces menos la lámpara de la mesilla")
    assert [word.text for word in clause.excluded] == ["lámpara", "mesilla"] and clause.is_all
