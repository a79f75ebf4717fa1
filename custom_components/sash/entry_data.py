"""The running parts of a config entry."""

from dataclasses import dataclass

from homeassistant.config_entries import ConfigEntry
from homeassistant.const import Platform

from sash.engine.runtime import Runtime
from sash.stores.sqlite.store import SqliteStore

from .agent import Agent
from .foreign_turns import ForeignTurns
from .late_turns import LateTurns
from .llm_api_tools import LlmApiTools
from .page_api import PageApi
from .usage import UsageCoordinator


@dataclass(frozen=True, slots=True)
class SashData:
    """The runtime of a config entry, and what its entities share. `agents` has the agents by subentry id."""

    runtime: Runtime
    store: SqliteStore
    agents: dict[str, Agent]
    late_turns: LateTurns
    foreign_turns: ForeignTurns
    usage: UsageCoordinator
    llm_apis: LlmApiTools
    page_api: PageApi
    platforms: tuple[Platform, ...]


type SashConfigEntry = ConfigEntry[SashData]
