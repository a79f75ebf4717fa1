"""The tokens of prompts, and the rules of a provider's cache.

A provider can serve the beginning of a prompt from its cache, if an earlier prompt begins in the same way.
The tool schemas come first, then the messages.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from sash.memory.tokens import TokenCounter

MIN_CACHED_TOKENS, CACHE_STEP_TOKENS = 1024, 128
# A prompt is compared with this many prompts before it.
CALLS_CACHED = 8
# The prices of a cached token, relative to the full price.
CACHED_PRICES = (0.1, 0.5)

Message = dict[str, Any]


class TokenCosts:
    """Counts the tokens of messages. `tools` are the tokens of the tool schemas."""

    def __init__(self, tools: list[Message]) -> None:
        self._counter = TokenCounter()
        self.tools = self._counter.count_tools(tools)

    def count(self, message: Message) -> int:
        return self._counter.count_message(
            message["content"], message.get("tool_calls", ()), message.get("name")
        )

    def count_all(self, messages: Sequence[Message]) -> int:
        return sum(map(self.count, messages))

    def count_common_start(self, first: Message, second: Message) -> int:
        """Count the tokens at the beginning that two messages have in common."""
        if first["role"] != second["role"]:
            return 0
        pairs = zip(first["content"], second["content"], strict=False)
        same = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
        return self._counter.count_text(first["content"][:same])


def count_common_messages(first: Sequence[Message], second: Sequence[Message]) -> int:
    """Count the messages at the beginning that two prompts have in common."""
    pairs = zip(first, second, strict=False)
    different = (n for n, (mine, other) in enumerate(pairs) if mine != other)
    return next(different, min(len(first), len(second)))


def count_cached_tokens(common: int) -> int:
    """Return the cached part of a common beginning of this many tokens."""
    return common // CACHE_STEP_TOKENS * CACHE_STEP_TOKENS if common >= MIN_CACHED_TOKENS else 0
