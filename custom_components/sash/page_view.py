"""The page in the sidebar of Home Assistant, and its requests at `/api/sash/`."""

import hashlib
from http import HTTPStatus
from typing import Any

from aiohttp import web
from homeassistant.components import frontend
from homeassistant.components.http.server import StaticPathConfig
from homeassistant.config_entries import SIGNAL_CONFIG_ENTRY_CHANGED, ConfigEntry, ConfigEntryChange
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers.dispatcher import async_dispatcher_connect
from homeassistant.helpers.http import HomeAssistantView
from homeassistant.util.hass_dict import HassKey

from sash.web import PAGE_FOLDER

from .const import DOMAIN, SUBENTRY_CONVERSATION
from .entry_data import SashConfigEntry
from .page_api import PREFIX

# The id of the agent that answers. Without this header the first agent does.
AGENT_HEADER = "Sash-Agent"
PAGE_URL = "/sash_page"
PANEL_ELEMENT = "sash-panel"
TITLE, ICON = "Sash", "mdi:forum-outline"
RETRY_AFTER_S = "5"

# The address of the page's files.
PAGE_FILES: HassKey[str] = HassKey(f"{DOMAIN}_page_files")


async def set_up_page(hass: HomeAssistant) -> None:
    """Serve the files of the page and its requests, and show the page in the sidebar.

    Home Assistant cannot take back the files and the requests. Browsers keep the files for a month. So their
    address has a hash of their content.
    """
    digest = await hass.async_add_executor_job(_hash_files)
    hass.data[PAGE_FILES] = f"{PAGE_URL}/{digest}"
    await hass.http.async_register_static_paths([StaticPathConfig(hass.data[PAGE_FILES], str(PAGE_FOLDER))])
    hass.http.register_view(PageRequests(hass))
    _follow_entries(hass)


@callback
def _follow_entries(hass: HomeAssistant) -> None:
    """Keep the panel in step with the config entries, as long as Home Assistant runs."""

    @callback
    def follow(_: ConfigEntryChange, entry: ConfigEntry) -> None:
        if entry.domain == DOMAIN:
            _update_panel(hass)

    async_dispatcher_connect(hass, SIGNAL_CONFIG_ENTRY_CHANGED, follow)
    _update_panel(hass)


@callback
def _update_panel(hass: HomeAssistant) -> None:
    """Show the page in the sidebar if there is an agent, and tell it the names of the agents.

    Agents that are not loaded count, so that a reload does not change the panel. Home Assistant's frontend
    leaves the page when its panel is removed, and builds the page anew when its panel changes.
    """
    agents = [{"id": agent_id, "name": name} for agent_id, name in list_agents(hass).items()]
    if not agents:
        frontend.async_remove_panel(hass, DOMAIN, warn_if_unknown=False)
        return
    module = {"name": PANEL_ELEMENT, "module_url": f"{hass.data[PAGE_FILES]}/panel.js"}
    config = {"_panel_custom": module, "agents": agents}
    shown = hass.data.get(frontend.DATA_PANELS, {}).get(DOMAIN)
    if shown is not None and shown.config == config:
        return
    frontend.async_register_built_in_panel(
        hass,
        "custom",
        sidebar_title=TITLE,
        sidebar_icon=ICON,
        frontend_url_path=DOMAIN,
        config=config,
        update=True,
    )


@callback
def list_agents(hass: HomeAssistant) -> dict[str, str]:
    """Return the ids and names of the agents of enabled config entries, also of those that are not loaded."""
    return {
        subentry.subentry_id: subentry.title
        for entry in hass.config_entries.async_entries(DOMAIN, include_disabled=False)
        for subentry in entry.subentries.values()
        if subentry.subentry_type == SUBENTRY_CONVERSATION
    }


class PageRequests(HomeAssistantView):
    """Passes requests of signed-in users on to the application of a config entry."""

    url = f"{PREFIX}/{{path:.*}}"
    name = "api:sash"

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass

    async def _handle(self, request: web.Request, path: str) -> web.StreamResponse:
        entries: list[SashConfigEntry] = self._hass.config_entries.async_loaded_entries(DOMAIN)
        agents = [(entry, agent) for entry in entries for agent in entry.runtime_data.agents.values()]
        wanted = request.headers.get(AGENT_HEADER)
        chosen = next((each for each in agents if wanted in (None, each[1].id)), None)
        if chosen is None and wanted is not None and wanted not in list_agents(self._hass):
            return make_problem(HTTPStatus.NOT_FOUND, "agent_not_found", f"there is no agent {wanted!r:.80}")
        if chosen is None:
            return make_problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "no_agent",
                "the agent is not loaded: wait a moment, or look under Settings > Devices & services > Sash",
            )
        entry, agent = chosen
        response = await entry.runtime_data.page_api.handle(request, agent)
        return response or make_problem(
            HTTPStatus.SERVICE_UNAVAILABLE, "shutting_down", "Sash is shutting down: try again in a moment"
        )

    get = head = post = put = patch = delete = _handle


def make_problem(status: HTTPStatus, code: str, detail: str) -> web.Response:
    """Return a problem+json response, as the application does."""
    body: dict[str, Any] = {
        "type": f"urn:sash:problem:{code}",
        "title": status.phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    headers = {"Retry-After": RETRY_AFTER_S} if status is HTTPStatus.SERVICE_UNAVAILABLE else None
    return web.json_response(body, status=status, headers=headers, content_type="application/problem+json")


def _hash_files() -> str:
    digest = hashlib.sha256()
    for path in sorted(PAGE_FOLDER.rglob("*")):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            digest.update(path.relative_to(PAGE_FOLDER).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
