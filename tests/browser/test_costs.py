"""Costs and health: the figures of `/v1/stats` by day, open and failed turns, and the state of the server."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from sash import Runtime
from sash.models.catalog import Catalog, ModelFacts
from sash.ports.model import Answer, ModelRequest, Usage
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.sessions import ModelConfig, WindowLimits
from tests.browser.page_server import MODEL, PageServer
from tests.ha.model_server import ModelServer, call_tool
from tests.runtime.talk import turn

EVIL = '<img src=x onerror="window.hacked=1">'
DAY_S = 86_400
PRICED = "priced-model"
# A dollar for a thousand tokens of a prompt, cached or not.
CATALOG = Catalog({PRICED: ModelFacts(input_usd=1000, output_usd=0, cached_usd=1000)})
# The turns of each day: days before today, and the tokens of each prompt.
DAYS = {40: [9000], 12: [1500, 500], 3: [250], 1: [1000, 1000, 250], 0: [750]}


async def fill_store(folder: Path, days: dict[int, list[int]], model: str = PRICED) -> None:
    """Write a store with turns of several days."""
    clock = FakeClock(datetime.now(UTC))
    usages: list[Usage] = []

    def answer(_: ModelRequest) -> Answer:
        clock.advance(2)
        return Answer("All is well. " * 20, usage=usages[-1])

    folder.mkdir()
    store = SqliteStore(folder / "sash.db", clock=clock)
    clock.advance(-DAY_S * max(days))
    async with Runtime(store, ScriptedModel(answer), clock=clock, catalog=CATALOG) as runtime:
        limits = WindowLimits(max_tokens=300, evict_to=0.5)
        session = await runtime.start_session(window=limits, model=ModelConfig(name=model))
        for day in range(max(days), -1, -1):
            started_at = clock.now()
            for tokens in days.get(day, []):
                usages.append(Usage(tokens, 40, tokens // 2, model=model))
                await turn(runtime, session, f"How was day {day}?")
            if day:
                clock.advance(DAY_S - (clock.now() - started_at).total_seconds())


def run_aside(work: Any) -> None:
    """Run a coroutine in a thread, because the browser's event loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """A server with the costs of several days."""
    folder = tmp_path_factory.mktemp("spent")
    run_aside(fill_store(folder / "data", DAYS))
    with PageServer(folder) as server:
        yield server


def open_costs(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/#/costs")
    expect(page.get_by_role("heading", name="Yesterday")).to_be_visible()


def read_stats(server: PageServer, days: int = 30) -> dict[str, Any]:
    return dict(server.ask("GET", f"/v1/stats?days={days}"))


def find_period(page: Page, name: str) -> Locator:
    return page.locator(".glance section").filter(has=page.get_by_role("heading", name=name))


def read_table(page: Page, heading: str) -> list[list[str]]:
    """Unfold the table of a chart. Return its rows: the day and the values, newest first."""
    chart = page.locator("sash-chart").filter(has=page.get_by_role("heading", name=heading, exact=True))
    chart.get_by_text("Show as table").click()
    expect(chart.locator("tbody tr").first).to_be_visible()
    return [row.locator("th, td").all_inner_texts() for row in chart.locator("tbody tr").all()]


def name_day(day: str) -> str:
    """Return a day as the page writes it: "Tue, Nov 17"."""
    read = datetime.fromisoformat(day)
    return f"{read:%a}, {read:%b} {read.day}"


def test_what_yesterday_today_and_the_last_days_cost_stands_at_the_top(page: Page, spent: PageServer):
    open_costs(page, spent)
    stats = read_stats(spent)
    assert stats["days"][-2]["estimated_cost_usd"] == 2.25
    expect(find_period(page, "Yesterday")).to_contain_text("$2.25")
    expect(find_period(page, "Yesterday")).to_contain_text(name_day(stats["days"][-2]["day"]))
    expect(find_period(page, "Yesterday")).to_contain_text("3 questions")
    expect(find_period(page, "Today")).to_contain_text("$0.75")
    expect(find_period(page, "Last 30 days")).to_contain_text("$5.25")
    page.get_by_role("button", name="7 days").click()
    expect(find_period(page, "Last 7 days")).to_contain_text("$3.25")
    page.get_by_role("button", name="90 days").click()
    expect(find_period(page, "Last 90 days")).to_contain_text("$14.25")


def test_each_chart_has_the_figures_of_each_day(page: Page, spent: PageServer):
    open_costs(page, spent)
    active = [day for day in reversed(read_stats(spent)["days"]) if day["total_requests"]]
    assert len(active) == 4
    names = [name_day(day["day"]) for day in active]
    assert read_table(page, "Money") == [
        [name, f"${day['estimated_cost_usd']:.2f}"] for name, day in zip(names, active, strict=True)
    ]
    assert read_table(page, "Tokens") == [
        [
            name,
            f"{day['cached_tokens']:,}",
            f"{day['input_tokens'] - day['cached_tokens']:,}",
            f"{day['output_tokens']:,}",
        ]
        for name, day in zip(names, active, strict=True)
    ]
    assert read_table(page, "Read from the cache") == [[name, "50%"] for name in names]
    assert read_table(page, "Questions") == [
        [name, f"{day['local_count']}", f"{day['model_count']}"]
        for name, day in zip(names, active, strict=True)
    ]
    assert [row[1] for row in read_table(page, "Time to the answer")] == [
        f"{day['mean_ms'] / 1000:g} s" for day in active
    ]
    evicted = [[name, f"{day['evicted_messages']}"] for name, day in zip(names, active, strict=True)]
    assert read_table(page, "Messages that slid out") == [row for row in evicted if row[1] != "0"]
    assert sum(day["evicted_messages"] for day in active) > 0


def test_the_pointer_on_a_plot_shows_the_numbers_of_a_day(page: Page, spent: PageServer):
    open_costs(page, spent)
    page.get_by_role("button", name="7 days").click()
    chart = page.locator("sash-chart").first
    expect(chart.locator(".legend")).to_contain_text("In 7 days")
    plot = chart.locator(".u-over")
    box = plot.bounding_box()
    assert box is not None
    # Yesterday is the sixth of seven days.
    plot.hover(position={"x": box["width"] * 5.5 / 7, "y": box["height"] / 2})
    expect(chart.locator(".legend")).to_contain_text(name_day(read_stats(spent)["days"][-2]["day"]))
    expect(chart.locator(".legend")).to_contain_text("$2.25")


def test_the_table_has_today_yesterday_the_period_and_all_time(page: Page, spent: PageServer):
    open_costs(page, spent)
    stats = read_stats(spent)
    columns = [stats["today"], stats["days"][-2], stats["period"], stats]
    figures = page.locator(".figures")
    for name, read in {
        "Questions": lambda each: f"{each['total_requests']:,}",
        "Money": lambda each: f"${each['estimated_cost_usd']:.2f}",
        "Tokens in prompts": lambda each: f"{each['input_tokens']:,}",
        "of these from the cache": lambda each: f"{each['cached_tokens']:,} ({each['cached_share']:.0%})",
        "Messages that slid out": lambda each: f"{each['evicted_messages']:,}",
    }.items():
        row = figures.locator("tr").filter(has=page.locator("th", has_text=re.compile(f"^{name}")))
        assert row.locator("td").all_inner_texts() == [read(each) for each in columns], name
    health = page.locator(".health")
    expect(health).to_contain_text("ready")
    expect(health).to_contain_text(f"{stats['windows']['evicted_count']} messages")


def test_a_price_that_is_not_known_is_unknown_and_not_zero(page: Page, tmp_path: Path):
    run_aside(fill_store(tmp_path / "data", {1: [1000], 0: [1000]}, model="nobody-knows-this-model"))
    with PageServer(tmp_path) as server:
        open_costs(page, server)
        expect(find_period(page, "Yesterday").locator(".big")).to_have_text("unknown")
        expect(find_period(page, "Yesterday")).to_contain_text("The price of 1 call is unknown.")
        page.goto("about:blank")


def test_a_server_without_questions_says_so(page: Page, own_server: PageServer):
    open_costs(page, own_server)
    expect(find_period(page, "Yesterday")).to_contain_text("no questions")
    expect(page.get_by_text("There were no questions in these days.")).to_be_visible()
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    expect(page.get_by_text("No errors.")).to_be_visible()
    expect(page.locator("sash-chart")).to_have_count(0)


def test_a_waiting_question_is_listed_and_can_be_stopped(
    page: Page, own_server: PageServer, model: ModelServer
):
    model.answer = lambda _: call_tool("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    asked = own_server.say(own_server.start_session(), f"Let the plumber in {EVIL}")
    assert asked["status"] == "awaiting_approval"
    open_costs(page, own_server)
    expect(page.get_by_text("1 question is not finished.")).to_be_visible()
    waiting = page.locator(".turn-list li")
    expect(waiting).to_contain_text(f"Let the plumber in {EVIL}")
    expect(waiting).to_contain_text("waits for your approval")
    expect(waiting).to_contain_text("Unlock the front door lock?")
    waiting.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    stopped = own_server.ask("GET", f"/v1/continuations/{asked['continuation_id']}")
    assert stopped["status"] == "cancelled"
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_a_failed_question_is_listed_with_its_error(page: Page, tmp_path: Path, model: ModelServer):
    settings = {"SASH_MODEL": MODEL, "SASH_API_BASE": model.url, "SASH_API_KEY": "wrong"}
    with PageServer(tmp_path, **settings) as server:
        failed = server.say(server.start_session(), f"Tell me a story {EVIL}")
        assert failed["status"] == "failed"
        open_costs(page, server)
        expect(page.locator(".turn-list li")).to_contain_text(f"Tell me a story {EVIL}")
        expect(page.locator(".turn-list li")).to_contain_text(failed["error"]["message"])
        expect(page.locator(".errors tbody")).to_contain_text(re.compile(rf"{failed['error']['code']}\s*1"))
        assert page.locator("img").count() == 0
        page.goto("about:blank")


def test_in_the_history_an_unknown_price_is_unknown_and_a_known_part_a_lower_bound(
    page: Page, tmp_path: Path
):
    run_aside(fill_store(tmp_path / "data", {0: [1000]}, model="nobody-knows-this-model"))
    with PageServer(tmp_path) as server:
        page.goto(f"{server.url}/#/history")
        page.get_by_role("button", name="More about").click()
        cost = page.locator(".facts div").filter(has_text="Cost").locator("dd")
        expect(cost).to_have_text("unknown")
        [turn] = server.ask("GET", "/v1/continuations")["continuations"]
        page.route("**/v1/continuations/*", lambda route: price(route, cost_usd=0.5, model_calls=2))
        page.goto(f"{server.url}/#/turn/{turn['continuation_id']}")
        expect(page.locator(".turn-page header")).to_contain_text("cost at least $0.50")
        page.goto("about:blank")


def price(route: Any, **stats: float) -> None:
    """Put other costs into a turn: the server has no turn with a model of each kind."""
    turn = route.fetch().json()
    assert turn["stats"]["unpriced_calls"] == 1
    route.fulfill(json={**turn, "stats": {**turn["stats"], **stats}})


def test_a_question_that_may_not_be_stopped_stays_and_the_reason_is_told(
    page: Page, own_server: PageServer, model: ModelServer
):
    model.answer = lambda _: call_tool("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    own_server.say(own_server.start_session(), "Let the plumber in")
    token = own_server.make_token("local", "read,converse")
    page.goto(f"{own_server.url}/#/costs")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    waiting = page.locator(".turn-list li")
    waiting.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
    expect(page.locator(".notice.error")).to_contain_text("lacks the scope 'act'")
    expect(waiting).to_have_count(1)
