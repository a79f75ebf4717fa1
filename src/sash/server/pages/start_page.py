"""The page at `/`: links to the API reference and the other entry points."""

from sash.server.pages.layout import LOGO, render_page

START_PAGE = render_page(
    "Sash",
    "home",
    f"""<header class="brand">{LOGO}<h1>Sash</h1></header>
<p class="lead">Conversations with an agent that remember exactly, cost little, and never lose or repeat
anything.</p>
<ul class="cards">
<li><strong><a href="/docs">The API</a></strong>
<span>Every route, with commands to copy.</span></li>
<li><strong><a href="/openapi.json">OpenAPI</a></strong>
<span>The same for programs: <code>/openapi.json</code></span></li>
<li><strong>MCP</strong>
<span>The address for a client: <code>/mcp</code></span></li>
<li><strong>Events</strong>
<span>Live events of a session: <code>/events/{{session_id}}</code></span></li>
</ul>
<p class="foot">Talk to the house: <code>sash chat</code></p>
<p class="foot">State of the server: <a href="/health">health</a>, <a href="/ready">ready</a>,
<a href="/metrics">metrics</a></p>""",
)
