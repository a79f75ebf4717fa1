"""A policy, a call and a reader of results for turns that act on the home."""

from sash.values.sessions import SessionPolicy

FREE = SessionPolicy(allow_actuation=True, allowlisted_services=("*",))
ON = {"service": "light.turn_on", "entity_ids": ["light.kitchen_ceiling"]}


def actions(result):
    """Return the name, the outcome and the verification of every action of a turn."""
    return [(a.name, a.outcome, a.verified) for a in result.response.actions]
