"""The handlers of MCP requests, for every transport: look up, call the service, format the result."""

import math
from collections.abc import Iterable
from itertools import count
from typing import Any

import mcp.types as t
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from sash import __version__
from sash.app.access import Caller
from sash.app.schemas import ContinuationShown
from sash.app.service import AgentService
from sash.errors import HomeUnavailable, SashError
from sash.home.home_queries import QUERY_TOOLS
from sash.server.mcp import agent_tools, prompts, resources, tool_results
from sash.server.mcp.direct_tools import make_home_tools
from sash.server.mcp.tasks import TaskHandlers, make_created_task, supports_tasks
from sash.server.mcp.tool import CallContext, Tool, finish
from sash.server.mcp.turn_progress import Report, wait_for_turn
from sash.server.timeouts import Timeouts
from sash.values.continuations import FINAL

LIST_TTL_MS = 60_000
# Clients may also write the names of the agent's tools with a dot: ha_agent.ask.
DOTTED_PREFIX = "ha_agent."
# In these states a turn does not continue by itself, so it does not become a task.
STOPPED = FINAL | {"interrupted"}
INSTRUCTIONS = (
    "Sash is a home agent that remembers. Ask it one question with ha_agent_ask, or start a session with "
    "ha_agent_start_session for a conversation. The house can also be read directly, with search_index, "
    "get_states and the like. The resource sash://guide says more."
)

Context = ServerRequestContext[Any, Any]


class McpHandlers:
    """Handles the requests of MCP clients. Transports without HTTP requests set `local_caller`."""

    def __init__(self, service: AgentService, timeouts: Timeouts, local_caller: Caller | None = None) -> None:
        self._service = service
        self._local_caller = local_caller
        tools = (*agent_tools.AGENT_TOOLS, *make_home_tools(service, timeouts.home_s))
        self._tools = {tool.name: tool for tool in tools}
        self._listed_tools = [_describe_tool(tool) for tool in tools]

    def build_server(self) -> Server[Any]:
        """Return the SDK's server with these handlers."""
        schemas = {tool.name: tool.input_schema for tool in self._tools.values()}
        server: Server[Any] = Server(
            "sash",
            version=__version__,
            title="Sash",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=schemas.get,
            on_list_tools=self.list_tools,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_resource_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
        )
        server.add_request_handler("tools/call", t.CallToolRequestParams, self.call_tool)
        TaskHandlers(self._service, self._get_caller).install(server)
        return server

    async def list_tools(self, ctx: Context, params: object) -> t.ListToolsResult:
        return t.ListToolsResult(tools=self._listed_tools, ttl_ms=LIST_TTL_MS, cache_scope="private")

    async def call_tool(
        self, ctx: Context, params: t.CallToolRequestParams
    ) -> t.CallToolResult | dict[str, Any]:
        """Call a tool. An error of the tool becomes a result, so that the model can correct its call."""
        context = CallContext(self._service, self._get_caller(ctx))
        try:
            return await self._call(ctx, self._find_tool(params.name), context, params.arguments or {})
        except SashError as error:
            return tool_results.make_error_result(error)

    async def list_resources(self, ctx: Context, params: object) -> t.ListResourcesResult:
        listed = list(resources.RESOURCES)
        return t.ListResourcesResult(resources=listed, ttl_ms=LIST_TTL_MS, cache_scope="private")

    async def list_resource_templates(self, ctx: Context, params: object) -> t.ListResourceTemplatesResult:
        return t.ListResourceTemplatesResult(
            resource_templates=list(resources.TEMPLATES), ttl_ms=LIST_TTL_MS, cache_scope="private"
        )

    async def read_resource(self, ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        return await resources.read_resource(self._service, self._get_caller(ctx), str(params.uri))

    async def list_prompts(self, ctx: Context, params: object) -> t.ListPromptsResult:
        listed = list(prompts.PROMPTS)
        return t.ListPromptsResult(prompts=listed, ttl_ms=LIST_TTL_MS, cache_scope="private")

    async def get_prompt(self, ctx: Context, params: t.GetPromptRequestParams) -> t.GetPromptResult:
        return prompts.fill_prompt(params.name, params.arguments or {})

    async def complete(self, ctx: Context, params: t.CompleteRequestParams) -> t.CompleteResult:
        return await prompts.complete_argument(self._service, self._get_caller(ctx), params)

    async def _call(
        self, ctx: Context, tool: Tool, context: CallContext, given: dict[str, Any]
    ) -> t.CallToolResult | dict[str, Any]:
        arguments = tool.parse_arguments(given)
        if tool.waits_for_turn:
            context.caller.need("read")
        work = tool.handler(context, arguments)
        value = await (work if tool.is_read_only else finish(work))
        if tool.waits_for_turn:
            return await self._wait_for_turn(ctx, context.caller, value, arguments)
        return tool_results.make_result(value, *await self._load_images(context.caller, value))

    async def _wait_for_turn(
        self, ctx: Context, caller: Caller, continuation_id: str, arguments: Any
    ) -> t.CallToolResult | dict[str, Any]:
        """Wait for a turn and return its state. A client that supports tasks gets a task instead."""
        if supports_tasks(ctx):
            turn = await self._service.await_continuation(caller, continuation_id)
            if turn.status not in STOPPED:
                return make_created_task(ContinuationShown.of(turn))
        else:
            turn = await wait_for_turn(
                self._service,
                caller,
                continuation_id,
                timeout_s=self._find_wait_s(arguments.timeout_ms),
                report=_make_report(ctx),
                with_text=getattr(arguments, "stream", False),
            )
        notice = await self._service.write_notice(caller, turn)
        return tool_results.make_turn_result(ContinuationShown.of(turn, notice))

    def _find_wait_s(self, timeout_ms: int | None) -> float:
        """Return the time to wait for a turn. None is the time until an early answer, or the default."""
        if timeout_ms is not None:
            return timeout_ms / 1000
        return min(agent_tools.WAIT_MS / 1000, self._service.early_wait_s or math.inf)

    async def _load_images(self, caller: Caller, value: Any) -> Iterable[t.ImageContent]:
        """Return the plot that a home tool has stored, as a list of one image; empty without a plot."""
        match value:
            case {"plot": {"artifact": str(artifact_id), "type": "image/png"}}:
                return [tool_results.make_image(await self._service.artifact(caller, artifact_id))]
        return []

    def _find_tool(self, name: str) -> Tool:
        known = name.replace(".", "_", 1) if name.startswith(DOTTED_PREFIX) else name
        if known in self._tools:
            return self._tools[known]
        if known in QUERY_TOOLS:
            raise HomeUnavailable("no house is connected: set home_url and home_token, or set home to demo")
        raise MCPError(t.INVALID_PARAMS, f"Unknown tool: {name}")

    def _get_caller(self, ctx: Context) -> Caller:
        caller: Caller | None = self._local_caller if ctx.request is None else ctx.request.scope["caller"]
        assert caller is not None, "a transport without HTTP requests needs a local_caller"
        return caller


def _make_report(ctx: Context) -> Report | None:
    """Return a function that sends progress messages, or None if the client wants none."""
    if not ctx.meta or "progress_token" not in ctx.meta:
        return None
    numbers = count(1)

    async def report(message: str) -> None:
        await ctx.session.report_progress(next(numbers), None, message)

    return report


def _describe_tool(tool: Tool) -> t.Tool:
    return t.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool_results.allow_errors(tool.output_schema),
        annotations=t.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=tool.is_open_world,
        ),
    )
