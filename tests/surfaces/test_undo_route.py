"""`POST /v1/sessions/{id}/undo`: a turn that undoes the last action, as if the user had said so."""

import pytest

from sash.intents.undo_sentence import UNDO_SENTENCES
from tests.home.small_home import house
from tests.surfaces.serving import WAIT_S, WaitingModel, problem, serving

FREE = {"allow_actuation": True, "allowlisted_services": ["*"]}
CEILING = "light.kitchen_ceiling"


@pytest.fixture
async def acting(tmp_path):
    """A server whose sessions may act in a small home."""
    async with serving(tmp_path, "ok", home=house(), **FREE) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        yield served


async def start_with_light(served, **options):
    """Start a session, let it turn on a light, and return its id."""
    session_id = await served.start(**{"policy": FREE, **options})
    await served.wait(await served.send(session_id, "turn on the kitchen ceiling", language="en"))
    assert served.runtime.home.index.get_state(CEILING) == "on"
    return session_id


async def undo(served, session_id, **body):
    """Undo the last action of a session, and return its turn when it ends or waits."""
    sent = await served.client.post(f"/v1/sessions/{session_id}/undo", json=body or None)
    assert sent.status_code == 202, sent.text
    assert sent.json()["acknowledged"] is True
    return await served.wait(sent.json()["continuation_id"])


async def test_an_undo_is_a_turn_that_restores_the_state(acting):
    session_id = await start_with_light(acting)
    turn = await undo(acting, session_id)
    assert (turn["status"], turn["request"]["message"]) == ("completed", "undo that")
    assert turn["response"]["final_message"].startswith("Undone:")
    assert acting.runtime.home.index.get_state(CEILING) == "off"
    actions = (await acting.client.get("/v1/actions")).json()["actions"]
    assert [(one["tool"], one["is_undone"]) for one in actions] == [
        ("undo_last_action", False),
        ("call_service", True),
    ]


@pytest.mark.parametrize(
    ("options", "body", "sentence"),
    [
        ({}, {"language": "de-CH"}, "mach das rückgängig"),
        ({"preferences": {"language": "nl"}}, {}, "maak dat ongedaan"),
        ({"preferences": {"language": "nl"}}, {"language": "fr"}, "annule ça"),
        ({}, {"language": "fi"}, "undo that"),
    ],
)
async def test_the_sentence_is_in_the_language_of_the_user(acting, options, body, sentence):
    session_id = await start_with_light(acting, **options)
    turn = await undo(acting, session_id, **body)
    assert turn["request"]["message"] == sentence
    assert turn["request"]["language"] == body.get("language")
    assert acting.runtime.home.index.get_state(CEILING) == "off"


async def test_the_policy_of_the_session_applies(acting):
    session_id = await start_with_light(acting)
    path = f"/v1/sessions/{session_id}"
    await acting.client.patch(path, json={"policy": {**FREE, "allowlisted_services": ["switch.*"]}})
    turn = await undo(acting, session_id)
    assert [one["outcome"] for one in turn["response"]["actions"]] == ["denied"]
    assert acting.runtime.home.index.get_state(CEILING) == "on"


async def test_an_undo_that_needs_an_approval_waits_for_it(acting):
    session_id = await start_with_light(acting)
    policy = {**FREE, "require_confirmation": ["light.turn_off"]}
    await acting.client.patch(f"/v1/sessions/{session_id}", json={"policy": policy})
    turn = await undo(acting, session_id)
    assert turn["status"] == "awaiting_approval"
    assert acting.runtime.home.index.get_state(CEILING) == "on"
    [waiting] = turn["waiting_calls"]
    answer = {"call_id": waiting["call_id"], "approved": True}
    await acting.client.post(f"/v1/continuations/{turn['continuation_id']}/approve", json=answer)
    assert (await acting.wait(turn["continuation_id"]))["status"] == "completed"
    assert acting.runtime.home.index.get_state(CEILING) == "off"


async def test_an_undo_drops_an_open_approval_question(acting):
    session_id = await start_with_light(acting)
    policy = {**FREE, "require_confirmation": ["switch.turn_on"]}
    await acting.client.patch(f"/v1/sessions/{session_id}", json={"policy": policy})
    asked = await acting.send(session_id, "turn on the kettle")
    assert (await acting.wait(asked))["status"] == "awaiting_approval"
    assert (await undo(acting, session_id))["response"]["final_message"].startswith("Undone:")
    assert acting.runtime.home.index.get_state(CEILING) == "off"
    assert (await acting.wait(asked))["status"] == "cancelled"


async def test_an_undo_that_is_sent_twice_with_one_key_is_done_once(acting):
    session_id = await acting.start(policy=FREE)
    for message in ("turn on the kitchen ceiling", "turn on the kettle"):
        await acting.wait(await acting.send(session_id, message))
    turns = [await undo(acting, session_id, idempotency_key="once") for _ in range(2)]
    assert turns[0]["continuation_id"] == turns[1]["continuation_id"]
    index = acting.runtime.home.index
    assert (index.get_state(CEILING), index.get_state("switch.kettle")) == ("on", "off")


async def list_actions(served):
    return (await served.client.get("/v1/actions")).json()["actions"]


def name(action):
    """Return the ids that name an action in an undo."""
    return {key: action[key] for key in ("continuation_id", "call_id")}


async def test_an_undo_of_another_action_than_the_expected_one_is_refused(acting):
    session_id = await start_with_light(acting)
    [expected] = await list_actions(acting)
    await acting.wait(await acting.send(session_id, "turn on the kettle"))
    path, index = f"/v1/sessions/{session_id}/undo", acting.runtime.home.index
    refused = problem(await acting.client.post(path, json=name(expected)), 409, "last_action_changed")
    assert refused["session_id"] == session_id
    assert (index.get_state(CEILING), index.get_state("switch.kettle")) == ("on", "on")
    turn = await undo(acting, session_id, **name((await list_actions(acting))[0]))
    assert turn["status"] == "completed"
    assert (index.get_state(CEILING), index.get_state("switch.kettle")) == ("on", "off")
    assert (await undo(acting, session_id, **name(expected)))["status"] == "completed"
    problem(await acting.client.post(path, json=name(expected)), 409, "last_action_changed")


async def test_an_undo_of_an_expected_action_does_not_wait_behind_another_turn(tmp_path):
    async with serving(tmp_path, model=WaitingModel(), home=house(), **FREE) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        session_id = await start_with_light(served)
        [expected] = await list_actions(served)
        running = await served.send(session_id, "make it cosy for my cat")
        path = f"/v1/sessions/{session_id}/undo"
        problem(await served.client.post(path, json=name(expected)), 409, "session_busy")
        await served.client.post(f"/v1/continuations/{running}/cancel")
        assert served.runtime.home.index.get_state(CEILING) == "on"


async def test_an_expected_undo_that_is_sent_twice_with_one_key_is_done_once(acting):
    session_id = await start_with_light(acting)
    [expected] = await list_actions(acting)
    turns = [await undo(acting, session_id, idempotency_key="once", **name(expected)) for _ in range(2)]
    assert turns[0]["continuation_id"] == turns[1]["continuation_id"]


async def test_an_expected_action_needs_both_ids(acting):
    session_id = await start_with_light(acting)
    path = f"/v1/sessions/{session_id}/undo"
    problem(await acting.client.post(path, json={"call_id": "c1"}), 409, "last_action_changed")


async def test_an_undo_needs_the_scope_act_and_the_own_session(acting):
    session_id = await start_with_light(acting)
    path = f"/v1/sessions/{session_id}/undo"
    for headers, status, code in (
        (acting.token("local", "read", "converse"), 403, "forbidden"),
        (acting.token("local", "read"), 403, "forbidden"),
        (acting.token("eve"), 404, "session_not_found"),
    ):
        problem(await acting.client.post(path, headers=headers), status, code)
    assert acting.runtime.home.index.get_state(CEILING) == "on"


@pytest.mark.parametrize(("language", "sentence"), UNDO_SENTENCES.items())
async def test_each_sentence_is_understood_without_a_model(acting, language, sentence):
    session_id = await start_with_light(acting)
    turn = await undo(acting, session_id, language=language)
    assert turn["request"]["message"] == sentence
    assert (turn["stats"]["local_turns"], turn["stats"]["model_calls"]) == (1, 0)
    assert acting.runtime.home.index.get_state(CEILING) == "off"
