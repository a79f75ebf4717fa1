"""The window view: its blocks and its report are those of the server, and a click pins, unpins and tags."""

from collections import Counter
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page_server import PageServer
from tests.ha.model_server import ModelServer

EVIL = '<img src=x onerror="window.hacked=1">'
LONG = "The pump runs at night, because the current is cheap then and the house is quiet. " * 3
LIMIT, LOW_WATER = 600, 450
FULL = "Slid out, because the window was full."


@pytest.fixture
def session(server: PageServer, model: ModelServer) -> str:
    """A session whose window had several cuts."""
    model.answer = lambda _: LONG
    started = server.start_session(window={"max_tokens": LIMIT, "evict_to": LOW_WATER / LIMIT})
    for number in range(14):
        server.say(started, f"Question number {number}: explain the heat pump {EVIL if number == 13 else ''}")
    return started


def open_window(page: Page, server: PageServer, session: str) -> None:
    page.goto(f"{server.url}/#/window/{session}")
    expect(page.get_by_role("heading", name="What the model sees")).to_be_visible()


def read_report(server: PageServer, session: str) -> dict[str, Any]:
    return dict(server.ask("GET", f"/v1/sessions/{session}/context"))


def list_messages(server: PageServer, session: str) -> list[dict[str, Any]]:
    return list(server.ask("GET", f"/v1/sessions/{session}/messages?limit=500")["messages"])


def find_tokens(page: Page, selector: str) -> list[tuple[str, int]]:
    """Return the name and the tokens of blocks: the id of a message, or the name of a part."""
    read = "all => all.map(({dataset: d}) => [d.messageId ?? d.part, Number(d.tokens)])"
    return [(name, tokens) for name, tokens in page.locator(selector).evaluate_all(read)]


def read_parts(page: Page) -> dict[str, int]:
    """Return the tokens of the blocks by the name of their part. The memory has several blocks."""
    sums: Counter[str] = Counter()
    for name, tokens in find_tokens(page, "button.part"):
        sums[name] += tokens
    return dict(sums)


def list_fixed_parts(server: PageServer, session: str) -> dict[str, int]:
    """Return the tokens of the parts of the report that are not turns."""
    parts = read_report(server, session)["parts"]
    return {part["name"]: part["tokens"] for part in parts if part["name"] != "window"}


def find_turn(page: Page, words: str) -> Locator:
    """Return the block of a turn in the strip."""
    return page.locator(".strip button.block").filter(has_text=words)


def open_turn(page: Page, words: str) -> Locator:
    """Click the block of a turn. Return the first message of its dialog."""
    find_turn(page, words).click()
    return page.get_by_role("dialog").locator("article").first


def close_dialog(page: Page) -> None:
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def sign_in(page: Page, server: PageServer, session: str, scopes: str) -> None:
    """Open the window of a session with a new token."""
    token = server.make_token("local", scopes)
    page.goto(f"{server.url}/#/window/{session}")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_the_blocks_are_the_parts_and_the_messages_of_the_context_report(
    page: Page, server: PageServer, session: str
):
    open_window(page, server, session)
    report, messages = read_report(server, session), list_messages(server, session)
    parts = {part["name"]: part["tokens"] for part in report["parts"]}
    kept = [(message["id"], message["token_count"]) for message in messages if message["in_window"]]
    gone = [(message["id"], message["token_count"]) for message in messages if not message["in_window"]]
    assert kept
    assert len(gone) == report["evicted_count"] > 0
    assert find_tokens(page, ".strip .kept .band i") == kept
    assert find_tokens(page, ".strip .gone .band i") == gone
    assert read_parts(page) == list_fixed_parts(server, session)
    used = sum(tokens for _, tokens in kept)
    assert used == parts["window"]
    assert page.locator("[data-free]").get_attribute("data-free") == str(LIMIT - used)
    expect(page.locator(".limit")).to_have_text(f"limit: {LIMIT}")
    expect(page.locator(".low-water")).to_have_text(f"after a cut: {LOW_WATER}")
    expect(page.locator(".headline")).to_contain_text(f"{used} of {LIMIT} tokens")


def test_the_report_beside_the_strip_has_each_part_the_sum_and_the_cached_share(
    page: Page, server: PageServer, session: str
):
    open_window(page, server, session)
    report = read_report(server, session)
    shown = find_tokens(page, "sash-context-report tr[data-part]")
    assert shown == [(part["name"], part["tokens"]) for part in report["parts"]]
    table = page.locator("sash-context-report")
    expect(table.locator("tfoot td")).to_have_text(f"{report['total_tokens']:,}")
    expect(table).to_contain_text(f"Cached share: {report['prefix_share']:.0%}")
    rows = [int(text.replace(",", "")) for text in table.locator("tbody td.number").all_inner_texts()]
    assert sum(rows) == report["total_tokens"]


def test_the_report_shows_exactly_what_would_be_and_what_was_sent(
    page: Page, server: PageServer, model: ModelServer, session: str
):
    open_window(page, server, session)
    table = page.locator("sash-context-report")
    table.get_by_text("Exactly what would be sent").click()
    report = server.ask("GET", f"/v1/sessions/{session}/context?include=messages")
    texts = table.locator("details").first.locator("> pre")
    expect(texts).to_have_count(len(report["messages"]))
    assert [text.strip() for text in texts.all_text_contents()] == [
        message["content"].strip() for message in report["messages"]
    ]
    table.get_by_text("What was sent last").click()
    expect(table.get_by_role("heading", name="Question number 13")).to_be_visible()
    table.get_by_text("The exact text").click()
    sent = model.requests[-1]["messages"][-1]["content"]
    expect(table.locator(".prompt pre").last).to_contain_text(sent)


def test_a_turn_that_slid_out_says_why(page: Page, server: PageServer, session: str):
    open_window(page, server, session)
    reasons = {each["message_id"]: each["reason"] for each in read_report(server, session)["evicted"]}
    read = "all => all.map(each => [each.querySelector('i').dataset.messageId, each.dataset.reason])"
    shown = page.locator(".strip .gone").evaluate_all(read)
    assert set(reasons.values()) == {"max_tokens"}
    assert {reason for _, reason in shown} == {"max_tokens", "earlier"}
    assert all(reason == reasons.get(first, "earlier") for first, reason in shown)
    expect(page.locator(".window-summary")).to_contain_text("because the window was full")
    expect(page.locator(".turn-rows.gone li").first).to_contain_text(FULL)
    expect(page.locator(".turn-rows.gone li").last).to_contain_text("Slid out at an earlier cut.")


def test_the_pointer_and_the_arrow_keys_show_the_text_of_a_block(
    page: Page, server: PageServer, session: str
):
    open_window(page, server, session)
    preview = page.locator("sash-block-preview")
    page.locator(".strip .gone").last.hover()
    expect(preview).to_contain_text("Question number")
    expect(preview).to_contain_text("The pump runs at night")
    expect(preview).to_contain_text(FULL)
    page.locator("[data-section=digest]").hover()
    expect(preview).to_contain_text("- Question number 0")
    page.get_by_role("heading", level=1).hover()
    expect(preview).to_contain_text("Point at a block")
    page.locator(".strip .kept").last.focus()
    expect(preview).to_contain_text("Question number 13")
    page.keyboard.press("ArrowLeft")
    expect(preview).to_contain_text("Question number 12")


def test_a_click_pins_a_turn_so_that_it_stays_and_unpins_it(page: Page, server: PageServer, session: str):
    open_window(page, server, session)
    message_id = page.locator(".strip .kept i").first.get_attribute("data-message-id")
    block = page.locator(f".strip .kept:has(i[data-message-id='{message_id}'])")
    asked = page.get_by_role("dialog").locator("article").first

    def read_message() -> dict[str, Any]:
        return next(each for each in list_messages(server, session) if each["id"] == message_id)

    block.click()
    asked.get_by_role("button", name="Pin", exact=True).click()
    expect(asked.get_by_role("button", name="Unpin")).to_be_enabled()
    assert "pinned" in read_message()["tags"]
    close_dialog(page)
    expect(page.locator(".turn-rows:not(.gone) li").last).to_contain_text("pinned")
    for number in range(6):
        server.say(session, f"Another long question {number}")
    # The page follows the conversation: the newest turn appears by itself. The pinned question did not slide out.
    expect(page.locator(".strip .kept").last).to_contain_text("Another long question 5")
    expect(block).to_be_visible()
    assert read_message()["in_window"]
    assert read_parts(page) == list_fixed_parts(server, session)
    block.click()
    asked.get_by_role("button", name="Unpin").click()
    expect(asked.get_by_role("button", name="Pin", exact=True)).to_be_enabled()
    assert "pinned" not in read_message()["tags"]
    close_dialog(page)
    expect(page.locator(".strip .pinned")).to_have_count(0)


def test_a_click_tags_a_message_and_removes_the_tag(page: Page, server: PageServer, session: str):
    open_window(page, server, session)

    def read_tags() -> set[str]:
        asked = next(m for m in list_messages(server, session) if "number 13" in m["content"])
        return {tag for tag in asked["tags"] if tag in ("important", "boiler")}

    asked = open_turn(page, "number 13")
    asked.get_by_role("button", name="Mark as important").click()
    expect(asked.get_by_role("button", name="Not important")).to_be_enabled()
    asked.get_by_label("New tag").fill("boiler")
    asked.get_by_role("button", name="Add tag").click()
    remove = asked.get_by_role("button", name="Remove the tag boiler")
    expect(remove).to_be_visible()
    assert read_tags() == {"important", "boiler"}
    remove.click()
    expect(remove).to_have_count(0)
    assert read_tags() == {"important"}
    close_dialog(page)
    expect(page.locator(".turn-rows li").first).to_contain_text("important")


def test_a_turn_that_slid_out_can_be_kept_in_mind_and_a_pin_can_be_removed(
    page: Page, server: PageServer, session: str
):
    open_window(page, server, session)
    assert page.locator("[data-section=pins]").count() == 0
    gone = page.locator(".strip .gone").last
    question = (gone.locator(".block-label").text_content() or "").strip()
    gone.click()
    page.get_by_role("dialog").get_by_role("button", name="Keep this in mind").first.click()
    expect(page.get_by_text("Pinned: every answer in this conversation knows it")).to_be_visible()
    close_dialog(page)
    expect(page.locator("[data-section=pins]")).to_be_visible()
    assert read_parts(page) == list_fixed_parts(server, session)
    page.locator("[data-section=pins]").click()
    page.get_by_role("button", name=f"Remove: {question}").click()
    expect(page.get_by_role("button", name=f"Remove: {question}")).to_have_count(0)
    close_dialog(page)
    expect(page.locator("[data-section=pins]")).to_have_count(0)


def test_markup_in_messages_tags_and_pins_stays_text(page: Page, server: PageServer, session: str):
    server.ask("POST", f"/v1/sessions/{session}/pins", {"text": f"Mind {EVIL}"})
    open_window(page, server, session)
    expect(page.locator(".turn-rows .title").first).to_contain_text(EVIL)
    find_turn(page, "number 13").hover()
    expect(page.locator("sash-block-preview")).to_contain_text(EVIL)
    open_turn(page, "number 13")
    expect(page.get_by_role("dialog")).to_contain_text(EVIL)
    close_dialog(page)
    page.locator("[data-section=pins]").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"Mind {EVIL}")
    close_dialog(page)
    page.get_by_text("Exactly what would be sent").click()
    expect(page.locator("sash-context-report")).to_contain_text(f"Mind {EVIL}")
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_an_empty_window_says_so(page: Page, server: PageServer):
    open_window(page, server, server.start_session(window={"max_tokens": 2000}))
    expect(page.locator(".headline")).to_have_text("The window is empty. It has room for 2,000 tokens.")
    expect(page.get_by_text("There are no turns yet.")).to_be_visible()
    expect(page.locator(".cut")).to_have_count(0)


def test_a_sign_in_that_may_only_read_can_look_but_not_pin(
    page: Page, own_server: PageServer, model: ModelServer
):
    session = own_server.start_session()
    own_server.say(session, "How are you?")
    sign_in(page, own_server, session, "read")
    find_turn(page, "How are you?").click()
    expect(page.get_by_role("dialog")).to_contain_text("How are you?")
    expect(page.get_by_role("button", name="Pin", exact=True)).to_have_count(0)


def test_without_the_right_to_act_a_session_that_may_act_cannot_be_changed(
    page: Page, own_server: PageServer
):
    session = own_server.start_session()
    own_server.say(session, "How are you?")
    own_server.ask("POST", f"/v1/sessions/{session}/pins", {"text": "Answer briefly."})
    sign_in(page, own_server, session, "read,converse")
    find_turn(page, "How are you?").click()
    expect(page.get_by_role("dialog")).to_contain_text("How are you?")
    expect(page.get_by_role("button", name="Pin", exact=True)).to_have_count(0)
    close_dialog(page)
    page.locator("[data-section=pins]").click()
    expect(page.get_by_role("dialog")).to_contain_text("Answer briefly.")
    expect(page.get_by_role("button", name="Remove")).to_have_count(0)


def test_pins_of_all_conversations_need_the_right_to_act(page: Page, own_server: PageServer):
    session = own_server.start_session(policy={"allow_actuation": False})
    own_server.say(session, "How are you?")
    own_server.ask("POST", f"/v1/sessions/{session}/pins", {"text": "Answer briefly."})
    own_server.ask("POST", "/v1/pins", {"text": "Be polite."})
    own_server.ask("POST", "/v1/facts", {"text": "The cat is called Mia."})
    sign_in(page, own_server, session, "read,converse")
    page.locator("[data-section=pins]").click()
    notes = page.get_by_role("dialog").locator(".notes li")
    expect(notes).to_have_count(3)
    for text in ("Answer briefly.", "The cat is called Mia."):
        expect(notes.filter(has_text=text).get_by_role("button")).to_have_count(1)
    expect(notes.filter(has_text="Be polite.").get_by_role("button")).to_have_count(0)


def test_the_exact_prompt_is_that_of_the_newest_turn(page: Page, server: PageServer, model: ModelServer):
    session = server.start_session()
    server.say(session, "What is the first riddle?")
    open_window(page, server, session)
    table = page.locator("sash-context-report")
    table.get_by_text("What was sent last").click()
    table.get_by_text("The exact text").click()
    expect(table.locator(".prompt pre").last).to_contain_text("What is the first riddle?")
    server.say(session, "What is the second riddle?")
    expect(table.get_by_role("heading", name="What is the second riddle?")).to_be_visible()
    expect(table.locator(".prompt pre").last).to_contain_text("What is the second riddle?")


def test_a_view_that_is_left_while_it_loads_opens_no_stream(page: Page, server: PageServer):
    """A browser opens six connections to a server, so six streams that nothing closes freeze the page."""
    sessions = [server.start_session() for _ in range(9)]
    page.goto(f"{server.url}/#/house")
    held: list[Any] = []
    page.route("**/context?*", lambda route: held.append(route))
    for session in sessions:
        with page.expect_request("**/context?*"):
            page.evaluate("id => { location.hash = `#/window/${id}` }", session)
        page.evaluate("location.hash = '#/house'")
        expect(page.get_by_role("heading", name="What it did")).to_be_visible()
        with page.expect_response("**/context?*"):
            held.pop().continue_()
    page.evaluate("location.hash = '#/costs'")
    expect(page.get_by_role("heading", name="Yesterday")).to_be_visible()
