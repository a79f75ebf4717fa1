"""Shifts the clock of a tested program to the night, when the demo home is dark and locked.

Python imports this module at start, because the tests put its folder on PYTHONPATH.
"""

import os
from datetime import datetime, timedelta

from sash.values.clock import SystemClock

_now, _shift = SystemClock.now, timedelta(seconds=float(os.environ["CLOCK_SHIFT_S"]))


def now(clock: SystemClock) -> datetime:
    return _now(clock) + _shift


SystemClock.now = now
