"""What everyday sentences in Italian say."""

import pytest

from tests.intents.sentence_tables import Expected, check_sentence, read_clauses, read_words

SENTENCES: list[tuple[str, list[Expected]]] = [
    ("accendi la luce in cucina", [Expected(do=("on",), has=("kind.light", "room.kitchen"))]),
    ("spegni tutte le luci", [Expected(do=("off",), has=("kind.light",))]),
    ("imposta il soggiorno a 22 gradi", [Expected(has=("room.living_room",), amount=(22.0, "degrees"))]),
    ("fai tornare l'aspirapolvere alla base", [Expected(do=("dock",), has=("kind.vacuum",))]),
    (
        "metti il volume della radio al 30%",
        [Expected(has=("property.volume", "kind.radio"), amount=(30.0, "percent"))],
    ),
    (
        "metti la luce della cameretta in rosso",
        [Expected(has=("kind.light", "room.childrens_room"), amount=("red",))],
    ),
    (
        "quali luci sono accese?",
        [Expected(do=("on",), ask=("which",), has=("kind.light",), is_question=True)],
    ),
    ("acendi la luce in cucina", [Expected(do=("on",), has=("kind.light", "room.kitchen"))]),
    ("metti in pausa la musica", [Expected(do=("pause",), has=("kind.media",))]),
    ("accendi il jacuzzi", [Expected(do=("on",), unknown=("jacuzzi",))]),
    (
        "spegni la luce della cucina tra dieci minuti",
        [Expected(do=("off",), has=("kind.light", "room.kitchen"), time={"role": "in", "duration_s": 600.0})],
    ),
    ("chi è in casa?", [Expected(do=("home",), ask=("who",), is_question=True)]),
    ("accendi la lampada sul comodino", [Expected(do=("on",), has=("kind.light", "noun.bedside"))]),
    ("spegnila di nuovo", [Expected(do=("off",), refer=("again", "it"))]),
    ("riaccendila", [Expected(do=("on",), refer=("it",))]),
    ("puoi spegnerla?", [Expected(do=("off",), refer=("it",), is_question=True)]),
    ("potresti riaccenderle per favore", [Expected(do=("on",), refer=("them",))]),
    ("un po' più chiaro", [Expected(do=("brighter",), amount=("little",))]),
    ("è troppo forte", [Expected(do=("quieter",))]),
    ("e anche l'altra", [Expected(refer=("other",))]),
    ("falla blu", [Expected(amount=("blue",), refer=("it",))]),
    ("spegni tutte e due", [Expected(do=("off",))]),
    ("e fuori?", [Expected(has=("room.outside",), is_question=True)]),
    ("quella del soggiorno", [Expected(has=("room.living_room",))]),
    (
        "accendi la cucina e spegni il corridoio",
        [Expected(do=("on",), has=("room.kitchen",)), Expected(do=("off",), has=("room.hallway",))],
    ),
    (
        "spegni la tele e abbassa la piantana al 20%",
        [
            Expected(do=("off",), has=("kind.tv",)),
            Expected(do=("down",), has=("noun.floor_lamp",), amount=(20.0, "percent")),
        ],
    ),
    (
        "accendi la luce in cucina e poi avvia l'aspirapolvere",
        [
            Expected(do=("on",), has=("kind.light", "room.kitchen")),
            Expected(do=("start",), has=("kind.vacuum",)),
        ],
    ),
    ("tutte le luci al 50%", [Expected(has=("kind.light",), amount=(50.0, "percent"))]),
    ("spegni tutto al piano di sotto", [Expected(do=("off",), has=("room.downstairs",))]),
    (
        "metti il soggiorno a ventun gradi e mezzo",
        [Expected(has=("room.living_room",), amount=(21.5, "degrees"))],
    ),
    (
        "ho freddo, alza il riscaldamento in soggiorno a 23",
        [Expected(do=("warmer",)), Expected(do=("warmer",), has=("room.living_room",), amount=(23.0,))],
    ),
    ("alza le tapparelle a metà", [Expected(do=("up",), has=("kind.blind",), amount=(50.0, "percent"))]),
    ("fa caldo in camera?", [Expected(has=("property.temperature", "room.bedroom"), is_question=True)]),
    ("fai oscillare il ventilatore", [Expected(do=("swing",), has=("kind.fan",))]),
    (
        "disattiva l'automazione delle luci serali",
        [Expected(do=("off",), has=("kind.automation", "noun.evening_lights"))],
    ),
    ("inserisci l'allarme, usciamo", [Expected(do=("arm",)), Expected(do=("arm_away",))]),
    (
        "la tv era accesa ieri sera?",
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
        "quante volte è stata aperta oggi la porta d'ingresso?",
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
        "qualcuno ha aperto la porta da mezzogiorno?",
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
        "che temperatura c'era fuori alle 3 di notte?",
        [
            Expected(
                ask=("is",),
                has=("property.temperature", "room.outside"),
                time={"role": "at", "day": "today", "part": "night", "hour": 3},
                is_question=True,
            )
        ],
    ),
    (
        "qual è la temperatura più alta di oggi?",
        [Expected(ask=("highest",), has=("property.temperature",), time={"day": "today"}, is_question=True)],
    ),
    (
        "spegni la luce tra mezz'ora",
        [Expected(do=("off",), has=("kind.light",), time={"role": "in", "duration_s": 1800.0})],
    ),
    (
        "accendi la macchina del caffè alle sette e mezza",
        [Expected(do=("on",), has=("noun.coffee_machine",), time={"role": "at", "hour": 7, "minute": 30})],
    ),
    (
        "accendi la macchina del caffè domani alle 9",
        [
            Expected(
                do=("on",), has=("noun.coffee_machine",), time={"role": "at", "day": "tomorrow", "hour": 9}
            )
        ],
    ),
    (
        "accendi la piantana alle 18.30",
        [Expected(do=("on",), has=("noun.floor_lamp",), time={"role": "at", "hour": 18, "minute": 30})],
    ),
    (
        "spegni la luce del soggiorno a mezzanotte meno un quarto",
        [
            Expected(
                do=("off",),
                has=("kind.light", "room.living_room"),
                time={"role": "at", "hour": 23, "minute": 45},
            )
        ],
    ),
    (
        "accendi la terrazza alle otto meno dieci",
        [Expected(do=("on",), has=("room.terrace",), time={"role": "at", "hour": 7, "minute": 50})],
    ),
    (
        "spegni la cucina alle 20",
        [Expected(do=("off",), has=("room.kitchen",), time={"role": "at", "hour": 20})],
    ),
    (
        "accendi il ventilatore per 20 minuti",
        [Expected(do=("on",), has=("kind.fan",), time={"role": "for", "duration_s": 1200.0})],
    ),
    ("non accendere la luce della cucina", [Expected(do=("on",), has=("kind.light", "room.kitchen"))]),
    ("dov'è Anna?", [Expected(ask=("where",), has=("person.anna",), is_question=True)]),
    (
        "quanta batteria ha il sensore di perdita?",
        [Expected(ask=("how_much",), has=("property.battery", "noun.leak_sensor"), is_question=True)],
    ),
    (
        "puoi chiudere le tende della camera per favore",
        [Expected(do=("close",), has=("kind.blind", "room.bedroom"))],
    ),
    ("chiudi la porta a chiave", [Expected(do=("lock",), has=("kind.door",))]),
]


@pytest.mark.parametrize(("text", "expected"), SENTENCES, ids=[text for text, _ in SENTENCES])
async def test_a_sentence_says_this(text: str, expected: list[Expected]):
    await check_sentence("it", text, expected)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("spegnila", ("spegni", "la")),
        ("accendile", ("accendi", "le")),
        ("spegnerla", ("spegnere", "la")),
        ("accendimi", ("accendi", "mi")),
        ("tapparelle", ("tapparelle",)),
    ],
)
async def test_pronouns_at_the_end_of_a_verb_are_words(written: str, words: tuple[str, ...]):
    assert await read_words("it", written) == words


async def test_an_article_is_no_pronoun():
    [light], [it] = await read_clauses("it", "spegni la luce"), await read_clauses("it", "spegnila")
    assert light.refer == frozenset() and it.refer == {"it"}


async def test_exactly_what_is_excluded_is_left_out():
    [clause] = await read_clauses("it", "spegni tutte le luci tranne la lampada sul comodino")
    assert [word.text for word in clause.excluded] == ["lampada", "sul comodino"] and clause.is_all
