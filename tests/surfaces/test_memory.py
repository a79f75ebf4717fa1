"""The memory of a person through REST, MCP and the command line: facts, pins, preferences, starting over."""

import asyncio
import json

import pytest

from sash.demo.demo_home import demo_home
from sash.testing import ScriptedModel
from tests.models.wire import Wire, said
from tests.surfaces.command_line import NO_HOME, chat_once, list_sessions, model_at
from tests.surfaces.serving import problem, serving
from tests.surfaces.speaking import call, refused, talking

ERA = "2026-07-28"
FACT = "I like 21 degrees"


@pytest.fixture
def model():
    return ScriptedModel("ok")


def prompt(model):
    return "\n".join(str(message["content"]) for message in model.requests[-1].messages)


async def test_a_fact_told_on_rest_is_known_in_every_session(tmp_path, model):
    async with serving(tmp_path, model=model) as served:
        asked = await served.client.post(
            "/v1/ask", json={"message": f"remember that {FACT}", "timeout_ms": 40_000}
        )
        assert asked.json()["response"]["final_message"] == f"I will remember: {FACT}."
        await served.wait(await served.send(await served.start()))
        assert FACT in prompt(model)
        [fact] = (await served.client.get("/v1/facts")).json()["facts"]
        assert (fact["text"], fact["scope"]) == (FACT, "owner")
        at = f"/v1/facts/{fact['id']}"
        changed = await served.client.patch(at, json={"text": "I like 19 degrees"})
        assert changed.json()["text"] == "I like 19 degrees"
        await served.wait(await served.send(await served.start()))
        assert "19 degrees" in prompt(model)
        assert (await served.client.delete(at)).json()["facts"][0]["id"] == fact["id"]
        assert (await served.client.delete(at)).status_code == 404
        assert (await served.client.get("/v1/facts")).json()["facts"] == []


async def test_owners_have_pins_and_preferences_on_rest(tmp_path, model):
    async with serving(tmp_path, model=model) as served:
        pin = (await served.client.post("/v1/pins", json={"text": "Answer in one sentence."})).json()
        assert (await served.client.get("/v1/pins")).json()["pins"] == [pin]
        wanted = {"preferences": {"language": "de"}}
        assert (await served.client.patch("/v1/preferences", json=wanted)).json() == wanted
        assert (await served.client.get("/v1/preferences")).json() == wanted
        session_id = await served.start()
        await served.wait(await served.send(session_id))
        assert "Answer in one sentence." in prompt(model)
        assert "language: de" in prompt(model)
        assert (await served.client.delete(f"/v1/pins/{pin['id']}")).status_code == 204


async def test_a_caller_without_act_sets_no_pins_for_sessions_that_may_act(tmp_path, model):
    async with serving(tmp_path, model=model, allow_actuation=True) as served:
        headers = served.token("local", "read", "converse")
        post = served.client.post
        assert (await post("/v1/pins", json={"text": "Unlock it."}, headers=headers)).status_code == 403
        wanted = {"preferences": {"a": "unlock it"}}
        refusal = await served.client.patch("/v1/preferences", json=wanted, headers=headers)
        assert refusal.status_code == 403
        assert (await post("/v1/facts", json={"text": FACT}, headers=headers)).status_code == 201
        async with talking(served.url, ERA, headers) as mcp:
            assert await refused(mcp, "ha_agent_pin", text="Unlock it.") == "forbidden"
            assert await refused(mcp, "ha_agent_set_preferences", **wanted) == "forbidden"


async def test_an_erased_owner_has_no_facts(tmp_path, model):
    async with serving(tmp_path, model=model) as served:
        await served.client.post("/v1/facts", json={"text": FACT})
        await served.client.delete("/v1/owners/me")
        assert (await served.client.get("/v1/facts")).json()["facts"] == []


async def test_facts_are_listed_edited_and_forgotten_over_mcp(tmp_path, model):
    async with serving(tmp_path, model=model) as served, talking(served.url, ERA) as mcp:
        await call(mcp, "ha_agent_ask", message=f"remember that {FACT}")
        [fact] = (await call(mcp, "ha_agent_list_facts"))["facts"]
        assert fact["text"] == FACT
        changed = await call(mcp, "ha_agent_remember", text="I like 19 degrees", fact_id=fact["id"])
        [changed] = changed["facts"]
        assert changed["id"] == fact["id"]
        session_id = (await call(mcp, "ha_agent_start_session"))["session_id"]
        guest = await call(mcp, "ha_agent_remember", text="A guest is here.", session_id=session_id)
        [guest] = guest["facts"]
        assert guest["scope"] == "session"
        assert await refused(mcp, "ha_agent_forget", fact_id=guest["id"]) == "note_not_found"
        await call(mcp, "ha_agent_forget", fact_id=guest["id"], session_id=session_id)
        await call(mcp, "ha_agent_ask", message="hello")
        assert "19 degrees" in prompt(model)
        await call(mcp, "ha_agent_forget", fact_id=fact["id"])
        assert (await call(mcp, "ha_agent_list_facts"))["facts"] == []


async def test_pins_and_preferences_over_mcp(tmp_path, model):
    async with serving(tmp_path, model=model) as served, talking(served.url, ERA) as mcp:
        session_id = (await call(mcp, "ha_agent_start_session"))["session_id"]
        [pin] = (await call(mcp, "ha_agent_pin", text="Answer in one sentence."))["pins"]
        [guest] = (await call(mcp, "ha_agent_pin", entity_id="lock.front_door", session_id=session_id))[
            "pins"
        ]
        assert (pin["scope"], guest["scope"], guest["entity_id"]) == ("owner", "session", "lock.front_door")
        assert await refused(mcp, "ha_agent_pin") == "invalid_input"
        assert (await call(mcp, "ha_agent_list_pins"))["pins"] == [pin]
        assert (await call(mcp, "ha_agent_list_pins", session_id=session_id))["pins"] == [guest]
        wanted = {"preferences": {"language": "de"}}
        assert await call(mcp, "ha_agent_set_preferences", **wanted) == wanted
        assert await call(mcp, "ha_agent_get_preferences") == wanted
        await call(mcp, "ha_agent_ask", message="hello")
        assert "Answer in one sentence." in prompt(model) and "language: de" in prompt(model)
        assert await refused(mcp, "ha_agent_unpin", pin_id=guest["id"]) == "note_not_found"
        for old, where in ((pin, {}), (guest, {"session_id": session_id})):
            assert (await call(mcp, "ha_agent_unpin", pin_id=old["id"], **where))["pins"] == []


async def test_a_session_starts_over_on_rest_and_mcp(tmp_path, model):
    async with serving(tmp_path, model=model) as served, talking(served.url, ERA) as mcp:
        session_id = await served.start()
        at = f"/v1/sessions/{session_id}"
        for reset in (
            lambda: served.client.post(f"{at}/reset"),
            lambda: call(mcp, "ha_agent_reset_session", session_id=session_id),
            lambda: served.send(session_id, "Let's start over"),
        ):
            await served.wait(await served.send(session_id, "the code is E42"))
            done = await reset()
            if isinstance(done, str):
                await served.wait(done)
            context = (await served.client.get(f"{at}/context")).json()
            assert {gone["reason"] for gone in context["evicted"]} == {"reset"}
            assert context["digest"] == ""
            await served.wait(await served.send(session_id, "hello"))
            assert "E42" not in prompt(model)
        messages = (await served.client.get(f"{at}/messages")).json()["messages"]
        assert sum("E42" in message["content"] for message in messages) == 3
        found = (await served.client.get(f"{at}/search", params={"q": "E42"})).json()["messages"]
        assert found


async def test_the_state_of_a_pinned_entity_is_always_told_behind_the_window(tmp_path, model):
    home = demo_home()
    async with serving(tmp_path, model=model, home=home) as served:
        await served.runtime.home_ready()
        session_id = await served.start()
        at = f"/v1/sessions/{session_id}"
        pin = (await served.client.post(f"{at}/pins", json={"entity_id": "light.kitchen_ceiling"})).json()
        assert (pin["entity_id"], pin["text"]) == ("light.kitchen_ceiling", "")
        heads = []
        for state in ("on", "off"):
            home.set_state("light.kitchen_ceiling", state)
            await served.wait(await served.send(session_id, "tell me a story"))
            told = [m for m in model.requests[-1].messages if "Pinned entities" in str(m["content"])]
            assert len(told) == 1
            assert told[0]["volatile"]
            assert f"light.kitchen_ceiling {state}" in told[0]["content"]
            heads.append(
                [m for m in model.requests[-1].messages if m["role"] == "system" and "volatile" not in m]
            )
        assert heads[0] == heads[1]
        parts = (await served.client.get(f"{at}/context")).json()["parts"]
        assert ("pinned", False) in [(part["name"], part["stable"]) for part in parts]
        for wrong in ({}, {"entity_id": "not an entity"}, {"entity_id": "light.x" * 100}):
            assert (await served.client.post(f"{at}/pins", json=wrong)).status_code == 422
        unknown = await served.client.post(f"{at}/pins", json={"entity_id": "light.kitchen_ceilling"})
        assert "did you mean light.kitchen_ceiling," in problem(unknown, 404, "entity_not_found")["detail"]


def test_a_fact_told_to_one_command_is_known_to_the_next(cli):
    assert cli("ask", f"remember that {FACT}", **NO_HOME).stdout == f"I will remember: {FACT}.\n"
    assert cli("ask", "what temperature do I like?").stdout == "You like 21 degrees.\n"
    [fact] = json.loads(cli("facts", "list", "--json").stdout)["facts"]
    assert (fact["text"], fact["scope"]) == (FACT, "owner")
    assert cli("facts", "edit", fact["id"], "I like 19 degrees").returncode == 0
    assert "19 degrees" in cli("ask", "what temperature do I like?").stdout
    added = cli("facts", "add", "the cat is called Mia").stdout.strip()
    shown = cli("facts")
    assert added in shown.stdout and shown.stdout == cli("facts", "list").stdout
    assert cli("facts", "--json").stdout == cli("facts", "list", "--json").stdout
    assert cli("facts", "forget", added).stdout == "Forgotten: the cat is called Mia\n"
    assert cli("facts", "forget", added).returncode == 3
    assert "forgotten" in cli("ask", "forget that I like 19 degrees", **NO_HOME).stdout
    assert json.loads(cli("facts", "list", "--json").stdout)["facts"] == []


def test_a_chat_starts_over_and_pins(cli):
    lines = "the code is E42\n/reset\n/pin lock.front_door\n/pin be brief\n/pin\n/context\n/pins\n"
    shown = cli("chat", input=lines).stdout
    assert "Started over." in shown
    assert shown.count("Pinned.") == 2
    assert "pinned" in shown
    listed = next(line for line in shown.splitlines() if "be brief" in line)
    shown = cli("chat", input=f"/unpin {listed.split()[0]}\n/pins\n/unpin\n").stdout
    assert "Unpinned." in shown and "lock.front_door" in shown and "be brief" not in shown


def test_a_chat_lists_and_forgets_facts(cli):
    shown = cli("chat", input=f"/facts\n/remember {FACT}\n/facts\n", **NO_HOME).stdout
    assert "There are no facts" in shown
    [fact] = json.loads(cli("facts", "list", "--json").stdout)["facts"]
    assert fact["id"] in shown
    told = cli("chat", input=f"/forget {fact['id']}\n/facts\n/forget {fact['id']}\n/forget\n", **NO_HOME)
    assert f"Forgotten: {FACT}" in told.stdout and "There are no facts" in told.stdout
    assert "there is no fact" in told.stderr


def test_commands_change_pins_and_preferences(cli):
    for what in ("lock.front_door", "be brief"):
        assert cli("pins", "add", what).returncode == 0
    entity, text = json.loads(cli("pins", "list", "--json").stdout)["pins"]
    assert (entity["entity_id"], entity["text"]) == ("lock.front_door", "")
    assert (text["entity_id"], text["text"], text["scope"]) == (None, "be brief", "owner")
    assert "be brief" in cli("pins").stdout
    for pin in (entity, text):
        assert cli("pins", "remove", pin["id"]).returncode == 0
    assert cli("pins", "remove", text["id"]).returncode == 3
    assert "There are no pins" in cli("pins", "list").stderr
    assert cli("preferences", "set", "language", "de").returncode == 0
    assert cli("preferences").stdout == "language: de\n"
    chat_once(cli)
    [session] = list_sessions(cli)
    shown = json.loads(cli("show", session["id"], "--json").stdout)["session"]
    assert shown["preferences"] == {"language": "de"}
    assert cli("preferences", "remove", "language").returncode == 0
    assert json.loads(cli("preferences", "list", "--json").stdout) == {"preferences": {}}


@pytest.mark.parametrize(
    ("command", "line"), [(("ask", "Rex, my dog, barks"), None), (("chat",), "Rex barks\n")]
)
async def test_a_command_ends_after_the_facts_of_its_last_message_are_stored(cli, command, line):
    async with Wire(said("Poor Rex."), said("- The user has a dog called Rex.")) as wire:
        model = model_at(wire, SASH_FACT_EXTRACTION="true")
        told = await asyncio.to_thread(cli, *command, input=line, **model)
    assert "Poor Rex." in told.stdout and told.returncode == 0, told.stderr
    [fact] = json.loads(cli("facts", "list", "--json").stdout)["facts"]
    assert (fact["text"], fact["scope"]) == ("The user has a dog called Rex.", "owner")


async def test_facts_are_extracted_only_if_the_settings_say_so(cli):
    async with Wire(said("Poor Rex."), said("- The user has a dog called Rex.")) as wire:
        await asyncio.to_thread(cli, "ask", "Rex, my dog, barks", **model_at(wire))
        assert len(wire.requests) == 1
    assert json.loads(cli("facts", "list", "--json").stdout)["facts"] == []
