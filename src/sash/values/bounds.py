"""The bounds of numbers and times. Sash must be able to read every record that it writes.

Sash adds to counts and costs, so a stored number may be a million times greater than an accepted one.
"""

from datetime import UTC, datetime
from typing import Annotated

from annotated_types import Ge, Le, Lt
from pydantic import AwareDatetime, BeforeValidator, Strict

from sash.values.validation import MAX_DOLLARS

# The limits of numbers that come from outside: from a request, a setting or an import.
MAX_COUNT = 10**12
# The limits of stored numbers. SQLite's integers end at 9 * 10**18.
MAX_STORED_COUNT = MAX_COUNT * 10**6
MAX_STORED_DOLLARS = MAX_DOLLARS * 10**6

Natural = Annotated[int, Ge(0), Le(MAX_STORED_COUNT)]
# Older versions stored a negative duration if the clock was set back during a turn. It is read as 0.
Duration = Annotated[
    Natural, BeforeValidator(lambda value: max(0, value) if isinstance(value, int) else value)
]
Dollars = Annotated[float, Strict(), Ge(0), Le(MAX_DOLLARS)]
Cost = Annotated[float, Strict(), Ge(0), Le(MAX_STORED_DOLLARS)]
# Calculations with times outside of these years could overflow.
Time = Annotated[AwareDatetime, Ge(datetime(1970, 1, 1, tzinfo=UTC)), Lt(datetime(3000, 1, 1, tzinfo=UTC))]
