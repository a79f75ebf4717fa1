"""The card of an answer: what was heard, which way it went and why, what was done, and what it cost."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page_server import PageServer
from tests.ha.model_server import ModelServer, call_tool, has_result
from tests.models.wire import usage


@pytest.fixture
def cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the provider report that a quarter of the prompt came from its cache."""
    monkeypatch.setattr("tests.ha.model_server.usage", lambda sent, written: usage(sent, written, cached=25))


def open_card(page: Page, server: PageServer, session_id: str) -> Locator:
    """Open the card of the newest answer of a session."""
    page.goto(f"{server.url}/#/chat/{session_id}")
    page.locator("sash-chat-turn").last.get_by_role("button", name="Details").click()
    card = page.get_by_role("dialog", name="How this answer came about")
    expect(card.get_by_role("heading", name="Time and cost")).to_be_visible()
    return card


def read_fact(card: Locator, name: str) -> Locator:
    return card.locator(".facts div").filter(has=card.page.get_by_text(name, exact=True)).locator("dd")


def light_lamp(messages):
    if has_result(messages):
        return "The lamp is on."
    return call_tool("call_service", service="light.turn_on", entity_ids=["light.floor_lamp"])


def test_a_local_sentence_has_its_verified_action_and_no_costs(page: Page, own_server: PageServer):
    session_id = own_server.start_session()
    own_server.say(session_id, "turn on the kitchen light", area="Kitchen", language="en")
    card = open_card(page, own_server, session_id)
    expect(card.locator("blockquote")).to_have_text("turn on the kitchen light")
    expect(read_fact(card, "Who")).to_contain_text("local")
    expect(read_fact(card, "Room")).to_have_text("Kitchen")
    expect(read_fact(card, "Language")).to_have_text("en")
    expect(read_fact(card, "Device")).to_have_text("none named")
    expect(card.locator(".ways")).to_have_text(
        "Sash knows this kind of sentence, and understood it without a model."
    )
    action = card.locator(".card-actions li")
    expect(action).to_contain_text("light.turn_on")
    expect(action).to_contain_text("done, verified")
    expect(action).to_contain_text(re.compile(r"light\.kitchen_ceiling off → on"))
    expect(read_fact(card, "Time")).to_have_text(re.compile(r"\d+ m?s"))
    expect(card).to_contain_text("No model was asked, so there are no tokens and no costs.")
    expect(card.locator("sash-token-bar")).to_have_count(0)


def test_an_answer_of_a_model_has_its_tokens_by_origin_and_its_price(
    page: Page, own_server: PageServer, model: ModelServer, cached: None
):
    session_id = own_server.start_session()
    own_server.say(session_id, "Tell me about the sea")
    model.answer = light_lamp
    turn = own_server.say(session_id, "Make the evening pleasant")
    card = open_card(page, own_server, session_id)
    expect(card.locator(".ways")).to_contain_text("so the model m was asked 2 times")
    expect(card.locator(".card-actions li")).to_contain_text("done, verified")
    expect(read_fact(card, "Sent")).to_have_text("200 tokens")
    expect(read_fact(card, "Written")).to_have_text("20 tokens")
    expect(read_fact(card, "Cached")).to_have_text("25%")
    cost = turn["stats"]["cost_usd"]
    expect(read_fact(card, "Cost")).to_have_text(f"${cost:.5f}".rstrip("0"))
    prompts = card.locator(".prompt")
    expect(prompts).to_have_count(2)
    for index, prompt in enumerate(read_prompts(own_server, turn)):
        check_token_bar(prompts.nth(index), sum(part["tokens"] for part in prompt["parts"]))
    expect(prompts.first).to_contain_text("Same as in the call before: instructions, tools, the house.")
    expect(prompts.first).to_contain_text("New: conversation, this turn.")
    expect(prompts.last).to_contain_text("Longer: this turn.")
    prompts.first.get_by_text("The exact text").click()
    expect(prompts.first.locator("pre").last).to_contain_text("Make the evening pleasant")


def read_prompts(server: PageServer, turn: dict) -> list[dict]:
    return server.ask("GET", f"/v1/continuations/{turn['continuation_id']}/prompts")["prompts"]


def check_token_bar(prompt: Locator, total: int) -> None:
    """Check that the coloured parts, the numbers beside them, and the sum in words say the same."""
    expect(prompt).to_contain_text(f"{total:,} tokens as Sash counts them")
    numbers = [int(text.replace(",", "")) for text in prompt.locator(".legend b").all_inner_texts()]
    assert sum(numbers) == total
    widths, colours = prompt.locator(".bar").evaluate(
        "(bar) => [[...bar.children].map((part) => part.getBoundingClientRect().width / bar.clientWidth), "
        "[...bar.children].map((part) => getComputedStyle(part).backgroundColor)]"
    )
    assert widths == pytest.approx([number / total for number in numbers], abs=0.01)
    assert len(set(colours)) == len(numbers)
    named = prompt.get_by_role("img").get_attribute("aria-label")
    assert [int(text.replace(",", "")) for text in re.findall(r"[\d,]*\d", named)] == numbers


def test_an_unknown_price_is_unknown(page: Page, server: PageServer):
    session_id = server.start_session(model={"name": "house-model"})
    server.say(session_id, "Tell me about the sea")
    card = open_card(page, server, session_id)
    expect(read_fact(card, "Cost")).to_have_text("unknown")
    expect(read_fact(card, "Sent")).to_have_text("100 tokens")


def test_tokens_that_the_provider_does_not_report_are_said_to_be_counted(
    page: Page, server: PageServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tests.ha.model_server.usage", lambda *_: usage(0, 0) | {"usage": None})
    session_id = server.start_session()
    server.say(session_id, "Tell me about the sea")
    card = open_card(page, server, session_id)
    expect(read_fact(card, "Cached")).to_have_text("unknown")
    expect(card).to_contain_text("The provider reported no tokens, so Sash counted them.")


def test_recalled_turns_have_their_words_and_their_colour(page: Page, server: PageServer):
    session_id = server.start_session(window={"max_turns": 2})
    server.say(session_id, "The boiler shows the error F28 since Monday")
    for topic in ("bread", "cheese", "olives"):
        server.say(session_id, f"Tell me a story about {topic}")
    server.say(session_id, "How would you explain to the plumber what the error of the boiler was about?")
    card = open_card(page, server, session_id)
    expect(card.locator(".ways")).to_contain_text("had left the window")
    # The plumber was not spoken of before, so this word found nothing.
    expect(card.locator(".ways")).to_contain_text("These words found them: error, boiler.")
    expect(card.locator(".legend")).to_contain_text("recalled")


def test_recalled_turns_of_a_time_say_so(page: Page, server: PageServer):
    session_id = server.start_session(window={"max_turns": 2})
    for topic in ("bread", "cheese", "olives"):
        server.say(session_id, f"Tell me a story about {topic}")
    server.say(session_id, "What did you tell me today?")
    card = open_card(page, server, session_id)
    expect(card.locator(".ways")).to_contain_text("They were said at the time that the question names.")


def test_a_refusal_of_the_policy_has_its_reason(page: Page, server: PageServer, model: ModelServer):
    model.answer = light_lamp
    session_id = server.start_session(policy={"allow_actuation": False})
    server.say(session_id, "Make the evening pleasant")
    card = open_card(page, server, session_id)
    expect(card.locator(".ways .warn")).to_have_text(
        "The rules refused an action: controlling devices is turned off here."
    )
    expect(card.locator(".card-actions li")).to_contain_text("not allowed")


def test_an_undo_shows_the_states_before_and_after(page: Page, own_server: PageServer):
    session_id = own_server.start_session()
    own_server.say(session_id, "turn on the kitchen light")
    own_server.say(session_id, "undo that")
    card = open_card(page, own_server, session_id)
    action = card.locator(".card-actions li")
    expect(action).to_contain_text("It takes back an earlier action.")
    expect(action).to_contain_text(re.compile(r"light\.kitchen_ceiling on .*→ off"))


def test_a_failed_answer_says_that_its_tokens_are_not_known(
    page: Page, own_server: PageServer, model: ModelServer
):
    key, model.key = model.key, "another key"
    session_id = own_server.start_session()
    own_server.say(session_id, "Tell me about the sea")
    model.key = key
    card = open_card(page, own_server, session_id)
    expect(card.locator(".ways .bad")).to_contain_text("It failed:")
    expect(card).to_contain_text("No model answered, so no tokens are known.")


def test_an_answer_without_a_language_model_says_so(page: Page, tmp_path: Path):
    with PageServer(tmp_path) as server:
        session_id = server.start_session()
        server.say(session_id, "Mumble jumble")
        card = open_card(page, server, session_id)
        expect(card.locator(".ways")).to_contain_text("No language model is set up.")
        expect(card).to_contain_text("nothing is charged")
        page.goto("about:blank")


def test_the_card_is_read_only_and_closes_by_the_keyboard(page: Page, server: PageServer):
    session_id = server.start_session()
    server.say(session_id, "Tell me about the sea")
    methods = []
    page.on("request", lambda request: methods.append(request.method))
    card = open_card(page, server, session_id)
    expect(card.locator("sash-token-bar")).to_be_visible()
    expect(card.get_by_role("button")).to_have_count(1)
    expect(card.locator("input, textarea, select")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect(page.get_by_role("button", name="Details")).to_be_focused()
    assert set(methods) == {"GET"}
