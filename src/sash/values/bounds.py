"""The bounds of stored numbers and times. A record outside of them is damaged, or of a hostile export."""

from datetime import UTC, datetime
from typing import Annotated

from annotated_types import Ge, Le, Lt
from pydantic import AwareDatetime, Strict

from sash.values.validation import MAX_DOLLARS

MAX_COUNT = 10**12

Natural = Annotated[int, Ge(0), Le(MAX_COUNT)]
Dollars = Annotated[float, Strict(), Ge(0), Le(MAX_DOLLARS)]
# Calculations with times outside of these years could overflow.
Time = Annotated[AwareDatetime, Ge(datetime(1970, 1, 1, tzinfo=UTC)), Lt(datetime(3000, 1, 1, tzinfo=UTC))]
