"""The chat: live steps, stopping, approvals, undo, files, lost connections, and long conversations."""

import json
import re
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.page_server import PageServer
from tests.browser.relay import Relay
from tests.ha.model_server import ModelServer, call_tool, has_result

EVIL = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
COUNT_TO_100 = (
    "with recursive days(day) as (select 1 union all select day + 1 from days where day < 100) "
    "select day, day * 2 as twice from days"
)
# A page with a long conversation has about 900 elements. One that draws all turns has more than 50,000.
MAX_ELEMENTS = 1500
COUNT_ELEMENTS = "document.querySelector('sash-app').shadowRoot.querySelectorAll('*').length"


def open_chat(page: Page, server: PageServer, session_id: str = "", query: str = "") -> None:
    page.goto(f"{server.url}/#/chat/{session_id}{query}")


def say(page: Page, text: str) -> Locator:
    """Send a message, and return its turn."""
    page.get_by_label("Your message").fill(text)
    page.get_by_label("Your message").press("Enter")
    turn = page.locator("sash-chat-turn").last
    expect(turn.locator(".message")).to_have_text(text)
    return turn


def find_session(page: Page) -> str:
    """Return the id of the session that the address names."""
    expect(page).to_have_url(re.compile("#/chat/[0-9A-Z]{26}"))
    return page.url.partition("#/chat/")[2][:26]


def use_tool(name: str, answer: str = "That is all.", **arguments: Any):
    """Return a model that calls a tool once, and then answers."""

    def respond(messages: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
        return answer if has_result(messages) else call_tool(name, **arguments)

    return respond


def unlock_door(messages: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if not has_result(messages):
        return call_tool("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    return (
        "The door stays as it is."
        if "said no" in str(messages[-1]["content"])
        else "The door is open for you."
    )


def test_steps_and_the_answer_appear_while_the_turn_runs(page: Page, server: PageServer, model: ModelServer):
    answer = "It is **cosy** now:\n\n1. The lamp is on\n2. The tea is ready"
    model.answer = use_tool("call_service", answer, service="light.turn_on", entity_ids=["light.floor_lamp"])
    model.hold_rest()
    open_chat(page, server)
    turn = say(page, "Make the evening pleasant for two")
    step = turn.locator(".step.tool")
    expect(step).to_contain_text("call_service")
    expect(step).to_contain_text("light.turn_on, light.floor_lamp")
    expect(step).to_contain_text("done, verified")
    expect(step.locator("time")).to_have_text(re.compile(r"\d+ m?s"))
    expect(turn.locator(".step.model")).to_contain_text("110 tokens")
    expect(turn.locator(".markdown")).to_contain_text("It is")
    expect(turn.locator(".markdown")).not_to_contain_text("tea")
    expect(turn.get_by_role("button", name="Stop")).to_be_visible()
    step.locator("summary").click()
    expect(step).to_contain_text('"service": "light.turn_on"')
    expect(step).to_contain_text('"verified": true')
    model.release()
    expect(turn.locator(".markdown strong")).to_have_text("cosy")
    expect(turn.locator(".markdown ol li")).to_have_text(["The lamp is on", "The tea is ready"])
    expect(turn.get_by_role("button", name="Stop")).to_have_count(0)
    expect(turn.locator(".foot")).to_contain_text("2 model calls")


def test_a_running_turn_can_be_stopped_and_tried_again(page: Page, server: PageServer, model: ModelServer):
    model.answer = lambda _: "Once upon a time."
    model.hold()
    open_chat(page, server)
    turn = say(page, "Tell a story about a whale")
    turn.get_by_role("button", name="Stop").click()
    expect(turn).to_contain_text("This message was cancelled.")
    model.release()
    stopped = page.locator("sash-chat-turn").first
    stopped.get_by_role("button", name="Try again").click()
    expect(page.locator("sash-chat-turn")).to_have_count(2)
    expect(page.locator("sash-chat-turn").last.locator(".markdown")).to_have_text("Once upon a time.")
    expect(stopped.get_by_role("button", name="Try again")).to_have_count(0)
    page.reload()
    expect(page.locator("sash-chat-turn").first).to_contain_text("This message was cancelled.")
    expect(page.locator("sash-chat-turn").last).to_contain_text("Once upon a time.")


def test_a_failed_turn_says_why_and_can_be_tried_again(
    page: Page, own_server: PageServer, model: ModelServer
):
    key, model.key = model.key, "another key"
    open_chat(page, own_server)
    turn = say(page, "Tell a story about a shark")
    expect(turn.get_by_role("alert")).to_contain_text("No answer.")
    expect(turn.get_by_role("alert")).to_contain_text("key")
    model.key = key
    turn.get_by_role("button", name="Try again").click()
    expect(page.locator("sash-chat-turn").last.locator(".markdown")).to_have_text("Fine.")


def test_a_second_message_waits_for_the_first(page: Page, server: PageServer, model: ModelServer):
    model.answer = lambda messages: f"I heard {messages[-1]['content'][-5:]}"
    model.hold()
    open_chat(page, server)
    say(page, "Think about a floor")
    second = say(page, "Think about walls")
    expect(second).to_contain_text("Waiting for the answer before this one")
    model.release()
    expect(page.locator("sash-chat-turn .markdown")).to_have_text(["I heard floor", "I heard walls"])


def test_a_turn_is_resumed_after_the_server_was_killed(
    page: Page, own_server: PageServer, model: ModelServer
):
    addresses: list[str] = []
    page.on("request", lambda request: "/events/" in request.url and addresses.append(request.url))
    model.answer = use_tool(
        "call_service", "It is on, as you wished.", service="light.turn_on", entity_ids=["light.floor_lamp"]
    )
    model.hold_rest()
    open_chat(page, own_server)
    turn = say(page, "Make the evening pleasant")
    expect(turn.locator(".markdown")).to_contain_text("It is")
    expect(turn.locator(".markdown")).not_to_contain_text("wished")
    session_id = find_session(page)
    seen = max(step["cursor"] for step in read_steps(own_server, session_id))
    own_server.kill()
    expect(page.get_by_text("The connection is lost.")).to_be_visible()
    say(page, "turn on the kitchen light")
    expect(page.get_by_text("Not sent yet")).to_be_visible()
    addresses.clear()
    own_server.start()
    model.release()
    expect(page.get_by_text("Turned on the kitchen ceiling light.", exact=True)).to_be_visible(timeout=60_000)
    turn = page.locator("sash-chat-turn", has_text="Make the evening pleasant")
    turn.get_by_role("button", name="Resume").click(timeout=60_000)
    expect(turn.locator(".markdown")).to_have_text("It is on, as you wished.")
    expect(page.get_by_text("The connection is lost.")).to_have_count(0)
    # A turn stands where its answer is in the transcript: here after the message that was sent meanwhile.
    expect(page.locator("sash-chat-turn .message")).to_have_text(
        ["turn on the kitchen light", "Make the evening pleasant"]
    )
    expect(page.locator("sash-chat-turn .markdown").first).to_have_text(
        "Turned on the kitchen ceiling light."
    )
    assert all(address.endswith(f"after={seen}") for address in addresses), (seen, addresses)
    shown = page.evaluate(
        "document.querySelector('sash-app').shadowRoot.querySelector('sash-transcript').turns"
        ".flatMap((turn) => turn.steps).map((step) => step.cursor)"
    )
    assert len(shown) == len(set(shown))
    assert set(shown) == {step["cursor"] for step in read_steps(own_server, session_id)}


def read_steps(server: PageServer, session_id: str) -> list[dict[str, Any]]:
    """Return the steps of all turns of a session, oldest turn first."""
    listed = server.ask("GET", f"/v1/continuations?session_id={session_id}")["continuations"]
    turns = [server.ask("GET", f"/v1/continuations/{each['continuation_id']}") for each in reversed(listed)]
    return [step for turn in turns for step in turn["steps"]]


def test_a_lost_connection_doubles_and_loses_no_words(page: Page, server: PageServer, model: ModelServer):
    model.answer = lambda _: "one two three four five six"
    model.hold_rest()
    with Relay(server.url) as relay:
        page.goto(relay.url)
        turn = say(page, "Count to six for the children")
        expect(turn.locator(".markdown")).to_have_text("one two")
        relay.cut()
        expect(page.get_by_text("The connection is lost.")).to_be_visible()
        relay.mend()
        expect(page.get_by_text("The connection is lost.")).to_have_count(0)
        expect(turn.locator(".markdown")).to_have_text("one two")
        relay.cut()
        expect(page.get_by_text("The connection is lost.")).to_be_visible()
        model.release()
        wait_for_end(server, find_session(page))
        relay.mend()
        expect(turn.locator(".markdown")).to_have_text("one two three four five six")
        expect(turn.locator(".foot")).to_contain_text("1 model call")
        page.goto("about:blank")


def test_a_waiting_message_is_sent_after_the_person_left_the_chat(page: Page, own_server: PageServer):
    session_id = own_server.start_session(name="Before the power cut")
    # A view can be shown without the server if it was shown before.
    page.goto(f"{own_server.url}/#/house")
    expect(page.get_by_role("heading", name="House", level=1)).to_be_visible()
    open_chat(page, own_server, session_id)
    expect(page.get_by_role("heading", name="Before the power cut")).to_be_visible()
    own_server.kill()
    say(page, "turn on the kitchen light")
    expect(page.get_by_text("Not sent yet")).to_be_visible()
    views = page.get_by_role("navigation", name="Views")
    views.get_by_role("link", name="House").click()
    expect(page.get_by_role("heading", name="House", level=1)).to_be_visible()
    own_server.start()
    views.get_by_role("link", name="Chat").click()
    expect(page.locator("sash-chat-turn .message")).to_have_text("turn on the kitchen light")
    expect(page.locator("sash-chat-turn .markdown")).to_have_text("Turned on the kitchen ceiling light.")


def wait_for_end(server: PageServer, session_id: str) -> None:
    """Wait until the newest turn of a session has ended."""
    listed = server.ask("GET", f"/v1/continuations?session_id={session_id}")["continuations"]
    ended = server.ask("GET", f"/v1/continuations/{listed[0]['continuation_id']}?wait_ms=20000")
    assert ended["status"] == "completed"


def test_an_approval_is_given(page: Page, own_server: PageServer, model: ModelServer):
    model.answer = unlock_door
    open_chat(page, own_server)
    turn = say(page, "Please let the plumber in")
    question = turn.get_by_role("region", name="May I do this?")
    expect(question).to_contain_text("Unlock the front door lock?")
    expect(question).to_contain_text("You are asked because your rules want it for such actions.")
    expect(question.locator("details")).to_contain_text("lock.unlock needs an approval")
    expect(question.locator("details > p").first).not_to_be_visible()
    question.get_by_role("button", name="Allow").click()
    expect(turn.locator(".markdown")).to_have_text("The door is open for you.")
    expect(question).to_have_count(0)
    expect(page.get_by_role("region", name="Messages")).to_be_focused()
    turn.locator(".past-steps > summary").click()
    expect(turn.locator(".step.tool")).to_contain_text("done, verified")


def test_an_approval_is_refused(page: Page, own_server: PageServer, model: ModelServer):
    model.answer = unlock_door
    open_chat(page, own_server)
    turn = say(page, "Please let the plumber in")
    turn.get_by_role("button", name="Refuse").click()
    expect(turn.locator(".markdown")).to_have_text("The door stays as it is.")
    turn.locator(".past-steps > summary").click()
    expect(turn.locator(".step.tool")).to_contain_text("not allowed")
    expect(turn.locator(".step.refused")).to_have_text("Refused by a person")
    actions = own_server.ask("GET", "/v1/actions")["actions"]
    assert [action["outcome"] for action in actions] == ["denied"]


def test_an_action_is_undone(page: Page, own_server: PageServer):
    open_chat(page, own_server)
    turn = say(page, "turn on the kitchen light")
    expect(turn.locator(".markdown")).to_have_text("Turned on the kitchen ceiling light.")
    turn.get_by_role("button", name="Undo").click()
    undo = page.locator("sash-chat-turn").nth(1)
    expect(undo.locator(".markdown")).to_contain_text("the kitchen ceiling light is off again")
    first = page.locator("sash-chat-turn").first
    expect(first.locator(".foot")).to_contain_text("taken back")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)


def test_an_early_answer_completes_by_itself(page: Page, tmp_path: Path, model: ModelServer):
    early = {"SASH_EARLY_WAIT_ENABLE": "true", "SASH_EARLY_WAIT_SECONDS": "1"}
    with PageServer(tmp_path, model, **early) as server:
        open_chat(page, server)
        model.answer = lambda _: "The heat pump likes cool nights."
        model.hold()
        turn = say(page, "Explain the heat pump at length")
        expect(turn).to_contain_text("Still working. The answer appears here by itself.")
        # A page that is opened meanwhile shows the same.
        page.reload()
        expect(turn).to_contain_text("Still working. The answer appears here by itself.")
        model.release()
        expect(turn.locator(".markdown")).to_have_text("The heat pump likes cool nights.")
        expect(turn).not_to_contain_text("Still working")
        page.goto("about:blank")


def test_html_of_users_models_and_tools_stays_text(page: Page, own_server: PageServer, model: ModelServer):
    model.answer = use_tool("remember", f"Noted: {EVIL} and **bold**", text=EVIL)
    open_chat(page, own_server)
    turn = say(page, EVIL)
    expect(turn.locator(".markdown strong")).to_have_text("bold")
    expect(turn.locator(".markdown")).to_contain_text(EVIL)
    turn.locator(".past-steps > summary").click()
    turn.locator(".step.tool summary").click()
    expect(turn.locator(".step.tool pre").last).to_contain_text("<script>window.hacked=1</script>")
    turn.get_by_role("button", name="Details").click()
    expect(page.get_by_role("dialog").locator("blockquote")).to_have_text(EVIL)
    expect(page.locator("sash-chat img, sash-chat script")).to_have_count(0)
    assert page.evaluate("window.hacked") is None


def test_a_plot_is_shown_and_downloaded(page: Page, server: PageServer, model: ModelServer):
    model.answer = use_tool("get_history", entity_ids=["sensor.living_room_temperature"], plot=True)
    open_chat(page, server)
    turn = say(page, "Draw the temperature of the living room")
    picture = turn.get_by_role("img", name="Picture: history.png")
    expect(picture).to_be_visible()
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 300
    with page.expect_download() as download:
        turn.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "history.png"
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")


def test_a_table_of_a_tool_is_a_table(page: Page, server: PageServer, model: ModelServer):
    model.answer = use_tool(
        "analyze_history", entity_ids=["sensor.living_room_temperature"], sql=COUNT_TO_100
    )
    open_chat(page, server)
    turn = say(page, "Count the days of the season")
    table = turn.get_by_role("group", name="analysis.csv").get_by_role("table")
    expect(table.get_by_role("columnheader")).to_have_text(["day", "twice"])
    expect(table.get_by_role("row").nth(3).get_by_role("cell")).to_have_text(["3", "6"])
    expect(turn).to_contain_text("50 more rows")
    with page.expect_download() as download:
        turn.get_by_role("button", name="Download").click()
    assert Path(download.value.path()).read_text().splitlines()[-1] == "100,200"


def test_a_person_without_the_right_to_act_reads_why(page: Page, tmp_path: Path, model: ModelServer):
    with PageServer(tmp_path, model) as server:
        model.answer = unlock_door
        session_id = server.start_session()
        server.say(session_id, "turn on the kitchen light")
        server.say(session_id, "Please let the plumber in")
        token = server.make_token("local", "read,converse")
        page.add_init_script(f"sessionStorage.setItem('sash.token', {json.dumps(token)})")
        open_chat(page, server, session_id)
        question = page.get_by_role("region", name="May I do this?")
        expect(question).to_contain_text("A person with the right to act has to.")
        expect(question.get_by_role("button")).to_have_count(0)
        expect(page.get_by_role("button", name="Undo")).to_have_count(0)
        expect(page.get_by_label("Your message")).to_have_count(0)
        page.get_by_role("link", name="New conversation").click()
        model.answer = lambda _: "I can look, but not act."
        expect(say(page, "Tell me what you can do here").locator(".markdown")).to_have_text(
            "I can look, but not act."
        )


def test_an_ended_conversation_can_be_read_only(page: Page, server: PageServer):
    session_id = server.start_session()
    server.say(session_id, "turn on the kitchen light")
    open_chat(page, server, session_id)
    expect(page.get_by_label("Your message")).to_be_visible()
    server.ask("POST", f"/v1/sessions/{session_id}/end", {})
    expect(page.get_by_text("This conversation has ended.")).to_be_visible()
    expect(page.get_by_label("Your message")).to_have_count(0)
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    expect(page.locator("sash-chat-turn .markdown")).to_have_text("Turned on the kitchen ceiling light.")


def test_a_conversation_that_does_not_exist_offers_others(page: Page, server: PageServer):
    open_chat(page, server, "01AAAAAAAAAAAAAAAAAAAAAAAA")
    expect(page.get_by_role("alert")).to_have_text(
        "This conversation does not exist. It may have been deleted."
    )
    page.get_by_role("link", name="New conversation").click()
    expect(page.get_by_role("heading", name="What can I do for you?")).to_be_visible()


def test_a_conversation_of_5000_messages_stays_small(page: Page, own_server: PageServer):
    first, session_id = record_turns(own_server, 2500)
    open_chat(page, own_server, session_id)
    expect(page.get_by_text("Question 2499 about", exact=False)).to_be_visible()
    assert page.evaluate(COUNT_ELEMENTS) < MAX_ELEMENTS
    scroller = page.get_by_role("region", name="Messages")
    # The list loads older turns while a person scrolls up, and does not stop at an edge.
    scroll_to(page, scroller, "Question 2350 about", -700)
    assert page.evaluate(COUNT_ELEMENTS) < MAX_ELEMENTS
    scroll_to(page, scroller, "Question 2450 about", 700)
    open_chat(page, own_server, session_id, f"?turn={first}")
    expect(page.get_by_text("Question 0 about")).to_be_in_viewport()
    assert page.evaluate(COUNT_ELEMENTS) < MAX_ELEMENTS
    page.get_by_role("button", name="Go to the newest message").click()
    expect(page.get_by_text("Question 2499 about")).to_be_in_viewport()
    assert page.evaluate(COUNT_ELEMENTS) < MAX_ELEMENTS


def scroll_to(page: Page, scroller: Locator, text: str, pixels: int) -> None:
    """Scroll in steps, one in each frame, until a text is visible."""
    found = scroller.evaluate(
        """async (scroller, [text, pixels]) => {
          const isVisible = () => [...scroller.querySelectorAll(".message")].some((each) => {
            const { top, bottom } = each.getBoundingClientRect();
            return each.textContent.startsWith(text) && bottom > 0 && top < innerHeight;
          });
          for (let count = 0; count < 2000 && !isVisible(); count += 1) {
            scroller.scrollTop += pixels;
            await new Promise(requestAnimationFrame);
          }
          return isVisible();
        }""",
        [text, pixels],
    )
    assert found, f"{text} was not found"


def record_turns(server: PageServer, count: int) -> tuple[str, str]:
    """Record a conversation. Return the id of its first turn, and that of its session."""
    connection = HTTPConnection(server.url.removeprefix("http://"))
    answer = (
        "The **short** answer is yes.\n\n1. Open the valve\n2. Wait for water\n\n" + "It takes a while. " * 12
    )
    turn_ids = []
    for number in range(count):
        turn = {"user_message": f"Question {number} about radiators", "ai_response": answer}
        body = json.dumps({"conversation_id": "long", **turn})
        connection.request("POST", "/conversation/turn", body, {"Content-Type": "application/json"})
        turn_ids.append(json.load(connection.getresponse())["turn_id"])
    connection.close()
    found = server.ask("GET", "/v1/sessions")["sessions"]
    return turn_ids[0], next(session["id"] for session in found if session["name"] == "long")
