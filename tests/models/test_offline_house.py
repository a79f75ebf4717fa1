"""Answers of the offline model about the demo home."""

import json
from datetime import UTC, datetime

import pytest

from sash import Runtime
from sash.demo.demo_home import demo_home
from sash.models.offline import OfflineModel
from sash.models.offline.phrases import ENGLISH, GERMAN
from sash.ports.intents import NOT_UNDERSTOOD
from sash.ports.model import ModelRequest
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock
from sash.values.sessions import SessionPolicy

WAIT_S = 30
MORNING = datetime(2026, 1, 15, 10, 40, tzinfo=UTC)
POLICY = SessionPolicy(allow_actuation=True, allowlisted_services=("light",))


@pytest.fixture
async def house():
    """Ask each question in a session of its own; return the last answer and record its tool calls."""
    clock = FakeClock(MORNING)
    home = demo_home(clock)
    async with Runtime(MemoryStore(), home=home, clock=clock, time_zone=UTC) as runtime:
        await runtime.home_ready(timeout_s=WAIT_S)

        async def ask(*sentences, language="en"):
            session = await runtime.start_session(policy=POLICY, preferences={"language": language})
            for sentence in sentences:
                sent = await runtime.send_message(session.id, sentence)
                result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
                assert result.status == "completed", result.continuation.error
            ask.tools = [step.detail["name"] for step in result.steps if step.type == "tool_call"]
            ask.actions = result.response.actions
            return result.response.final_message

        ask.home = home
        yield ask


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("diagnose binary_sensor.hallway_motion", "Hallway motion (Hallway) is fine."),
        ("why did the kitchen light turn on?", "Kitchen ceiling light (Kitchen) is fine: off."),
        ("why is the motion sensor unavailable?", "Hallway motion (Hallway) is fine."),
        ("why is the hallway light unavailable?", "Hallway light (Hallway) is fine: off."),
        ("What is wrong with the bedside lamp?", "Bedside lamp (Bedroom) is fine: off."),
    ],
)
async def test_only_the_named_entity_is_diagnosed(house, sentence, name):
    said = await house(sentence)
    assert said.splitlines()[0] == name
    assert house.tools.count("diagnose_entity") == 1
    assert "Also" not in said


async def test_of_several_entities_the_first_is_described_and_then_the_faulty_ones(house):
    said = await house("what is wrong with the hallway?")
    first, *others = said.split("Also: ")
    assert first.startswith("Hallway light (Hallway) is fine")
    assert all("is fine" not in other for other in others)


async def test_faults_are_described_in_sentences(house):
    flickers = await house("Why did bedroom lights flicker last night?")
    assert flickers.startswith("Bedroom ceiling light (Bedroom) needs attention")
    assert "flickers when the mains voltage dips" in flickers
    leak = await house("why is the bathroom leak sensor unavailable?")
    assert leak.startswith("Bathroom leak sensor (Bathroom) is not available.\n")


async def test_a_why_question_about_a_healthy_entity_reads_the_logbook(house):
    said = await house("why did the hallway light turn on?")
    assert "In the logbook: " in said
    assert "Hallway light turned on (automation Hallway night light)" in said


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "is the kitchen window open?",
            "I cannot find “kitchen window” in the house. The closest: Bedroom window (Bedroom): closed.",
        ),
        (
            "is the front door camera on?",
            "I cannot find “front door camera” in the house. The closest: Front door (Hallway): closed.",
        ),
        (
            "is the motion sensor in the attic ok?",
            "I cannot find “attic” in the house. The closest: Hallway motion (Hallway): clear.",
        ),
        (
            "how humid is it in the bathroom?",
            "Nothing in the house matches “humid” + “bathroom”. The closest: Living room humidity",
        ),
    ],
)
async def test_similar_entities_are_listed_as_the_closest_and_not_as_the_answer(house, question, answer):
    assert (await house(question)).startswith(answer)


async def test_an_unknown_door_has_no_state(house):
    said = await house("is the back door locked?")
    assert said.startswith(
        "I cannot find “back door” in the house. The closest: Front door lock (Hallway): locked; "
    )
    assert "Front door (Hallway): closed" in said


@pytest.mark.parametrize(
    "question",
    [
        "is the disco ball on?",
        "why is the sky blue?",
        "Who is the president of France?",
        "how do I cook rice in the kitchen?",
        "turn on the disco ball",
    ],
)
async def test_questions_that_do_not_concern_the_home_are_refused(house, question):
    assert (await house(question)).endswith(ENGLISH.cannot_answer)


@pytest.mark.parametrize("question", ["what is 2+2?", "what's on?", "why is it so cold?", "Who are you?"])
async def test_a_sentence_without_a_name_starts_no_search(house, question):
    assert await house(question) == ENGLISH.cannot_answer
    assert house.tools == []


async def test_only_the_best_matches_are_described(house):
    assert (await house("how much power does the house use?")).startswith("House power (Garage): ")
    assert "alarm" not in await house("how much power does the house use?")
    temperatures = (await house("what's the temperature?")).splitlines()
    assert len(temperatures) == 4
    assert all("temperature" in line for line in temperatures)
    both = await house("is the kitchen light and the hallway light on?")
    assert both == "Kitchen ceiling light (Kitchen): off\nHallway light (Hallway): off"


async def test_states_are_named_by_device_class_and_have_no_unit_without_a_value(house):
    sensors = await house("list sensors")
    assert "Front door (Hallway): closed" in sensors
    assert "Zigbee bridge connection (Hallway): connected" in sensors
    assert "Bathroom leak sensor battery (Bathroom): not available\n" in sensors


async def test_a_long_list_counts_the_omitted_items(house):
    *shown, more = (await house("show all lights")).splitlines()
    assert len(shown) == 10
    assert more == "and 1 more"


async def test_an_entity_id_is_read_and_an_unknown_one_is_reported(house):
    assert await house("is light.kitchen_ceiling on?") == "Kitchen ceiling light (Kitchen): off"
    assert "there is no entity 'light.kitchn'" in await house("is light.kitchn on?")


@pytest.mark.parametrize(
    "question", ["what is unavailable?", "which devices are offline?", "Is anything offline?"]
)
async def test_unavailable_entities_are_listed(house, question):
    said = await house(question)
    assert said == "Not available: Bathroom leak sensor (Bathroom); Bathroom leak sensor battery (Bathroom)."
    assert await house("which lights are unavailable?") == "Nothing like that is unavailable."


async def test_low_batteries_are_listed_with_their_last_known_level(house):
    assert await house("which batteries are low?") == (
        "Low: Bathroom leak sensor battery (Bathroom), last known level 3 %."
    )
    house.home.set_state("sensor.bathroom_leak_battery", "80")
    assert await house("which batteries are low?") == "No battery is low, as far as I know."
    assert "80 %" in await house("battery levels")


async def test_events_come_from_the_logbook(house):
    said = await house("what happened last night?")
    assert house.tools == ["get_logbook"]
    assert said.startswith("15 of ")
    assert len(said.splitlines()) == 16
    kitchen = await house("what happened in the kitchen today?")
    assert house.tools == ["search_index", "get_logbook"]
    assert "Coffee machine turned on" in kitchen
    assert "Front door" not in kitchen
    assert (await house("what happened in the disco?")).endswith(ENGLISH.cannot_answer)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("when did the front door open?", "en"),
        ("was the front door opened last night?", "en"),
        ("Wann wurde die Haustür geöffnet?", "de"),
    ],
)
async def test_a_question_about_the_past_is_not_answered_with_the_current_state(house, question, language):
    said = await house(question, language=language)
    assert "Front door was opened" in said
    assert "Front door (Hallway)" not in said


async def test_only_the_local_time_is_known(house):
    assert await house("what day of the week is it?") == "It is Thursday, 2026-01-15 10:40."
    assert "10:40" not in await house("what's the time in Tokyo?")


async def test_help_lists_example_sentences(house):
    for asked in ("help", "What can you do?"):
        assert "Which batteries are low?" in await house(asked)
    assert "Welche Batterien sind leer?" in await house("Hilfe", language="de")


@pytest.mark.parametrize(
    ("order", "answer"),
    [
        ("turn on the lamp", "Which one do you mean: Floor lamp (Living room), Bedside lamp (Bedroom)? "),
        ("turn on the lights", "Which one do you mean: "),
        ("turn off the kitchn light", "Do you mean Kitchen ceiling light (Kitchen)? "),
        (
            "lock the back door",
            "I cannot find “back door” in the house. The closest: Front door lock (Hallway); ",
        ),
    ],
)
async def test_an_ambiguous_order_causes_a_question_and_no_action(house, order, answer):
    said = await house(order)
    assert said.startswith(answer)
    assert "Nothing was done" in said
    assert house.actions == ()
    assert set(house.tools) == {"search_index"}


async def test_an_order_with_a_known_name_that_is_not_understood_is_refused(house):
    assert await house("turn on the kitchen ceiling light for 5 minutes") == ENGLISH.cannot_answer


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("Ist das Licht in der Küche an?", "Kitchen ceiling light (Kitchen): aus"),
        ("Ist die Haustür abgeschlossen?", "Ja"),
        ("Wie warm ist es im Wohnzimmer?", " Grad"),
        ("Schalte das Licht in der Küche ein", "Licht eingeschaltet"),
        ("Schalte die Lampe ein", "Was ist gemeint: Floor lamp (Living room), Bedside lamp (Bedroom)? "),
        ("Ist der Fernseher an?", "Living room TV (Living room): aus"),
        ("Was ist nicht verfügbar?", "Nicht verfügbar: Bathroom leak sensor (Bathroom); "),
        ("Welche Batterien sind leer?", "Fast leer: Bathroom leak sensor battery (Bathroom), zuletzt 3 %."),
        ("Was ist letzte Nacht passiert?", "Einträgen im Logbuch der letzten 24 Stunden"),
        (
            "Was ist mit dem Schlafzimmerlicht los?",
            "Bedroom ceiling light (Bedroom): hier stimmt etwas nicht",
        ),
        (
            "Warum flackert das Licht im Schlafzimmer?",
            "Bedroom ceiling light (Bedroom): hier stimmt etwas nicht",
        ),
        ("Gab es heute Fehler?", " Vorfälle."),
        ("Wer ist der Präsident von Frankreich?", GERMAN.cannot_answer),
        ("Erzähl mir einen Witz", GERMAN.cannot_answer),
        ("mach das rückgängig", "In dieser Sitzung gibt es nichts rückgängig zu machen."),
        (
            "Schließe die Haustür auf",
            "Ich darf lock.unlock nicht verwenden. Füge es dafür zu `allowlisted_services` hinzu.",
        ),
    ],
)
async def test_german_is_answered_in_german(house, sentence, answer):
    assert answer in await house(sentence, language="de")


async def test_an_action_without_a_change_is_not_undone_in_either_language(house):
    on = "turn on the kitchen light"
    assert await house(on, on, "undo") == "Undone. Kitchen ceiling light: off"
    ein = "Schalte das Licht in der Küche ein"
    undone = await house(ein, ein, "mach das rückgängig", language="de")
    assert undone == "Rückgängig gemacht. Kitchen ceiling light: aus"
    house.home.set_state("light.kitchen_ceiling", "on")
    said = await house(ein, "mach das rückgängig", language="de")
    assert said.startswith("light.turn_on hat nichts geändert")


@pytest.fixture
async def spoken():
    """Ask a spoken offline model in the demo home, with a policy. A "no" answers every approval."""
    clock = FakeClock(MORNING)
    model = OfflineModel(is_spoken=True)
    async with Runtime(MemoryStore(), model, home=demo_home(clock), clock=clock, time_zone=UTC) as runtime:
        await runtime.home_ready(timeout_s=WAIT_S)

        async def ask(sentence, language="en", policy=POLICY):
            session = await runtime.start_session(policy=policy, preferences={"language": language})
            sent = await runtime.send_message(session.id, sentence)
            result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
            for call in result.waiting_calls:
                await runtime.approve(sent.id, call.call_id, False)
                result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
            return result.response.final_message

        yield ask


@pytest.mark.parametrize(
    ("sentence", "language", "answer"),
    [
        ("tell me a joke", "en", "I did not understand that."),
        ("turn on the disco", "en", "I find nothing by that name in the house."),
        ("erzähl mir einen Witz", "de", "Das habe ich nicht verstanden."),
        ("raconte une blague", "fr", "Je n'ai pas compris."),
        ("cuéntame un chiste", "es", "No lo he entendido."),
        ("raccontami una barzelletta", "it", "Non ho capito."),
        ("vertel een grap", "nl", "Dat heb ik niet begrepen."),
    ],
)
async def test_a_spoken_refusal_is_one_short_sentence(spoken, sentence, language, answer):
    assert await spoken(sentence, language) == answer


@pytest.mark.parametrize(
    ("policy", "language", "sentence", "words"),
    [
        (SessionPolicy(), "en", "turn on the hallway light", "in the settings of this agent"),
        (SessionPolicy(), "de", "schalte Hallway light ein", "in den Einstellungen dieses Agenten"),
        (POLICY, "en", "lock the front door", "use lock.lock. You can change this in the settings"),
        (POLICY, "en", "how can I let you control lights?", "“Control devices”"),
    ],
)
async def test_a_spoken_answer_names_the_settings_of_home_assistant(
    spoken, policy, language, sentence, words
):
    said = await spoken(sentence, language, policy)
    assert words in said
    assert "`" not in said and "SASH_" not in said and "session" not in said


@pytest.mark.parametrize(
    ("language", "sentence", "answer"),
    [
        ("en", "unlock the front door", "OK, I will not do that."),
        ("de", "schließe Front door auf", "Gut, ich mache es nicht."),
        ("nl", "ontgrendel Front door", "Goed, ik doe het niet."),
        ("fr", "déverrouille Front door", "D'accord, je ne le fais pas."),
        ("it", "sblocca Front door", "Va bene, non lo faccio."),
    ],
)
async def test_a_no_is_confirmed_in_the_language_of_the_user(spoken, language, sentence, answer):
    policy = SessionPolicy(allow_actuation=True, allowlisted_services=("lock",))
    assert await spoken(sentence, language, policy) == answer


async def test_a_tool_that_understood_nothing_counts_as_not_called():
    asked = {"role": "user", "content": "which lights are on?"}
    call = {"role": "assistant", "content": "", "tool_calls": []}
    void = {"role": "tool", "name": "local_engine", "content": json.dumps(NOT_UNDERSTOOD)}
    search = {"type": "function", "function": {"name": "search_index"}}
    answered = [d async for d in OfflineModel().stream(ModelRequest([asked, call, void], [search]))]
    assert answered[0].name == "search_index"
