"""The responses of services that only answer: the weather forecast and the items of a to-do list."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from sash.ports.home import State

_CONDITIONS = ("cloudy", "partlycloudy", "sunny", "partlycloudy", "rainy")
_STEPS = {"daily": timedelta(days=1), "twice_daily": timedelta(hours=12), "hourly": timedelta(hours=1)}
_STEP_COUNT = 5


def make_forecast(state: State, kind: str, now: datetime) -> dict[str, Any]:
    """Return a forecast around the present temperature. It depends on the date only."""
    warmest, step = float(state.attributes.get("temperature") or 12.0) + 2, _STEPS[kind]
    start = now.replace(hour=now.hour if kind == "hourly" else 0, minute=0, second=0, microsecond=0)
    forecast = []
    for number in range(1, _STEP_COUNT + 1):
        at, swing = start + number * step, (now.timetuple().tm_yday + number) % len(_CONDITIONS)
        forecast.append(
            {
                "datetime": at.isoformat(),
                "condition": _CONDITIONS[swing],
                "temperature": round(warmest - swing, 1),
                "templow": round(warmest - swing - 6, 1),
                "precipitation": 4.2 if _CONDITIONS[swing] == "rainy" else 0.0,
            }
        )
    return {"forecast": forecast}


def list_items(items: Mapping[str, str], wanted: Collection[str]) -> dict[str, Any]:
    """Return the items of a to-do list that have a wanted status, or all without one."""
    return {
        "items": [
            {"summary": name, "status": status}
            for name, status in items.items()
            if not wanted or status in wanted
        ]
    }
