"""Sentences about the home: commands, questions, and sentences left to the model."""

from typing import Any

import pytest

from tests.intents.spoken_home import House

ToolCalls = list[tuple[str, list[str], dict[str, Any]]]


LIGHTS = ["light.kitchen", "light.spots", "light.bedside", "light.desk"]


COMMANDS: dict[str, ToolCalls] = {
    "turn on the kitchen light": [("light.turn_on", ["light.kitchen"], {})],
    "Kitchen Spots off.": [("light.turn_off", ["light.spots"], {})],
    "please switch the coffee machine on": [("switch.turn_on", ["switch.coffee"], {})],
    "turn on guest mode": [("input_boolean.turn_on", ["input_boolean.guests"], {})],
    "turn on the lights in the kitchen": [("light.turn_on", ["light.kitchen", "light.spots"], {})],
    "turn off the upstairs lights": [("light.turn_off", ["light.bedside", "light.desk"], {})],
    "turn off all the lights": [("light.turn_off", LIGHTS, {})],
    "turn on the lamp in the office": [("light.turn_on", ["light.desk"], {})],
    "turn on the fans in the bedroom": [("fan.turn_on", ["fan.bedroom"], {})],
    "set bedroom fan speed to 50%": [("fan.set_percentage", ["fan.bedroom"], {"percentage": 50})],
    "set the kitchen light to 50%": [("light.turn_on", ["light.kitchen"], {"brightness_pct": 50})],
    "set the kitchen brightness to twenty percent": [
        ("light.turn_on", ["light.kitchen", "light.spots"], {"brightness_pct": 20})
    ],
    "set kitchen to red": [("light.turn_on", ["light.kitchen"], {"color_name": "red"})],
    "set kitchen light temperature to 3000 kelvin": [
        ("light.turn_on", ["light.kitchen"], {"color_temp_kelvin": 3000})
    ],
    "open the garage door": [("cover.open_cover", ["cover.garage"], {})],
    "close the bedroom blinds": [("cover.close_cover", ["cover.left"], {})],
    "set left blind to 40%": [("cover.set_cover_position", ["cover.left"], {"position": 40})],
    "close the water valve": [("valve.close_valve", ["valve.water"], {})],
    "lock the front door": [("lock.lock", ["lock.front"], {})],
    "unlock the front door": [("lock.unlock", ["lock.front"], {})],
    "turn on the TV": [("media_player.turn_on", ["media_player.tv"], {})],
    "pause the TV": [("media_player.media_pause", ["media_player.tv"], {})],
    "pause the music in the living room": [("media_player.media_pause", ["media_player.tv"], {})],
    "next track on the TV": [("media_player.media_next_track", ["media_player.tv"], {})],
    "previous track on the TV": [("media_player.media_previous_track", ["media_player.tv"], {})],
    "resume TV": [("media_player.media_play", ["media_player.tv"], {})],
    "mute the TV": [("media_player.volume_mute", ["media_player.tv"], {"is_volume_muted": True})],
    "unmute the TV": [("media_player.volume_mute", ["media_player.tv"], {"is_volume_muted": False})],
    "set TV volume to 40%": [("media_player.volume_set", ["media_player.tv"], {"volume_level": 0.4})],
    "increase TV volume": [("media_player.volume_up", ["media_player.tv"], {})],
    "decrease TV volume by 10%": [("media_player.volume_set", ["media_player.tv"], {"volume_level": 0.2})],
    "set the temperature in the living room to 21.5": [
        ("climate.set_temperature", ["climate.living_room"], {"temperature": 21.5})
    ],
    "set thermostat fan to low": [("climate.set_fan_mode", ["climate.living_room"], {"fan_mode": "low"})],
    "movie time": [("scene.turn_on", ["scene.movie"], {})],
    "run good night": [("script.turn_on", ["script.night"], {})],
    "press the bell": [("button.press", ["button.bell"], {})],
    "start Robbie": [("vacuum.start", ["vacuum.robbie"], {})],
    "return Robbie to base": [("vacuum.return_to_base", ["vacuum.robbie"], {})],
    "vacuum the ground floor": [("vacuum.start", ["vacuum.robbie"], {})],
    "start mowing": [("lawn_mower.start_mowing", ["lawn_mower.clippy"], {})],
    "dock the mower": [("lawn_mower.dock", ["lawn_mower.clippy"], {})],
    "add oat milk (1 l) to my shopping list": [
        ("todo.add_item", ["todo.shopping_list"], {"item": "oat milk (1 l)"})
    ],
    "add call Bob to my work list": [("todo.add_item", ["todo.work"], {"item": "call Bob"})],
    "complete milk on my shopping list": [
        ("todo.update_item", ["todo.shopping_list"], {"item": "milk", "status": "completed"})
    ],
    "remove milk from my work list": [("todo.remove_item", ["todo.work"], {"item": "milk"})],
}


QUESTIONS = {
    "is the kitchen light on?": "Yes",
    "is the kitchen light on": "Yes",
    "is the kitchen light off?": "No, on",
    "is the front door locked?": "No, unlocked",
    "is the hall window closed?": "No, open",
    "are all the lights off?": "No, Kitchen Light is not off (Pantry: unavailable)",
    "are any lights on in the kitchen?": "Yes, Kitchen Light",
    "are any lights on upstairs?": "No",
    "which lights are on?": "Kitchen Light",
    "how many lights are off?": "3",
    "are all the curtains open?": "Yes",
    "what is the outside": "Outside is 12.35 °C",
    "how is the front door": "Front door is unlocked",
    "what's the temperature in the living room?": "21.5 degrees",
    "how warm is it in the kitchen?": "20.1 degrees",
    "what is the temperature of the thermostat?": "21.5 degrees",
    "where is Anna?": "Anna is away",
    "is Anna home?": "No, not home",
    "is everyone home?": "No, Anna is not home",
    "what's the weather like?": "20 °C and sunny",
    "what time is it?": "2:07 PM",
    "what's the date?": "March 5th, 2026",
    "hello": "Hello from Home Assistant.",
}


FOR_THE_MODEL = [
    "",
    "   ",
    "turn on the unicorn",
    "turn on the lights",  # where?
    "turn on the lamp",  # which one?
    "turn on the pantry",  # it is not available
    "turn on the right blind",
    "open the right blind",  # it cannot
    "set spots to red",  # nor can they
    "set the lamp in the office to 50%",
    "set thermostat fan to high",
    "don't turn on the kitchen light",
    "turn on the kitchen light and the spots",
    "turn on the kitchen light when I come home",
    "turn off the kitchen light in five minutes",
    "add bread, eggs and milk to my shopping list",
    "is Anna in a good mood?",
    "is the pantry on?",
    "all lights off",
    "set a timer for five minutes",
    "broadcast dinner is ready",
    "play jazz on the TV",
    "clean the kitchen",
    "who made you?",
    "where does my data go?",
    "tell me a joke about the kitchen light",
]


NEVER_AN_ORDER = {
    "en": [
        "kitchen light on?",
        "the kitchen light on?",
        "turn on the kitchen light?",
        "kitchen light to 50%?",
        "movie time?",
        "lock the front door?!",
        "turn on the kitchen light❓",
        "can you tell me if the kitchen light is on?",
        "could you check if the front door is locked?",
        "do you know if the kitchen light is on",
        "is the kitchen light on or off",
        "what happens if I turn on the kitchen light?",
    ],
    "de": [
        "Küchenlicht an?",
        "Küchenlicht noch an?",
        "Noch Licht an in der Küche?",
        "Noch Licht an in der Küche",
        "Licht in der Küche an?",
        "schalte das Küchenlicht ein?",
        "Was ist auf der Einkaufsliste",
        "Was kommt auf die Einkaufsliste",
        "Was steht auf die Liste Work",
        "Kannst du mir sagen ob das Küchenlicht an ist?",
    ],
    "fr": [
        "la lampe de cuisine est allumée ?",
        "est-ce que la lampe de cuisine est allumée",
        "allume la lampe de cuisine ?",
    ],
    "es": ["¿enciende la luz de cocina?", "¿está encendida la luz de cocina", "luz de cocina encendida?"],
    "it": ["accendi luce cucina?", "dimmi luce cucina accesa", "la luce cucina è accesa?"],
    "pl": ["sprawdź Kitchen Light", "włącz Kitchen Light?", "czy Kitchen Light jest włączony"],
    "ru": [
        "включи кухонный свет?",
        "скажи включи кухонный свет",
        "можешь сказать включи кухонный свет",
        "включён ли кухонный свет",
    ],
    "zh-CN": ["打开厨房灯？", "厨房灯开着吗", "请问厨房灯打开"],
    "el": ["άναψε Kitchen Light;"],
    "ar": ["شغل Kitchen Light؟"],
}


REQUESTS = {
    "en": [
        "can you turn on the kitchen light?",
        "Could you please turn on the kitchen light?",
        "would you turn on the kitchen light, please?",
        "can you turn the kitchen light on for me",
    ],
    "de": [
        "Kannst du das Küchenlicht einschalten?",
        "Könntest du bitte das Küchenlicht anmachen?",
        "würdest du mal das Küchenlicht einschalten",
    ],
    "fr": ["peux-tu allumer la lampe de cuisine ?", "est-ce que tu peux allumer la lampe de cuisine ?"],
    "es": ["¿puedes encender la luz de cocina?", "¿podrías encender la luz de cocina, por favor?"],
    "it": ["puoi accendere luce cucina?", "potresti accendere luce cucina per favore?"],
    "ru": ["можешь включить кухонный свет?"],
    "nl": ["kun je Kitchen Light aanzetten?"],
    "af": ["kan jy asseblief skakel die Kitchen Light aan?"],
}


@pytest.mark.parametrize("text", COMMANDS)
async def test_a_command_calls_services(house: House, text: str) -> None:
    assert await house.calls(text) == COMMANDS[text]


@pytest.mark.parametrize("text", QUESTIONS)
async def test_a_question_is_answered_at_once(house: House, text: str) -> None:
    assert await house.says(text) == QUESTIONS[text]


@pytest.mark.parametrize("text", FOR_THE_MODEL)
async def test_what_is_not_sure_is_for_the_model(house: House, text: str) -> None:
    assert await house.hear(text) is None


@pytest.mark.parametrize(
    ("language", "text"), [(k, text) for k, texts in NEVER_AN_ORDER.items() for text in texts]
)
async def test_a_question_never_calls_anything(house: House, language: str, text: str) -> None:
    house.language, house.area = language, "kitchen"
    answer = await house.hear(text)
    assert answer is None or not answer.tool_calls


@pytest.mark.parametrize(("language", "text"), [(k, text) for k, texts in REQUESTS.items() for text in texts])
async def test_a_request_is_an_order_in_the_form_of_a_question(
    house: House, language: str, text: str
) -> None:
    house.language = language
    assert await house.calls(text) == [("light.turn_on", ["light.kitchen"], {})]


@pytest.mark.parametrize("text", COMMANDS)
async def test_the_same_words_with_a_question_mark_are_no_order(house: House, text: str) -> None:
    answer = await house.hear(f"{text.rstrip('.')}?")
    assert answer is None or not answer.tool_calls
