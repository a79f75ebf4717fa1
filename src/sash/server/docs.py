"""`/docs`: the OpenAPI document as one page to read, with commands to copy."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from sash import errors
from sash.app.access import SCOPES
from sash.errors import SashError, SessionBusy
from sash.server.page import MARK, frame
from sash.server.problems import MEDIA_TYPE, of_error, status_of

Schema = dict[str, Any]

METHODS = ("get", "put", "post", "patch", "delete")
WIDE = 88

_JSON = "application/json"
_STREAM = "text/event-stream"
_BOUNDS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
)
# The codes of what a request meets before one of our errors could be raised.
_EARLY = {
    "invalid_json": 400,
    "origin_refused": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "body_too_slow": 408,
    "body_too_large": 413,
    "host_refused": 421,
    "internal_error": 500,
}


@dataclass(frozen=True, slots=True)
class _Docs:
    """A document, where its server is, and whether it asks for a token."""

    schema: Schema
    base: str
    token: bool

    @property
    def types(self) -> Schema:
        types: Schema = self.schema.get("components", {}).get("schemas", {})
        return types

    def resolve(self, schema: Schema) -> Schema:
        """Return what a schema refers to; of one that may be null, what it is otherwise."""
        if "$ref" in schema:
            return self.resolve(self.types[_referred(schema)])
        others = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
        return self.resolve(others[0]) if len(others) == 1 else schema

    def example(self, media: Schema) -> Any:
        """Return the example of a body, None if it has none."""
        if "example" in media:
            return media["example"]
        return next(iter(self.resolve(media.get("schema", {})).get("examples", ())), None)


@dataclass(frozen=True, slots=True)
class _Operation:
    """One thing that can be done at a path."""

    method: str
    path: str
    spec: Schema

    @property
    def anchor(self) -> str:
        return _anchor(self.spec["operationId"])

    @property
    def badge(self) -> str:
        return f'<span class="badge {self.method}">{self.method}</span>'

    @property
    def name(self) -> str:
        return escape(self.spec.get("summary", self.path))

    @property
    def route(self) -> str:
        """The path, which may be broken before a slash."""
        return escape(self.path).replace("/", "<wbr>/")

    @property
    def body(self) -> Schema | None:
        """What a JSON body is, None if it takes none."""
        content: Schema = self.spec.get("requestBody", {}).get("content", {})
        return content.get(_JSON)

    def parameters(self) -> list[Schema]:
        found: list[Schema] = self.spec.get("parameters", [])
        return found


def docs_page(schema: Schema, base: str, *, token: bool = False) -> str:
    """Return an OpenAPI document as a page; its commands call `base`, with a token if it asks for one."""
    docs = _Docs(schema, base.rstrip("/"), token)
    groups = _by_tag(schema)
    about = {tag["name"]: tag.get("description", "") for tag in schema.get("tags", ())}
    parts = (
        f'<header class="brand">{MARK}<h1><a href="/">{escape(schema["info"]["title"])}</a></h1></header>',
        _contents(groups),
        "<main>",
        _introduction(docs),
        *(_group(docs, tag, about.get(tag, ""), operations) for tag, operations in groups.items()),
        _types(docs),
        "</main>",
    )
    return frame(f"{escape(schema['info']['title'])}: the API", "docs", "\n".join(parts))


def _by_tag(schema: Schema) -> dict[str, list[_Operation]]:
    """Return what can be done, by its first tag: the tags as the document lists them, then as they come."""
    groups: dict[str, list[_Operation]] = {tag["name"]: [] for tag in schema.get("tags", ())}
    for path, ways in schema["paths"].items():
        for method in (key for key in ways if key in METHODS):
            tag = next(iter(ways[method].get("tags", ())), "other")
            groups.setdefault(tag, []).append(_Operation(method, path, ways[method]))
    return {tag: operations for tag, operations in groups.items() if operations}


def _contents(groups: dict[str, list[_Operation]]) -> str:
    def one(operation: _Operation) -> str:
        return f'<li><a href="#{operation.anchor}">{operation.badge} {operation.name}</a></li>'

    tags = (
        f'<li><a href="#{_anchor("tag", tag)}">{_title(tag)}</a><ul>{"".join(map(one, operations))}</ul></li>'
        for tag, operations in groups.items()
    )
    return f"""<nav aria-label="Contents"><ul>
<li><a href="#introduction">Introduction</a></li>
{"".join(tags)}
<li><a href="#types">Types</a></li>
</ul></nav>"""


def _introduction(docs: _Docs) -> str:
    scopes = ", ".join(f"<code>{scope}</code>" for scope in SCOPES)
    commands = (
        "This server asks for one: <code>export SASH_TOKEN=sash_…</code>, and the commands below send it."
        if docs.token
        else "This server has none yet, and the commands below send none."
    )
    busy = SessionBusy("the session is busy: await or cancel its turn, or send with busy='enqueue'")
    return f"""<section id="introduction">
{_prose(docs.schema["info"].get("description", ""))}
<p>This server is at <code>{escape(docs.base)}</code>. Beside what is on this page, an MCP client finds it at
<code>POST /mcp</code>, a session's events can be listened to at <code>GET /events/{{session_id}}</code>, and
programs read all this as <a href="/openapi.json">/openapi.json</a>.</p>
<h3>Commands</h3>
<p>A click on a command selects the whole of it. What is written like <code>$SESSION_ID</code> is yours
to set: <code>SESSION_ID=…</code></p>
<h3>Token</h3>
<p>As soon as there is one token, every request needs one, as <code>Authorization: Bearer sash_…</code>. Make
it with <code>sash token create</code>; it has an owner, and of the scopes {scopes} those that you give it.
{commands}</p>
<h3>Problems</h3>
<p>What goes wrong is told as <code>{MEDIA_TYPE}</code>. Its <code>code</code> stays the same when the words
change.</p>
{_shown(json.loads(bytes(of_error(busy).body)))}
<details><summary>All codes</summary>{_codes()}</details>
</section>"""


def _codes() -> str:
    """List all codes by their status, each with what it means where its name does not say it."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SashError)]
    found = {kind.code: (status_of(kind.code), kind.__doc__ or "") for kind in kinds if kind is not SashError}
    found |= {code: (status, "") for code, status in _EARLY.items()}
    by_status: dict[int, list[str]] = {}
    for code, (status, meaning) in sorted(found.items()):
        by_status.setdefault(status, []).append(f"<p><code>{code}</code> {escape(meaning)}</p>")
    rows = (
        f'<tr><th scope="row">{status}</th><td>{"".join(said)}</td></tr>'
        for status, said in sorted(by_status.items())
    )
    return f'<table class="codes">{"".join(rows)}</table>'


def _group(docs: _Docs, tag: str, about: str, operations: Iterable[_Operation]) -> str:
    articles = "\n".join(_article(docs, operation) for operation in operations)
    return f'<section id="{_anchor("tag", tag)}"><h2>{_title(tag)}</h2>\n{_prose(about)}{articles}</section>'


def _article(docs: _Docs, operation: _Operation) -> str:
    return f"""<article id="{operation.anchor}">
<h3><a href="#{operation.anchor}">{operation.name}</a></h3>
<p class="route">{operation.badge} <code>{operation.route}</code></p>
{_prose(operation.spec.get("description", ""))}
<pre class="copy"><code>{escape(_curl(docs, operation))}</code></pre>
{_parameters(operation.parameters())}{_body(docs, operation)}{_responses(docs, operation.spec["responses"])}
</article>"""


def _curl(docs: _Docs, operation: _Operation) -> str:
    """Return a command that calls an operation; what only the reader knows is a variable of the shell."""
    verb = "" if operation.method == "get" else f" -X {operation.method.upper()}"
    unbuffered = " -N" if _STREAM in operation.spec["responses"].get("200", {}).get("content", {}) else ""
    path = re.sub(r"\{(\w+)\}", lambda name: "$" + _variable(name[1]), _in_quotes(operation.path))
    asked = [p["name"] for p in operation.parameters() if p["in"] == "query" and p.get("required")]
    lines = [
        f'curl{unbuffered}{verb} "{_in_quotes(docs.base)}{path}"',
        *(f'-G --data-urlencode "{_in_quotes(name)}=${_variable(name)}"' for name in asked),
    ]
    if docs.token:
        lines.append('-H "Authorization: Bearer $SASH_TOKEN"')
    if operation.body is not None:
        example = docs.example(operation.body)
        data = "@body.json" if example is None else shlex.quote(_compact(example))
        lines += [f'-H "Content-Type: {_JSON}"', f"-d {data}"]
    return " \\\n  ".join(lines)


def _parameters(parameters: list[Schema]) -> str:
    if not parameters:
        return ""
    rows = (
        _row(
            p["name"],
            p["schema"],
            p["in"],
            "required" if p.get("required") else "",
            about=p.get("description"),
        )
        for p in parameters
    )
    return _details("Parameters", (p["name"] for p in parameters), f"<table>{''.join(rows)}</table>")


def _body(docs: _Docs, operation: _Operation) -> str:
    if operation.body is None:
        return ""
    schema = docs.resolve(operation.body["schema"])
    example = docs.example(operation.body)
    optional = (
        "" if operation.spec["requestBody"].get("required") else '<p class="dim">It can be left out.</p>'
    )
    inside = (
        optional + _prose(schema.get("description", "")) + (_fields(schema) or f"<p>{_kind(schema)}</p>"),
        "" if example is None else _shown(example),
    )
    return _details("Body", schema.get("properties", ()), "".join(inside))


def _responses(docs: _Docs, responses: Schema) -> str:
    rows = (
        f'<tr><th scope="row">{escape(status)}</th><td>{_prose(response["description"])}'
        f"{''.join(_media(docs, *media) for media in response.get('content', {}).items())}</td></tr>"
        for status, response in responses.items()
    )
    return _details("Responses", responses, f'<table class="codes">{"".join(rows)}</table>')


def _media(docs: _Docs, name: str, media: Schema) -> str:
    """Say what a response holds; all problems look alike, so nothing is said of theirs."""
    if name == MEDIA_TYPE:
        return ""
    example = docs.example(media)
    called = "" if name == _JSON else f"<code>{escape(name)}</code>: "
    return f"<p>{called}{_kind(media.get('schema', {}))}</p>" + ("" if example is None else _shown(example))


def _types(docs: _Docs) -> str:
    def one(name: str, schema: Schema) -> str:
        return f"""<article id="{_anchor("type", name)}"><h3>{escape(name)}</h3>
{_prose(schema.get("description", ""))}{_fields(schema) or f"<p>{_kind(schema)}</p>"}</article>"""

    types = "\n".join(one(name, schema) for name, schema in sorted(docs.types.items()))
    return f'<section id="types"><h2>Types</h2>\n{types}</section>'


def _fields(schema: Schema) -> str:
    """Return the fields of an object as a table; nothing if it names none."""
    needed = schema.get("required", ())
    rows = (
        _row(name, field, "required" if name in needed else "", about=field.get("description"))
        for name, field in schema.get("properties", {}).items()
    )
    table = "".join(rows)
    return f"<table>{table}</table>" if table else ""


def _row(name: str, schema: Schema, *notes: str, about: str | None = None) -> str:
    noted = ", ".join(filter(None, notes))
    default = f"<small>by default {_literal(schema['default'])}</small>" if "default" in schema else ""
    return (
        f'<tr><th scope="row"><code>{escape(name)}</code><small>{escape(noted)}</small></th>'
        f"<td>{_kind(schema)}{default}{_prose(about or '')}</td></tr>"
    )


def _kind(schema: Schema) -> str:
    """Say in words what a value may be."""
    if "$ref" in schema:
        name = _referred(schema)
        return f'<a href="#{_anchor("type", name)}">{escape(name)}</a>'
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(map(_kind, sorted(choices, key=lambda choice: choice == {"type": "null"})))
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return " or ".join(map(_literal, schema["enum"]))
    bounds = ", ".join(_bounds(schema))
    return f"{_plain(schema)} ({bounds})" if bounds else _plain(schema)


def _plain(schema: Schema) -> str:
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if fields := schema.get("properties"):
        return f"{{{', '.join(f'{escape(name)}: {_kind(field)}' for name, field in fields.items())}}}"
    if isinstance(values := schema.get("additionalProperties"), dict):
        return f"object of {_kind(values)}"
    return " or ".join(map(escape, [kind] if isinstance(kind, str) else kind))


def _bounds(schema: Schema) -> Iterator[str]:
    for low, high, unit in _BOUNDS:
        if low in schema and high in schema:
            yield f"{_number(schema[low])} to {_number(schema[high])}{unit}"
        elif low in schema:
            yield f"{_number(schema[low])} or more{unit}"
        elif high in schema:
            yield f"at most {_number(schema[high])}{unit}"
    for key, words in (("exclusiveMinimum", "more than"), ("exclusiveMaximum", "less than")):
        if key in schema:
            yield f"{words} {_number(schema[key])}"
    for key in ("pattern", "format"):
        if key in schema:
            yield f"{key} <code>{escape(schema[key])}</code>"


def _details(name: str, names: Iterable[str], inside: str) -> str:
    listed = escape(", ".join(names))
    return f'<details><summary>{name} <span class="dim">{listed}</span></summary>{inside}</details>\n'


def _prose(text: str) -> str:
    """Return a description's paragraphs, with what is between backticks as code."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text.strip()))
    return "".join(f"<p>{paragraph}</p>" for paragraph in re.split(r"\n\s*\n", marked) if paragraph)


def _shown(value: Any) -> str:
    return f"<pre><code>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</code></pre>"


def _compact(value: Any) -> str:
    """Return a value as JSON in one line, if that is not too long to read."""
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= WIDE else json.dumps(value, indent=2, ensure_ascii=False)


def _literal(value: Any) -> str:
    return f"<code>{escape(json.dumps(value, ensure_ascii=False))}</code>"


def _number(value: float) -> str:
    return f"{int(value) if value == int(value) else value:,}"


def _in_quotes(text: str) -> str:
    """Return text that a shell leaves as it is between double quotes."""
    return re.sub(r'([$`"\\])', r"\\\1", text)


def _variable(name: str) -> str:
    return re.sub(r"\W", "_", name).upper()


def _referred(schema: Schema) -> str:
    return str(schema["$ref"]).removeprefix("#/components/schemas/")


def _anchor(*names: str) -> str:
    return re.sub(r"\W+", "-", "-".join(names))


def _title(tag: str) -> str:
    return escape(tag[:1].upper() + tag[1:])
