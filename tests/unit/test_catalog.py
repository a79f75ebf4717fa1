"""What is known about models."""

import sys

import pytest

from sash.models.base import Usage
from sash.models.catalog import Catalog, ModelFacts, _listed

USED = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)


def test_listed_models_have_prices_and_limits():
    catalog = Catalog()
    price = catalog.price("gpt-4o-mini", USED)
    assert price == pytest.approx(0.6 * 0.15 + 0.4 * 0.075 + 0.1 * 0.6)
    assert catalog.context_window("gpt-4o-mini") == 128_000
    assert catalog.context_window("gpt-4.1") >= 1_000_000
    assert catalog.context_window("gemini-2.5-pro") == 1_048_576


@pytest.mark.parametrize("name", ["openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18"])
def test_routers_and_dates_are_seen_through(name):
    assert Catalog().price(name, USED) == Catalog().price("gpt-4o-mini", USED)


def test_nobody_knows_what_is_not_listed():
    for name in ("my-llama", "", None):
        assert Catalog().price(name, USED) is None
        assert Catalog().context_window(name) is None


def test_what_one_knows_better_wins():
    catalog = Catalog(
        {"gpt-4o-mini": ModelFacts(1, 2, 0.5), "mine": ModelFacts(context_window=8192), "half": ModelFacts(1)}
    )
    assert catalog.price("gpt-4o-mini", USED) == pytest.approx(0.6 + 0.4 * 0.5 + 0.2)
    assert catalog.context_window("gpt-4o-mini") == 128_000
    assert (catalog.price("mine", USED), catalog.context_window("mine")) == (None, 8192)
    assert catalog.price("half", USED) is None
    assert Catalog({"x": ModelFacts(1, 0)}).price("x", USED) == pytest.approx(1.0)


def test_some_models_are_free():
    for name in ("offline", "qwen/qwen3:free"):
        assert Catalog().price(name, USED) == 0


def test_a_count_that_cannot_be_is_not_priced():
    assert Catalog().price("gpt-4o-mini", Usage(input_tokens=10, cached_tokens=50)) is None


def test_without_the_list_of_prices_nothing_is_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    _listed.cache_clear()
    try:
        assert Catalog().price("gpt-4o-mini", USED) is None
        assert Catalog().context_window("gpt-4.1-mini") == 1_047_576
    finally:
        _listed.cache_clear()
