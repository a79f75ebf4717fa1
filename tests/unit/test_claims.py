"""Which answers claim an action, and which messages ask for none."""

import time

import pytest

from sash.engine.grounding import asks_for_text, claim, is_question

LIES = [
    "I've turned on the kitchen light.",
    "I have switched off the heating.",
    "I turned the lights off.",
    "Sure! I’ve just set the thermostat to 21 °C.",
    "Okay, done.",
    "Done!",
    "It's done.",
    "I've set the thermostat at 21.",
    "I've set your alarm for 7 am.",
    "I've locked the door, so it is safe when you leave.",
    "Turned on the kitchen light.",
    "I've put the light on.",
    "All set. Anything else?",
    "Turning on the kitchen light.",
    "Successfully turned on the light.",
    "We have turned on the light.",
    "I've added milk to your list.",
    "Ich schalte das Licht ein.",
    "Habe das Licht eingeschaltet.",
    "Ich habe die Tür zugesperrt.",
    "It is cold. I have gone ahead and raised the temperature.",
    "Ich habe das Licht in der Küche eingeschaltet.",
    "Das Licht habe ich eingeschaltet.",
    "Erledigt.",
    "Ok, erledigt.",
    "J'ai allumé la lumière.",
    "C'est fait.",
    "He encendido la luz.",
    "Ho spento la luce.",
    "Ik heb het licht in de keuken aangezet.",
]
STATES = [
    "The front door is now locked.",
    "The kitchen light is on now.",
    "The blinds have been closed.",
    "The door's been locked.",
    "The alarm has been successfully armed.",
    "Das Licht ist jetzt an.",
    "Das Licht wurde ausgeschaltet.",
]
HONEST = [
    "",
    "The kitchen light is on.",
    "I have not turned on the light.",
    "I haven't switched anything.",
    "I cannot turn on the light.",
    "Shall I turn it off?",
    "Have I turned it off?",
    "I turned it on at 18:00.",
    "I already turned it on.",
    "I turned on the light an hour ago.",
    "Yesterday I've closed the blinds.",
    "If I turned on the light, you would wake up.",
    "The door has been open since noon.",
    "You set the thermostat to 21 °C.",
    "The dishwasher is done.",
    "Nothing has been changed.",
    "I have set out the three options below.",
    "Done is better than perfect, as they say.",
    "I could say I turned it on but that would be false.",
    "The lights are now off, as the sensor reports.",
    "The oven has been turned on for three hours.",
    "Ich habe nachgesehen: Das Fenster ist geöffnet.",
    "Ich habe gesehen, dass die Tür abgeschlossen ist.",
    "Das Licht wurde von Anna ausgeschaltet.",
    "J'ai mis du temps à comprendre.",
    "No lights have been turned on.",
    "I set no timer.",
    "The alarm has been disarmed by Anna.",
    "The automation has been triggered 5 times.",
    "Ich kann das Licht nicht einschalten.",
    "Ich habe das Licht nicht eingeschaltet, weil Aktionen nicht erlaubt sind.",
    "Das Fenster wurde nicht geschlossen.",
    "Die Heizung wurde von der Automatik eingeschaltet.",
    "Ich habe das Licht gestern eingeschaltet.",
    'You said: "I have turned on the heating."',
    "You said: 'I've turned on the heating.'",
    "You wrote that I turned off the alarm.",
    "Der letzte Satz war: „Ich habe das Licht eingeschaltet.“",
    "The note says:\n> I have turned on the light.",
]


@pytest.mark.parametrize("answer", LIES)
def test_nobody_may_say_what_he_has_not_done(answer):
    assert claim(answer)
    assert claim(answer, looked=True)


@pytest.mark.parametrize("answer", STATES)
def test_who_has_not_looked_may_not_say_what_is_so_now(answer):
    assert claim(answer)
    assert claim(answer, looked=True) is None


@pytest.mark.parametrize("answer", HONEST)
def test_the_honest_may(answer):
    assert claim(answer) is None
    assert claim(answer, looked=True) is None


def test_the_truth_is_told_in_the_language_of_the_lie():
    assert claim("Erledigt.").startswith("Das habe ich nicht getan")
    assert claim("C'est fait.").startswith("Je ne l'ai pas fait")


@pytest.mark.parametrize(
    "message",
    [
        "Did you do it?",
        "Is the door locked?",
        "what is on",
        "Hast du das Licht angemacht?",
        "Ist die Tür zu?",
    ],
)
def test_these_ask(message):
    assert is_question(message)


@pytest.mark.parametrize(
    "message",
    [
        "Turn on the light",
        "Can you turn on the light?",
        "Could you please lock up?",
        "Kannst du das Licht anmachen?",
    ],
)
def test_these_request(message):
    assert not is_question(message)


@pytest.mark.parametrize(
    "message",
    [
        "Tell me a short story about a robot",
        "Write me a bedtime story",
        "Please translate: ich habe das Licht eingeschaltet",
        "Repeat my last sentence",
        "Erzähl mir eine Gutenachtgeschichte",
        "Raconte-moi une histoire",
    ],
)
def test_these_ask_for_a_text(message):
    assert asks_for_text(message)


@pytest.mark.parametrize(
    "message", ["Turn on the light", "Write milk on the list", "Play a song", "Send an email to Bob"]
)
def test_these_ask_for_an_action(message):
    assert not asks_for_text(message)


def test_a_quoted_answer_is_still_a_claim():
    assert claim('"I have turned on the light."')
    assert claim('I have turned on the "big" light.')


def test_a_true_state_may_be_reported_without_a_look():
    assert claim("The front door is locked now.", is_so=lambda sentence: True) is None
    assert claim("I have locked the front door.", is_so=lambda sentence: True)


def test_a_long_answer_is_read_in_no_time():
    started = time.process_time()
    for text in ('"', "'", " 'a", "tell "):
        assert claim(text * 100_000) is None and not asks_for_text(text * 100_000)
    for text in ("ich habe ", "I have ", "wurde ", "ik heb "):
        assert claim(text * 100_000) is None
    assert time.process_time() - started < 2
