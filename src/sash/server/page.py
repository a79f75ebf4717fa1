"""A short page of links, for who opens the address in a browser."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sash</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 44rem; margin: 10vh auto; padding: 0 1.5rem; }
h1 { font-weight: 600; margin-bottom: 0; }
p { margin-top: .3rem; opacity: .75; }
li { margin: .6rem 0; }
code { font-size: .95em; }
</style>
</head>
<body>
<h1>Sash</h1>
<p>Conversations with an agent that remember exactly, cost little, and never lose or repeat anything.</p>
<ul>
<li><a href="/docs">/docs</a>: every route, to read and to try</li>
<li><a href="/openapi.json">/openapi.json</a>: the same for programs</li>
<li><a href="/health">/health</a>, <a href="/ready">/ready</a>, <a href="/metrics">/metrics</a>: how the server is</li>
<li><code>/mcp</code>: the address for an MCP client</li>
<li><code>/events/{session_id}</code>: a session's events, as they happen</li>
</ul>
<p>Talk to the house: <code>sash chat</code></p>
</body>
</html>
"""
