"""Prices and context windows of models."""

import sys

import pytest

from sash.errors import InvalidInput
from sash.models.catalog import Catalog, ModelFacts
from sash.ports.model import Usage

USED = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)


def test_models_of_embeddings_have_prices():
    asked = Usage(input_tokens=1_000_000)
    assert Catalog().price(asked, "text-embedding-3-small/256", "text-embedding-3-small") == 0.02
    assert Catalog({"text-embedding-3-small": ModelFacts(1, 0)}).price(asked, "text-embedding-3-small") == 1


def test_listed_models_have_prices_and_limits():
    catalog = Catalog()
    price = catalog.price(USED, "gpt-4o-mini")
    assert price == pytest.approx(0.6 * 0.15 + 0.4 * 0.075 + 0.1 * 0.6)
    assert catalog.context_window("gpt-4o-mini") == 128_000
    assert catalog.context_window("gpt-4.1") >= 1_000_000
    assert catalog.context_window("gemini-2.5-pro") == 1_048_576
    assert catalog.context_window("google/gemini-1.5-pro-002") == 2_097_152


@pytest.mark.parametrize("name", ["openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18"])
def test_prefixes_of_routers_and_dates_are_ignored(name):
    assert Catalog().price(USED, name) == Catalog().price(USED, "gpt-4o-mini")


def test_a_model_that_is_not_listed_is_unknown():
    for name in ("my-llama", "", None):
        assert Catalog().price(USED, name) is None
        assert Catalog().context_window(name) is None


def test_own_facts_win_over_the_list():
    catalog = Catalog(
        {"gpt-4o-mini": ModelFacts(1, 2, 0.5), "mine": ModelFacts(context_window=8192), "half": ModelFacts(1)}
    )
    assert catalog.price(USED, "gpt-4o-mini") == pytest.approx(0.6 + 0.4 * 0.5 + 0.2)
    assert catalog.context_window("gpt-4o-mini") == 128_000
    assert (catalog.price(USED, "mine"), catalog.context_window("mine")) == (None, 8192)
    assert catalog.price(USED, "half") is None
    assert Catalog({"x": ModelFacts(1, 0)}).price(USED, "x") == pytest.approx(1.0)


def test_some_models_are_free():
    for name in ("offline", "qwen/qwen3:free"):
        assert Catalog().price(USED, name) == 0


def test_own_facts_about_the_requested_name_count_if_the_provider_answers_under_another():
    catalog = Catalog({"mine": ModelFacts(1, 2)})
    assert catalog.price(USED, "mine-2025-01-01", "mine") == pytest.approx(1.2)
    assert catalog.price(USED, "gpt-4o-mini", "mine") == pytest.approx(1.2)
    assert catalog.price(USED, None, "") is None


@pytest.mark.parametrize(
    "facts",
    [
        {"input_usd": float("nan")},
        {"output_usd": float("inf")},
        {"cached_usd": -1},
        {"context_window": "8192"},
    ],
)
def test_impossible_facts_are_refused(facts):
    with pytest.raises(InvalidInput):
        ModelFacts(**facts)


@pytest.mark.parametrize("odd", [-1, 100.5, float("nan"), float("inf"), "7", None, True])
def test_odd_counts_of_a_provider_become_whole_numbers(odd):
    usage = Usage(odd, odd, odd, odd, odd)
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens)
    assert all(type(count) is int and count >= 0 for count in counts)
    assert usage.model == ("7" if odd == "7" else "")
    assert Usage(input_tokens=10, cached_tokens=50).cached_tokens == 10


def test_without_genai_prices_only_a_few_context_windows_are_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert Catalog().price(USED, "gpt-4o-mini") is None
    assert Catalog().context_window("gpt-4.1-mini") == 1_047_576
