"""Deletes the conversations of an agent that are older than its options say."""

import logging
from collections.abc import Iterable
from datetime import timedelta

from homeassistant.util import dt as dt_util

from sash.engine.runtime import Runtime
from sash.errors import SashError
from sash.stores.sqlite.store import SqliteStore
from sash.values.sessions import Retention

from .agent import Agent
from .agent_options import AgentOptions
from .session_scope import find_agent_id
from .store_counts import list_owners

SWEEP_INTERVAL = timedelta(hours=6)
# The idle time of an agent whose sessions never expire.
NEVER_DAYS = 36_500.0

_LOGGER = logging.getLogger(__name__)


def make_retention(agents: Iterable[AgentOptions]) -> Retention:
    """Return the retention of the runtime. It has one idle time for all agents: the longest one."""
    idle = [NEVER_DAYS if options.idle_days is None else options.idle_days for options in agents]
    return Retention(session_idle_days=max(idle, default=Retention().session_idle_days))


async def delete_old_sessions(runtime: Runtime, store: SqliteStore, agents: Iterable[Agent]) -> None:
    """Delete the sessions of agents that were not used for their `retention_days`, of all owners.

    Home Assistant may know an owner no more, because the user was deleted.
    """
    limits = {
        agent.id: dt_util.utcnow() - timedelta(days=agent.options.retention_days)
        for agent in agents
        if agent.options.retention_days is not None
    }
    if not limits:
        return
    for owner in await list_owners(store):
        cursor: str | None = None
        while True:
            page = await runtime.list_sessions(owner=owner, cursor=cursor)
            for session in page.items:
                limit = limits.get(find_agent_id(session) or "")
                if limit is not None and session.updated_at < limit:
                    try:
                        await runtime.delete_session(session.id, owner=owner)
                    except SashError as error:
                        _LOGGER.warning("session %s was not deleted: %s", session.id, error.message)
            cursor = page.next_cursor
            if cursor is None:
                break
