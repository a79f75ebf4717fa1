"""The time limits of the server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time limits of the server, in seconds unless the name says `_ms`.

    A client has `request_head_s` to send a request head, and `body_s` plus one second for each
    `body_bytes_per_s` bytes of the size limit to send a body.
    """

    request_head_s: float = 20.0
    body_s: float = 20.0
    body_bytes_per_s: int = 100_000
    # Linux drops a connection whose client acknowledges no data for this long.
    unread_ms: int = 30_000
    # At shutdown, running turns get `drain_s` to finish. Then open connections get `close_s`.
    drain_s: float = 3.0
    close_s: int = 1
    heartbeat_s: float = 15.0
    event_send_s: float = 30.0
    # An open event stream checks its token again at most once in this interval.
    token_check_s: float = 1.0
    # `POST /conversation` waits this long for the agent's answer. Many clients give up after a minute.
    answer_s: float = 50.0
    # An MCP home tool waits this long for a home that is still connecting.
    home_s: float = 2.0
