"""Home Assistant's LLM APIs as tools of our agents, as the options of each agent say.

The policy of a session judges these tools like our own. Tools that act on any device, as `HassTurnOn` does,
are left out: Home Assistant does these things without an approval, and our `call_service` covers them. So are
the tools that Sash itself gives to other agents.
"""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import probatio
from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm
from homeassistant.util import slugify

from sash.engine.nested_turns import is_nested
from sash.engine.policy import judge
from sash.errors import InvalidInput, ToolFailed
from sash.home.live_home import LiveHome
from sash.home.service_call import parse_service_call
from sash.ports.tools import ServiceUse, ToolContext, ToolSpec
from sash.values.continuations import ContinuationRequest
from sash.values.sessions import UNLIMITED, Session

from .agent_options import AgentOptions
from .const import DOMAIN
from .hass_home.turn_contexts import make_context
from .intent_services import DELAYED_COMMAND, QUESTIONS, TIMER_STATUS, TIMERS, find_services, is_users_own
from .llm_contexts import make_llm_context
from .session_scope import find_agent_id
from .tool_schema import make_input_schema

# Intents that `call_service` does not cover.
KEPT_INTENTS = frozenset(
    {
        *TIMERS,
        "HassBroadcast",
        "HassListAddItem",
        "HassListCompleteItem",
        "HassListRemoveItem",
        "HassMediaSearchAndPlay",
        TIMER_STATUS,
        "HassVacuumCleanArea",
    }
)
# The prompt has the time, and our own tools read states.
COVERED_TOOLS = frozenset({"homeassistant__GetLiveContext", "llm__GetDateTime"})
MAX_NAME_CHARS = 64
MAX_OPEN_S = 5.0
# The bytes of all instructions as JSON. The hints of a turn have at most 16 KiB.
MAX_PROMPTS_BYTES = 6000
# The name of the hint with the instructions of an API.
PROMPT_HINT = "how to use the tools of {}"

_LOGGER = logging.getLogger(__name__)
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class LlmApiTools:
    """Finds the tools of a turn. `agents` are the options by agent id; `find_home` returns Sash's home."""

    def __init__(
        self,
        hass: HomeAssistant,
        agents: Mapping[str, AgentOptions],
        find_home: Callable[[], LiveHome | None],
    ) -> None:
        self._hass = hass
        self._agents = agents
        self._find_home = find_home
        self._lent: dict[str, list[llm.APIInstance]] = {}
        self._missing: set[str] = set()

    @contextmanager
    def lend(self, session_id: str, instances: list[llm.APIInstance]) -> Iterator[None]:
        """Let a session use APIs, which need not be registered, until the block ends."""
        self._lent[session_id] = instances
        try:
            yield
        finally:
            del self._lent[session_id]

    async def find_tools(self, session: Session, request: ContinuationRequest) -> list[ToolSpec]:
        """Return the tools of a turn that the policy of its session may allow.

        A turn that a tool of another turn has started gets none, so that it does not call itself for ever.
        """
        if is_nested():
            return []
        instances = self._lent.get(session.id)
        if instances is None:
            instances = await self._open_apis_of(session, request)
        specs: dict[str, ToolSpec] = {}
        for instance in instances:
            for tool in instance.tools:
                spec = self._make_spec(instance, tool, session, specs.keys())
                if spec is not None:
                    specs[spec.name] = spec
        return list(specs.values())

    async def read_prompts(self, agent: AgentOptions, llm_context: llm.LLMContext) -> dict[str, str]:
        """Return hints for a turn: the instructions of an agent's APIs.

        Those of Assist are left out, because they describe the home and the tools that Sash does not use.
        """
        api_ids = [api_id for api_id in agent.llm_api_ids if api_id != llm.LLM_API_ASSIST]
        if is_nested():
            return {}
        found = [each for each in await self.open_apis(api_ids, llm_context) if each.api_prompt]
        return {
            PROMPT_HINT.format(each.api.name): _shorten(each.api_prompt, MAX_PROMPTS_BYTES // len(found))
            for each in found
        }

    async def open_apis(self, api_ids: Iterable[str], llm_context: llm.LLMContext) -> list[llm.APIInstance]:
        """Return the APIs with these ids. A missing or broken one is logged once and left out."""
        instances = []
        for api_id in api_ids:
            try:
                async with asyncio.timeout(MAX_OPEN_S):
                    instances.append(await llm.async_get_api(self._hass, api_id, llm_context))
            except Exception as error:
                if api_id not in self._missing:
                    reason = str(error) or type(error).__name__
                    _LOGGER.warning("the LLM API %s is left out: %s", api_id, reason)
                self._missing.add(api_id)
            else:
                self._missing.discard(api_id)
        return instances

    async def _open_apis_of(self, session: Session, request: ContinuationRequest) -> list[llm.APIInstance]:
        agent_id = find_agent_id(session)
        options = None if agent_id is None else self._agents.get(agent_id)
        if options is None or not options.llm_api_ids:
            return []
        context = await make_context(self._hass, request.caller, None)
        language = request.language or self._hass.config.language
        device_id = None if request.caller is None else request.caller.device_id
        llm_context = make_llm_context(context, language, device_id)
        return await self.open_apis(options.llm_api_ids, llm_context)

    def _make_spec(
        self, instance: llm.APIInstance, tool: llm.Tool, session: Session, taken: Collection[str]
    ) -> ToolSpec | None:
        """Return a tool of an API as one of ours, or None if the agent must not have it."""
        inner = _unwrap(tool)
        if _is_ours(inner) or _is_covered(inner):
            return None
        is_action = not (inner.annotations.read_only or self._is_harmless(inner))
        uses = self._find_uses(instance, inner)
        if is_action and not uses:
            return None
        if is_action and judge(uses, session.policy, UNLIMITED.policy).what == "deny":
            return None
        is_repeatable = inner.annotations.read_only or inner.annotations.idempotent

        async def invoke(arguments: dict[str, Any], context: ToolContext) -> Any:
            return await self._call(instance, tool.name, arguments, context)

        async def list_uses(arguments: dict[str, Any], context: ToolContext) -> Iterable[ServiceUse]:
            return [*uses, *self._list_contents(inner)]

        try:
            return ToolSpec(
                _make_name(instance.api, tool, taken),
                tool.description or tool.title or tool.name,
                _make_schema(inner, instance),
                invoke,
                safety="idempotent" if is_repeatable else "unsafe",
                action=is_action,
                uses=list_uses if is_action else None,
            )
        except (InvalidInput, probatio.SchemaError, KeyError, TypeError, ValueError) as error:
            _LOGGER.warning("the tool %s of %s cannot be used: %s", tool.name, instance.api.name, error)
            return None

    async def _call(
        self, instance: llm.APIInstance, name: str, arguments: dict[str, Any], context: ToolContext
    ) -> Any:
        """Call a tool of an API. Raise `ToolFailed` if its result is an error."""
        llm_context = instance.llm_context
        if llm_context.platform == DOMAIN:  # The context of a turn, and not the one of a task.
            turn = await make_context(self._hass, context.caller, context.continuation_id)
            instance = replace(instance, llm_context=replace(llm_context, context=turn))
        result = await instance.async_call_tool(llm.ToolInput(name, arguments, id=context.call_id))
        if result.error:
            reason = result.data.get("error")
            raise ToolFailed(reason if isinstance(reason, str) else json.dumps(result.data, default=str))
        return result.data

    def _is_harmless(self, tool: llm.Tool) -> bool:
        """Return True for an intent that changes nothing in the home."""
        return (
            isinstance(tool, llm.IntentTool)
            and tool.intent_type in TIMERS | QUESTIONS
            and not is_users_own(self._hass, tool.intent_type)
        )

    def _find_uses(self, instance: llm.APIInstance, tool: llm.Tool) -> list[ServiceUse]:
        """Return the services by which the policy judges a tool; empty if they are unknown.

        An API other than Assist was chosen for the agent, so its own tools need no place in the allowlist.
        """
        if isinstance(tool, llm.IntentTool):
            return [ServiceUse(service) for service in find_services(self._hass, tool.intent_type)]
        domain, _, name = tool.name.partition("__")
        # The id of a merged API has the ids of its parts.
        is_assist = llm.LLM_API_ASSIST in instance.api.id.split("|")
        if is_assist or isinstance(tool, llm.ActionTool):
            return [ServiceUse(f"{domain}.{name}")] if name else []
        return [ServiceUse(f"{tool.integration or slugify(instance.api.name)}.{tool.name}", within=True)]

    def _list_contents(self, tool: llm.Tool) -> list[ServiceUse]:
        """Return the services inside of a script, as `call_service` finds them."""
        home = self._find_home()
        if not isinstance(tool, llm.ActionTool) or home is None:
            return []
        entity_id = tool.name.replace("__", ".", 1)
        call = {"service": "script.turn_on", "entity_ids": [entity_id]}
        return parse_service_call(call, home.index, home.services).list_uses()[1:]


def _shorten(text: str, max_bytes: int) -> str:
    """Return the beginning of a text that takes at most `max_bytes` as JSON."""
    while (size := len(json.dumps(text))) > max_bytes:
        text = text[: min(len(text) - 1, len(text) * max_bytes // size)]
    return text


def _unwrap(tool: llm.Tool) -> llm.Tool:
    while isinstance(tool, llm.NamespacedTool):
        tool = tool.tool
    return tool


def _is_ours(tool: llm.Tool) -> bool:
    return tool.integration == DOMAIN or tool.name.startswith(f"{DOMAIN}__")


def _is_covered(tool: llm.Tool) -> bool:
    """Return True if our own tools do the same, with the policy, approvals and read-back."""
    if not isinstance(tool, llm.IntentTool):
        return tool.name in COVERED_TOOLS
    is_core = tool.intent_type.startswith("Hass")
    return is_core and tool.intent_type not in KEPT_INTENTS


def _make_schema(tool: llm.Tool, instance: llm.APIInstance) -> dict[str, Any]:
    """Return the schema of a tool's arguments, without the command of a timer.

    Home Assistant's own agent would run that command without an approval.
    """
    schema = make_input_schema(tool.parameters, instance.custom_serializer)
    fields = {name: field for name, field in schema["properties"].items() if name != DELAYED_COMMAND}
    return schema | {"properties": fields}


def _make_name(api: llm.API, tool: llm.Tool, taken: Collection[str]) -> str:
    """Return a name that a model accepts and that no other tool has.

    Names with two underscores have a prefix already, and our own tools have none.
    """
    name = _NOT_IN_NAMES.sub("_", tool.name)
    if "__" not in name or name in taken:
        name = f"{slugify(api.name)}__{name}"
    short, n = name[:MAX_NAME_CHARS], 1
    while short in taken:
        n += 1
        short = f"{name[: MAX_NAME_CHARS - 4]}_{n}"
    return short
