"""Routes for a page that shows conversations: older messages, titles, a search in all sessions, the caller."""

import pytest

from sash import Runtime, __version__
from sash.app.access import Caller
from sash.app.schemas import MAX_PAGE_CHARS
from sash.app.service import AgentService
from sash.demo.demo_home import demo_home
from sash.engine.session_titles import make_title
from sash.stores.memory import MemoryStore
from sash.values.sessions import Budgets, Defaults, OperatorLimits, SessionPolicy
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
    between = await get(served, path, cursor=2, before=5)
    assert [message["position"] for message in between["messages"]] == [3, 4]


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


@pytest.mark.parametrize("wrong", [{"before": 0}, {"before": "x"}])
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


async def test_a_search_finds_messages_in_all_sessions_of_the_owner_only(served):
    first, second = await served.start(), await served.start(name="kitchen")
    await served.runtime.record_turn(first, "the boiler leaks", "call someone")
    await served.runtime.record_turn(second, "is the boiler on?", "yes")
    foreign = await served.runtime.start_session(owner="bob")
    await served.runtime.record_turn(foreign.id, "the boiler of bob", "secret", owner="bob")
    found = await get(served, "/v1/search", q="boiler")
    assert {m["session_id"]: m["position"] for m in found["messages"]} == {first: 1, second: 1}
    assert all(m["continuation_id"] and "bob" not in m["content"] for m in found["messages"])
    assert found["next_cursor"] is None
    assert len((await get(served, "/v1/search", q="boiler", limit=1))["messages"]) == 1
    mine = await get(served, "/v1/search", q="boiler", headers=served.token("bob"))
    assert [m["session_id"] for m in mine["messages"]] == [foreign.id]
    nothing = await get(served, "/v1/search", q="boiler", headers=served.token("carl"))
    assert nothing == {"messages": [], "next_cursor": None}


async def test_the_results_of_a_search_fit_in_one_page(served):
    text = "boiler " + "x" * (MAX_PAGE_CHARS // 10)
    for _ in range(12):
        await served.runtime.record_turn(await served.start(), text, "short")
    found = (await get(served, "/v1/search", q="boiler", limit=500))["messages"]
    assert sum(len(message["content"]) for message in found) <= MAX_PAGE_CHARS
    assert len(found) == 9


@pytest.mark.parametrize("wrong", [{}, {"q": ""}, {"q": "x", "limit": 0}, {"q": "x", "limit": 501}])
async def test_a_wrong_search_is_refused(served, wrong):
    problem(await served.client.get("/v1/search", params=wrong), 422, "invalid_input")


async def test_a_caller_sees_its_rights_and_the_defaults_of_its_sessions(tmp_path):
    limits = {"allow_actuation": True, "dry_run": True, "max_steps": 5}
    async with serving(tmp_path, home=demo_home(), **limits) as served:
        await served.runtime.home_ready(timeout_s=10)
        shown = await get(served, "/v1/me")
        session = await get(served, f"/v1/sessions/{await served.start()}")
        assert shown.keys() == {
            *("owner", "scopes", "version", "model", "home", "home_language", "time_zone"),
            *("policy", "budgets", "window", "early_wait_s", "may_pin"),
        }
        assert (shown["owner"], shown["version"]) == ("local", __version__)
        assert shown["scopes"] == ["read", "converse", "act", "admin"]
        assert (shown["home"], shown["home_language"]) == (served.runtime.home.home.name, "en")
        for field in ("policy", "budgets", "window"):
            assert shown[field] == session["session"][field], field
        assert shown["policy"]["dry_run"] and shown["policy"]["allow_actuation"]
        assert shown["budgets"]["max_steps"] == 5 and shown["may_pin"]
        reader = await get(served, "/v1/me", headers=served.token("bob", "read", "converse"))
        assert (reader["owner"], reader["scopes"]) == ("bob", ["read", "converse"])
        assert not reader["policy"]["allow_actuation"] and not reader["may_pin"]
        problem(await served.client.get("/v1/me", headers=served.token("bob", "converse")), 403, "forbidden")


async def test_a_caller_of_a_server_without_a_home_sees_none(served):
    shown = await get(served, "/v1/me")
    assert [shown[field] for field in ("home", "home_language", "time_zone")] == [None, None, None]


async def test_the_shown_limits_are_those_of_the_operator_if_these_are_lower():
    operator = OperatorLimits(SessionPolicy(dry_run=True), Budgets(max_steps=2, max_tool_calls=100))
    defaults = Defaults(Budgets(max_steps=4, max_tool_calls=7), SessionPolicy(allow_actuation=True))
    async with Runtime(MemoryStore(), operator=operator, defaults=defaults) as runtime:
        shown = await AgentService(runtime).describe_caller(Caller("ann"))
    assert (shown.budgets.max_steps, shown.budgets.max_tool_calls) == (2, 7)
    assert shown.policy.dry_run and not shown.policy.allow_actuation


async def test_sessions_are_listed_with_their_titles_on_request(served):
    named, asked, empty = await served.start(name="Kitchen"), await served.start(), await served.start()
    await served.runtime.record_turn(named, "not the title", "ok")
    await served.runtime.record_turn(asked, "  Is the\n boiler   on? ", "yes")
    await served.runtime.record_turn(asked, "And now?", "no")
    plain = await get(served, "/v1/sessions")
    assert plain["titles"] is None
    listed = await get(served, "/v1/sessions", include="titles")
    assert listed["titles"] == {named: "Kitchen", asked: "Is the boiler on?", empty: None}
    assert listed["sessions"] == plain["sessions"]
    page = await get(served, "/v1/sessions", include="titles", limit=1)
    assert page["titles"] == {empty: None} and page["next_cursor"] == empty
    wrong = await served.client.get("/v1/sessions", params={"include": "x"})
    problem(wrong, 422, "invalid_input")


async def test_titles_never_show_the_text_of_another_owner(served):
    foreign = await served.runtime.start_session(owner="bob")
    await served.runtime.record_turn(foreign.id, "the secret of bob", "ok", owner="bob")
    assert await served.runtime.find_titles([foreign], owner="local") == {foreign.id: None}
    assert (await get(served, "/v1/sessions", include="titles"))["titles"] == {}
    listed = await get(served, "/v1/sessions", include="titles", headers=served.token("bob"))
    assert listed["titles"] == {foreign.id: "the secret of bob"}


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("a" * 80, "a" * 80),
        ("a" * 81, "a" * 79 + "…"),
        ("a" * 500, "a" * 79 + "…"),
        ("word " * 40, "word " * 15 + "word…"),
        ("a" * 79 + " b", "a" * 79 + "…"),
        ("a" * 78 + " bc", "a" * 78 + "…"),
        (" \n ", None),
    ],
)
def test_a_long_message_gives_a_short_title(text, title):
    assert make_title(text) == title
    assert title is None or len(title) <= 80
