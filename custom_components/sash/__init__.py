"""Sash: a conversation agent that remembers exactly, costs little, and never claims what it did not do."""

from datetime import datetime
from functools import partial

from homeassistant.const import EVENT_HOMEASSISTANT_STOP, Platform
from homeassistant.core import Event, HomeAssistant, callback
from homeassistant.exceptions import ConfigEntryNotReady
from homeassistant.helpers import config_validation as cv
from homeassistant.helpers.event import async_call_later, async_track_time_interval
from homeassistant.helpers.start import async_at_started
from homeassistant.helpers.typing import ConfigType

from sash.values.garbage import pause_collection

# These modules create more than 100,000 objects.
with pause_collection():
    from sash.engine.runtime import Runtime
    from sash.errors import SashError
    from sash.stores.sqlite.store import SqliteStore

    from .agent import Agent
    from .agent_options import read_options
    from .announcer import Announcer
    from .const import CONF_PROVIDER, DOMAIN, PROVIDER_LOCAL, SUBENTRY_AI_TASK, SUBENTRY_CONVERSATION
    from .database_files import find_database
    from .device_timers import DeviceTimers
    from .entry_data import SashConfigEntry, SashData
    from .foreign_turns import ForeignTurns
    from .hass_home import HassHome
    from .home_assistant_intents import HomeAssistantIntents
    from .late_turns import LateTurns
    from .leftover_data import offer_deletion
    from .llm_api_tools import LlmApiTools
    from .page_api import PageApi
    from .page_view import set_up_page
    from .pipeline_issues import PipelineIssues
    from .provider import create_model
    from .recovered_turns import recover_turns
    from .retention import SWEEP_INTERVAL, delete_old_sessions, make_retention
    from .sash_events import fire_turn_events
    from .services import async_setup_services
    from .session_scope import HOUSE
    from .store_issue import StoreIssue
    from .turn_issues import TurnIssues
    from .turn_signal import make_turn_signal
    from .usage import UsageCoordinator

CONFIG_SCHEMA = cv.config_entry_only_config_schema(DOMAIN)
PLATFORMS = (Platform.CONVERSATION, Platform.SENSOR)
# A speaker should begin to speak soon after the model begins to write.
PARTIAL_INTERVAL_S = 0.1
# Seconds from the start of Home Assistant to the import of the SDK. An earlier turn with a model imports it.
SDK_DELAY_S = 15.0


async def async_setup(hass: HomeAssistant, config: ConfigType) -> bool:
    """Register the services and the page. They are there once, also without a config entry."""
    async_setup_services(hass)
    await set_up_page(hass)
    return True


async def async_setup_entry(hass: HomeAssistant, entry: SashConfigEntry) -> bool:
    """Start the runtime of a provider, and the entities of its agents."""
    path = find_database(hass, entry.entry_id)
    try:
        await hass.async_add_executor_job(lambda: path.parent.mkdir(exist_ok=True))
    except OSError as error:
        raise ConfigEntryNotReady(f"The folder {path.parent} cannot be used: {error.strerror}") from error
    subentries = [s for s in entry.subentries.values() if s.subentry_type == SUBENTRY_CONVERSATION]
    options = {subentry.subentry_id: read_options(subentry) for subentry in subentries}
    has_model = entry.data[CONF_PROVIDER] != PROVIDER_LOCAL
    sentences = HomeAssistantIntents(hass, options, has_model=has_model)
    llm_apis = LlmApiTools(hass, options, lambda: runtime.home)
    store, model = SqliteStore(path), create_model(hass, entry.data)
    create_runtime = partial(
        Runtime,
        store,
        model,
        sentences.make_tools(),
        home=HassHome(hass),
        household=HOUSE,
        first_intents=[DeviceTimers(hass, sentences)],
        more_intents=[sentences],
        turn_tools=llm_apis.find_tools,
        partial_interval_s=PARTIAL_INTERVAL_S,
        retention=make_retention(options.values()),
        on_turn_change=make_turn_signal(hass, entry),
    )
    # In a thread, because it compiles the schemas of all tools.
    runtime = await hass.async_add_executor_job(create_runtime)
    await _open(runtime)
    # A set-up that fails after this calls no `async_unload_entry`. A second close has no effect.
    entry.async_on_unload(runtime.close)
    agents = {subentry.subentry_id: Agent(hass, runtime, subentry, llm_apis) for subentry in subentries}
    late_turns = LateTurns(hass, entry, runtime, Announcer(hass))
    foreign_turns = ForeignTurns(hass, entry, runtime)
    usage, platforms = UsageCoordinator(hass, entry, runtime, store), _choose_platforms(entry)
    page_api = PageApi(hass, runtime, agents, late_turns)
    entry.runtime_data = SashData(
        runtime, store, agents, late_turns, foreign_turns, usage, llm_apis, page_api, platforms
    )
    entry.async_on_unload(late_turns.open())
    entry.async_on_unload(foreign_turns.open())
    entry.async_on_unload(fire_turn_events(hass, entry))
    entry.async_on_unload(TurnIssues(hass, entry, model.name).open())
    entry.async_on_unload(StoreIssue(hass, entry).open())
    entry.async_on_unload(usage.open())
    _warm_up_after_start(hass, entry)
    _close_with_home_assistant(hass, entry)
    _delete_regularly(hass, entry)
    await usage.async_refresh()
    await hass.config_entries.async_forward_entry_setups(entry, platforms)
    entry.async_on_unload(PipelineIssues(hass, entry, agents).open())
    entry.async_on_unload(recover_turns(hass, entry))
    entry.async_on_unload(entry.add_update_listener(_reload))
    return True


async def async_unload_entry(hass: HomeAssistant, entry: SashConfigEntry) -> bool:
    """Stop the entities and the runtime. Turns that run are interrupted (see `recovered_turns`)."""
    if not await hass.config_entries.async_unload_platforms(entry, entry.runtime_data.platforms):
        return False
    await entry.runtime_data.page_api.close()
    await entry.runtime_data.runtime.close()
    return True


async def async_remove_entry(hass: HomeAssistant, entry: SashConfigEntry) -> None:
    """Ask what to do with the conversations of a provider that was removed (see `leftover_data`)."""
    await offer_deletion(hass, entry)


async def _open(runtime: Runtime) -> None:
    """Open the runtime without its warm-up. Raise `ConfigEntryNotReady` if the database cannot be used."""
    try:
        await runtime.open(warm_up=False)
    except SashError as error:
        raise ConfigEntryNotReady(
            translation_domain=DOMAIN,
            translation_key="failed",
            translation_placeholders={"message": error.message},
        ) from error


def _choose_platforms(entry: SashConfigEntry) -> tuple[Platform, ...]:
    """Return the platforms of an entry. Without AI tasks, their platform is left out: it loads cameras."""
    kinds = {subentry.subentry_type for subentry in entry.subentries.values()}
    has_tasks = SUBENTRY_AI_TASK in kinds and entry.data[CONF_PROVIDER] != PROVIDER_LOCAL
    return (*PLATFORMS, Platform.AI_TASK) if has_tasks else PLATFORMS


async def _reload(hass: HomeAssistant, entry: SashConfigEntry) -> None:
    await hass.config_entries.async_reload(entry.entry_id)


def _warm_up_after_start(hass: HomeAssistant, entry: SashConfigEntry) -> None:
    """Load the grammar and the provider's SDK when Home Assistant has started: they would delay its start.

    The SDK comes later: while it is imported, a sentence that needs no model takes several times as long.
    """

    runtime = entry.runtime_data.runtime

    async def load_sdk(_: datetime) -> None:
        await runtime.warm_up_model()

    @callback
    def warm_up(_: HomeAssistant) -> None:
        entry.async_create_background_task(hass, runtime.warm_up_sentences(), "load the sentences of sash")
        entry.async_on_unload(async_call_later(hass, SDK_DELAY_S, load_sdk))

    entry.async_on_unload(async_at_started(hass, warm_up))


def _close_with_home_assistant(hass: HomeAssistant, entry: SashConfigEntry) -> None:
    """Close the runtime when Home Assistant stops, because it does not unload entries then."""

    async def close(_: Event) -> None:
        await entry.runtime_data.page_api.close()
        await entry.runtime_data.runtime.close()

    entry.async_on_unload(hass.bus.async_listen_once(EVENT_HOMEASSISTANT_STOP, close))


def _delete_regularly(hass: HomeAssistant, entry: SashConfigEntry) -> None:
    data = entry.runtime_data

    async def delete(_: datetime) -> None:
        await delete_old_sessions(data.runtime, data.store, data.agents.values())

    entry.async_on_unload(async_track_time_interval(hass, delete, SWEEP_INTERVAL))
