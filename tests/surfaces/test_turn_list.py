"""`GET /v1/continuations`: the turns of an owner, newest first, by session and by status."""

import pytest

from sash.app.schemas import MAX_PAGE_CHARS
from sash.testing import calling
from tests.surfaces.serving import problem, serving
from tests.tools import tool


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path, lambda request: "ok") as served:
        yield served


async def list_turns(served, headers=None, **params):
    response = await served.client.get("/v1/continuations", params=params, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


def ids(page):
    return [turn["continuation_id"] for turn in page["continuations"]]


async def record(served, session_id, question="q", owner="local"):
    return (await served.runtime.record_turn(session_id, question, "a", owner=owner)).id


async def test_turns_of_all_sessions_are_listed_page_by_page(served):
    first, second = await served.start(), await served.start()
    made = [await record(served, session_id) for session_id in (first, second) * 3]
    seen, cursor = [], {}
    while cursor is not None:
        page = await list_turns(served, limit=2, **cursor)
        seen += ids(page)
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
        await record(served, second, "new")
    assert seen == made[::-1]
    assert ids(await list_turns(served, session_id=first)) == made[-2::-2]
    [shown] = (await list_turns(served, limit=1, session_id=first))["continuations"]
    whole = (await served.client.get(f"/v1/continuations/{made[4]}")).json()
    assert shown == whole | {"steps": []}


async def test_a_turn_that_waits_for_an_approval_shows_what_it_asks(tmp_path):
    unlock = tool("lock_unlock", lambda arguments, context: "open", action=True)
    policy = {
        "allow_actuation": True,
        "allowlisted_services": ["lock_unlock"],
        "require_confirmation": ["lock_unlock"],
    }
    lines = (calling("lock_unlock"), "It is open.")
    async with serving(tmp_path, *lines, tools=[unlock], **policy) as served:
        session_id = await served.start(policy=policy)
        waiting = await served.send(session_id)
        assert (await served.wait(waiting))["status"] == "awaiting_approval"
        done = await record(served, await served.start())
        for filters in ({"open": True}, {"status": "awaiting_approval"}, {"open": True, "limit": 1}):
            page = await list_turns(served, **filters)
            assert ids(page) == [waiting] and page["next_cursor"] is None
            [call] = page["continuations"][0]["waiting_calls"]
            assert call["name"] == "lock_unlock" and call["in_words"]
        for filters in ({"open": True, "status": "pending"}, {"open": True, "status": "completed"}):
            assert await list_turns(served, **filters) == {"continuations": [], "next_cursor": None}
        assert ids(await list_turns(served, status="completed")) == [done]
        assert ids(await list_turns(served, open=False)) == [done, waiting]


async def test_other_owners_see_none_of_the_turns(served):
    session_id = await served.start()
    mine = await record(served, session_id, "my secret")
    foreign = await served.runtime.start_session(owner="bob")
    bobs = await record(served, foreign.id, "the secret of bob", owner="bob")
    assert ids(await list_turns(served)) == [mine]
    bob = served.token("bob")
    assert ids(await list_turns(served, headers=bob)) == [bobs]
    # A cursor of another owner's turn only says where to begin.
    later = await record(served, foreign.id, "later", owner="bob")
    assert ids(await list_turns(served, headers=bob, cursor=later)) == [bobs]
    assert ids(await list_turns(served, headers=bob, cursor=mine)) == []
    refused = await served.client.get("/v1/continuations", params={"session_id": session_id}, headers=bob)
    problem(refused, 404, "session_not_found")


async def test_a_page_of_large_turns_has_fewer_of_them(served):
    session_id, text = await served.start(), "x" * (MAX_PAGE_CHARS // 10)
    made = [await record(served, session_id, text) for _ in range(20)]
    seen, cursor = [], {}
    while cursor is not None:
        page = await list_turns(served, limit=500, **cursor)
        size = sum(len(turn["request"]["message"]) for turn in page["continuations"])
        assert size <= MAX_PAGE_CHARS
        seen += ids(page)
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    assert seen == made[::-1]


@pytest.mark.parametrize(
    "wrong", [{"status": "streaming"}, {"open": "x"}, {"cursor": "x"}, {"limit": 0}, {"session_id": ""}]
)
async def test_a_wrong_filter_is_refused(served, wrong):
    problem(await served.client.get("/v1/continuations", params=wrong), 422, "invalid_input")
