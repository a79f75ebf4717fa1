"""The question for an approval: one sentence in six languages, without ids and names of services."""

import re

import pytest

from sash.app.approval_question import write_question
from sash.values.steps import ApprovalRequested

LANGUAGES = ("en", "de", "es", "fr", "it", "nl")
OUR_WORDS = re.compile(r"\b[a-z_]+\.[a-z_]+|_|call_service|[{}\[\]]")


def call(service, *names, data=None, now="off", language=None, **more):
    """Return the approval request of a service call with the preview that the home gives."""
    domain = service.partition(".")[0]
    entities = [{"entity_id": f"{domain}.x{n}", "name": name, "now": now} for n, name in enumerate(names)]
    would = {"service": service, "data": data or {}, "entities": entities, **more}
    return ApprovalRequested("c1", "call_service", f"{service} needs an approval", would, language)


UNLOCK = call("lock.unlock", "Front door lock")
LOCK = call("lock.lock", "Front door lock")
CLOSE = call("cover.close_cover", "Garage door")
BLIND = call("cover.set_cover_position", "Living room blind", data={"position": 40})
AWAY = call("alarm_control_panel.alarm_arm_away", "House alarm", data={"code": "1234"})
WARM = call("climate.set_temperature", "Hallway thermostat", data={"temperature": 21.5})
WITHIN = [{"service": "lock.unlock", "names": ["Front door lock"]}]
SCRIPT = call("script.leave_home", name="Leave home", within=WITHIN)
SCENE = call("scene.turn_on", "Movie night", within=[{"names": ["Living room blind"]}])
TOOL = ApprovalRequested("c1", "bank.send_money", "r", {"amount": 20, "to": "person.anna"})
UNDO = ApprovalRequested(
    "c1",
    "undo_last_action",
    "r",
    {"calls": [{"service": "lock.lock", "data": {}, "entities": [{"name": "Front door lock"}]}]},
)
ALL = (UNLOCK, LOCK, CLOSE, BLIND, AWAY, WARM, SCRIPT, SCENE, TOOL, UNDO)


@pytest.mark.parametrize(
    ("calls", "question"),
    [
        ([UNLOCK], "Unlock the front door lock?"),
        ([LOCK, CLOSE], "Lock the front door lock and close the garage door?"),
        ([LOCK, call("lock.lock", "Back door")], "Lock the front door lock and the back door?"),
        ([LOCK, LOCK], "Lock the front door lock?"),
        ([call("lock.unlock", "Anna's door")], "Unlock Anna's door?"),
        ([BLIND], "Set the living room blind to 40 % open?"),
        ([call("cover.set_cover_position", "Garage door", data={"position": 0})], "Close the garage door?"),
        ([call("cover.toggle", "Garage door", now="closed")], "Open the garage door?"),
        ([call("cover.toggle", "Garage door", now="opening")], "Open or close the garage door?"),
        ([call("light.toggle", "Kitchen light", now="on")], "Turn off the kitchen light?"),
        ([AWAY], "Arm the house alarm in away mode?"),
        ([call("alarm_control_panel.alarm_disarm", "House alarm")], "Disarm the house alarm?"),
        ([WARM], "Set the hallway thermostat to 21.5 degrees?"),
        ([SCRIPT], "Run the script “Leave home”, which will unlock the front door lock?"),
        ([call("script.turn_on", "Good night")], "Run the script “Good night”?"),
        ([SCENE], "Activate the scene “Movie night”, which will change the living room blind?"),
        (
            [call("script.turn_on", "Surprise", calls=["services that cannot be told"])],
            "Run the script “Surprise”, which will do things that cannot be told in advance?",
        ),
        ([UNDO], "Undo that and lock the front door lock?"),
        ([TOOL], "Do “bank send money” (amount: 20)?"),
    ],
)
def test_a_question_is_said_as_a_person_says_it(calls, question):
    assert write_question(calls) == question


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "Unlock the front door lock and set the living room blind to 40 % open?"),
        ("de", "Soll ich die Haustür aufschließen und das Rollo im Wohnzimmer auf 40 % Öffnung stellen?"),
        (
            "es",
            "¿Quieres desbloquear la puerta de entrada y poner la persiana del salón al 40 % de apertura?",
        ),
        (
            "fr",
            "Dois-je déverrouiller la porte d'entrée et régler le volet du salon à 40 % d’ouverture ?",
        ),
        (
            "it",
            "Devo sbloccare la porta d'ingresso e portare la tapparella del soggiorno al 40 % di apertura?",
        ),
        ("nl", "Zal ik de voordeur van het slot doen en het rolluik in de woonkamer op 40 % open zetten?"),
    ],
)
def test_a_question_has_six_languages(language, question):
    assert write_question([UNLOCK, BLIND], language) == question


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("asked", ALL, ids=lambda each: each.name)
def test_a_question_never_has_ids_or_names_of_services(language, asked):
    question = write_question([asked], language)
    assert question.endswith("?") and not OUR_WORDS.search(question), question
    assert "1234" not in question, "a code is a secret"


def test_the_first_known_language_is_taken():
    german = "Soll ich die Haustür aufschließen?"
    assert write_question([UNLOCK], None, "klingon", "de-AT", "fr") == german
    assert write_question([call("lock.unlock", "Front door lock", language="de_DE")]) == german
    assert write_question([UNLOCK], "klingon") == "Unlock the front door lock?"


def test_many_names_are_counted():
    question = write_question([call("cover.close_cover", *(f"Blind {n}" for n in range(1, 10)))])
    assert question.endswith("and 4 others?")


def test_without_a_call_there_is_no_question():
    assert write_question([]) == ""
