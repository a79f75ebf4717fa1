"""The actions of the agent over REST, newest first."""

from sash.engine.past_actions import TURNS_AT_ONCE
from sash.testing import calling
from tests.home.small_home import house
from tests.surfaces.serving import WAIT_S, problem, serving

FREE = {"allow_actuation": True, "allowlisted_services": ["*"]}
CEILING, KETTLE = "light.kitchen_ceiling", "switch.kettle"


def acting(folder, *lines):
    """Serve a small home in which sessions may act."""
    return serving(folder, *lines, home=house(), allow_actuation=True, allowlisted_services=["*"])


async def say(served, session_id, message, **body):
    """Send a message and return its turn when it has ended."""
    return await served.wait(await served.send(session_id, message, **body))


async def list_actions(served, **params):
    response = await served.client.get("/v1/actions", params=params)
    assert response.status_code == 200, response.text
    return response.json()


async def test_an_action_is_listed_with_its_sentence_states_and_reason(tmp_path):
    async with acting(tmp_path) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        session_id = await served.start(policy=FREE)
        caller = {"user_name": "Anna", "certainty": "signed_in"}
        turn = await say(served, session_id, "turn on the kitchen ceiling", caller=caller)
        await say(served, session_id, "is the front door locked?")
        listed = await list_actions(served)
        assert listed["next_cursor"] is None
        [action] = listed["actions"]
        assert turn["created_at"] <= action.pop("acted_at") <= turn["updated_at"]
        [recorded] = turn["response"]["actions"]
        assert recorded["before"][CEILING]["state"] == "off"
        assert action == {
            "continuation_id": turn["continuation_id"],
            "session_id": session_id,
            "call_id": recorded["call_id"],
            "sentence": "turn on the kitchen ceiling",
            "asked_at": turn["created_at"],
            "caller": turn["request"]["caller"],
            "way": "local",
            "tool": "call_service",
            "service": "light.turn_on",
            "in_words": f"turn on Kitchen ceiling ({CEILING})",
            "entity_ids": [CEILING],
            "outcome": "done",
            "verified": True,
            "before": recorded["before"],
            "after": recorded["after"],
            "allowed_by": "*",
            "approved": None,
            "is_undone": False,
            "can_undo": True,
        }


async def test_an_undo_marks_the_action_that_it_reversed(tmp_path):
    async with acting(tmp_path) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        session_id = await served.start(policy=FREE)
        for message in ("turn on the kitchen ceiling", "turn on the kettle", "undo that"):
            await say(served, session_id, message)
        undo, kettle, ceiling = (await list_actions(served))["actions"]
        assert [one["is_undone"] for one in (undo, kettle, ceiling)] == [False, True, False]
        assert (undo["tool"], undo["service"], undo["entity_ids"]) == ("undo_last_action", None, [KETTLE])
        assert undo["in_words"] == f"undo: turn on Kettle ({KETTLE})"
        paged = await list_actions(served, limit=1)
        assert paged["actions"] == [undo]
        paged = await list_actions(served, limit=1, cursor=paged["next_cursor"])
        assert paged["actions"] == [kettle], "a page knows the undo of a newer page"


async def read_undoable(served):
    """Return the services of the actions that can be undone, newest first."""
    return [one["service"] for one in (await list_actions(served))["actions"] if one["can_undo"]]


async def test_only_the_last_action_of_an_active_session_can_be_undone(tmp_path):
    async with acting(tmp_path) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        first, second = await served.start(policy=FREE), await served.start(policy=FREE)
        for message in ("turn on the kitchen ceiling", "turn on the kettle"):
            await say(served, first, message)
        await say(served, second, "turn off the counter")
        assert await read_undoable(served) == ["light.turn_off", "switch.turn_on"]
        [page] = (await list_actions(served, limit=1, session_id=first))["actions"]
        assert page["can_undo"]
        await say(served, first, "undo that")
        assert await read_undoable(served) == ["light.turn_off", "light.turn_on"]
        await served.client.post(f"/v1/sessions/{second}/end", json={})
        assert await read_undoable(served) == ["light.turn_on"]


async def test_an_action_that_cannot_be_reversed_hides_the_older_ones(tmp_path):
    scene = calling("call_service", service="scene.turn_on", entity_ids=["scene.movie"])
    async with acting(tmp_path, scene, "ok") as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        session_id = await served.start(policy=FREE)
        for message in ("turn on the kitchen ceiling", "turn on the kitchen ceiling"):
            await say(served, session_id, message)
        listed = (await list_actions(served))["actions"]
        assert [one["can_undo"] for one in listed] == [False, True], "the second call changed nothing"
        await say(served, session_id, "make it cosy for my cat")
        listed = (await list_actions(served))["actions"]
        assert listed[0]["service"] == "scene.turn_on"
        assert not any(one["can_undo"] for one in listed), "an undo of the scene is refused"


async def test_without_a_connected_home_nothing_can_be_undone(tmp_path):
    home = house()
    async with serving(tmp_path, home=home, allow_actuation=True, allowlisted_services=["*"]) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        await say(served, await served.start(policy=FREE), "turn on the kitchen ceiling")
        home.disconnect("test")
        assert await read_undoable(served) == []


async def test_the_pages_have_each_action_once(tmp_path):
    kettle = {"service": "switch.turn_on", "entity_ids": ["switch.kettle"]}
    fan = {"service": "fan.turn_on", "entity_ids": ["fan.bedroom"]}
    plan = [calling("call_service", "c1", **kettle), calling("call_service", "c2", **fan), "Done."]
    async with acting(tmp_path, *plan) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        first, second = await served.start(policy=FREE), await served.start(policy=FREE)
        await say(served, first, "turn on the kitchen ceiling")
        await say(served, second, "make it cosy for my cat")
        await say(served, first, "turn on the counter")
        everything = (await list_actions(served))["actions"]
        assert [one["service"] for one in everything] == [
            "light.turn_on",
            "fan.turn_on",
            "switch.turn_on",
            "light.turn_on",
        ]
        assert [one["way"] for one in everything] == ["local", "model", "model", "local"]
        paged, cursor = [], None
        while True:
            page = await list_actions(served, limit=1, **({"cursor": cursor} if cursor else {}))
            paged += page["actions"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert paged == everything
        of_second = (await list_actions(served, session_id=second))["actions"]
        assert of_second == everything[1:3]


async def test_an_action_is_found_behind_many_turns_without_one(tmp_path):
    async with acting(tmp_path) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        session_id = await served.start(policy=FREE)
        await say(served, session_id, "turn on the kitchen ceiling")
        for n in range(TURNS_AT_ONCE + 1):
            await served.runtime.record_turn(session_id, f"question {n}", "answer")
        [action] = (await list_actions(served))["actions"]
        assert action["sentence"] == "turn on the kitchen ceiling"


async def test_refused_and_previewed_actions_are_listed_with_their_outcome(tmp_path):
    async with acting(tmp_path) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        await say(served, await served.start(policy={**FREE, "dry_run": True}), "turn on the counter")
        refused = {"allow_actuation": True, "allowlisted_services": ["switch.*"]}
        await say(served, await served.start(policy=refused), "turn on the counter")
        listed = (await list_actions(served))["actions"]
        assert [one["outcome"] for one in listed] == ["denied", "dry_run"]


async def test_a_long_sentence_is_shortened(tmp_path):
    async with acting(
        tmp_path, calling("call_service", service="light.turn_on", areas=["Kitchen"]), "ok"
    ) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        await say(served, await served.start(policy=FREE), "cosy " * 1000)
        [action] = (await list_actions(served))["actions"]
        assert action["sentence"] == "cosy " * 200


async def test_actions_of_another_owner_are_not_found(tmp_path):
    async with acting(tmp_path) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        mine = served.token("anna")
        served.client.headers.update(mine)
        session_id = await served.start(policy=FREE)
        await say(served, session_id, "turn on the kitchen ceiling")
        served.client.headers.update(served.token("bob"))
        assert await list_actions(served) == {"actions": [], "next_cursor": None}
        foreign = await served.client.get("/v1/actions", params={"session_id": session_id})
        problem(foreign, 404, "session_not_found")
        served.client.headers.update(served.token("anna", "converse"))
        problem(await served.client.get("/v1/actions"), 403, "forbidden")


async def test_a_wrong_cursor_is_refused(served):
    problem(await served.client.get("/v1/actions", params={"cursor": "yesterday"}), 422, "invalid_input")
    problem(await served.client.get("/v1/actions", params={"limit": 0}), 422, "invalid_input")


async def test_without_a_connected_home_actions_are_told_by_their_ids(tmp_path):
    home = house()
    async with serving(tmp_path, home=home, allow_actuation=True, allowlisted_services=["*"]) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        await say(served, await served.start(policy=FREE), "turn on the kitchen ceiling")
        home.disconnect("test")
        [action] = (await list_actions(served))["actions"]
        assert action["in_words"] == f"turn on {CEILING}"
