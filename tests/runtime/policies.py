"""Policies of sessions that may act."""

from dataclasses import replace

from sash.values.sessions import SessionPolicy

OPEN = SessionPolicy(allow_actuation=True, allowlisted_services=("*",))
CAREFUL = replace(OPEN, require_confirmation=("*",))
