"""Measures the cached share of a conversation's prompts, and the causes of the uncached rest."""

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks._context_contestants import Prompt
from benchmarks._prompt_cache import (
    CALLS_CACHED,
    Message,
    TokenCosts,
    count_cached_tokens,
    count_common_messages,
)
from sash.memory.tokens import TOKENS_PER_REPLY

CAUSES = {
    "new": "new messages: the question, tool results, the last answer",
    "again": "the last turn again: volatile text was before it",
    "tail": "the time, or recalled turns",
    "cut": "cuts: everything after the system prompt changes",
    "step": "rounding down to steps of 128 tokens",
}


class CacheResult(NamedTuple):
    """The measurements of one system at one budget. `filled` is the used share of the limit."""

    calls: int
    tokens: int
    cached: int
    filled: float
    cuts: int
    broken: int
    causes: Counter[str]

    @property
    def share(self) -> float:
        return self.cached / self.tokens

    def price(self, cached_price: float) -> float:
        """Return the price of the prompts, relative to a price without a cache."""
        return 1 - self.share * (1 - cached_price)


def measure_cache(prompts: Sequence[Prompt], budget: int, costs: TokenCosts) -> CacheResult:
    """Measure the cached share of the prompts in the steady state, and why the rest is not cached."""
    tokens = cached = calls = 0
    filled, causes = 0.0, Counter[str]()
    counts = [list(map(costs.count, prompt.messages)) for prompt in prompts]
    for n, prompt in enumerate(prompts):
        if not prompt.evicted:
            continue
        earlier = prompts[max(0, n - CALLS_CACHED) : n]
        same, nearest = max(
            ((count_common_messages(prompt.messages, o.messages), k) for k, o in enumerate(earlier)),
            default=(0, 0),
        )
        partial_tokens = 0
        if earlier and same < min(len(prompt.messages), len(earlier[nearest].messages)):
            partial_tokens = costs.count_common_start(prompt.messages[same], earlier[nearest].messages[same])
        common = costs.tools + sum(counts[n][:same]) + partial_tokens
        hit = count_cached_tokens(common)
        total = TOKENS_PER_REPLY + costs.tools + sum(counts[n])
        calls, tokens, cached = calls + 1, tokens + total, cached + hit
        filled += prompt.limited_tokens / budget
        causes["step" if hit else "cut"] += common - hit
        causes["new"] += TOKENS_PER_REPLY
        last = earlier[-1]
        last_places = {_key(m): place for m, place in zip(last.messages, last.places, strict=True)}
        for message, place, count in list(zip(prompt.messages, prompt.places, counts[n], strict=True))[same:]:
            causes[_find_cause(place, last_places.get(_key(message)))] += count - partial_tokens
            partial_tokens = 0
    cuts = sum(one.evicted != other.evicted for one, other in itertools.pairwise(prompts))
    broken = sum(_has_broken_tool_pair(prompt.messages) for prompt in prompts)
    return CacheResult(calls, tokens, cached, filled / max(calls, 1), cuts, broken, causes)


def _key(message: Message) -> str:
    return json.dumps(message, sort_keys=True)


def _find_cause(place: str, last_place: str | None) -> str:
    """Return why a message is not cached, by its place in this prompt and in the last one."""
    if place == "tail":
        return "tail"
    if place == "head" or last_place in ("head", "window"):
        return "cut"
    return "new" if last_place is None else "again"


def _has_broken_tool_pair(messages: Sequence[Message]) -> bool:
    """Return True if a tool result has no call before it, or a call has no result after it."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return True
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return True
        waiting = {call["id"] for call in message.get("tool_calls", ())}
    return bool(waiting)


def add_up(results: Sequence[CacheResult]) -> CacheResult:
    """Combine the results of several conversations."""
    calls = sum(r.calls for r in results)
    return CacheResult(
        calls,
        sum(r.tokens for r in results),
        sum(r.cached for r in results),
        sum(r.filled * r.calls for r in results) / max(calls, 1),
        sum(r.cuts for r in results),
        sum(r.broken for r in results),
        sum((r.causes for r in results), Counter()),
    )
