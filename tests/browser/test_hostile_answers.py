"""Answers and files that would freeze the page stay plain, and nothing of them is lost."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page_server import PageServer

# Resolves to the milliseconds that the page needs for a text, and to the number of elements.
DRAW = """
async (text) => {
  const { renderMarkdown } = await import("./page/parts/markdown.js");
  const { render } = await import("./page/vendor/lit.js");
  const place = document.createElement("div");
  const started = performance.now();
  render(renderMarkdown(text), place);
  return { ms: performance.now() - started, elements: place.querySelectorAll("*").length, text: place.textContent };
}
"""
PARSE = """
async ([type, text]) => {
  const { parseTable } = await import("./page/parts/table-file.js");
  const table = parseTable(type, text);
  return [table.columns.length, table.rows.length, table.rowCount];
}
"""
SLOW = {
    "a table with few rows and many cells": "|" + "a|" * 1000 + "\n|" + "-|" * 1000 + "\n" + "|b\n" * 1000,
    "deep quotations": ">" * 5000 + " deep",
    "emphasis": "**_a_b" * 10_000,
    "an address": "a." * 50_000 + "@",
    "deep lists": "".join("  " * depth + "- a\n" for depth in range(1000)),
}


@pytest.mark.parametrize("name", SLOW)
def test_an_answer_that_is_slow_to_parse_stays_plain(page: Page, server: PageServer, name):
    page.goto(server.url)
    drawn = page.evaluate(DRAW, SLOW[name])
    assert drawn["elements"] < 10
    assert drawn["text"].strip() == SLOW[name].strip()


def test_a_usual_answer_is_drawn(page: Page, server: PageServer):
    page.goto(server.url)
    drawn = page.evaluate(DRAW, "# Week\n\n| day | °C |\n|---|---|\n| Monday | 21 |\n\n1. **one**\n2. two")
    assert drawn["elements"] > 10


@pytest.mark.parametrize(
    ("type", "text", "shown"),
    [
        ("application/json", "[" + ",".join(f'{{"k{n}": {n}}}' for n in range(4000)) + "]", [50, 50, 4000]),
        ("text/csv", "\n".join(",".join("abc"[:2] for _ in range(200)) for _ in range(101)), [50, 50, 100]),
    ],
)
def test_a_table_shows_its_first_rows_and_columns(page: Page, server: PageServer, type, text, shown):
    page.goto(server.url)
    assert page.evaluate(PARSE, [type, text]) == shown


def test_a_token_that_cannot_be_sent_does_not_lock_the_page(page: Page, own_server: PageServer):
    token = own_server.make_token("anna", "read,converse,act")
    page.goto(own_server.url)
    for wrong in ("€uro", "x" * 70_000):
        page.get_by_label("Token").fill(wrong)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("does not know this token")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_label("Your message")).to_be_visible()
