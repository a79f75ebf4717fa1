"""The frame of the page: sign-in, languages, path prefixes, and a server that cannot be reached."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.page_server import PageServer
from tests.browser.prefix_proxy import PrefixProxy
from tests.ha.model_server import ModelServer, call_tool

WAIT_MS = 30_000
# Home Assistant around the panel: an own document, a sign-in, and one agent.
HOME_ASSISTANT = """<!doctype html><html lang="ja"><body><script type="module">
  import "/page/panel.js";
  const panel = document.createElement("sash-panel");
  panel.hass = { language: "de", fetchWithAuth: (path, options) => fetch(path.replace("/api/sash/", "/"), options) };
  panel.panel = { config: { agents: [{ id: "a", name: "Sash" }] } };
  document.body.append(panel);
</script></body></html>"""


def ask(page: Page, text: str) -> None:
    page.get_by_label("Your message").fill(text)
    page.get_by_role("button", name="Send").click()


def go_to(page: Page, view: str) -> None:
    page.get_by_role("navigation", name="Views").get_by_role("link", name=view).click()


def visit_all_views(page: Page) -> None:
    for name in ("Window", "History", "House", "Costs"):
        go_to(page, name)
        expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()


def test_a_server_with_tokens_asks_for_one_and_keeps_it_in_the_tab(page: Page, tmp_path):
    with PageServer(tmp_path) as server:
        token = server.make_token("anna", "read,converse,act")
        page.goto(server.url)
        page.get_by_label("Token").fill("sash_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("does not know this token")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        ask(page, "Is the front door locked?")
        expect(page.locator("sash-chat-turn").last).to_contain_text("Yes")
        page.reload()
        expect(page.locator("sash-chat-turn").last).to_contain_text("Yes")
        assert token not in page.url
        assert token not in page.evaluate("JSON.stringify(localStorage)")


def test_the_page_works_below_a_path_prefix(page: Page, server: PageServer):
    addresses = []
    page.on("request", lambda request: addresses.append(request.url))
    with PrefixProxy(server.url) as proxy:
        page.goto(proxy.url)
        ask(page, "turn off the kitchen light")
        expect(page.locator("sash-chat-turn").last).to_contain_text(re.compile("Turned off|is already off"))
        visit_all_views(page)
        asked = [address for address in addresses if not address.startswith(("data:", "blob:"))]
        assert all(address.startswith(proxy.url) for address in asked), asked
        page.goto("about:blank")


def test_the_page_loads_no_foreign_file_and_breaks_no_rule_of_its_policy(page: Page, server: PageServer):
    complaints, hosts = [], set()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(server.url)
    ask(page, "turn off the kitchen light")
    expect(page.locator("sash-chat-turn").last).to_contain_text(re.compile("Turned off|is already off"))
    visit_all_views(page)
    assert not complaints
    assert hosts == {server.url.removeprefix("http://")}


@pytest.mark.parametrize(
    ("locale", "language", "send"),
    [
        ("de-AT", "de", "Senden"),
        ("fr", "fr", "Envoyer"),
        ("es-MX", "es", "Enviar"),
        ("it", "it", "Invia"),
        ("nl", "nl", "Versturen"),
        ("ja", "en", "Send"),
    ],
)
def test_the_page_speaks_the_language_of_the_browser(browser, server: PageServer, locale, language, send):
    context = browser.new_context(locale=locale)
    try:
        page = context.new_page()
        page.goto(server.url)
        expect(page.get_by_role("button", name=send)).to_be_visible()
        expect(page.locator("html")).to_have_attribute("lang", language)
    finally:
        context.close()


def test_the_page_says_that_the_server_cannot_be_reached_and_connects_again_by_itself(
    page: Page, own_server: PageServer, model: ModelServer
):
    with page.expect_response("**/views/house.js"):
        page.goto(own_server.url)
    page.wait_for_load_state("networkidle")
    own_server.kill()
    go_to(page, "House")
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    own_server.start()
    # The view asks again every 15 seconds.
    expect(page.get_by_text("Kitchen ceiling light").first).to_be_visible(timeout=WAIT_MS)
    go_to(page, "Chat")
    model.answer = lambda messages: "I am back."
    ask(page, "Are you there, my friend?")
    expect(page.locator("sash-chat-turn").last).to_contain_text("I am back.")


def test_a_session_of_another_person_is_reported_as_not_found(page: Page, server: PageServer):
    page.goto(f"{server.url}/#/chat/01ARZ3NDEKTSV4RRFFQ69G5FAV")
    expect(page.locator("main")).to_contain_text("does not exist")


def test_a_token_that_is_refused_during_use_leads_back_to_the_sign_in(page: Page, tmp_path):
    with PageServer(tmp_path) as server:
        token = server.make_token("anna", "read,converse,act")
        page.goto(server.url)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_label("Your message")).to_be_visible()
        page.route("**/v1/**", lambda route: route.fulfill(status=401, json={"code": "unauthorized"}))
        go_to(page, "Costs")
        expect(page.get_by_role("alert")).to_contain_text("does not know this token")
        assert page.evaluate("sessionStorage.getItem('sash.token')") is None
        page.unroute("**/v1/**")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1, name="Costs")).to_be_visible()
        expect(page.locator(".notice")).to_have_count(0)


def test_a_view_that_loads_slowly_does_not_replace_a_later_one(page: Page, server: PageServer):
    held: list[Route] = []
    page.route("**/views/house.js", lambda route: held.append(route))
    page.goto(f"{server.url}/#/history")
    expect(page.get_by_role("heading", level=1, name="History")).to_be_visible()
    go_to(page, "House")
    go_to(page, "Costs")
    expect(page.get_by_role("heading", level=1, name="Costs")).to_be_visible()
    with page.expect_response("**/views/house.js"):
        held[0].continue_()
    page.evaluate("async () => { await customElements.whenDefined('sash-house'); }")
    expect(page).to_have_title("Costs · Sash")
    expect(page.get_by_role("heading", level=1, name="Costs")).to_be_visible()


def test_a_frame_that_is_moved_shows_a_notice_once(page: Page, server: PageServer):
    page.goto(server.url)
    expect(page.get_by_label("Your message")).to_be_visible()
    page.evaluate(
        """() => {
          const app = document.querySelector("sash-app");
          app.remove();
          document.body.append(app);
          app.dispatchEvent(new CustomEvent("sash-notice", { detail: { message: "Hello", kind: "error" } }));
        }"""
    )
    expect(page.locator(".notice")).to_have_count(1)


def open_panel(page: Page, server: PageServer, view: str) -> None:
    page.route(
        f"{server.url}/sash", lambda route: route.fulfill(body=HOME_ASSISTANT, content_type="text/html")
    )
    page.goto(f"{server.url}/sash#/{view}")


def test_the_panel_speaks_the_language_of_home_assistant_and_changes_only_its_own(
    page: Page, server: PageServer
):
    page.route("**/languages/de.json", lambda route: route.abort(), times=1)
    open_panel(page, server, "house")
    # The words could not be loaded at first.
    expect(page.get_by_role("heading", level=1, name="Haus")).to_be_visible()
    expect(page.locator("sash-app")).to_have_attribute("lang", "de")
    expect(page.locator("html")).to_have_attribute("lang", "ja")


def test_the_panel_leaves_the_address_of_another_panel_alone(page: Page, server: PageServer):
    page.add_init_script("localStorage.setItem('sash.session', '01ARZ3NDEKTSV4RRFFQ69G5FAV')")
    open_panel(page, server, "house")
    expect(page.get_by_role("heading", level=1, name="Haus")).to_be_visible()
    navigate = """async (path) => {
      history.pushState(null, "", path);
      window.dispatchEvent(new CustomEvent("location-changed"));
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }"""
    page.evaluate(navigate, "/sash#/costs")
    expect(page.get_by_role("heading", level=1, name="Kosten")).to_be_visible()
    page.evaluate(navigate, "/lovelace")
    assert page.url == f"{server.url}/lovelace"


def test_a_question_that_waits_is_announced_on_every_view(
    page: Page, own_server: PageServer, model: ModelServer
):
    model.answer = lambda messages: call_tool(
        "call_service", service="lock.unlock", entity_ids=["lock.front_door"]
    )
    session_id = own_server.start_session()
    assert own_server.say(session_id, "Please let the plumber in")["status"] == "awaiting_approval"
    page.goto(f"{own_server.url}/#/house")
    page.get_by_role("link", name="1 waits for you").click()
    expect(page.get_by_role("button", name="Refuse")).to_be_visible()
    model.answer = lambda messages: "Then not."
    page.get_by_role("button", name="Refuse").click()
    expect(page.get_by_role("link", name="1 waits for you")).to_have_count(0)
