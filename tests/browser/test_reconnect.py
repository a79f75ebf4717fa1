"""A page whose server is slow, restarts, or answers in an unlucky order loses and confuses nothing."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.page_server import PageServer
from tests.browser.relay import Relay
from tests.browser.test_chat import find_session, open_chat, record_turns, say
from tests.ha.model_server import ModelServer

# The modules of the page, and a simulated server: `routes` maps the begin of a path to a function of the path and
# the options of a request. It returns a response or a value for JSON.
SET_UP = """
  const { Connection } = await import("/page/connection.js");
  const { Conversation } = await import("/page/parts/conversation.js");
  const session = { id: "S", status: "active" };
  const makeTurn = (id, status, cursors = []) => ({
    continuation_id: id, status, request: { message: id, attachments: [] }, response: null, created_at: "2026-01-01T10:00:00Z",
    steps: cursors.map((cursor) => ({ n: cursor, cursor, type: "plan", ts: "2026-01-01T10:00:00Z", detail: {} })),
  });
  const routes = {
    "v1/sessions/S/messages": () => ({ messages: [], next_cursor: null }),
    "v1/sessions/S": () => ({ session, open_continuations: [], window_stats: { message_count: 0, evicted_count: 0 } }),
    "v1/continuations?": () => ({ continuations: [], next_cursor: null }),
    "events/": () => new Response(new ReadableStream({ start: (controller) => (routes.stream = controller) })),
  };
  const emit = (type, id, payload, cursor) => routes.stream.enqueue(new TextEncoder().encode(
    `id: ${cursor}\\nevent: ${type}\\ndata: ${JSON.stringify({ type, session_id: "S", continuation_id: id, payload })}\\n\\n`));
  const send = async (path, options) => {
    const found = await routes[Object.keys(routes).find((each) => path.startsWith(each))](path, options);
    return found instanceof Response ? found : new Response(JSON.stringify(found));
  };
  const connection = new Connection(send);
  const hold = () => { let release; const held = new Promise((resolve) => (release = resolve)); return { held, release }; };
  const until = async (isTrue) => {
    for (let count = 0; count < 400 && !isTrue(); count += 1) await new Promise((resolve) => setTimeout(resolve, 25));
    if (!isTrue()) throw new Error(`never true: ${isTrue}`);
  };
"""


@pytest.fixture
def run(page: Page, server: PageServer):
    """Run a script with the modules of the page and a simulated server, and return its result."""
    page.goto(f"{server.url}/#/house")
    return lambda script, given=None: page.evaluate(f"async (given) => {{ {SET_UP} {script} }}", given)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (502, "<h1>Bad Gateway</h1>", "unreachable"),
        (503, "", "unreachable"),
        (504, "", "unreachable"),
        (404, "404: Not Found", "unreachable"),
        (503, '{"code": "shutting_down"}', "unreachable"),
        (503, '{"code": "no_agent"}', "unreachable"),
        (502, '{"code": "model_error"}', "model_error"),
        (404, '{"code": "session_not_found"}', "session_not_found"),
        (500, "", "error"),
    ],
)
def test_an_answer_in_place_of_a_restarting_server_means_that_it_cannot_be_reached(run, status, body, error):
    script = """
      routes["v1/me"] = () => new Response(given.body, { status: given.status });
      return connection.get("v1/me").catch((error) => error.code);
    """
    assert run(script, {"status": status, "body": body}) == error


def test_a_connection_that_breaks_within_a_response_cannot_be_reached(run):
    script = """
      routes["v1/me"] = () => new Response(new ReadableStream({ start: (stream) => stream.error(new TypeError("cut")) }));
      const reads = [connection.get("v1/me"), connection.blob("v1/me")];
      return Promise.all(reads.map((read) => read.catch((error) => error.code)));
    """
    assert run(script) == ["unreachable", "unreachable"]


def test_messages_that_wait_for_the_server_are_shown_and_sent_in_order(run):
    script = """
      const accepted = [];
      let isDown = true;
      routes["v1/continuations/"] = (path) => makeTurn(path.split("/")[2], "running");
      routes["v1/sessions/S/messages"] = (path, options) => {
        if (options.method !== "POST") return { messages: [], next_cursor: null };
        if (isDown) throw new TypeError("down");
        accepted.push(JSON.parse(options.body).message);
        return { continuation_id: `01${accepted.length}` };
      };
      const conversation = new Conversation(connection, "S");
      const words = ["one", "two", "three", "four", "five", "six"];
      const sent = words.map((word) => conversation.send(word, "en"));
      await until(() => conversation.turns.every((turn) => turn.status === "unsent"));
      const shown = conversation.turns.map((turn) => turn.message);
      isDown = false;
      sent.push(conversation.send("seven", "en"));
      await Promise.all(sent);
      return { shown, accepted };
    """
    words = ["one", "two", "three", "four", "five", "six"]
    assert run(script) == {"shown": words, "accepted": [*words, "seven"]}


def test_a_turn_is_read_again_if_something_happens_while_it_is_read(run):
    script = """
      const { held, release } = hold();
      let reads = 0;
      routes["v1/continuations/01A"] = async () => {
        reads += 1;
        if (reads > 1) return makeTurn("01A", "awaiting_approval");
        await held;
        return makeTurn("01A", "running");
      };
      const conversation = new Conversation(connection, "S");
      const done = [conversation.read("01A"), conversation.read("01A"), conversation.read("01A")];
      release();
      await Promise.all(done);
      return { reads, status: conversation.turns[0].status };
    """
    assert run(script) == {"reads": 2, "status": "awaiting_approval"}


@pytest.mark.parametrize(
    ("turns", "after"),
    [
        ({"01A": ["completed", [3]], "01B": ["running", [5]], "01C": ["awaiting_approval", [9]]}, 5),
        ({"01A": ["completed", [3]], "01B": ["running", [5]], "01C": ["pending", []]}, 3),
        ({"01A": ["completed", [3, 4]]}, 4),
    ],
)
def test_the_events_of_no_open_turn_are_left_out(run, turns: dict[str, Any], after: int):
    script = """
      const turns = Object.entries(given).map(([id, [status, cursors]]) => makeTurn(id, status, cursors));
      const open = turns.filter((turn) => turn.status !== "completed").map((turn) => turn.continuation_id);
      routes["v1/sessions/S"] = () => ({ session, open_continuations: open, window_stats: {} });
      routes["v1/continuations?"] = () => ({ continuations: turns.toReversed(), next_cursor: null });
      routes["v1/continuations/"] = (path) => turns.find((turn) => path.endsWith(turn.continuation_id));
      const asked = hold();
      const follow = routes["events/"];
      routes["events/"] = (path) => (asked.release(path), follow());
      const conversation = new Conversation(connection, "S");
      await conversation.open();
      const path = await asked.held;
      // An event that is repeated changes nothing.
      await until(() => conversation.state === "connected");
      for (const turn of turns) for (const step of turn.steps) emit("step", turn.continuation_id, { step }, step.cursor);
      emit("progress", turns[0].continuation_id, { message: "done" }, 99);
      await until(() => conversation.turns[0].progress === "done");
      conversation.close();
      return { path, statuses: conversation.turns.map((turn) => turn.status) };
    """
    found = run(script, turns)
    assert found == {"path": f"events/S?after={after}", "statuses": [status for status, _ in turns.values()]}


def test_a_message_keeps_its_words_if_its_events_come_before_the_response(run):
    script = """
      const { held, release } = hold();
      const { held: forever } = hold();
      routes["v1/continuations/"] = () => forever;
      const conversation = new Conversation(connection, "S");
      await conversation.open();
      await until(() => conversation.state === "connected");
      routes["v1/sessions/S/messages"] = () => held;
      const sent = conversation.send("Good morning", "en");
      emit("progress", "01A", { message: "Looking" }, 1);
      await until(() => conversation.turns.some((turn) => turn.id === "01A"));
      release({ continuation_id: "01A" });
      await sent;
      conversation.close();
      return conversation.turns.map(({ id, message, progress }) => ({ id, message, progress }));
    """
    assert run(script) == [{"id": "01A", "message": "Good morning", "progress": "Looking"}]


def test_all_marks_of_evicted_messages_are_right_after_a_turn(run):
    """The window has 100 messages at first, and the newest page has 60 messages."""
    script = """
      const stats = { message_count: 100, evicted_count: 0 };
      const messages = Array.from({ length: 100 }, (_, index) => {
        const role = index % 2 ? "assistant" : "user";
        const turn = `01A${String(index >> 1).padStart(3, "0")}`;
        return { id: `m${index}`, position: index + 1, role, continuation_id: turn, content: `${index}`, tags: [], tool_calls: [], in_window: true };
      });
      let pages = 0;
      routes["v1/sessions/S/messages"] = (path) => {
        const query = new URLSearchParams(path.split("?")[1]);
        const older = messages.filter((each) => each.position < Number(query.get("before")));
        const page = older.slice(-Number(query.get("limit")));
        pages += 1;
        return { messages: page, next_cursor: page.length < older.length ? page[0].position : null };
      };
      routes["v1/sessions/S"] = () => ({ session, open_continuations: [], window_stats: stats });
      routes["v1/continuations/"] = (path) => makeTurn(path.split("/")[2], "completed");
      const conversation = new Conversation(connection, "S");
      await conversation.open();
      while (conversation.hasOlder) await conversation.loadOlder();
      await until(() => conversation.state === "connected");
      const finish = async (id) => {
        pages = 0;
        let changes = 0;
        const position = messages.length + 1;
        const shared = { continuation_id: id, content: id, tags: [], tool_calls: [], in_window: true };
        messages.push({ ...shared, id, position, role: "user" }, { ...shared, id: `${id}b`, position: position + 1, role: "assistant" });
        conversation.addEventListener("change", () => (changes += 1));
        emit("step", id, { step: makeTurn(id, "running", [position]).steps[0] }, position);
        emit("final", id, { status: "completed", final_response: { final_message: id } }, position + 1);
        await until(() => conversation.turns.find((turn) => turn.id === id)?.position);
        return { pages, changes, evicted: conversation.turns.filter((turn) => turn.isEvicted).length };
      };
      for (const each of messages.slice(0, 20)) each.in_window = false;
      Object.assign(stats, { message_count: 82, evicted_count: 20 });
      const one = await finish("01B");
      stats.message_count = 84;
      const two = await finish("01C");
      for (const each of messages.slice(0, 96)) each.in_window = false;
      Object.assign(stats, { message_count: 10, evicted_count: 96 });
      const three = await finish("01D");
      conversation.close();
      return { evicted: [one, two, three].map((each) => each.evicted), pages: [one, two, three].map((each) => each.pages), hasFewChanges: one.changes < 15 };
    """
    assert run(script) == {"evicted": [10, 10, 48], "pages": [2, 1, 1], "hasFewChanges": True}


def test_following_a_server_that_is_away_keeps_no_listeners(run):
    script = """
      let attempts = 0;
      routes["events/"] = () => { attempts += 1; throw new TypeError("down"); };
      const closing = new AbortController();
      let listeners = 0;
      const { signal } = closing;
      const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
      signal.addEventListener = (...given) => { listeners += 1; add(...given); };
      signal.removeEventListener = (...given) => { listeners -= 1; remove(...given); };
      const done = connection.follow("S", { signal, onEvent: () => {} });
      await until(() => attempts >= 4);
      const most = listeners;
      closing.abort();
      await done;
      return most;
    """
    assert run(script) <= 2


def answer_problem(route: Route, status: int, code: str, detail: str = "") -> None:
    route.fulfill(status=status, json={"code": code, "detail": detail, "status": status})


def test_a_message_and_its_chat_survive_a_proxy_whose_server_restarts(
    page: Page, server: PageServer, model: ModelServer
):
    session_id = server.start_session(name="Behind a proxy")
    open_chat(page, server, session_id)
    expect(page.get_by_role("heading", name="Behind a proxy")).to_be_visible()
    page.route("**/messages", lambda route: route.fulfill(status=502, body="Bad Gateway"))
    turn = say(page, "Are you there, my friend?")
    expect(turn).to_contain_text("Not sent yet")
    page.unroute("**/messages")
    expect(turn.locator(".markdown")).to_have_text("Fine.")
    page.route("**/events/**", lambda route: answer_problem(route, 503, "no_agent"))
    page.reload()
    expect(page.get_by_text("The connection is lost.")).to_be_visible()
    page.unroute("**/events/**")
    expect(page.get_by_text("The connection is lost.")).to_have_count(0)


def test_a_message_that_is_stopped_while_it_is_sent_is_cancelled(
    page: Page, server: PageServer, model: ModelServer
):
    model.hold()
    held: list[Route] = []
    open_chat(page, server, server.start_session())
    page.route("**/messages", lambda route: held.append(route))
    turn = say(page, "Tell a story about a slow snail")
    turn.get_by_role("button", name="Stop").click()
    expect(page.locator("sash-chat-turn")).to_have_count(0)
    held[0].continue_()
    expect(page.locator("sash-chat-turn")).to_contain_text("This message was cancelled.")


def test_a_new_conversation_follows_its_events_although_a_request_failed(
    page: Page, server: PageServer, model: ModelServer
):
    open_chat(page, server)
    page.route(re.compile("/v1/sessions/[0-9A-Z]{26}$"), lambda route: route.abort(), times=1)
    turn = say(page, "Are you there, my friend?")
    expect(turn.locator(".markdown")).to_have_text("Fine.")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Are you there")


def test_scrolling_up_without_a_server_does_not_ask_again_and_again(page: Page, own_server: PageServer):
    _, session_id = record_turns(own_server, 100)
    asked: list[str] = []
    page.on("request", lambda request: "/messages?before" in request.url and asked.append(request.url))
    with Relay(own_server.url) as relay:
        page.goto(f"{relay.url}/#/chat/{session_id}")
        expect(page.get_by_text("Question 99 about")).to_be_visible()
        relay.cut()
        expect(page.get_by_text("The connection is lost.")).to_be_visible()
        asked.clear()
        page.get_by_role("region", name="Messages").evaluate("(scroller) => (scroller.scrollTop = 0)")
        expect(page.locator(".notice").first).to_be_visible()
        page.wait_for_timeout(1500)
        assert len(asked) <= 3
        relay.mend()
        expect(page.get_by_text("Question 55 about")).to_have_count(1)
        page.goto("about:blank")


def test_only_a_session_that_is_not_found_is_gone(page: Page, server: PageServer):
    session_id = server.start_session()
    page.goto(f"{server.url}/#/house")
    page.evaluate("(id) => localStorage.setItem('sash.session', id)", session_id)
    page.route(
        f"**/v1/sessions/{session_id}",
        lambda route: answer_problem(route, 404, "agent_not_found", "no agent"),
    )
    open_chat(page, server, session_id)
    expect(page.get_by_role("alert")).to_have_text("no agent")
    assert page.evaluate("localStorage.getItem('sash.session')") == session_id


def test_the_error_of_a_message_is_shown_after_the_person_left_the_chat(page: Page, server: PageServer):
    held: list[Route] = []
    open_chat(page, server, server.start_session())
    expect(page.get_by_label("Your message")).to_be_visible()
    page.route("**/messages", lambda route: held.append(route))
    say(page, "Tell a story about a large whale")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="House").click()
    expect(page.get_by_role("heading", name="House", level=1)).to_be_visible()
    answer_problem(held[0], 413, "message_too_large", "this message is too large")
    expect(page.locator(".notice.error")).to_contain_text("this message is too large")


def test_the_words_of_a_refused_message_return_only_to_their_conversation(page: Page, server: PageServer):
    held: list[Route] = []
    session_id = server.start_session()
    open_chat(page, server, session_id)
    expect(page.get_by_label("Your message")).to_be_visible()
    page.route("**/messages", lambda route: held.append(route))
    say(page, "Tell a story about a large whale")
    page.get_by_role("link", name="New", exact=True).click()
    expect(page.get_by_role("heading", name="What can I do for you?")).to_be_visible()
    answer_problem(held[0], 413, "message_too_large", "this message is too large")
    expect(page.locator(".notice.error")).to_be_visible()
    expect(page.get_by_label("Your message")).to_have_value("")
    open_chat(page, server, session_id)
    say(page, "Tell a story about a small whale")
    answer_problem(held[1], 413, "message_too_large", "this message is too large")
    expect(page.get_by_label("Your message")).to_have_value("Tell a story about a small whale")


def test_the_browser_notes_the_session_once(page: Page, server: PageServer, model: ModelServer):
    page.add_init_script(
        """
        window.noted = [];
        const { setItem } = Storage.prototype;
        Storage.prototype.setItem = function (key, value) { window.noted.push(key); setItem.call(this, key, value); };
        """
    )
    model.answer = lambda _: "one two three four five six seven"
    open_chat(page, server)
    expect(say(page, "Count to seven for the children").locator(".foot")).to_contain_text("1 model call")
    assert page.evaluate("window.noted") == ["sash.session"]
    assert json.loads(page.evaluate("JSON.stringify(localStorage)")) == {"sash.session": find_session(page)}


def test_the_turns_of_a_fork_have_no_card_and_ask_for_no_steps(
    page: Page, server: PageServer, model: ModelServer
):
    source = server.start_session()
    server.say(source, "Are you there, my friend?")
    fork = server.ask("POST", f"/v1/sessions/{source}/fork", {})["session_id"]
    missing: list[str] = []
    page.on("response", lambda response: response.status == 404 and missing.append(response.url))
    open_chat(page, server, fork)
    expect(page.locator("sash-chat-turn .markdown")).to_have_text("Fine.")
    expect(page.get_by_role("button", name="Details")).to_have_count(0)
    expect(say(page, "And are you still there?").get_by_role("button", name="Details")).to_be_visible()
    assert not missing
