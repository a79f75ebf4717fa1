"""The page in the sidebar of a real Home Assistant, with its sign-in."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect

from tests.ha.conftest import install_or_skip
from tests.ha.model_server import ModelServer, call_tool, has_result
from tests.ha.sash_house import SashHouse
from tests.ha.set_up import run_sash_house

LIGHT = "light.bed_light"
DAY_S = 86_400


@pytest.fixture(scope="module")
def sash_house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model: ModelServer
) -> Iterator[SashHouse]:
    with run_sash_house(
        install_or_skip(request.config), tmp_path_factory.mktemp("sidebar"), model
    ) as running:
        yield running


def sign_in(page: Page, house: SashHouse, token: str) -> None:
    """Open Home Assistant as the user of a token, as its own sign-in page leaves the browser."""
    tokens = {
        "access_token": token,
        "token_type": "Bearer",
        "expires_in": DAY_S,
        "expires": (time.time() + DAY_S) * 1000,
        "hassUrl": house.url,
        "clientId": f"{house.url}/",
        "refresh_token": "",
    }
    page.context.add_init_script(f"localStorage.setItem('hassTokens', {json.dumps(json.dumps(tokens))})")


def read_state(house: SashHouse, entity_id: str) -> str:
    with ThreadPoolExecutor(1) as thread:
        return str(thread.submit(asyncio.run, house.read_state(entity_id)).result())


def ask(page: Page, text: str) -> None:
    page.get_by_role("textbox").fill(text)
    page.get_by_role("button", name="Send").click()


def test_the_sidebar_leads_to_a_chat_that_controls_the_house(
    page: Page, sash_house: SashHouse, model: ModelServer, pictures
) -> None:
    model.answer = lambda messages: (
        "It is cosy now."
        if has_result(messages)
        else call_tool("call_service", service="light.turn_on", entity_ids=[LIGHT])
    )
    sign_in(page, sash_house, sash_house.token)
    page.goto(f"{sash_house.url}/profile/general")
    page.locator("ha-sidebar").get_by_text("Sash", exact=True).click()
    expect(page).to_have_url(re.compile(r"/sash\b"))
    ask(page, "Make it cosy in here please")
    expect(page.locator("sash-chat-turn").last).to_contain_text("It is cosy now.")
    assert read_state(sash_house, LIGHT) == "on"
    page.screenshot(path=pictures / "sidebar.png")
    box = page.get_by_role("textbox").bounding_box()
    assert box["y"] + box["height"] > 720, "the page fills the height of the window"


def test_users_of_home_assistant_do_not_see_the_conversations_of_each_other(
    page: Page, sash_house: SashHouse, model: ModelServer
) -> None:
    model.answer = lambda messages: "The secret is safe."
    sign_in(page, sash_house, sash_house.token)
    page.goto(f"{sash_house.url}/sash")
    ask(page, "Keep the word marmalade for me")
    expect(page.locator("sash-chat-turn").last).to_contain_text("The secret is safe.")
    guest = page.context.browser.new_context(locale="en")
    try:
        other = guest.new_page()
        sign_in(other, sash_house, sash_house.guest_token)
        other.goto(f"{sash_house.url}/sash#/history?q=marmalade")
        expect(other.locator("sash-history")).to_be_visible()
        expect(other.locator("sash-history")).not_to_contain_text("Keep the word")
    finally:
        guest.close()
