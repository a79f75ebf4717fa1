"""Which answers claim an action."""

import pytest

from sash.agent.claims import claim


@pytest.mark.parametrize(
    "answer",
    [
        "I've turned on the kitchen light.",
        "I have switched off the heating.",
        "I turned the lights off.",
        "Sure! I’ve just set the thermostat to 21 °C.",
        "Okay, done.",
        "Done!",
        "I've set the thermostat at 21.",
        "All set. Anything else?",
        "The front door is now locked.",
        "The blinds have been closed.",
        "The alarm has been successfully armed.",
        "It is cold. I have gone ahead and raised the temperature.",
        "Ich habe das Licht in der Küche eingeschaltet.",
        "Erledigt.",
        "Das Licht wurde ausgeschaltet.",
        "J'ai allumé la lumière.",
        "C'est fait.",
        "He encendido la luz.",
        "Ho spento la luce.",
        "Ik heb het licht in de keuken aangezet.",
    ],
)
def test_these_do(answer):
    assert claim(answer)


@pytest.mark.parametrize(
    "answer",
    [
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
        "When the door is now locked, the alarm is armed.",
        "Ich kann das Licht nicht einschalten.",
        "Ich habe das Licht gestern eingeschaltet.",
    ],
)
def test_these_do_not(answer):
    assert claim(answer) is None


def test_a_long_answer_is_read_in_no_time():
    assert claim("ich habe " * 20_000) is None
    assert claim("I have " * 20_000) is None
