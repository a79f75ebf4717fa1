"""Answers in Spanish have articles, states that agree, and names that are translated."""

import pytest

from sash.intents.answers.names import Name
from sash.intents.answers.writer import choose_writer
from sash.intents.question_detection import is_polite_request, is_question
from sash.ports.home import Area, Entity

WRITER = choose_writer("es")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Luz de la cocina", "la luz de la cocina"),
        ("Ventilador", "el ventilador"),
        ("Kitchen ceiling light", "la luz del techo de la cocina"),
        ("Garden path lights", "las luces del camino del jardín"),
        ("Front door lock", "la puerta de entrada"),
        ("Robby", "Robby"),
        ("Hue lamp", "Hue lamp"),
    ],
)
def test_a_name_of_common_nouns_is_in_spanish_with_its_article(name: str, expected: str) -> None:
    assert WRITER.name(Entity("light.x", name)) == expected


def test_the_name_of_a_person_is_no_noun() -> None:
    assert WRITER.name(Entity("person.luz", "Luz")) == "Luz"


def test_a_spanish_alias_comes_before_a_translation() -> None:
    assert WRITER.name(Entity("light.x", "Kitchen light", aliases=("foco de cocina",))) == "el foco de cocina"


@pytest.mark.parametrize(
    ("area", "inside"),
    [("Kitchen", "en la cocina"), ("Garage", "en el garaje"), ("Salón", "en el salón"), ("Nido", "en Nido")],
)
def test_a_room_has_its_preposition(area: str, inside: str) -> None:
    assert WRITER.name(Area("x", area)).inside == inside


def test_a_state_agrees_with_the_things() -> None:
    lamp, fan, blinds = map(WRITER.name_text, ("luz", "ventilador", "persianas"))
    say = [WRITER.say("state.is_now", name=name, state="abierto") for name in (lamp, fan, blinds, "Hue")]
    assert say == ["La luz está abierta.", "El ventilador está abierto.", "Las persianas están abiertas.",
                   "Hue está abierto."]  # fmt: skip
    both = WRITER.join([lamp, WRITER.name_text("cafetera")])
    assert WRITER.phrase("state.are", names=both, state="apagado").endswith("están apagadas")
    assert WRITER.phrase("state.are", names=WRITER.join([lamp, fan]), state="apagado").endswith("apagados")
    assert WRITER.say("state.none", things="luces", state="encendido") == "No hay luces encendidas."


def test_articles_and_hours_are_contracted() -> None:
    assert WRITER.say("talk.time", clock="1:30") == "Es la 1:30."
    assert WRITER.say("talk.time", clock="14:30") == "Son las 14:30."
    assert WRITER.say("command.set_to", names=Name("Hue"), value="10 por ciento").endswith(
        "al 10 por ciento."
    )
    assert WRITER.say("command.set_to", names=Name("Hue"), value="21 grados").endswith("a 21 grados.")


def test_a_polite_question_is_no_request_to_act() -> None:
    asked = "Oye Sash, ¿puedes decirme si está encendida la luz?"
    assert is_polite_request("oye sash, ¿puedes encender la luz?")
    assert is_polite_request(asked)
    assert is_question("¿puedes decirme si está encendida la luz?", "es")
