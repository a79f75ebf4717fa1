"""Routes for a page that shows conversations: older messages and a search in all sessions."""

import pytest

from sash.app.schemas import MAX_PAGE_CHARS
from tests.surfaces.serving import problem, serving

NEWEST = 2**53


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path, lambda request: "It is 21.5 °C in the kitchen.") as served:
        yield served


async def get(served, path, **params):
    """Return the JSON of a route. `headers` is sent as it is."""
    headers = params.pop("headers", None)
    response = await served.client.get(path, params=params, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def test_older_messages_are_read_backwards_page_by_page(served):
    session_id = await served.start()
    for n in range(4):
        await served.runtime.record_turn(session_id, f"question {n}", f"answer {n}")
    path, seen, before = f"/v1/sessions/{session_id}/messages", [], NEWEST
    while before is not None:
        page = await get(served, path, before=before, limit=3)
        seen = [message["position"] for message in page["messages"]] + seen
        before = page["next_cursor"]
        await served.runtime.record_turn(session_id, "a new question", "a new answer")
    assert seen == list(range(1, 9))
    newest = await get(served, path, before=NEWEST, limit=2)
    assert [message["content"] for message in newest["messages"]] == ["a new question", "a new answer"]
    assert newest["next_cursor"] == str(newest["messages"][0]["position"])
    assert await get(served, path, before=1) == {"messages": [], "next_cursor": None}


async def test_older_messages_can_be_filtered_by_tags(served):
    session_id = await served.start()
    for n in range(4):
        await served.runtime.record_turn(session_id, f"q{n}", f"a{n}", tags=["odd" if n % 2 else "even"])
    path = f"/v1/sessions/{session_id}/messages"
    page = await get(served, path, before=NEWEST, limit=1, tag_filter="odd")
    assert [message["content"] for message in page["messages"]] == ["q3"]
    page = await get(served, path, before=page["next_cursor"], limit=1, tag_filter="odd")
    assert ([m["content"] for m in page["messages"]], page["next_cursor"]) == (["q1"], None)


async def test_a_page_of_large_older_messages_has_fewer_of_them(served):
    session_id, text = await served.start(), "x" * (MAX_PAGE_CHARS // 10)
    for _ in range(20):
        await served.runtime.record_turn(session_id, text, "short")
    path, seen, before = f"/v1/sessions/{session_id}/messages", [], NEWEST
    while before is not None:
        page = await get(served, path, before=before, limit=500)
        assert sum(len(message["content"]) for message in page["messages"]) <= MAX_PAGE_CHARS
        seen = [message["position"] for message in page["messages"]] + seen
        before = page["next_cursor"]
    assert seen == list(range(1, 41))


@pytest.mark.parametrize("wrong", [{"before": 5, "cursor": 3}, {"before": 0}, {"before": "x"}])
async def test_a_wrong_place_to_read_backwards_from_is_refused(served, wrong):
    session_id = await served.start()
    response = await served.client.get(f"/v1/sessions/{session_id}/messages", params=wrong)
    problem(response, 422, "invalid_input")


async def test_other_owners_cannot_read_older_messages(served):
    session_id = await served.start()
    await served.runtime.record_turn(session_id, "my secret", "kept")
    other = served.token("bob")
    response = await served.client.get(
        f"/v1/sessions/{session_id}/messages", params={"before": NEWEST}, headers=other
    )
    problem(response, 404, "session_not_found")
