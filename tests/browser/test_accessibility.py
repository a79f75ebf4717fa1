"""Every view in light and dark, on a desktop and a phone: axe finds nothing, nothing is cut off, and pictures are kept."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.demo_page import Demo

# The view, the session that it shows, and a text that stands there when it is ready.
VIEWS = {
    "chat": ("chat", "long", "Turn off the kitchen light"),
    "empty": ("chat", "empty", "What can I do for you?"),
    "error": ("chat", "error", "Tell me a story about the sea"),
    "approval": ("chat", "approval", "Unlock the front door lock"),
    "window": ("window", "long", "What would be sent now"),
    "empty-window": ("window", "empty", "What would be sent now"),
    "history": ("history", None, "The plumber"),
    "turn": ("turn", "turn", "It is cosy now"),
    "house": ("house", None, "What it may do"),
    "costs": ("costs", None, "Yesterday"),
}
LOOKS = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
    "phone-dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def find_violations(page):
    """Return a line for each element that breaks a rule of WCAG AA or of good practice."""
    found = Axe().run(page, options={**RULES, "resultTypes": ["violations"]}).response["violations"]
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]


@pytest.fixture(params=LOOKS)
def look(request, browser):
    context = browser.new_context(**LOOKS[request.param], locale="en", reduced_motion="reduce")
    context.set_default_timeout(20_000)
    yield request.param, context.new_page()
    context.close()


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_accessible_and_fits_its_width(look, demo: Demo, pictures, name):
    look_name, page = look
    view, session, text = VIEWS[name]
    page.goto(demo.address(view, session))
    expect(page.get_by_text(text).first).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    page.screenshot(path=pictures / f"{name}-{look_name}.png")
    assert find_violations(page) == []
    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0, f"the page is {overflow} pixels wider than the screen"


def test_the_page_can_be_used_with_the_keyboard_alone(page, demo: Demo):
    page.goto(demo.address("house"))
    expect(page.get_by_text("Kitchen ceiling light").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("link", name="1 waits for you")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("link", name="Costs")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Costs and health")).to_be_visible()
