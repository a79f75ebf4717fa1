"""Arranges the calls of one sentence: those that need an approval first, and equal ones joined."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatch

from sash.intents.situation import PlannedCall


def arrange_calls(calls: Iterable[PlannedCall], confirmed: Sequence[str]) -> tuple[PlannedCall, ...]:
    """Return the calls without repetitions. `confirmed` are the patterns of services that need an approval.

    A question for an approval comes before anything is done.
    """
    different: list[PlannedCall] = []
    for call in calls:
        if call not in different:  # "I can't find the hoover, make it beep" says the same twice.
            different.append(call)
    different.sort(key=lambda call: not _needs_approval(call, confirmed))
    return tuple(_join(different))


def _needs_approval(call: PlannedCall, patterns: Sequence[str]) -> bool:
    service = str(call.arguments.get("service"))
    return any(fnmatch(service, pattern) or service.startswith(f"{pattern}.") for pattern in patterns)


def _join(calls: Iterable[PlannedCall]) -> list[PlannedCall]:
    """Return one call in place of several in a row that do the same with other things."""
    joined: list[PlannedCall] = []
    for call in calls:
        ids = call.arguments["entity_ids"]
        last = joined[-1].arguments if joined else {}
        if call.arguments | {"entity_ids": ()} == last | {"entity_ids": ()}:
            ids = list(dict.fromkeys([*joined.pop().arguments["entity_ids"], *ids]))
        joined.append(replace(call, arguments=call.arguments | {"entity_ids": ids}))
    return joined
