"""What everyday sentences in French say."""

import pytest

from tests.intents.sentence_tables import Expected, check_sentence, read_clauses

SENTENCES: list[tuple[str, list[Expected]]] = [
    ("allume la lumière de la cuisine", [Expected(do=("on",), has=("kind.light", "room.kitchen"))]),
    ("éteins toutes les lumières", [Expected(do=("off",), has=("kind.light",))]),
    ("règle le salon sur 22 degrés", [Expected(has=("room.living_room",), amount=(22.0, "degrees"))]),
    ("renvoie l'aspirateur à sa base", [Expected(do=("dock",), has=("kind.vacuum",))]),
    (
        "mets le volume de la radio à 30 %",
        [Expected(has=("property.volume", "kind.radio"), amount=(30.0, "percent"))],
    ),
    (
        "mets la lumière de la chambre des enfants en rouge",
        [Expected(has=("kind.light", "room.childrens_room"), amount=("red",))],
    ),
    (
        "quelles lumières sont allumées ?",
        [Expected(do=("on",), ask=("which",), has=("kind.light",), is_question=True)],
    ),
    ("alume la lumiere de la cuisine stp", [Expected(do=("on",), has=("kind.light", "room.kitchen"))]),
    ("mets la musique en pause", [Expected(do=("pause",), has=("kind.media",))]),
    ("allume le jacuzzi", [Expected(do=("on",), unknown=("jacuzzi",))]),
    (
        "éteins la lumière de la cuisine dans dix minutes",
        [Expected(do=("off",), has=("kind.light", "room.kitchen"), time={"role": "in", "duration_s": 600.0})],
    ),
    ("qui est à la maison ?", [Expected(do=("home",), ask=("who",), is_question=True)]),
    ("allume la lampe de chevet", [Expected(do=("on",), has=("kind.light", "noun.bedside"))]),
    ("éteins-la de nouveau", [Expected(do=("off",), refer=("again", "it"))]),
    ("rallume-la", [Expected(do=("on",), refer=("it",))]),
    ("tu peux l'éteindre ?", [Expected(do=("off",), refer=("it",), is_question=True)]),
    ("pourrais-tu les rallumer s'il te plaît", [Expected(do=("on",), refer=("them",))]),
    ("un peu plus clair", [Expected(do=("brighter",), amount=("little",))]),
    ("c'est trop fort", [Expected(do=("quieter",))]),
    ("et l'autre aussi", [Expected(refer=("other",))]),
    ("mets-la en bleu", [Expected(amount=("blue",), refer=("it",))]),
    ("éteins les deux", [Expected(do=("off",))]),
    ("et dehors ?", [Expected(has=("room.outside",), is_question=True)]),
    ("celle du salon", [Expected(has=("room.living_room",))]),
    (
        "allume la cuisine et éteins le couloir",
        [Expected(do=("on",), has=("room.kitchen",)), Expected(do=("off",), has=("room.hallway",))],
    ),
    (
        "éteins la télé et baisse le lampadaire à 20 %",
        [
            Expected(do=("off",), has=("kind.tv",)),
            Expected(do=("down",), has=("noun.floor_lamp",), amount=(20.0, "percent")),
        ],
    ),
    (
        "allume la lumière de la cuisine puis lance l'aspirateur",
        [
            Expected(do=("on",), has=("kind.light", "room.kitchen")),
            Expected(do=("start",), has=("kind.vacuum",)),
        ],
    ),
    ("toutes les lumières à 50 %", [Expected(has=("kind.light",), amount=(50.0, "percent"))]),
    ("éteins tout en bas", [Expected(do=("off",), has=("room.downstairs",))]),
    (
        "mets vingt et un degrés et demi dans le salon",
        [Expected(has=("room.living_room",), amount=(21.5, "degrees"))],
    ),
    (
        "j'ai froid, monte le chauffage du salon à 23",
        [Expected(do=("warmer",)), Expected(do=("warmer",), has=("room.living_room",), amount=(23.0,))],
    ),
    ("monte les volets à moitié", [Expected(do=("up",), has=("kind.blind",), amount=(50.0, "percent"))]),
    (
        "il fait chaud dans la chambre ?",
        [Expected(has=("property.temperature", "room.bedroom"), refer=("it",), is_question=True)],
    ),
    ("fais osciller le ventilateur", [Expected(do=("swing",), has=("kind.fan",))]),
    (
        "désactive l'automatisation des lumières du soir",
        [Expected(do=("off",), has=("kind.automation", "noun.evening_lights"))],
    ),
    ("active l'alarme, on part", [Expected(do=("arm",)), Expected(do=("arm_away",))]),
    (
        "la télé était allumée hier soir ?",
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
        "combien de fois la porte d'entrée a été ouverte aujourd'hui ?",
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
        "est-ce que quelqu'un a ouvert la porte depuis midi ?",
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
        "quelle température faisait-il dehors à 3 heures du matin ?",
        [
            Expected(
                ask=("what",),
                has=("property.temperature", "room.outside"),
                time={"role": "at", "part": "morning", "hour": 3},
                refer=("it",),
                is_question=True,
            )
        ],
    ),
    (
        "quelle est la température la plus haute aujourd'hui ?",
        [
            Expected(
                ask=("what", "highest"),
                has=("property.temperature",),
                time={"day": "today"},
                is_question=True,
            )
        ],
    ),
    (
        "éteins la lumière dans une demi-heure",
        [Expected(do=("off",), has=("kind.light",), time={"role": "in", "duration_s": 1800.0})],
    ),
    (
        "allume la machine à café à sept heures et demie",
        [Expected(do=("on",), has=("noun.coffee_machine",), time={"role": "at", "hour": 7, "minute": 30})],
    ),
    (
        "allume la machine à café demain à 9h",
        [
            Expected(
                do=("on",), has=("noun.coffee_machine",), time={"role": "at", "day": "tomorrow", "hour": 9}
            )
        ],
    ),
    (
        "allume le lampadaire à 18h30",
        [Expected(do=("on",), has=("noun.floor_lamp",), time={"role": "at", "hour": 18, "minute": 30})],
    ),
    (
        "éteins la lumière du salon à minuit moins le quart",
        [
            Expected(
                do=("off",),
                has=("kind.light", "room.living_room"),
                time={"role": "at", "hour": 23, "minute": 45},
            )
        ],
    ),
    (
        "allume la terrasse à huit heures moins dix",
        [Expected(do=("on",), has=("room.terrace",), time={"role": "at", "hour": 7, "minute": 50})],
    ),
    (
        "éteins la cuisine à 20 heures",
        [Expected(do=("off",), has=("room.kitchen",), time={"role": "at", "hour": 20})],
    ),
    (
        "allume le ventilateur pendant 20 minutes",
        [Expected(do=("on",), has=("kind.fan",), time={"role": "for", "duration_s": 1200.0})],
    ),
    ("n'allume pas la lumière de la cuisine", [Expected(do=("on",), has=("kind.light", "room.kitchen"))]),
    ("où est Anna ?", [Expected(ask=("where",), has=("person.anna",), is_question=True)]),
    (
        "est-ce que la porte d'entrée est fermée à clé ?",
        [Expected(do=("lock",), ask=("is",), has=("noun.front_door",), is_question=True)],
    ),
    (
        "il reste de la batterie dans le capteur de fuite ?",
        [Expected(has=("property.battery", "noun.leak_sensor"), refer=("it",), is_question=True)],
    ),
    (
        "tu peux fermer les rideaux de la chambre stp",
        [Expected(do=("close",), has=("kind.blind", "room.bedroom"))],
    ),
]


@pytest.mark.parametrize(("text", "expected"), SENTENCES, ids=[text for text, _ in SENTENCES])
async def test_a_sentence_says_this(text: str, expected: list[Expected]):
    await check_sentence("fr", text, expected)


async def test_an_article_is_no_pronoun():
    [lamp], [it] = await read_clauses("fr", "éteins la lampe"), await read_clauses("fr", "éteins-la")
    assert lamp.refer == frozenset() and it.refer == {"it"}


async def test_exactly_what_is_excluded_is_left_out():
    [clause] = await read_clauses("fr", "éteins toutes les lumières sauf la lampe de chevet")
    assert [word.text for word in clause.excluded] == ["lampe", "chevet"] and clause.is_all


async def test_a_number_is_no_time_of_day_without_the_word_for_hours():
    [value], [hour] = (
        await read_clauses("fr", "mets la radio à 20"),
        await read_clauses("fr", "mets la radio à 20 heures"),
    )
    assert value.amount.value == 20 and value.time.is_empty and hour.time.hour == 20
