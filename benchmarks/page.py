"""Measures the web page in a real Chromium, against a real server with the demo home and the offline model.

* ready: from the start of the navigation until a message can be written, with an empty cache; the median.
* answer: from the Enter key until the answer of a local sentence stands on the page.
* KB: what travels until the page is ready, and with all views, compressed and with headers.
* conversation: one of 100 messages beside one of 5,000. "Open" is the time until the newest message is shown.
  Then a mouse wheel turns up through the conversation. A frame is the time between two pictures; the page is
  smooth if few frames take more than 50 ms. "Elements" is the largest number of elements in the page.

`--quick` opens the page three times instead of ten, and scrolls less.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.table import Table

from benchmarks._report import Row, arguments, machine, write_json
from tests.browser.chromium import find_chromium
from tests.browser.page_server import PageServer

LIMITS = {"ready (ms)": "1000", "all views (KB)": "300"}
WIDTH, HEIGHT = 1280, 800
WHEEL_PIXELS = 600
MAX_SMOOTH_MS = 50
# Resolves to the time at which the element that `selector` finds contains the text.
WAIT = """
([selector, text]) => new Promise((resolve) => {
  const look = () => {
    const element = document.querySelector('sash-app')?.shadowRoot?.querySelector(selector);
    if (element?.textContent.includes(text)) resolve(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})
"""
WATCH_FRAMES = """
() => {
  window.frames_ms = [];
  window.max_elements = 0;
  let last = performance.now();
  const look = (now) => {
    window.frames_ms.push(now - last);
    last = now;
    window.max_elements = Math.max(
      window.max_elements, document.querySelector('sash-app').shadowRoot.querySelectorAll('*').length);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
"""


def main() -> None:
    options = arguments("the web page in a browser")
    with (
        tempfile.TemporaryDirectory() as folder,
        PageServer(Path(folder)) as server,
        _open_browser() as browser,
    ):
        figures = measure(
            server, browser, rounds=3 if options.quick else 10, wheels=60 if options.quick else 300
        )
    table = Table(title=f"The web page ({machine()})")
    for column in ("", "value", "limit"):
        table.add_column(column, justify="right" if column else "left")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.0f}", LIMITS.get(name, ""))
    Console().print(table)
    write_json([Row("page", "sash", name, value, "") for name, value in figures.items()], options.json)


def measure(server: PageServer, browser: Browser, rounds: int, wheels: int) -> dict[str, float]:
    """Return the figures by their names."""
    figures: dict[str, float] = {}
    opened = [_measure_start(server, browser) for _ in range(rounds)]
    for name in ("ready (ms)", "answer (ms)", "until ready (KB)", "all views (KB)"):
        figures[name] = median(each[name] for each in opened)
    for messages in (100, 5000):
        session_id = _record(server, messages)
        for name, value in _measure_conversation(server, browser, session_id, messages, wheels).items():
            figures[f"{messages:,} messages: {name}"] = value
    return figures


def _measure_start(server: PageServer, browser: Browser) -> dict[str, float]:
    with _open_page(browser) as page:
        sizes = _count_bytes(page)
        page.goto(server.url)
        ready_ms = page.evaluate(WAIT, ["textarea", ""])
        until_ready = sum(sizes)
        page.wait_for_load_state("networkidle")
        page.get_by_role("textbox").fill("Is the front door locked?")
        started_ms = page.evaluate("performance.now()")
        page.keyboard.press("Enter")
        answered_ms = page.evaluate(WAIT, ["sash-transcript", "Yes"])
    return {
        "ready (ms)": ready_ms,
        "answer (ms)": answered_ms - started_ms,
        "until ready (KB)": until_ready / 1000,
        "all views (KB)": sum(sizes) / 1000,
    }


def _measure_conversation(
    server: PageServer, browser: Browser, session_id: str, messages: int, wheels: int
) -> dict[str, float]:
    with _open_page(browser) as page:
        page.goto(f"{server.url}/#/chat/{session_id}")
        opened_ms = page.evaluate(WAIT, ["sash-transcript", f"answer {messages // 2 - 1}"])
        page.mouse.move(WIDTH / 2, HEIGHT / 2)
        page.evaluate(WATCH_FRAMES)
        for _ in range(wheels):
            page.mouse.wheel(0, -WHEEL_PIXELS)
            page.evaluate("new Promise(requestAnimationFrame)")
        frames: list[float] = page.evaluate("window.frames_ms")
        elements = page.evaluate("window.max_elements")
    slow = sum(frame > MAX_SMOOTH_MS for frame in frames)
    return {
        "open (ms)": opened_ms,
        "frame, median (ms)": median(frames),
        "frame, 99th percentile (ms)": quantiles(frames, n=100)[98],
        "slow frames of 100": 100 * slow / len(frames),
        "elements": elements,
    }


def _count_bytes(page: Page) -> list[float]:
    """Return a list that fills with the size of each file of the page."""
    client = page.context.new_cdp_session(page)
    client.send("Network.enable")
    files: set[str] = set()
    sizes: list[float] = []

    def note(event: dict[str, Any]) -> None:
        if "/page/" in event["response"]["url"] or event["response"]["url"].endswith("/"):
            files.add(event["requestId"])

    def add(event: dict[str, Any]) -> None:
        if event["requestId"] in files:
            sizes.append(event["encodedDataLength"])

    client.on("Network.responseReceived", note)
    client.on("Network.loadingFinished", add)
    return sizes


def _record(server: PageServer, messages: int) -> str:
    """Record a conversation of that many messages, and return the id of its session."""
    name = f"conversation of {messages}"
    for n in range(messages // 2):
        turn = {
            "user_message": f"question {n} about the heating in the hall",
            "ai_response": f"**answer {n}**: " + "well, " * 40,
        }
        server.ask("POST", "/conversation/turn", {"conversation_id": name, **turn})
    sessions = server.ask("GET", "/v1/sessions?limit=10&include=titles")
    return next(str(each["id"]) for each in sessions["sessions"] if name in str(each))


@contextmanager
def _open_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def _open_page(browser: Browser) -> Iterator[Page]:
    """Open a tab with an empty cache."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, locale="en")
    yield context.new_page()
    context.close()


if __name__ == "__main__":
    main()
