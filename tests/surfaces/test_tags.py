"""The tags of messages over REST and MCP: set, changed, filtered, and regarded by evictions."""

import json

import pytest

from sash.demo.demo_home import demo_home
from sash.models.offline import OfflineModel
from sash.testing import calling
from tests.surfaces.serving import WAIT_S, problem, serving
from tests.surfaces.speaking import ERAS, call, talking
from tests.tools import tool

THREE_TURNS = {"max_tokens": None, "max_turns": 3, "evict_to": 1.0}


async def texts(served, session_id, **query):
    found = await served.client.get(f"/v1/sessions/{session_id}/messages", params=query)
    assert found.status_code == 200, found.text
    return [m["content"] for m in found.json()["messages"]]


async def tag(served, session_id, message_id, *tags):
    path = f"/v1/sessions/{session_id}/messages/{message_id}"
    return await served.client.patch(path, json={"tags": list(tags)})


async def test_tags_of_a_sent_message_keep_it_in_the_window(served):
    session_id = await served.start(window=THREE_TURNS)
    await served.wait(await served.send(session_id, "never open the cellar", tags=["pinned"]))
    for n in range(5):
        await served.wait(await served.send(session_id, f"talk {n}"))
    listed = (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"]
    assert [m["content"] for m in listed if m["in_window"] and m["role"] == "user"] == [
        "never open the cellar",
        "talk 2",
        "talk 3",
        "talk 4",
    ]
    assert listed[0]["tags"] == ["input", "pinned"] and listed[1]["tags"] == ["output"]


async def test_a_changed_tag_changes_the_next_eviction(served):
    session_id = await served.start(window=THREE_TURNS)
    for n in range(3):
        await served.wait(await served.send(session_id, f"talk {n}"))
    listed = (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"]
    changed = await tag(served, session_id, listed[0]["id"], "input", "important")
    assert changed.status_code == 200 and changed.json()["tags"] == ["important", "input"]
    assert (await tag(served, session_id, listed[1]["id"], "important")).status_code == 200
    assert (await tag(served, session_id, listed[4]["id"], "ephemeral")).status_code == 200
    assert (await tag(served, session_id, listed[5]["id"], "ephemeral")).status_code == 200
    await served.wait(await served.send(session_id, "talk 3"))
    left = (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"]
    assert [m["content"] for m in left if m["in_window"] and m["role"] == "user"] == [
        "talk 0",
        "talk 1",
        "talk 3",
    ]


async def test_a_changed_tag_leaves_the_prompt_as_it_is(tmp_path):
    asked = []

    def note(request):
        asked.append(request.messages)
        return "ok"

    async with serving(tmp_path, note, home=demo_home()) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        session_id = await served.start()
        await served.wait(await served.send(session_id, "tell me a story"))
        [first, *_] = (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"]
        assert (await tag(served, session_id, first["id"], "pinned")).status_code == 200
        await served.wait(await served.send(session_id, "and another story"))
        assert asked[1][: len(asked[0])] == asked[0]


async def test_messages_are_listed_by_tag(served):
    session_id = await served.start()
    for text, tags in (("one", ["a"]), ("two", ["b"]), ("three", [])):
        await served.wait(await served.send(session_id, text, tags=tags))
    assert await texts(served, session_id, tag_filter="a,b") == ["one", "two"]
    assert await texts(served, session_id, tag_filter="b") == ["two"]
    assert await texts(served, session_id, tag_filter="output") == ["ok", "ok", "ok"]
    page = await served.client.get(
        f"/v1/sessions/{session_id}/messages", params={"tag_filter": "input", "limit": 2}
    )
    cursor = page.json()["next_cursor"]
    assert await texts(served, session_id, tag_filter="input", cursor=cursor) == ["three"]


@pytest.mark.parametrize(
    "tags", [["input"], ["x" * 65], ["a b"], ["a,b"], [""], [f"t{n}" for n in range(17)], "a"]
)
async def test_wrong_tags_are_refused(served, tags):
    session_id = await served.start()
    sent = await served.client.post(
        f"/v1/sessions/{session_id}/messages", json={"message": "hi", "tags": tags}
    )
    assert sent.status_code == 422 and sent.json()["code"] == "invalid_input", sent.text
    turn = await served.client.post("/conversation/turn", json={"user_message": "hi", "tags": tags})
    assert turn.status_code == 422, turn.text


async def test_an_unknown_message_or_a_reserved_tag_is_refused(served):
    session_id = await served.start()
    await served.wait(await served.send(session_id))
    problem(await tag(served, session_id, "01KA3V8Q6Z4T6P8C1YB8J7W0AE", "a"), 404, "message_not_found")
    [first, _] = (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"]
    problem(await tag(served, session_id, first["id"], "output"), 422, "invalid_input")
    problem(await tag(served, session_id, first["id"], "a b"), 422, "invalid_input")


async def test_a_token_that_may_only_read_cannot_tag(served):
    session_id = await served.start()
    await served.wait(await served.send(session_id))
    [first, _] = (await served.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"]
    served.client.headers.update(served.token("local", "read"))
    problem(await tag(served, session_id, first["id"], "pinned"), 403, "forbidden")
    served.client.headers.update(served.token("local", "converse"))
    # The session may act, because it has the defaults of the demo house.
    problem(await tag(served, session_id, first["id"], "pinned"), 403, "forbidden")


async def test_a_recorded_turn_has_tags_and_an_export_keeps_them(served):
    await served.client.post(
        "/conversation/turn", json={"user_message": "hi", "ai_response": "ho", "tags": ["important"]}
    )
    [session] = (await served.client.get("/v1/sessions")).json()["sessions"]
    exported = (await served.client.get(f"/v1/sessions/{session['id']}/export")).json()
    exported["messages"][1]["message"]["tags"] = ["input", "mine"]
    await served.client.delete(f"/v1/sessions/{session['id']}")
    imported = await served.client.post("/v1/sessions/import", json=exported)
    assert imported.status_code == 201, imported.text
    path = f"/v1/sessions/{imported.json()['session_id']}/messages"
    listed = (await served.client.get(path)).json()["messages"]
    assert [m["tags"] for m in listed] == [["important", "input", "recorded"], ["mine", "output"]]
    exported["continuations"][0]["request"]["tags"] = ["output"]
    problem(await served.client.post("/v1/sessions/import", json=exported), 422, "invalid_export")


async def test_the_agent_tags_a_turn_with_its_topics(tmp_path):
    states = tool("get_states", lambda a, c: {"states": []})
    reading = calling("get_states", entity_ids=["climate.office", "light.office", "light.hall"])
    async with serving(tmp_path, reading, "All off.", "You are welcome.", tools=[states]) as served:
        session_id = await served.start()
        await served.wait(await served.send(session_id, "what is on?"))
        await served.wait(await served.send(session_id, "thank you so much"))
        assert await texts(served, session_id, tag_filter="context:lights") == [
            "what is on?",
            "",
            json.dumps({"states": []}),
            "All off.",
        ]
        assert await texts(served, session_id, tag_filter="context:climate,context:weather") != []
        assert await texts(served, session_id, tag_filter="context:weather") == []


async def test_local_answers_have_topics(tmp_path):
    async with serving(tmp_path, model=OfflineModel(), home=demo_home()) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        session_id = await served.start()
        for sentence in ("turn on the kitchen lights", "is the front door locked?"):
            await served.wait(await served.send(session_id, sentence))
        lights = await texts(served, session_id, tag_filter="context:lights")
        assert lights[0] == "turn on the kitchen lights" and len(lights) >= 3
        assert await texts(served, session_id, tag_filter="context:security") == [
            "is the front door locked?",
            "Yes, the front door lock is locked.",
        ]


async def test_tags_over_mcp(served):
    async with talking(served.url, ERAS[0]) as client:
        session_id = (await call(client, "ha_agent_start_session"))["session_id"]
        sent = await call(client, "ha_agent_send_message", session_id=session_id, message="hi", tags=["a"])
        await call(client, "ha_agent_await_continuation", continuation_id=sent["continuation_id"])
        [message] = (await call(client, "ha_agent_list_messages", session_id=session_id, tag_filter=["a"]))[
            "messages"
        ]
        assert (message["content"], message["tags"]) == ("hi", ["a", "input"])
        tagged = await call(
            client, "ha_agent_tag_message", session_id=session_id, message_id=message["id"], tags=["pinned"]
        )
        assert tagged["tags"] == ["input", "pinned"]
        page = await call(client, "ha_agent_list_messages", session_id=session_id, limit=1)
        rest = await call(client, "ha_agent_list_messages", session_id=session_id, cursor=page["next_cursor"])
        assert [m["content"] for m in rest["messages"]] == ["ok"] and rest["next_cursor"] is None
