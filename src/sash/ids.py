"""ULIDs that sort in the order they were made, even when the clock steps back."""

import os
import threading
from datetime import UTC, datetime

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_RANDOM_BITS = 80


class Ulids:
    """Makes ULIDs: 48 bits of milliseconds and 80 random bits, each greater than the one before.

    Within one millisecond, and while the clock runs behind the last id, the random part counts up.
    """

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def new(self, at: datetime) -> str:
        """Return the next id for the moment `at`."""
        millis = int(at.timestamp() * 1000)
        with self._lock:
            if millis > self._last >> _RANDOM_BITS:
                self._last = millis << _RANDOM_BITS | int.from_bytes(os.urandom(10))
            else:
                self._last += 1
            n = self._last
        pairs = _PAIRS
        return (
            f"{pairs[n >> 120 & 1023]}{pairs[n >> 110 & 1023]}{pairs[n >> 100 & 1023]}"
            f"{pairs[n >> 90 & 1023]}{pairs[n >> 80 & 1023]}{pairs[n >> 70 & 1023]}"
            f"{pairs[n >> 60 & 1023]}{pairs[n >> 50 & 1023]}{pairs[n >> 40 & 1023]}"
            f"{pairs[n >> 30 & 1023]}{pairs[n >> 20 & 1023]}{pairs[n >> 10 & 1023]}{pairs[n & 1023]}"
        )


_ulids = Ulids()


def new_id() -> str:
    """Return a ULID for now, for a value that was given none."""
    return _ulids.new(datetime.now(UTC))
