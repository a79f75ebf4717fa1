"""On the path of a program that is tested, moves its clock: the demo house is lit in the evening, and dark at night."""

import os
from datetime import datetime, timedelta

from sash.values.clock import SystemClock

_now, _shift = SystemClock.now, timedelta(seconds=float(os.environ["CLOCK_SHIFT_S"]))


def now(clock: SystemClock) -> datetime:
    return _now(clock) + _shift


SystemClock.now = now
