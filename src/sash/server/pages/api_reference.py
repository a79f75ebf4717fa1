"""The page at `/docs`: the OpenAPI document as one page, with curl commands to copy."""

import json
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

from sash import errors
from sash.app.access import SCOPES
from sash.errors import SashError, SessionBusy
from sash.server.http_errors import (
    CODE_BY_STATUS,
    MEDIA_TYPE,
    STATUS_BY_CODE,
    get_status,
    make_error_response,
)
from sash.server.pages.layout import LOGO, render_page
from sash.server.pages.schema_text import (
    Schema,
    describe_type,
    get_reference_name,
    make_anchor,
    render_literal,
)

METHODS = ("get", "put", "post", "patch", "delete")
MAX_LINE_CHARS = 88

_JSON = "application/json"
_STREAM = "text/event-stream"
_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
_CODE = re.compile(r"`([^`]+)`")
_SHELL_SPECIAL = re.compile(r'[$`"\\]')
_NOT_LETTER = re.compile(r"\W")


@dataclass(frozen=True, slots=True)
class _Document:
    """An OpenAPI document, the URL of its server, and whether the server needs a token."""

    schema: Schema
    base_url: str
    needs_token: bool

    @property
    def types(self) -> Schema:
        types: Schema = self.schema.get("components", {}).get("schemas", {})
        return types

    def resolve(self, schema: Schema) -> Schema:
        """Return the schema behind a reference; for a value that may be null, the schema of the others."""
        if "$ref" in schema:
            return self.resolve(self.types[get_reference_name(schema)])
        others = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
        return self.resolve(others[0]) if len(others) == 1 else schema

    def find_example(self, media: Schema) -> Any:
        """Return the example of a media type object, or None."""
        if "example" in media:
            return media["example"]
        return next(iter(self.resolve(media.get("schema", {})).get("examples", ())), None)


@dataclass(frozen=True, slots=True)
class _Operation:
    """One method at one path."""

    method: str
    path: str
    spec: Schema

    @property
    def anchor(self) -> str:
        return make_anchor(self.spec["operationId"])

    @property
    def badge(self) -> str:
        return f'<span class="badge {self.method}">{self.method}</span>'

    @property
    def name(self) -> str:
        return escape(self.spec.get("summary", self.path))

    @property
    def route(self) -> str:
        """The path as HTML that can wrap before each slash."""
        return escape(self.path).replace("/", "<wbr>/")

    @property
    def body(self) -> Schema | None:
        """The media type object of the JSON body, or None."""
        content: Schema = self.spec.get("requestBody", {}).get("content", {})
        return content.get(_JSON)

    @property
    def parameters(self) -> list[Schema]:
        found: list[Schema] = self.spec.get("parameters", [])
        return found


def render_api_reference(schema: Schema, base_url: str, *, needs_token: bool = False) -> str:
    """Return an OpenAPI document as an HTML page. Its commands call `base_url`, with a token if needed."""
    docs = _Document(schema, base_url.rstrip("/"), needs_token)
    groups = _group_by_tag(schema)
    descriptions = {tag["name"]: tag.get("description", "") for tag in schema.get("tags", ())}
    parts = (
        f'<header class="brand">{LOGO}<h1><a href="/">{escape(schema["info"]["title"])}</a></h1></header>',
        _render_contents(groups),
        "<main>",
        _render_introduction(docs),
        *(
            _render_group(docs, tag, descriptions.get(tag, ""), operations)
            for tag, operations in groups.items()
        ),
        _render_types(docs),
        "</main>",
    )
    return render_page(f"{escape(schema['info']['title'])}: the API", "docs", "\n".join(parts))


def _group_by_tag(schema: Schema) -> dict[str, list[_Operation]]:
    """Return the operations by their first tag: first the tags that the document lists, in its order."""
    groups: dict[str, list[_Operation]] = {tag["name"]: [] for tag in schema.get("tags", ())}
    for path, operations in schema["paths"].items():
        for method in (key for key in operations if key in METHODS):
            tag = next(iter(operations[method].get("tags", ())), "other")
            groups.setdefault(tag, []).append(_Operation(method, path, operations[method]))
    return {tag: operations for tag, operations in groups.items() if operations}


def _render_contents(groups: dict[str, list[_Operation]]) -> str:
    def render_link(operation: _Operation) -> str:
        return f'<li><a href="#{operation.anchor}">{operation.badge} {operation.name}</a></li>'

    def render_group(tag: str, operations: list[_Operation]) -> str:
        links = "".join(map(render_link, operations))
        return f'<li><a href="#{make_anchor("tag", tag)}">{_capitalize(tag)}</a><ul>{links}</ul></li>'

    return f"""<nav aria-label="Contents"><ul>
<li><a href="#introduction">Introduction</a></li>
{"".join(render_group(*group) for group in groups.items())}
<li><a href="#types">Types</a></li>
</ul></nav>"""


def _render_introduction(docs: _Document) -> str:
    scopes = ", ".join(f"<code>{scope}</code>" for scope in SCOPES)
    commands = (
        "This server needs one: run <code>export SASH_TOKEN=sash_…</code>, and the commands below send it."
        if docs.needs_token
        else "This server has no token yet, and the commands below send none."
    )
    busy = SessionBusy("the session is busy: await or cancel its turn, or send with busy='enqueue'")
    return f"""<section id="introduction">
{_render_prose(docs.schema["info"].get("description", ""))}
<p>This server is at <code>{escape(docs.base_url)}</code>. MCP clients connect to <code>POST /mcp</code>. The
events of a session are streamed at <code>GET /events/{{session_id}}</code>. Programs read this page as
<a href="/openapi.json">/openapi.json</a>.</p>
<h3>Commands</h3>
<p>Click a command to select all of it. Set shell variables like <code>$SESSION_ID</code> first:
<code>SESSION_ID=…</code></p>
<h3>Token</h3>
<p>Once the first token exists, every request needs one: <code>Authorization: Bearer sash_…</code>. Create it
with <code>sash token create</code>. A token has an owner and some of the scopes {scopes}.
{commands}</p>
<h3>Problems</h3>
<p>Errors are <code>{MEDIA_TYPE}</code>. The <code>code</code> of an error is stable; its words
may change.</p>
{_render_json(json.loads(bytes(make_error_response(busy).body)))}
<details><summary>All codes</summary>{_render_codes()}</details>
</section>"""


def _render_codes() -> str:
    """Return an HTML table of all error codes by status, with their meaning where it is known."""
    classes = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SashError)
    ]
    meanings = {kind.code: kind.__doc__ or "" for kind in classes if kind is not SashError}
    statuses = {code: get_status(code) for code in meanings} | STATUS_BY_CODE
    statuses |= {code: status for status, code in CODE_BY_STATUS.items()}
    by_status: dict[int, list[str]] = {}
    for code, status in sorted(statuses.items()):
        meaning = escape(meanings.get(code, ""))
        by_status.setdefault(status, []).append(f"<p><code>{code}</code> {meaning}</p>")
    rows = (
        f'<tr><th scope="row">{status}</th><td>{"".join(codes)}</td></tr>'
        for status, codes in sorted(by_status.items())
    )
    return f'<table class="codes">{"".join(rows)}</table>'


def _render_group(docs: _Document, tag: str, description: str, operations: Iterable[_Operation]) -> str:
    articles = "\n".join(_render_operation(docs, operation) for operation in operations)
    heading = f"<h2>{_capitalize(tag)}</h2>\n{_render_prose(description)}"
    return f'<section id="{make_anchor("tag", tag)}">{heading}{articles}</section>'


def _render_operation(docs: _Document, operation: _Operation) -> str:
    responses = _render_responses(docs, operation.spec["responses"])
    return f"""<article id="{operation.anchor}">
<h3><a href="#{operation.anchor}">{operation.name}</a></h3>
<p class="route">{operation.badge} <code>{operation.route}</code></p>
{_render_prose(operation.spec.get("description", ""))}
<pre class="copy"><code>{escape(_write_curl(docs, operation))}</code></pre>
{_render_parameters(operation.parameters)}{_render_body(docs, operation)}{responses}
</article>"""


def _write_curl(docs: _Document, operation: _Operation) -> str:
    """Return a curl command for an operation. Path and required query parameters are shell variables."""
    verb = "" if operation.method == "get" else f" -X {operation.method.upper()}"
    unbuffered = " -N" if _STREAM in operation.spec["responses"].get("200", {}).get("content", {}) else ""
    path = _PATH_PARAMETER.sub(lambda name: "$" + _name_variable(name[1]), _escape_for_shell(operation.path))
    required = [p["name"] for p in operation.parameters if p["in"] == "query" and p.get("required")]
    lines = [
        f'curl{unbuffered}{verb} "{_escape_for_shell(docs.base_url)}{path}"',
        *(f'-G --data-urlencode "{_escape_for_shell(name)}=${_name_variable(name)}"' for name in required),
    ]
    if docs.needs_token:
        lines.append('-H "Authorization: Bearer $SASH_TOKEN"')
    if operation.body is not None:
        example = docs.find_example(operation.body)
        data = "@body.json" if example is None else shlex.quote(_format_json(example))
        lines += [f'-H "Content-Type: {_JSON}"', f"-d {data}"]
    return " \\\n  ".join(lines)


def _render_parameters(parameters: list[Schema]) -> str:
    if not parameters:
        return ""
    rows = (
        _render_row(
            p["name"],
            p["schema"],
            p["in"],
            "required" if p.get("required") else "",
            description=p.get("description"),
        )
        for p in parameters
    )
    return _render_details("Parameters", (p["name"] for p in parameters), f"<table>{''.join(rows)}</table>")


def _render_body(docs: _Document, operation: _Operation) -> str:
    if operation.body is None:
        return ""
    schema = docs.resolve(operation.body["schema"])
    example = docs.find_example(operation.body)
    optional = "" if operation.spec["requestBody"].get("required") else '<p class="dim">Optional.</p>'
    content = (
        optional
        + _render_prose(schema.get("description", ""))
        + (_render_fields(schema) or f"<p>{describe_type(schema)}</p>"),
        "" if example is None else _render_json(example),
    )
    return _render_details("Body", schema.get("properties", ()), "".join(content))


def _render_responses(docs: _Document, responses: Schema) -> str:
    rows = (
        f'<tr><th scope="row">{escape(status)}</th><td>{_render_prose(response["description"])}'
        f"{''.join(_render_media(docs, *media) for media in response.get('content', {}).items())}</td></tr>"
        for status, response in responses.items()
    )
    return _render_details("Responses", responses, f'<table class="codes">{"".join(rows)}</table>')


def _render_media(docs: _Document, name: str, media: Schema) -> str:
    """Return the type and example of a response body as HTML; empty for problems, which all look alike."""
    if name == MEDIA_TYPE:
        return ""
    example = docs.find_example(media)
    prefix = "" if name == _JSON else f"<code>{escape(name)}</code>: "
    return f"<p>{prefix}{describe_type(media.get('schema', {}))}</p>" + (
        "" if example is None else _render_json(example)
    )


def _render_types(docs: _Document) -> str:
    def render_type(name: str, schema: Schema) -> str:
        fields = _render_fields(schema) or f"<p>{describe_type(schema)}</p>"
        return f"""<article id="{make_anchor("type", name)}"><h3>{escape(name)}</h3>
{_render_prose(schema.get("description", ""))}{fields}</article>"""

    types = "\n".join(render_type(name, schema) for name, schema in sorted(docs.types.items()))
    return f'<section id="types"><h2>Types</h2>\n{types}</section>'


def _render_fields(schema: Schema) -> str:
    """Return the fields of an object as an HTML table, or an empty string if it has none."""
    required = schema.get("required", ())
    rows = (
        _render_row(name, field, "required" if name in required else "", description=field.get("description"))
        for name, field in schema.get("properties", {}).items()
    )
    table = "".join(rows)
    return f"<table>{table}</table>" if table else ""


def _render_row(name: str, schema: Schema, *notes: str, description: str | None = None) -> str:
    note = ", ".join(filter(None, notes))
    default = f"<small>by default {render_literal(schema['default'])}</small>" if "default" in schema else ""
    return (
        f'<tr><th scope="row"><code>{escape(name)}</code><small>{escape(note)}</small></th>'
        f"<td>{describe_type(schema)}{default}{_render_prose(description or '')}</td></tr>"
    )


def _render_details(name: str, names: Iterable[str], content: str) -> str:
    listed = escape(", ".join(names))
    return f'<details><summary>{name} <span class="dim">{listed}</span></summary>{content}</details>\n'


def _render_prose(text: str) -> str:
    """Return the paragraphs of a description as HTML. Text in backticks becomes code."""
    marked = _CODE.sub(r"<code>\1</code>", escape(text.strip()))
    return "".join(f"<p>{paragraph}</p>" for paragraph in marked.split("\n\n") if paragraph)


def _render_json(value: Any) -> str:
    return f"<pre><code>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</code></pre>"


def _format_json(value: Any) -> str:
    """Return a value as JSON: in one line if it is short, else indented."""
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= MAX_LINE_CHARS else json.dumps(value, indent=2, ensure_ascii=False)


def _escape_for_shell(text: str) -> str:
    """Escape text for use between double quotes in a shell."""
    return _SHELL_SPECIAL.sub(r"\\\g<0>", text)


def _name_variable(name: str) -> str:
    return _NOT_LETTER.sub("_", name).upper()


def _capitalize(tag: str) -> str:
    return escape(tag[:1].upper() + tag[1:])
