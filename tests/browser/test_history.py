"""The history and the steps of a turn: search, forks, files, filters, deletion and the timeline."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.demo_page import answer
from tests.browser.page_server import PageServer
from tests.ha.model_server import ModelServer

EVIL = "<img src=x onerror=window.hacked=1>"
WAIT_MS = 15_000


def open_history(page: Page, server: PageServer, query: str = "") -> None:
    page.goto(f"{server.url}/#/history{query}")
    expect(page.get_by_role("heading", level=1, name="History")).to_be_visible()


def find_row(page: Page, title: str) -> Locator:
    return page.locator("sash-session-row").filter(has=page.get_by_role("link", name=title, exact=True))


def unfold(page: Page, title: str) -> Locator:
    """Open the details of a session, and return its row."""
    row = find_row(page, title)
    row.get_by_role("button", name=f"More about “{title}”").click()
    return row


def search(page: Page, words: str) -> None:
    page.get_by_label("Search in everything").fill(words)
    page.get_by_role("button", name="Search").click()


def read_session(page: Page) -> str:
    """Return the id of the session that the chat shows."""
    expect(page).to_have_url(re.compile(r"#/chat/\w+"))
    return re.search(r"#/chat/(\w+)", page.url)[1]


def list_texts(server: PageServer, session_id: str) -> list[tuple[str, Any]]:
    page = server.ask("GET", f"/v1/sessions/{session_id}/messages?limit=500")
    return [(message["role"], message["content"]) for message in page["messages"]]


def test_a_search_finds_an_old_sentence_and_leads_to_its_turn(page: Page, server: PageServer):
    session = server.start_session(window={"max_tokens": 400, "evict_to": 0.5})
    turn = server.say(session, "Where did I put the key of the café? It lies below the blue Flowerpot.")
    for number in range(12):
        server.say(session, f"Tell me something long about the weather, please, number {number}")
    open_history(page, server)
    search(page, "FLOWERPOT cafe")
    expect(page).to_have_url(re.compile(r"#/history\?q=FLOWERPOT\+cafe$"))
    hit = page.locator("sash-search-hits li").filter(has_text="It lies below the blue Flowerpot.")
    expect(hit.locator("mark")).to_have_text(["café", "Flowerpot"])
    hit.get_by_role("link", name="blue").click()
    expect(page).to_have_url(re.compile(f"#/chat/{session}\\?turn={turn['continuation_id']}$"))
    marked = page.locator("article.marked")
    expect(marked).to_contain_text("below the blue Flowerpot")
    expect(marked).to_be_in_viewport()
    page.go_back()
    expect(page.get_by_label("Search in everything")).to_have_value("FLOWERPOT cafe")
    expect(hit).to_be_visible()


def test_a_hit_in_a_copied_session_leads_to_the_question_that_it_answers(
    page: Page, server: PageServer, model: ModelServer
):
    model.answer = lambda _: "The gardener is called Zenobia."
    source = server.start_session()
    server.say(source, "What is the name of the person for the garden?")
    copy = server.ask("POST", f"/v1/sessions/{source}/fork", {})["session_id"]
    server.ask("DELETE", f"/v1/sessions/{source}")
    open_history(page, server, "?q=zenobia")
    page.get_by_role("link", name="The gardener is called").click()
    assert read_session(page) == copy
    expect(page.locator("article.marked")).to_contain_text("What is the name")


def test_a_search_without_a_match_says_so_and_other_speakers_can_be_left_out(page: Page, server: PageServer):
    session = server.start_session()
    server.say(session, "The password of the shed is quixotic")
    open_history(page, server, "?q=xylophonist")
    expect(page.get_by_text("No message matches: xylophonist")).to_be_visible()
    search(page, "quixotic")
    expect(page.locator("sash-search-hits li")).to_have_count(1)
    page.get_by_label("Said by").select_option("the agent")
    expect(page.locator("sash-search-hits li")).to_have_count(0)
    page.get_by_role("button", name="Show all", exact=True).click()
    expect(page.locator("sash-search-hits li")).to_have_count(1)
    page.get_by_role("link", name="Show all conversations").click()
    expect(find_row(page, "The password of the shed is quixotic")).to_be_visible()


def test_a_fork_from_a_turn_has_that_turn_and_none_after_it(page: Page, server: PageServer):
    session = server.start_session()
    sentences = ["First of all, hello there", "Second, how are you", "Third, good bye"]
    turns = [server.say(session, sentence) for sentence in sentences]
    page.goto(f"{server.url}/#/turn/{turns[1]['continuation_id']}")
    page.get_by_role("button", name="Continue in a copy from here").click()
    expect(page.locator(".notice")).to_contain_text("This is the copy")
    expect(page.locator(".said")).to_have_text(sentences[:2])
    copy = read_session(page)
    assert copy != session
    assert list_texts(server, copy) == list_texts(server, session)[:4]
    assert len(list_texts(server, session)) == 6


def test_an_ended_session_says_so_and_continues_in_a_copy(page: Page, server: PageServer):
    session = server.start_session(name="Over soon")
    server.say(session, "These words are in both")
    open_history(page, server)
    row = unfold(page, "Over soon")
    row.get_by_role("button", name="End", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Over soon")
    dialog.get_by_role("button", name="End", exact=True).click()
    expect(row.locator(".badge")).to_have_text("ended")
    expect(row).to_contain_text("This conversation has ended.")
    expect(row.get_by_role("button", name="More about")).to_be_focused()
    expect(row.get_by_role("button", name="End", exact=True)).to_have_count(0)
    row.get_by_role("button", name="Continue in a copy").click()
    expect(page.locator(".said")).to_have_text(["These words are in both"])
    assert read_session(page) != session
    expect(page.get_by_role("textbox")).to_be_enabled()


def test_an_exported_file_brings_a_deleted_session_back(page: Page, server: PageServer, tmp_path: Path):
    session = server.start_session(name="Round trip: ü/ö")
    server.say(session, "The answer is forty-two")
    server.say(session, "turn on the kitchen light")
    before = list_texts(server, session)
    open_history(page, server)
    row = unfold(page, "Round trip: ü/ö")
    with page.expect_download() as started:
        row.get_by_role("button", name="Export", exact=True).click()
    assert re.fullmatch(r"sash-Round-trip-ü-ö-\d{4}-\d\d-\d\d\.json", started.value.suggested_filename)
    file = tmp_path / "session.json"
    started.value.save_as(file)
    assert json.loads(file.read_text())["format"] == "sash.session"
    server.ask("DELETE", f"/v1/sessions/{session}")
    page.get_by_label("Import a file").set_input_files(file)
    expect(page.locator(".notice")).to_contain_text("was imported")
    expect(page.locator(".said")).to_have_text(["The answer is forty-two", "turn on the kitchen light"])
    assert list_texts(server, read_session(page)) == before


def test_an_import_of_a_known_session_or_of_another_file_is_explained(
    page: Page, server: PageServer, tmp_path: Path
):
    session = server.start_session(name="Already here")
    known, other = tmp_path / "known.json", tmp_path / "other.json"
    known.write_text(json.dumps(server.ask("GET", f"/v1/sessions/{session}/export")))
    other.write_text("{}")
    open_history(page, server)
    page.get_by_label("Import a file").set_input_files(other)
    expect(page.locator(".notice.error")).to_contain_text("not a session that Sash can import")
    page.get_by_label("Import a file").set_input_files(known)
    expect(page.locator(".notice").last).to_contain_text("already here")
    assert read_session(page) == session


def test_deletion_asks_first_and_then_removes(page: Page, server: PageServer):
    kept = server.start_session(name="To be kept")
    gone = server.start_session(name="To be deleted")
    page.goto(f"{server.url}/#/chat/{gone}")
    expect(page.get_by_role("heading", level=1, name="To be deleted")).to_be_visible()
    open_history(page, server)
    row = unfold(page, "To be deleted")
    row.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Delete “To be deleted” with everything that was said?")
    dialog.get_by_role("button", name="Cancel", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(row.get_by_role("button", name="Delete", exact=True)).to_be_focused()
    assert server.ask("GET", f"/v1/sessions/{gone}")
    row.get_by_role("button", name="Delete", exact=True).click()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(row).to_have_count(0)
    expect(find_row(page, "To be kept").get_by_role("link")).to_be_focused()
    with pytest.raises(HTTPError, match="404"):
        server.ask("GET", f"/v1/sessions/{gone}")
    assert server.ask("GET", f"/v1/sessions/{kept}")
    assert page.evaluate("localStorage.getItem('sash.session')") is None


def test_filters_choose_sessions_by_their_status_and_their_start(page: Page, server: PageServer):
    server.start_session(name="Filter: open")
    ended = server.start_session(name="Filter: ended")
    server.ask("POST", f"/v1/sessions/{ended}/end", {})
    open_history(page, server)
    expect(find_row(page, "Filter: open")).to_be_visible()
    page.get_by_label("Conversations").select_option("ended")
    expect(find_row(page, "Filter: ended")).to_be_visible()
    expect(find_row(page, "Filter: open")).to_have_count(0)
    page.get_by_label("Conversations").select_option("open")
    expect(find_row(page, "Filter: open")).to_be_visible()
    expect(find_row(page, "Filter: ended")).to_have_count(0)
    page.get_by_label("Started").select_option("today")
    expect(find_row(page, "Filter: open")).to_be_visible()
    page.get_by_label("Started").select_option("longer ago")
    none = page.get_by_text("No conversation matches this choice.")
    expect(none).to_be_visible()
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=10))
    for period, shown in (
        ("in the last 30 days", find_row(page, "Filter: open")),
        ("in the last 7 days", none),
        ("at any time", find_row(page, "Filter: open")),
        ("today", none),
    ):
        page.get_by_label("Started").select_option(period)
        expect(shown).to_be_visible()
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=31))
    page.get_by_label("Started").select_option("longer ago")
    expect(find_row(page, "Filter: open")).to_be_visible()


def test_older_sessions_follow_on_request_and_get_the_focus(page: Page, own_server: PageServer):
    for number in range(65):
        own_server.start_session(name=f"Number {number}")
    open_history(page, own_server)
    rows = page.locator("sash-session-row")
    expect(rows).to_have_count(30)
    page.get_by_role("button", name="Show older conversations").click()
    expect(rows).to_have_count(60)
    expect(find_row(page, "Number 34").get_by_role("link")).to_be_focused()
    page.get_by_role("button", name="Show older conversations").click()
    expect(rows).to_have_count(65)
    expect(rows.last).to_contain_text("Number 0")
    expect(page.get_by_role("button", name="Show older conversations")).to_have_count(0)
    expect(page.get_by_text("65 conversations")).to_be_visible()


def test_a_server_that_stops_is_explained_and_the_list_comes_back(page: Page, own_server: PageServer):
    own_server.start_session(name="Before the power cut")
    open_history(page, own_server)
    expect(find_row(page, "Before the power cut")).to_be_visible()
    own_server.kill()
    page.get_by_label("Conversations").select_option("open")
    expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached.")
    own_server.start()
    page.get_by_role("button", name="Try again").click()
    expect(find_row(page, "Before the power cut")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_timeline_shows_the_steps_of_a_turn_with_a_tool_call(
    page: Page, server: PageServer, model: ModelServer
):
    model.answer = answer
    session = server.start_session(name="Cosy")
    turn = server.say(session, "Please make the living room cosy for a long evening with a book")
    page.goto(f"{server.url}/#/turn/{turn['continuation_id']}")
    steps = page.locator(".journal > li")
    expect(steps.first).to_contain_text("Asked")
    expect(steps.last).to_contain_text("Answered")
    expect(steps.filter(has_text="Model decided")).to_contain_text(re.compile(r"110 tokens\s*[\d.]+ m?s"))
    tool = steps.filter(has_text="Used a tool")
    expect(tool).to_contain_text("call_service")
    expect(tool).to_contain_text("done, verified")
    expect(tool.get_by_text('"light.turn_on"').first).to_be_hidden()
    tool.locator("summary").click()
    expect(tool.get_by_role("group", name="Arguments")).to_contain_text('"service": "light.turn_on"')
    expect(tool.get_by_role("group", name="Result")).to_contain_text('"verified": true')
    expect(page.get_by_text("It is cosy now: the floor lamp is on.")).to_be_visible()
    expect(page.get_by_text(re.compile("2 model calls · 220 tokens"))).to_be_visible()
    page.get_by_role("button", name="How this answer came about").click()
    expect(page.get_by_role("dialog")).to_contain_text("light.turn_on")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="Open in the chat").click()
    assert read_session(page) == session
    expect(page.locator("article.marked")).to_contain_text("living room cosy")


def test_a_turn_that_waits_for_an_approval_continues_on_its_page(
    page: Page, own_server: PageServer, model: ModelServer
):
    model.answer = answer
    session = own_server.start_session(name="At the door")
    turn = own_server.say(session, "Please let the plumber in by the front door")
    open_history(page, own_server)
    expect(find_row(page, "At the door").locator(".badge")).to_have_text("waits for your approval")
    page.goto(f"{own_server.url}/#/turn/{turn['continuation_id']}")
    expect(page.locator(".journal > li").last).to_contain_text("Asked for approval")
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_text("The front door is unlocked for the plumber.")).to_be_visible()
    expect(page.locator(".turn-page > header .badge")).to_have_text("answered")
    expect(page.locator(".journal > li").filter(has_text="Allowed by a person")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_a_running_turn_shows_new_steps_and_can_be_stopped(
    page: Page, server: PageServer, model: ModelServer
):
    model.hold()
    session = server.start_session()
    sent = server.ask("POST", f"/v1/sessions/{session}/messages", {"message": "Think about it for long"})
    page.goto(f"{server.url}/#/turn/{sent['continuation_id']}")
    badge = page.locator(".turn-page > header .badge")
    expect(badge).to_have_text("running")
    page.get_by_role("button", name="Stop it").click()
    expect(badge).to_have_text("cancelled")
    expect(page.locator(".journal > li").last).to_contain_text("Cancelled")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    model.release()
    page.get_by_role("button", name="Try again").click()
    expect(badge).to_have_text("answered", timeout=WAIT_MS)
    expect(page.get_by_role("link", name="Show the earlier attempt")).to_be_visible()


def test_an_interrupted_turn_is_resumed_on_its_page(page: Page, own_server: PageServer, model: ModelServer):
    model.hold()
    session = own_server.start_session(name="Cut off")
    sent = own_server.ask("POST", f"/v1/sessions/{session}/messages", {"message": "Think about it for long"})
    turn = sent["continuation_id"]
    page.goto(f"{own_server.url}/#/turn/{turn}")
    badge = page.locator(".turn-page > header .badge")
    expect(badge).to_have_text("running")
    own_server.kill()
    expect(page.get_by_text("The connection is lost.")).to_be_visible()
    own_server.start()
    expect(badge).to_have_text("interrupted, can be resumed", timeout=WAIT_MS)
    model.release()
    page.get_by_role("button", name="Resume").click()
    expect(badge).to_have_text("answered", timeout=WAIT_MS)
    expect(page.locator(".journal > li").filter(has_text="Interrupted")).to_be_visible()


def test_a_failed_turn_says_why_and_what_to_do(page: Page, server: PageServer, model: ModelServer):
    def fail(_: object) -> str:
        raise RuntimeError("simulated")

    model.answer = fail
    turn = server.say(server.start_session(), "Tell me a story", time_budget_ms=3000)
    assert turn["status"] == "failed"
    page.goto(f"{server.url}/#/turn/{turn['continuation_id']}")
    expect(page.get_by_role("alert")).to_contain_text("HTTP 500")
    expect(page.get_by_role("alert")).to_contain_text("Try again in a minute.")
    model.answer = lambda _: "Once upon a time."
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("Once upon a time.")).to_be_visible()


def test_an_unknown_turn_is_explained(page: Page, server: PageServer):
    page.goto(f"{server.url}/#/turn/01ARZ3NDEKTSV4RRFFQ69G5FAV")
    expect(page.get_by_role("alert")).to_contain_text("This turn does not exist.")


def test_a_title_with_code_stays_a_text(page: Page, server: PageServer):
    session = server.start_session(name=EVIL)
    turn = server.say(session, f"Markup {EVIL} in a message")
    open_history(page, server)
    row = unfold(page, EVIL)
    row.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text(EVIL)
    page.get_by_role("button", name="Cancel").click()
    search(page, "onerror")
    expect(find_row(page, EVIL)).to_be_visible()
    expect(page.locator("sash-search-hits li").first).to_contain_text(f"Markup {EVIL} in a message")
    page.goto(f"{server.url}/#/turn/{turn['continuation_id']}")
    expect(page.get_by_role("link", name=EVIL, exact=True)).to_have_attribute(
        "href", re.compile(turn["continuation_id"])
    )
    expect(page.locator("blockquote")).to_have_text(f"Markup {EVIL} in a message")
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.hacked") is None
