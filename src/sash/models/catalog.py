"""Prices and context windows of models, by name. No network is needed."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from sash.ports.model import Usage
from sash.values.garbage import pause_collection
from sash.values.validation import check_amount, check_limit

OFFLINE = "offline"
# A context window that `genai-prices` lists wrongly.
_CORRECTED_WINDOWS = (("gemini-1.5-pro", 2_097_152),)
# Context windows that `genai-prices` does not list.
_CONTEXT_WINDOWS = (
    ("gemini-3", 1_048_576),
    ("gemini-2", 1_048_576),
    ("gpt-4.1", 1_047_576),
)
# Suffixes of routers, as in "qwen3:nitro". Other suffixes, as in "qwen3:8b", are part of the name.
_ROUTER_VARIANTS = frozenset({"free", "nitro", "floor", "online", "thinking", "extended", "beta", "exacto"})
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Prices of a model in US dollars per million tokens, and its context window in tokens.

    None means unknown. Cached input without a price of its own costs as much as other input.
    """

    input_usd: float | None = None
    output_usd: float | None = None
    cached_usd: float | None = None
    context_window: int | None = None

    def __post_init__(self) -> None:
        for name in ("input_usd", "output_usd", "cached_usd"):
            check_amount(name, getattr(self, name))
        if self.context_window is not None:
            check_limit("context_window", self.context_window)

    def price(self, usage: Usage) -> float | None:
        """Return the price of a call in US dollars, or None if a price is unknown."""
        if self.input_usd is None or self.output_usd is None:
            return None
        cached_usd = self.input_usd if self.cached_usd is None else self.cached_usd
        uncached_tokens = usage.input_tokens - usage.cached_tokens
        return (
            uncached_tokens * self.input_usd
            + usage.cached_tokens * cached_usd
            + usage.output_tokens * self.output_usd
        ) / _MILLION


# Models of embeddings of OpenAI, which `genai-prices` does not list.
_EMBEDDERS = {
    "text-embedding-3-small": ModelFacts(0.02, 0.0),
    "text-embedding-3-large": ModelFacts(0.13, 0.0),
    "text-embedding-ada-002": ModelFacts(0.10, 0.0),
}


class Catalog:
    """Facts about models: those of the caller first, then those of the package `genai-prices`."""

    def __init__(self, known: Mapping[str, ModelFacts] | None = None) -> None:
        self._known = dict(known or {})

    def load(self) -> None:
        """Load the prices of `genai-prices`. This takes a moment the first time."""
        _load_prices()

    def price(self, usage: Usage, *models: str | None) -> float | None:
        """Return the price of a call in US dollars, or None if it is unknown.

        A provider may answer under a longer name than the requested one. Pass both names, the provider's
        first. The caller's own facts about any of the names take precedence over `genai-prices`.
        """
        names = [model for model in models if model]
        if any(name == OFFLINE or name.endswith(":free") for name in names[:1]):
            return 0.0
        for name in names:
            if (facts := self._known.get(name)) and (cost := facts.price(usage)) is not None:
                return cost
        for name in names:
            if (cost := _price_listed(name, usage)) is not None:
                return cost
        return next((facts.price(usage) for name in names if (facts := _EMBEDDERS.get(name))), None)

    def context_window(self, model: str | None) -> int | None:
        """Return the context window of a model in tokens, or None if it is unknown."""
        if not model:
            return None
        if (facts := self._known.get(model)) and facts.context_window:
            return facts.context_window
        name = _strip_router(model)
        if corrected := _find_window(_CORRECTED_WINDOWS, name):
            return corrected
        listed = _find_listed(model)
        if listed is not None and listed.model.context_window:
            return int(listed.model.context_window)
        return _find_window(_CONTEXT_WINDOWS, name)


def _find_window(windows: tuple[tuple[str, int], ...], name: str) -> int | None:
    return next((size for prefix, size in windows if name.startswith(prefix)), None)


def _strip_router(model: str) -> str:
    """Remove a router's provider and variant: "openai/gpt-4o:nitro" becomes "gpt-4o"."""
    name = model.rpartition("/")[2]
    base, _, variant = name.partition(":")
    return base if variant in _ROUTER_VARIANTS else name


def _find_listed(model: str) -> Any:
    """Return the entry of a model in `genai-prices`; None for an unknown model or without the package."""
    try:
        import genai_prices
    except ImportError:
        return None
    return _look_up(genai_prices, model)


@cache
def _load_prices() -> None:
    """Load all prices. They stay in memory as long as the process lives."""
    with pause_collection():
        _find_listed("gpt-4o")


@lru_cache(maxsize=64)
def _look_up(genai_prices: Any, model: str) -> Any:
    for name in (model, _strip_router(model)):
        with suppress(LookupError):
            return genai_prices.calc_price(genai_prices.Usage(input_tokens=1), model_ref=name)
    return None


def _price_listed(model: str, usage: Usage) -> float | None:
    if (listed := _find_listed(model)) is None:
        return None
    import genai_prices

    counts = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
    )
    with suppress(LookupError, ValueError):
        found = genai_prices.calc_price(counts, model_ref=listed.model.id, provider_id=listed.provider.id)
        return float(found.total_price)
    return None
