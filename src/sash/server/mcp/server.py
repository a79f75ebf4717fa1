"""MCP over one desk: a request is looked up, done, and its answer written. It knows no transport."""

from collections.abc import Iterable
from itertools import count
from typing import Any

import mcp.types as t
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from sash import __version__
from sash.app.access import Caller
from sash.app.service import AgentService
from sash.errors import HomeUnavailable, SashError
from sash.home.home_queries import QUERY_TOOLS
from sash.server.mcp import prompts, resources, results, tools
from sash.server.mcp.tasks import Tasks, created, declared
from sash.server.mcp.tools import Tool, Visit
from sash.server.mcp.waiting import Tell, to_the_end, wait
from sash.values.continuations import FINAL

LIST_TTL_MS = 60_000
DOTTED = "ha_agent."
# Nobody should wait for a turn that has ended, or goes on only when it is told to.
STANDS_STILL = FINAL | {"interrupted"}
INSTRUCTIONS = (
    "Sash is a home agent that remembers. Ask it one question with ha_agent_ask, or start a session with "
    "ha_agent_start_session for a conversation. The house can also be read directly, with search_index, "
    "get_states and the like. The resource sash://guide says more."
)

Context = ServerRequestContext[Any, Any]


class Mcp:
    """Answers the requests of MCP's clients; `local` is who calls where there is no request to say so."""

    def __init__(self, desk: AgentService, local: Caller | None = None) -> None:
        self._desk = desk
        self._local = local
        self._tools = {tool.name: tool for tool in (*tools.AGENT_TOOLS, *tools.house_tools(desk))}
        self._listed = [_listed(tool) for tool in self._tools.values()]

    def server(self) -> Server[Any]:
        """Return the server that reads and writes the messages."""
        schemas = {tool.name: tool.takes for tool in self._tools.values()}
        server: Server[Any] = Server(
            "sash",
            version=__version__,
            title="Sash",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=schemas.get,
            on_list_tools=self.list_tools,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
        )
        server.add_request_handler("tools/call", t.CallToolRequestParams, self.call_tool)
        Tasks(self._desk, self._caller).install(server)
        return server

    async def list_tools(self, ctx: Context, params: object) -> t.ListToolsResult:
        return t.ListToolsResult(tools=self._listed, ttl_ms=LIST_TTL_MS, cache_scope="private")

    async def call_tool(
        self, ctx: Context, params: t.CallToolRequestParams
    ) -> t.CallToolResult | dict[str, Any]:
        """Call a tool; what goes wrong in it is a result, for the model to mend."""
        visit = Visit(self._desk, self._caller(ctx))
        try:
            return await self._call(ctx, self._find(params.name), visit, params.arguments or {})
        except SashError as error:
            return results.of_error(error)

    async def list_resources(self, ctx: Context, params: object) -> t.ListResourcesResult:
        listed = list(resources.RESOURCES)
        return t.ListResourcesResult(resources=listed, ttl_ms=LIST_TTL_MS, cache_scope="private")

    async def list_templates(self, ctx: Context, params: object) -> t.ListResourceTemplatesResult:
        listed = list(resources.TEMPLATES)
        return t.ListResourceTemplatesResult(
            resource_templates=listed, ttl_ms=LIST_TTL_MS, cache_scope="private"
        )

    async def read_resource(self, ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        return await resources.read(self._desk, self._caller(ctx), str(params.uri))

    async def list_prompts(self, ctx: Context, params: object) -> t.ListPromptsResult:
        listed = list(prompts.PROMPTS)
        return t.ListPromptsResult(prompts=listed, ttl_ms=LIST_TTL_MS, cache_scope="private")

    async def get_prompt(self, ctx: Context, params: t.GetPromptRequestParams) -> t.GetPromptResult:
        return prompts.fill(params.name, params.arguments or {})

    async def complete(self, ctx: Context, params: t.CompleteRequestParams) -> t.CompleteResult:
        return await prompts.complete(self._desk, self._caller(ctx), params)

    async def _call(
        self, ctx: Context, tool: Tool, visit: Visit, arguments: dict[str, Any]
    ) -> t.CallToolResult | dict[str, Any]:
        wanted = tool.check(arguments)
        if tool.waits:
            visit.caller.need("read")
        work = tool.run(visit, wanted)
        value = await (work if tool.reads else to_the_end(work))
        if tool.waits:
            return await self._turn(ctx, visit.caller, value, wanted.timeout_ms)
        return results.of_value(value, *await self._pictures(visit.caller, value))

    async def _turn(
        self, ctx: Context, caller: Caller, continuation_id: str, wait_ms: int
    ) -> t.CallToolResult | dict[str, Any]:
        """Wait for a turn, or make it a task for who understands tasks."""
        if declared(ctx):
            turn = await self._desk.await_continuation(caller, continuation_id)
            if turn.status not in STANDS_STILL:
                return created(turn)
        else:
            turn = await wait(self._desk, caller, continuation_id, wait_ms=wait_ms, tell=_teller(ctx))
        return results.of_turn(turn)

    async def _pictures(self, caller: Caller, value: Any) -> Iterable[t.ImageContent]:
        """Return the plot that a tool of the house has kept, to be seen."""
        match value:
            case {"plot": {"artifact": str(artifact_id), "type": "image/png"}}:
                return [results.picture(await self._desk.artifact(caller, artifact_id))]
        return []

    def _find(self, name: str) -> Tool:
        """Return a tool; the names with a dot, as seed 004 has them, are as good."""
        known = name.replace(".", "_", 1) if name.startswith(DOTTED) else name
        if known in self._tools:
            return self._tools[known]
        if known in QUERY_TOOLS:
            raise HomeUnavailable("no house is connected here: set home_url and home_token, or home to demo")
        raise MCPError(t.INVALID_PARAMS, f"Unknown tool: {name}")

    def _caller(self, ctx: Context) -> Caller:
        caller: Caller | None = self._local if ctx.request is None else ctx.request.scope["caller"]
        assert caller is not None, "nobody has said who calls"
        return caller


def _teller(ctx: Context) -> Tell | None:
    """Return what tells the client how far it is, if it wants to know."""
    if not ctx.meta or "progress_token" not in ctx.meta:
        return None
    numbers = count(1)

    async def tell(message: str) -> None:
        await ctx.session.report_progress(next(numbers), None, message)

    return tell


def _listed(tool: Tool) -> t.Tool:
    return t.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.takes,
        output_schema=results.or_error(tool.gives),
        annotations=t.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.repeats,
            open_world_hint=tool.outside,
        ),
    )
