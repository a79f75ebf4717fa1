"""ULIDs that sort in the order they were made, even when the clock steps back."""

import os
import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

ULID_PATTERN = r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
_ulid = re.compile(ULID_PATTERN)
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_RANDOM_BITS = 80
_LOW_BITS = 20
_SHIFTS = tuple(range(100, -1, -10))
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Ulids:
    """Makes ULIDs (48 bits of milliseconds, 80 random bits), each greater than the one before.

    Within one millisecond, or while the clock is behind the last id, the random part counts up.
    """

    def __init__(self) -> None:
        self._until = datetime.min.replace(tzinfo=UTC)
        self._high = 0
        self._low = 0
        self._prefix = ""
        self._lock = threading.Lock()

    def continue_after(self, last: str | None) -> None:
        """Make the next id greater than `last`, an id of an earlier process.

        That process may have made greater ids that are not known here, so the next id starts a new
        millisecond. An id from `LATEST_ID` on is damaged and has no effect.
        """
        if last is None or not is_ulid(last) or last >= LATEST_ID:
            return
        value = 0
        for letter in last:
            value = value << 5 | _ALPHABET.index(letter)
        with self._lock:
            if value > (self._high << _LOW_BITS | self._low):
                self._begin((value >> _RANDOM_BITS) + 1)

    def new(self, at: datetime) -> str:
        """Return the next id. Its time is `at`, or the time of the last id if that is later."""
        with self._lock:
            if at >= self._until:
                self._begin((at - _EPOCH) // _MILLISECOND)
            else:
                self._low += 1
                if self._low >> _LOW_BITS:
                    self._start((self._high + 1) << _LOW_BITS)
            low = self._low
            return f"{self._prefix}{_PAIRS[low >> 10]}{_PAIRS[low & 1023]}"

    def _begin(self, millis: int) -> None:
        """Continue from a random value within the millisecond `millis`, counted from 1970."""
        self._until = _EPOCH + (millis + 1) * _MILLISECOND
        self._start(millis << _RANDOM_BITS | int.from_bytes(os.urandom(10)))

    def _start(self, value: int) -> None:
        """Continue from `value`. Its upper bits are formatted once, because they seldom change."""
        self._high, self._low = value >> _LOW_BITS, value & ((1 << _LOW_BITS) - 1)
        high = self._high
        self._prefix = "".join([_PAIRS[high >> shift & 1023] for shift in _SHIFTS])


def ulid_before(at: datetime) -> str:
    """Return a text that sorts before all ids that are made at `at` or later."""
    value = max(0, (at - _EPOCH) // _MILLISECOND) << _RANDOM_BITS
    return "".join(_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10))


LATEST_ID = ulid_before(datetime(3000, 1, 1, tzinfo=UTC))


def is_ulid(text: Any) -> bool:
    """Return True if this is a text with the form of a ULID."""
    return isinstance(text, str) and _ulid.fullmatch(text) is not None


_ulids = Ulids()


def new_id() -> str:
    """Return a ULID for the current time."""
    return _ulids.new(datetime.now(UTC))
