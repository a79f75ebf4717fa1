"""With a language model, sentences are answered without it only if every word is understood for certain."""

from collections.abc import AsyncIterator

import pytest

from sash.demo.demo_home import demo_home
from sash.demo.simulated_home import SimulatedHome
from sash.engine.runtime import Runtime
from sash.home.live_home import LiveHome
from sash.intents.everyday_intents import EverydayIntents
from sash.intents.home_intents import HomeIntents
from sash.ports.home import UNAVAILABLE
from sash.ports.intents import Utterance
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.sessions import Session, SessionPolicy
from tests.intents.everyday import NOW
from tests.runtime.talk import answer

TOOLS = frozenset(
    {
        "call_service", "get_states", "get_history", "get_logbook", "undo_last_action", "remember", "forget", "recall",
        "do_later", "list_waiting", "cancel_waiting", "reset_conversation", "search_index",
    }
)  # fmt: skip
FREE = SessionPolicy(allow_actuation=True, allowlisted_services=("*",), max_actions_per_minute=None)
FROM_MODEL = "The model answers."
# Requests for texts and advice, general knowledge, remarks, and questions about things that the home does not have.
LEFT = {
    "en": [
        "write a poem about the kitchen light",
        "I was thinking about turning the bedroom into an office, what do you think?",
        "explain how a thermostat works",
        "how do I cook rice in the kitchen?",
        "what is the capital of France?",
        "how does a heat pump work?",
        "tell me a story about a robot that turns off the lights",
        "write a short email to my landlord about the broken heating",
        "what colour should I paint the bedroom?",
        "is it better to leave the heating on all day or to turn it off when I am out?",
        "how much does it cost to run a fan all night?",
        "why do lamps flicker?",
        "why is the sky blue?",
        "how long does it take to boil an egg?",
        'translate "turn on the light" into German',
        'what does "turn off the light" mean in French?',
        "how do you say good night in Spanish?",
        "what are good names for a robot vacuum?",
        "which light bulb is best for reading in the bedroom?",
        "who invented the light bulb?",
        "when was the light bulb invented?",
        "what is the ideal temperature for a bedroom?",
        "how warm should a baby's bedroom be?",
        "give me three ideas for a movie night in the living room",
        "suggest a good scene for dinner",
        "summarize what happened in the house today in one paragraph",
        "what is the difference between a switch and a light?",
        "should I open the window to lower the humidity?",
        "can you recommend a lock for the front door?",
        "go on then, as we said",
        "what is the name of the person for the garden?",
        "what is a humidifier good for?",
        "how do I clean the kitchen?",
        "how do I get wine stains out of the bedroom curtains?",
        "how often should I change the batteries in the smoke detector?",
        "what do you think of the living room?",
        "do you like the kitchen light?",
        "I love the new lamp in the living room",
        "the kitchen light reminds me of my grandmother",
        "my neighbour's dog is barking in the garden again",
        "yesterday I bought a new lamp for the bedroom, it was cheap",
        "write an automation that turns on the hall light at sunset",
        "create a dashboard for the living room",
        "write me a yaml script that turns off all lights",
        "plan a dinner for six people on Saturday",
        "what should I cook tonight?",
        "how many calories are in an apple?",
        "how many lights does a normal house have?",
        "what is 12 times 7?",
        "what time is it in Springfield?",
        "what's the weather like in Paris?",
        "who won the game last night?",
        "play a guessing game with me",
        "sing a song about the garage door",
        "the kids are asleep upstairs, what would you do with the lights?",
        "if you were a lamp, where would you stand in the bedroom?",
        "we had a party in the living room last night and the sofa is dirty now",
        "what happens if I leave the fridge open all night?",
        "is it dangerous to leave the fan on all night?",
        "which of my rooms wastes the most energy and what could I do about it?",
        "compare the bedroom and the living room temperatures and tell me which one is healthier",
        "what would it cost to heat the office to 25 degrees all winter?",
        "rewrite this politely: turn the light off",
        "describe the living room",
        "how can I make the bedroom cosier?",
        "make a shopping list for pancakes",
        "what do I need for pancakes?",
        "remember the song from last summer?",
        "turn the light into a disco",
        "turn on the charm",
        "open your mind",
        "close the deal",
        "the light at the end of the tunnel",
        "lock in your answer",
        "I could not sleep last night because the bedroom was too warm. I turned the fan on but it was loud. What can I do?",
        "My mother visits tomorrow. She likes it warm. The guest room is small. Any advice?",
        "do you think the office is warm enough to work in?",
        "what does kWh mean?",
        "how is electricity made?",
        "what is the best time to water the garden?",
        "tell me something interesting about doors",
        "what is the meaning of life?",
        "are lights bad for plants?",
        "how bright is the sun?",
        "how hot is the sun?",
        "how warm is it on Mars?",
        "how far is the moon?",
        "is the moon full tonight?",
        "what was the first light bulb made of?",
        "name three famous towers",
        "list ten uses for an old lamp",
        "when do the shops close?",
        "when does the museum open?",
        "is the supermarket open on Sunday?",
        "where can I buy a lamp?",
        "who is the president?",
        "how old is the house in Goethe's garden?",
        "can plants survive in a dark hall?",
        "is 19 degrees too cold for a cat?",
        "what is a good temperature for red wine?",
        "how much water should I drink a day?",
        "tell me about the history of the door lock",
        "tell me about the kitchen light's energy label",
        "turn the living room into a cinema",
        "I'd like to know more about solar power",
        "how does the vacuum find its way around the living room?",
        "what is the opposite of on?",
        "is a lamp a light?",
        "make up a bedtime story about a lamp who is afraid of the dark",
        "my thermostat shows E3, what does that mean?",
        "how can I save electricity at home?",
        "what's a good way to light a hallway?",
        "give me a recipe with tomatoes",
        "what can I do against mould in the bathroom?",
        "is LED light bad for the eyes?",
        "convert 72 degrees Fahrenheit to Celsius",
        "how many watts does a typical fridge use?",
        "the bedroom is so gloomy, it makes me sad",
        "I think the office light is ugly",
        "we want to sell the house, what is the living room worth?",
        "remind me how photosynthesis works",
        "which rooms should get new windows first?",
        "would it be smart to put a fan in the kitchen?",
        "help me write a note for the cleaner about the bedroom",
        "how loud is a vacuum cleaner normally?",
        "what was the weather like in Berlin in 1990?",
        "is the garage a good place for a freezer?",
        "why are blinds called blinds?",
        "when did people start to lock their doors?",
        "who wrote the song Light my fire?",
        "play chess with me",
        "set the scene for a detective story in the living room",
        "turn over a new leaf",
        "switch to German",
        "answer in French from now on",
        "speak more slowly please",
        "open the pod bay doors, HAL",
        "can lights see?",
        "count to ten",
        "spell the word thermostat",
        "what rhymes with light?",
        "define humidity",
        "how tall is the garage door usually?",
        "are you smarter than the kitchen light?",
        "did the Romans have windows?",
        "how long has the light bulb existed?",
        "what did people use before the light switch?",
        "how often do garage doors break?",
        "the dog chewed the bedroom curtain",
        "I spilled coffee on the living room carpet, help",
        "how do I connect a new bulb?",
        "my wife says the kitchen light is too bright for dinner parties, is she right?",
        "Do you ever sleep at night?",
        "give the bedroom light a funny name",
        "rename the kitchen light to Sunny",
        "add a new lamp to Home Assistant",
        "install the washing machine",
        "is my house haunted?",
        "are my doors strong enough against burglars?",
        "will electricity get more expensive next year?",
        "how much electricity does a lamp use in a year?",
        "what temperature does water boil at?",
        "at what humidity does mould grow?",
        "what is the average temperature in Iceland?",
        "what is the highest mountain?",
        "which is the warmest month in Spain?",
        "when is the best time to vacuum?",
        "who should clean the kitchen today?",
        "what did Einstein say about light?",
        "why did the chicken cross the road?",
        "why did the Titanic sink?",
        "what happened in 1989?",
        "what happened to the dinosaurs?",
        "how long did the war last?",
        "was the light on when the accident happened in Chernobyl?",
        "how many doors does a car have?",
        "how many windows does the White House have?",
        "is there life on Mars?",
        "is there a light novel called kitchen?",
        "are there any good films on tonight?",
        "what's on TV tonight?",
        "how is the traffic?",
        "do I have to lock the door when I leave?",
        "is it legal to leave the door open?",
        "could the fan make me sick?",
    ],
    "de": [
        "schreib ein Gedicht über das Küchenlicht",
        "erkläre mir, wie ein Thermostat funktioniert",
        "wie koche ich Reis in der Küche?",
        "was ist die Hauptstadt von Frankreich?",
        "ich überlege, aus dem Schlafzimmer ein Büro zu machen, was meinst du?",
        "erzähl mir eine Geschichte über einen Roboter, der das Licht ausmacht",
        "schreib eine E-Mail an meinen Vermieter über die kaputte Heizung",
        "welche Farbe soll ich für das Schlafzimmer nehmen?",
        "ist es besser, die Heizung den ganzen Tag an zu lassen?",
        "warum flackern Lampen?",
        "warum ist der Himmel blau?",
        "wie lange dauert es, ein Ei zu kochen?",
        'übersetze "mach das Licht an" ins Englische',
        'was heißt "Licht aus" auf Spanisch?',
        "wer hat die Glühbirne erfunden?",
        "wann wurde die Glühbirne erfunden?",
        "welche Temperatur ist ideal für ein Schlafzimmer?",
        "wie warm sollte ein Kinderzimmer sein?",
        "gib mir drei Ideen für einen Filmabend im Wohnzimmer",
        "was ist der Unterschied zwischen einem Schalter und einer Lampe?",
        "soll ich das Fenster öffnen, um die Feuchtigkeit zu senken?",
        "welches Schloss empfiehlst du für die Haustür?",
        "wie oft soll ich die Batterien im Rauchmelder wechseln?",
        "was hältst du vom Wohnzimmer?",
        "ich liebe die neue Lampe im Wohnzimmer",
        "gestern habe ich eine neue Lampe für das Schlafzimmer gekauft",
        "schreibe eine Automation, die abends das Licht im Flur einschaltet",
        "was soll ich heute Abend kochen?",
        "wie viele Kalorien hat ein Apfel?",
        "wie spät ist es in Tokio?",
        "wie ist das Wetter in Paris?",
        "wer hat gestern Abend gewonnen?",
        "sing ein Lied über das Garagentor",
        "wenn du eine Lampe wärst, wo würdest du im Schlafzimmer stehen?",
        "was passiert, wenn ich den Kühlschrank die ganze Nacht offen lasse?",
        "ist es gefährlich, den Ventilator die ganze Nacht laufen zu lassen?",
        "was würde es kosten, das Büro den ganzen Winter auf 25 Grad zu heizen?",
        "beschreibe das Wohnzimmer",
        "wie kann ich das Schlafzimmer gemütlicher machen?",
        "mach das Wohnzimmer zum Kino",
        "wie heiß ist die Sonne?",
        "wann macht das Museum auf?",
        "hat der Supermarkt am Sonntag offen?",
        "was bedeutet kWh?",
        "wie wird Strom gemacht?",
        "ist ein Thermostat eine Heizung?",
        "wie funktioniert eine Wärmepumpe?",
        "was brauche ich für Pfannkuchen?",
        "ich konnte letzte Nacht nicht schlafen, weil es im Schlafzimmer zu warm war. Was kann ich tun?",
        "meine Mutter kommt morgen. Sie mag es warm. Hast du einen Rat?",
        "wo kann ich eine Lampe kaufen?",
        "sind 19 Grad zu kalt für eine Katze?",
        "wie kann ich zu Hause Strom sparen?",
        "was kann ich gegen Schimmel im Bad tun?",
        "gib mir ein Rezept mit Tomaten",
        "wie viel Watt braucht ein Kühlschrank normalerweise?",
        "buchstabiere Thermostat",
        "was reimt sich auf Licht?",
        "hilf mir, eine Notiz für die Putzfrau zu schreiben",
        "warum heißt die Jalousie Jalousie?",
        "wie hoch ist der Eiffelturm?",
        "was war 1989 los?",
        "wann ist die beste Zeit zum Staubsaugen?",
        "ist LED-Licht schlecht für die Augen?",
        "wie laut ist ein Staubsauger?",
        "nenne die Küchenlampe ab jetzt Sonni",
        "bist du klüger als das Küchenlicht?",
        "was läuft heute Abend im Fernsehen?",
        "ist die Garage ein guter Platz für einen Gefrierschrank?",
        "meine Frau sagt, das Küchenlicht ist zu hell, hat sie recht?",
        "darf ich die Tür offen lassen?",
        "wie viele Türen hat ein Auto?",
        "wie viel Strom verbraucht eine Lampe im Jahr?",
        "bei welcher Temperatur kocht Wasser?",
        "wer hat das Licht erfunden?",
        "wie viele Fenster hat das Weiße Haus?",
        "ich denke oft an das alte Haus meiner Oma",
    ],
    "fr": [
        "écris un poème sur la lumière de la cuisine",
        "explique comment fonctionne un thermostat",
        "comment cuire du riz dans la cuisine ?",
        "quelle est la capitale de l'Italie ?",
        "qui a inventé l'ampoule ?",
        "pourquoi le ciel est bleu ?",
        "quelle est la température idéale pour une chambre ?",
        "que penses-tu du salon ?",
        "quel temps fait-il à Paris ?",
        "raconte une histoire sur une lampe",
        "comment économiser l'électricité à la maison ?",
        "combien de portes a une voiture ?",
        "à quelle température l'eau bout-elle ?",
        "qu'est-ce qui rime avec lumière ?",
        "ma femme trouve la lumière trop forte, a-t-elle raison ?",
    ],
    "es": [
        "escribe un poema sobre la luz de la cocina",
        "explica cómo funciona un termostato",
        "¿cómo se cocina el arroz?",
        "¿cuál es la capital de Francia?",
        "¿quién inventó la bombilla?",
        "¿por qué el cielo es azul?",
        "¿cuál es la temperatura ideal para un dormitorio?",
        "¿qué opinas del salón?",
        "¿qué tiempo hace en París?",
        "cuéntame un cuento sobre una lámpara",
        "¿cómo ahorro electricidad en casa?",
        "¿cuántas puertas tiene un coche?",
        "¿a qué temperatura hierve el agua?",
        "¿qué rima con luz?",
    ],
    "it": [
        "scrivi una poesia sulla luce della cucina",
        "spiega come funziona un termostato",
        "come si cuoce il riso in cucina?",
        "qual è la capitale della Francia?",
        "chi ha inventato la lampadina?",
        "perché il cielo è blu?",
        "qual è la temperatura ideale per una camera da letto?",
        "cosa pensi del soggiorno?",
        "che tempo fa a Parigi?",
        "raccontami una storia su una lampada",
        "quante porte ha una macchina?",
        "a che temperatura bolle l'acqua?",
    ],
    "nl": [
        "schrijf een gedicht over het licht in de keuken",
        "leg uit hoe een thermostaat werkt",
        "hoe kook ik rijst in de keuken?",
        "wat is de hoofdstad van Frankrijk?",
        "wie heeft de gloeilamp uitgevonden?",
        "waarom is de lucht blauw?",
        "wat is de ideale temperatuur voor een slaapkamer?",
        "wat vind je van de woonkamer?",
        "wat voor weer is het in Parijs?",
        "vertel een verhaal over een lamp",
        "hoe bespaar ik stroom thuis?",
        "hoeveel deuren heeft een auto?",
        "bij welke temperatuur kookt water?",
        "wat rijmt op licht?",
    ],
}
UNDERSTOOD = {
    "en": ["turn on the kitchen light", "is the front door locked?", "how warm is it in the bedroom?", "good morning", "when was the garage door opened last?"],
    "de": ["mach das Licht in der Küche an", "ist die Haustür abgeschlossen?", "guten Morgen", "wie warm ist es im Schlafzimmer?"],
    "fr": ["allume la lumière de la cuisine", "quelle est la température dans la chambre ?"],
    "es": ["enciende la luz de la cocina", "¿qué temperatura hace en el dormitorio?"],
    "it": ["accendi la luce della cucina"],
    "nl": ["doe het licht in de keuken aan", "hoe warm is het in de slaapkamer?"],
}  # fmt: skip


@pytest.fixture
async def intents() -> AsyncIterator[EverydayIntents]:
    live = LiveHome(demo_home(FakeClock(NOW)))
    await live.open()
    await live.wait_until_ready()
    clock = FakeClock(NOW)
    yield EverydayIntents(live, HomeIntents(live, clock=clock), clock=clock)
    await live.close()


async def list_answered(intents: EverydayIntents, sentences: list[str], language: str) -> list[str]:
    """Return the sentences that are answered without the model."""
    session = Session("s", "anna", NOW, NOW, policy=FREE)
    return [
        text
        for text in sentences
        if await intents.understand(Utterance(text, session, TOOLS, language=language)) is not None
    ]


@pytest.mark.parametrize("language", LEFT)
async def test_other_requests_are_left_to_the_model(intents: EverydayIntents, language: str) -> None:
    assert await list_answered(intents, LEFT[language], language) == []


@pytest.mark.parametrize("language", UNDERSTOOD)
async def test_what_is_understood_needs_no_model(intents: EverydayIntents, language: str) -> None:
    assert await list_answered(intents, UNDERSTOOD[language], language) == UNDERSTOOD[language]


@pytest.mark.parametrize("text", ["turn on the kitchn ligth", "remind me", "open the sauna", "set a timer"])
async def test_slips_and_what_is_missing_are_left_to_the_model(intents: EverydayIntents, text: str) -> None:
    assert await list_answered(intents, [text], "en") == []


async def talk(home: SimulatedHome, *sentences: str) -> list[str]:
    """Return the answers to some sentences in one session with a model."""
    async with Runtime(MemoryStore(), ScriptedModel(FROM_MODEL), home=home, clock=FakeClock(NOW)) as runtime:
        await runtime.home_ready(timeout_s=10)
        session = await runtime.start_session(policy=FREE)
        return [await answer(runtime, session, text) for text in sentences]


@pytest.mark.parametrize("reply", ["yes", "no", "ok", "yes please", "never mind", "great", "I'm not sure"])
async def test_a_reply_to_the_model_goes_to_the_model(reply: str) -> None:
    said = await talk(demo_home(FakeClock(NOW)), "how can I make the bedroom cosier?", reply)
    assert said == [FROM_MODEL, FROM_MODEL]


@pytest.mark.parametrize("follow_up", ["and the bedroom?", "turn it off", "what about the hallway?"])
async def test_what_the_model_spoke_of_is_not_taken_from_earlier_turns(follow_up: str) -> None:
    said = await talk(
        demo_home(FakeClock(NOW)),
        "turn on the kitchen ceiling light",
        "write a poem about the garden",
        follow_up,
    )
    assert said[0] != FROM_MODEL
    assert said[1:] == [FROM_MODEL, FROM_MODEL]


async def test_the_model_explains_what_could_not_be_done() -> None:
    home = demo_home(FakeClock(NOW))
    home.set_state("light.kitchen_ceiling", UNAVAILABLE)
    assert await talk(home, "turn on the kitchen ceiling light") == [FROM_MODEL]


async def test_the_model_explains_that_there_is_nothing_to_undo() -> None:
    assert await talk(demo_home(FakeClock(NOW)), "undo that") == [FROM_MODEL]
