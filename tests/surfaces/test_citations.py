"""Citations and follow-ups of answers, through REST, events, MCP, export and the command line."""

import json

import pytest

from sash.demo.demo_home import demo_home
from sash.models.offline import OfflineModel
from sash.testing import FakeClock, calling
from tests.home.small_home import house
from tests.surfaces.command_line import list_sessions, talk
from tests.surfaces.serving import is_final, listen, serving
from tests.surfaces.speaking import ERAS, talking
from tests.surfaces.terminal import Terminal

DOOR = {"type": "entity", "entity_id": "lock.front_door", "name": "Front door", "state": "locked", "unit": ""}


async def ask(served, message, **session):
    await served.runtime.home.wait_until_ready()
    session_id = await served.start(**session)
    return await served.wait(await served.send(session_id, message))


def drop_times(citations):
    return [{k: v for k, v in c.items() if k not in ("at", "start", "end")} for c in citations]


async def test_an_answer_cites_the_states_that_it_mentions(tmp_path):
    read = calling("get_states", entity_ids=["lock.front_door", "light.kitchen_counter"])
    async with serving(tmp_path, read, "Yes, the front door is locked.", home=house()) as served:
        shown = await ask(served, "Tell me whether somebody could come in")
        [cited] = shown["response"]["citations"]
        assert drop_times([cited]) == [DOOR] and cited["at"] == "2026-01-01T00:00:00Z"
        session_id = shown["session_id"]
        events = await listen(served.client, session_id, is_final, params={"after": 0})
        assert events[-1]["data"]["payload"]["final_response"]["citations"] == [cited]
        exported = (await served.client.get(f"/v1/sessions/{session_id}/export")).json()
        assert exported["continuations"][0]["response"]["citations"] == [cited]
        await served.client.delete(f"/v1/sessions/{session_id}")
        moved = (await served.client.post("/v1/sessions/import", json=exported)).json()["session_id"]
        again = (await served.client.get(f"/v1/sessions/{moved}/export")).json()
        assert again["continuations"][0]["response"]["citations"] == [cited]
        exported["continuations"][0]["response"]["citations"] = [{"type": "gossip"}]
        refused = await served.client.post("/v1/sessions/import", json=exported)
        assert refused.status_code == 422, refused.text
        exported["continuations"][0]["response"]["citations"] = [cited] * 9
        refused = await served.client.post("/v1/sessions/import", json=exported)
        assert refused.status_code == 422, refused.text


async def test_a_local_answer_cites_what_it_read(tmp_path):
    async with serving(tmp_path, "The model was asked.", home=house()) as served:
        shown = await ask(served, "Is the front door locked?")
        assert shown["stats"]["local_turns"] == 1
        assert drop_times(shown["response"]["citations"]) == [DOOR]


async def test_histories_log_entries_and_recalled_turns_are_cited(tmp_path):
    lines = (
        calling("get_history", entity_ids=["sensor.living_room_temperature"]),
        calling("get_logbook", limit=5),
        "It was about 21 degrees.",
    )
    async with serving(tmp_path, *lines, home=demo_home()) as served:
        shown = await ask(served, "Please look into the past of the living room for me")
        kinds = [c["type"] for c in shown["response"]["citations"]]
        assert kinds and set(kinds) <= {"history", "log"} and len(kinds) <= 8


async def test_a_reply_of_a_conversation_has_citations_and_follow_ups(tmp_path):
    async with serving(tmp_path, "no", home=house()) as served:
        await served.runtime.home.wait_until_ready()
        said = (
            await served.client.post("/conversation", json={"text": "turn on the kitchen ceiling"})
        ).json()
        assert [c["entity_id"] for c in said["extra"]["citations"]] == ["light.kitchen_ceiling"]
        assert said["extra"]["follow_ups"] == ["Undo that"]


async def test_an_answer_that_mentions_nothing_cites_what_was_read_if_it_is_little(tmp_path):
    few = calling("get_states", entity_ids=["lock.front_door"])
    many = calling("search_index", limit=20, query="kitchen living room front door lights")
    async with serving(tmp_path, few, "Hm.", many, "I do not know.", home=house()) as served:
        shown = await ask(served, "Think about the lock for a while")
        assert [c["entity_id"] for c in shown["response"]["citations"]] == ["lock.front_door"]
        shown = await ask(served, "Think about the lamps for a while")
        assert shown["response"]["citations"] == []


async def test_a_done_action_can_be_undone_and_a_refused_one_explained(tmp_path):
    async with serving(tmp_path, "no", home=house()) as served:
        shown = await ask(served, "turn on the kitchen ceiling")
        assert shown["response"]["follow_ups"] == ["Undo that"]
        undone = await served.wait(await served.send(shown["session_id"], "Undo that"))
        assert undone["response"]["actions"][0]["outcome"] == "done"
        assert undone["response"]["follow_ups"] == []


async def test_a_refused_action_tells_how_to_allow_it(tmp_path):
    async with serving(tmp_path, "I may not.", home=house(), allow_actuation=False) as served:
        shown = await ask(served, "turn on the kitchen ceiling")
        assert shown["response"]["follow_ups"] == ["How do I allow you to control devices?"]


async def test_an_entity_is_cited_only_if_one_sentence_has_its_whole_name(tmp_path):
    read = calling("get_states", entity_ids=["lock.front_door", "light.kitchen_ceiling"])
    answer = "The kitchen is dark. The ceiling is white. The front door is locked."
    async with serving(tmp_path, read, answer, home=house()) as served:
        shown = await ask(served, "Tell me whether somebody could come in")
        assert drop_times(shown["response"]["citations"]) == [DOOR]


async def test_a_conversation_gets_sources_and_next_steps(tmp_path):
    async with serving(tmp_path, "no", home=house()) as served:
        await served.runtime.home.wait_until_ready()
        said = (
            await served.client.post("/conversation", json={"text": "turn on the kitchen ceiling"})
        ).json()
        [cited] = said["extra"]["citations"]
        assert (cited["entity_id"], cited["state"]) == ("light.kitchen_ceiling", "on")
        assert said["extra"]["follow_ups"] == ["Undo that"]


DOWN = {"en": "Which devices are unavailable?", "de": "Welche Geräte sind nicht verfügbar?"}
NEXT = {
    "en": ["What is wrong with the Bathroom leak sensor?"],
    "de": ["Was ist los mit Bathroom leak sensor?"],
}


@pytest.mark.parametrize(
    ("preferred", "language"), [({}, "en"), ({"language": "de-AT"}, "de"), ({"language": "fr"}, None)]
)
async def test_next_steps_are_sentences_in_the_users_language_that_get_an_answer(
    tmp_path, preferred, language
):
    async with serving(tmp_path, model=OfflineModel(), home=demo_home(FakeClock())) as served:
        shown = await ask(served, DOWN[language or "en"], preferences=preferred)
        assert shown["response"]["follow_ups"] == NEXT.get(language, [])
        for sentence in shown["response"]["follow_ups"]:
            answered = await served.wait(await served.send(shown["session_id"], sentence))
            assert answered["stats"]["local_turns"] or answered["stats"]["tool_calls"], sentence


async def test_a_terminal_shows_sources_and_next_steps_after_the_answer(cli):
    with Terminal(cli, "ask", "Which devices are unavailable?") as terminal:
        assert await terminal.leaves() == 0
    answer, sources = terminal.shown.split("\nfrom: ", 1)
    assert "cannot be reached at the moment" in answer
    assert "Bathroom leak sensor battery" in sources
    assert "\nnext: What is wrong with the Bathroom leak sensor?\n" in sources


def test_chat_and_show_have_sources_and_next_steps(cli):
    shown = talk(cli, "Turn on the kitchen light", arguments=("--allow", "light"))
    assert "  from: Kitchen ceiling light: on, since 2026-01-15 " in shown
    assert "  next: Undo that\n" in shown
    messages = json.loads(cli("show", list_sessions(cli)[0]["id"], "--json").stdout)["messages"]
    lines = cli("show", messages[-1]["continuation_id"]).stdout.splitlines()
    properties = [line.split(None, 1) for line in lines if line.startswith(("from ", "next "))]
    assert [(name, text.split(",")[0]) for name, text in properties] == [
        ("from", "Kitchen ceiling light (light.kitchen_ceiling): on"),
        ("next", "Undo that"),
    ]


async def test_mcp_has_citations_in_its_structured_output_and_its_text(tmp_path):
    async with serving(tmp_path, "The model was asked.", home=house()) as served:
        await served.runtime.home.wait_until_ready()
        async with talking(served.url, ERAS[-1]) as client:
            result = await client.call_tool("ha_agent_ask", {"message": "Is the front door locked?"})
        assert drop_times(result.structured_content["response"]["citations"]) == [DOOR]
        assert "lock.front_door" in result.content[0].text


async def test_a_recalled_turn_is_cited_with_its_date(tmp_path):
    async with serving(tmp_path, "Noted.", "ok", "ok", "The code of the boiler is XK4711.") as served:
        session_id = await served.start(window={"max_turns": 2})
        for message in ("Anna says that the boiler in the cellar has the code XK4711", "one", "two"):
            await served.wait(await served.send(session_id, message))
        shown = await served.wait(await served.send(session_id, "What was the code of the boiler"))
        [cited] = shown["response"]["citations"]
        assert cited["type"] == "turn" and "XK4711" in cited["text"] and cited["at"]
        await served.client.post(f"/v1/sessions/{session_id}/end")
        exported = (await served.client.get(f"/v1/sessions/{session_id}/export")).json()
        moved = await served.client.post("/v1/sessions/import", json=exported | {"signature": ""})
        assert moved.status_code == 201, moved.text


CELLO = "I bought a cello for Mira, which has a crack near the bridge, and paid 1450 euros"
CROWN = "The dentist told me that I need a crown beside the cello lesson, for 780 euros"
OTHERS = [f"We have {n} hens in the garden" for n in range(3, 23)]
COST = "How much did the cello cost?"


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("It cost 1,450 euros.", [CELLO]),
        ("The cello cost 1450 euros.", [CELLO]),
        ("The crown costs 780 euros, and the cello 1,450 euros.", [CELLO, CROWN]),
        ("The cello did not cost anything that I know of.", []),
    ],
)
async def test_only_the_recalled_turns_that_an_answer_uses_are_cited(tmp_path, answer, cited):
    async with serving(tmp_path, *["ok"] * (2 + len(OTHERS)), answer) as served:
        session_id = await served.start(window={"max_turns": 2})
        for message in (CELLO, CROWN, *OTHERS):
            await served.wait(await served.send(session_id, message))
        shown = await served.wait(await served.send(session_id, COST))
        texts = [citation["text"].partition(" / ")[0] for citation in shown["response"]["citations"]]
        assert sorted(texts) == sorted(cited)


async def test_a_recalled_turn_is_cited_for_what_stands_behind_its_first_words(tmp_path):
    story = (
        "The cello came with a long story, " + "which I shall not repeat, " * 10 + "and its number is K4471"
    )
    async with serving(tmp_path, *["ok"] * (1 + len(OTHERS)), "It is K4471.") as served:
        session_id = await served.start(window={"max_turns": 2})
        for message in (story, *OTHERS):
            await served.wait(await served.send(session_id, message))
        shown = await served.wait(await served.send(session_id, "What was the number of the cello?"))
        [cited] = shown["response"]["citations"]
        assert cited["text"].startswith("The cello came")


async def test_only_the_turns_that_an_answer_uses_are_cited_after_a_call_of_recall(tmp_path):
    recall = calling("recall", query="cello")
    async with serving(tmp_path, "ok", "ok", "ok", "ok", recall, "It cost 1,450 euros.") as served:
        session_id = await served.start(window={"max_turns": 2})
        for message in (CELLO, CROWN, "one", "two"):
            await served.wait(await served.send(session_id, message))
        shown = await served.wait(await served.send(session_id, "Look for it please"))
        assert [citation["text"] for citation in shown["response"]["citations"]] == [CELLO]
