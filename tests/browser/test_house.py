"""The house view: states, actions with their verified state, undo, and the policy in force."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page_server import PageServer
from tests.ha.model_server import ModelServer

EVIL = '<img src=x onerror="window.hacked=1">'
LIGHT = "light.kitchen_ceiling"
# The states of sensors may change between two requests.
STEADY = {"light", "lock", "cover", "switch", "fan", "vacuum"}


def open_house(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/#/house")
    expect(page.get_by_role("heading", name="What it did")).to_be_visible()


def list_entities(server: PageServer) -> list[dict[str, Any]]:
    return list(server.ask("GET", "/v1/home?language=en")["entities"])


def find_entity(page: Page, entity_id: str) -> Locator:
    return page.locator(f"[data-entity='{entity_id}']")


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_each_entity_that_the_agent_sees_is_listed_with_its_state(page: Page, server: PageServer):
    open_house(page, server)
    entities = list_entities(server)
    listed = page.locator("[data-entity]").evaluate_all("all => all.map(each => each.dataset.entity)")
    assert sorted(listed) == sorted(entity["entity_id"] for entity in entities)
    steady = [entity for entity in entities if entity["domain"] in STEADY]
    assert steady
    for entity in steady:
        row = find_entity(page, entity["entity_id"])
        expect(row).to_contain_text(entity["name"])
        state = re.compile(rf"^\s*{re.escape(entity['shown'])}\s*(since .*)?\s*$")
        expect(row.locator(".entity-state")).to_have_text(state)
    expect(page.locator(".connection")).to_contain_text("connected")


def test_the_filter_finds_entities_by_their_room_and_kind(page: Page, server: PageServer):
    open_house(page, server)
    page.get_by_label("Find").fill("bedroom lights")
    expect(page.locator("[data-entity]")).to_have_count(2)
    expect(find_entity(page, "light.bedroom_ceiling")).to_be_visible()
    page.get_by_label("Find").fill("submarine")
    expect(page.get_by_text("Nothing matches.")).to_be_visible()


def test_an_action_is_shown_with_its_verified_state_and_can_be_undone(page: Page, own_server: PageServer):
    own_server.say(own_server.start_session(), "turn on the kitchen light")
    open_house(page, own_server)
    action = page.locator("sash-action-list ol > li").last
    expect(action.get_by_role("heading")).to_have_text("turn on Kitchen ceiling light")
    expect(action).to_contain_text("Kitchen ceiling light: off → on")
    expect(action).to_contain_text("checked: it happened")
    expect(action.locator("q")).to_have_text("turn on the kitchen light")
    expect(action).to_contain_text("understood without a model")
    action.get_by_text("How it was done").click()
    expect(action).to_contain_text("light.turn_on")
    expect(find_entity(page, LIGHT).locator(".entity-state")).to_contain_text("on")

    action.get_by_role("button", name="Undo: turn on Kitchen ceiling light").click()
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    expect(action).to_contain_text("undone later")
    expect(action.get_by_role("button")).to_have_count(0)
    expect(find_entity(page, LIGHT).locator(".entity-state")).to_contain_text("off")
    expect(page.locator("sash-action-list ol > li").first).to_contain_text("undo: turn on Kitchen ceiling")
    assert next(each for each in list_entities(own_server) if each["entity_id"] == LIGHT)["state"] == "off"


def test_an_undo_that_the_person_cancels_does_nothing(page: Page, own_server: PageServer):
    own_server.say(own_server.start_session(), "turn on the kitchen light")
    open_house(page, own_server)
    page.get_by_role("button", name="Undo: turn on Kitchen ceiling light").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert len(own_server.ask("GET", "/v1/actions")["actions"]) == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"verified": False}, "not confirmed by the house"),
        ({"verified": None}, "cannot be checked"),
        ({"outcome": "denied", "verified": None}, "not allowed"),
        ({"outcome": "failed", "verified": None}, "failed"),
        ({"outcome": "unknown", "verified": None}, "result unknown"),
        ({"approved": True}, "a person approved it"),
        ({"approved": False, "outcome": "denied"}, "a person refused it"),
    ],
)
def test_an_action_never_looks_better_than_it_went(
    page: Page, server: PageServer, changed: dict[str, Any], words: str
):
    """The demo home does all that it is asked, so these outcomes are put into the response of the server."""
    server.say(server.start_session(), "turn on the kitchen light")

    def change(route: Any) -> None:
        found = route.fetch().json()
        route.fulfill(json={**found, "actions": [{**found["actions"][0], **changed}]})

    page.route("**/v1/actions?*", change)
    open_house(page, server)
    action = page.locator("sash-action-list ol > li")
    expect(action).to_contain_text(words)
    if "approved" not in changed or not changed["approved"]:
        expect(action).not_to_contain_text("checked: it happened")


def test_the_policy_in_force_is_told_in_sentences(page: Page, server: PageServer):
    open_house(page, server)
    me = server.ask("GET", "/v1/me")
    policy = page.locator(".policy")
    expect(policy).to_contain_text("It may control devices.")
    asked = policy.locator("li.ask li")
    assert asked.all_text_contents() == ["locks", "alarms", "blinds, doors and gates", "valves"]
    assert [each.get_attribute("title") for each in asked.all()] == me["policy"]["require_confirmation"]
    expect(policy).to_contain_text(f"At most {me['policy']['max_actions_per_minute']} actions per minute.")
    policy.get_by_text(f"Show {len(me['policy']['denylisted_services'])} rules").click()
    expect(policy.get_by_text("homeassistant.restart")).to_be_visible()
    expect(policy).to_contain_text(f"At most {me['budgets']['max_tool_calls']} tool calls per question.")


def test_a_sign_in_without_the_right_to_act_sees_why_it_cannot_undo(page: Page, own_server: PageServer):
    own_server.say(own_server.start_session(), "turn on the kitchen light")
    token = own_server.make_token("local", "read,converse")
    page.goto(f"{own_server.url}/#/house")
    sign_in(page, token)
    expect(page.get_by_text("Undo needs the right to act.")).to_be_visible()
    expect(page.locator("sash-action-list ol > li")).to_contain_text("checked: it happened")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    expect(page.locator(".policy")).to_contain_text("It may only look.")
    expect(page.locator(".policy")).to_contain_text("Your sign-in lacks the right to act")


def test_a_home_that_does_not_answer_says_why(page: Page, tmp_path, model: ModelServer):
    # Nothing listens at port 9.
    home = {"SASH_HOME_URL": "http://127.0.0.1:9", "SASH_HOME_TOKEN": "token"}
    with PageServer(tmp_path, model, **home) as server:
        open_house(page, server)
        expect(page.locator(".connection")).to_contain_text("not connected")
        expect(page.get_by_role("alert")).to_contain_text("127.0.0.1:9 cannot be reached")
        expect(page.get_by_text("It did nothing, and it may not control anything now.")).to_be_visible()
        page.goto("about:blank")


def test_without_a_home_the_page_says_how_to_connect_one(page: Page, tmp_path, model: ModelServer):
    with PageServer(tmp_path, model, SASH_HOME="none") as server:
        open_house(page, server)
        expect(page.get_by_text("No house is connected.")).to_be_visible()
        expect(page.get_by_text("SASH_HOME_URL")).to_be_visible()
        page.goto("about:blank")


def test_markup_in_names_states_and_sentences_stays_text(page: Page, server: PageServer):
    server.say(server.start_session(), "turn on the kitchen light")

    def spoil(route: Any) -> None:
        found = route.fetch().json()
        entities = [{**entity, "name": EVIL, "shown": EVIL, "area": EVIL} for entity in found["entities"]]
        route.fulfill(json={**found, "name": EVIL, "entities": entities})

    def spoil_actions(route: Any) -> None:
        found = route.fetch().json()
        spoiled = {"in_words": EVIL, "sentence": EVIL, "service": EVIL, "allowed_by": EVIL}
        route.fulfill(json={**found, "actions": [{**each, **spoiled} for each in found["actions"]]})

    page.route("**/v1/home?*", spoil)
    page.route("**/v1/actions?*", spoil_actions)
    open_house(page, server)
    expect(find_entity(page, LIGHT)).to_contain_text(EVIL)
    expect(page.locator(".connection")).to_contain_text(EVIL)
    action = page.locator("sash-action-list ol > li").first
    expect(action.get_by_role("heading")).to_have_text(EVIL)
    action.get_by_text("How it was done").click()
    expect(action.locator("details")).to_contain_text(EVIL)
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_an_undo_never_reverses_another_action_than_the_confirmed_one(page: Page, own_server: PageServer):
    session = own_server.start_session()
    own_server.say(session, "turn on the kitchen light")
    open_house(page, own_server)
    page.get_by_role("button", name="Undo: turn on Kitchen ceiling light").click()
    own_server.say(session, "turn on the bedroom ceiling light")
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    expect(page.locator(".notice.error")).to_contain_text("This is no longer the last action")
    undo = page.get_by_role("button", name="Undo:")
    expect(undo).to_have_accessible_name("Undo: turn on Bedroom ceiling light")
    states = {each["entity_id"]: each["state"] for each in list_entities(own_server)}
    assert (states[LIGHT], states["light.bedroom_ceiling"]) == ("on", "on")


def test_an_action_of_an_ended_session_has_no_undo(page: Page, own_server: PageServer):
    session = own_server.start_session()
    own_server.say(session, "turn on the kitchen light")
    own_server.ask("POST", f"/v1/sessions/{session}/end", {})
    open_house(page, own_server)
    expect(page.locator("sash-action-list ol > li")).to_contain_text("checked: it happened")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)


def test_states_are_read_more_often_than_actions(page: Page, server: PageServer):
    """A list of actions reads many turns."""
    page.clock.install()
    open_house(page, server)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for _ in range(3):
        with page.expect_response("**/v1/home?*"):
            page.clock.run_for(15_000)
    assert not any("/v1/actions" in url for url in asked)
    with page.expect_response("**/v1/actions?*"):
        page.clock.run_for(15_000)
