"""The log lines about windows. They never contain text of a conversation."""

import logging
from collections.abc import Iterable

from sash.memory.window import Eviction, Window


def log_evictions(logger: logging.Logger, conversation_id: str, evicted: Iterable[Eviction]) -> None:
    """Log every evicted message."""
    if logger.isEnabledFor(logging.DEBUG):
        for message, reason in evicted:
            logger.debug(
                "Evicted: conv=%s, role=%s, tokens=%d, reason=%s",
                conversation_id,
                message.role,
                message.token_count,
                reason,
            )


def log_window(logger: logging.Logger, conversation_id: str, window: Window) -> None:
    """Log the size of a window."""
    logger.debug(
        "Window: conv=%s, msgs=%d, tokens=%d/%s (%.1f%%)",
        conversation_id,
        len(window),
        window.tokens,
        window.limits.max_tokens,
        window.utilization,
    )
