"""REST, MCP and the command line show the prompts that were sent to a model."""

import json

from sash.demo.demo_home import demo_home
from sash.testing import ScriptedModel, calling
from tests.surfaces.command_line import chat_once
from tests.surfaces.serving import WAIT_S, problem, serving
from tests.surfaces.speaking import ERAS, talking
from tests.tools import tool


async def test_the_prompts_of_a_turn_are_those_that_the_model_got(tmp_path):
    model = ScriptedModel(calling("look"), "All is well.")
    async with serving(tmp_path, model=model, tools=[tool("look", lambda a, c: "a lamp")]) as served:
        session_id = await served.start()
        turn_id = await served.send(session_id, "think about it")
        await served.wait(turn_id)
        shown = (await served.client.get(f"/v1/continuations/{turn_id}/prompts")).json()["prompts"]
        assert [one["messages"] for one in shown] == [request.messages for request in model.requests]
        assert [one["tools"] for one in shown] == [request.tools for request in model.requests]
        assert [(one["step_count"], one["is_exact"]) for one in shown] == [(0, True), (3, True)]
        async with talking(served.url, ERAS[0]) as client:
            read = await client.read_resource(f"sash://continuations/{turn_id}/prompts")
            assert json.loads(read.contents[0].text)["prompts"] == shown
        missing = await served.client.get("/v1/continuations/01KA3V8Q6Z4T6P8C1YB8J7W0AE/prompts")
        problem(missing, 404, "continuation_not_found")
        served.client.headers.update(served.token("local", "converse"))
        problem(await served.client.get(f"/v1/continuations/{turn_id}/prompts"), 403, "forbidden")


async def test_the_context_has_the_messages_that_would_be_sent_next(tmp_path):
    model = ScriptedModel(lambda request: "ok")
    async with serving(tmp_path, model=model, home=demo_home()) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        session_id = await served.start()
        for n in range(2):
            await served.wait(await served.send(session_id, f"think about number {n}"))
        path = f"/v1/sessions/{session_id}/context"
        plain = (await served.client.get(path)).json()
        assert plain["messages"] is None and plain["tools"] is None
        shown = (await served.client.get(path, params={"include": "messages"})).json()
        await served.wait(await served.send(session_id, "think once more"))
        request = model.requests[-1]
        assert request.messages[: len(shown["messages"])] == shown["messages"]
        assert len(request.messages) == len(shown["messages"]) + 1
        assert request.tools == shown["tools"] and shown["parts"] == plain["parts"]
        assert (await served.client.get(path, params={"include": "all"})).status_code == 422


def test_show_has_the_parts_of_the_context_in_a_chat(cli):
    session_id = chat_once(cli)
    shown = json.loads(cli("show", session_id, "--context", "--json").stdout)
    names = [part["name"] for part in shown["context"]["parts"]]
    assert names[:2] == ["system", "tools"] and "house" in names and "window" in names


def test_show_prints_prompts(cli):
    session_id = chat_once(cli)
    turn_id = json.loads(cli("show", session_id, "--json").stdout)["messages"][0]["continuation_id"]
    shown = json.loads(cli("show", turn_id, "--prompts").stdout)
    assert list(shown) == ["prompts", "next_cursor"]
    assert cli("show", "unknown", "--prompts").returncode == 3
