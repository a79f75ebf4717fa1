"""The page at `/docs`: it is complete, its commands work, and it loads nothing."""

import asyncio
import html
import json
import os
import re
import shlex
import shutil

import pytest
from jsonschema import Draft202012Validator

from sash.server.http_errors import CODE_BY_STATUS, STATUS_BY_CODE
from sash.server.pages.api_reference import METHODS, render_api_reference
from tests.surfaces.serving import WAIT_S, serving

BASE = "http://house.local:8765"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path, lambda request: "The bedroom lights are old.") as served:
        yield served


async def shown(served) -> str:
    response = await served.client.get("/docs")
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/html")
    return response.text


def commands(page: str) -> dict[str, str]:
    """Return the command of each operation, by its anchor."""
    found = re.findall(
        r'<article id="([^"]+)">(?:(?!</article>).)*<pre class="copy"><code>(.*?)</code>', page, re.S
    )
    return {anchor: html.unescape(command) for anchor, command in found}


def operations(schema: dict):
    """Yield each operation of a document with its method and path."""
    for path, ways in schema["paths"].items():
        for method in ways.keys() & METHODS:
            yield method, path, ways[method]


def anchor(schema: dict, method: str, path: str) -> str:
    return schema["paths"][path][method]["operationId"]


async def output(process: asyncio.subprocess.Process) -> bytes:
    """Return the output of a process. A process that takes too long is killed."""
    try:
        said, _ = await asyncio.wait_for(process.communicate(), WAIT_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said


class Shell:
    """A folder in which the commands of the page are run unchanged."""

    def __init__(self, served, folder):
        self._served = served
        self.folder = folder

    async def run(self, method: str, path: str, **names: str) -> tuple[int, str]:
        """Run the command of an operation with these shell variables. Return status and body."""
        schema = (await self._served.client.get("/openapi.json")).json()
        command = commands(await shown(self._served))[anchor(schema, method, path)]
        shell = await asyncio.create_subprocess_exec(
            "sh",
            "-euc",
            command + " -s -w '\\n%{http_code}'",
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **names},
            stdout=asyncio.subprocess.PIPE,
        )
        said = await output(shell)
        assert shell.returncode == 0, command
        body, _, status = said.decode().rpartition("\n")
        return int(status), body


@pytest.fixture
def shell(served, tmp_path_factory):
    return Shell(served, tmp_path_factory.mktemp("shell"))


async def test_every_operation_of_the_document_is_on_the_page(served):
    schema = (await served.client.get("/openapi.json")).json()
    page = await shown(served)
    told = re.findall(r'<span class="badge \w+">(\w+)</span> <code>(.*?)</code>', page)
    listed = sorted((method, path) for method, path, _ in operations(schema))
    assert sorted((method, path.replace("<wbr>", "")) for method, path in told) == listed
    assert len(commands(page)) == len(listed) > 30
    for _, _, spec in operations(schema):
        assert f'<article id="{spec["operationId"]}">' in page
        assert all(f"<code>{parameter['name']}</code>" in page for parameter in spec.get("parameters", ()))


async def test_every_link_of_the_page_has_a_target(served):
    page = await shown(served)
    ids = re.findall(r'id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="([^"]*)"', page)
    inside = {link[1:] for link in links if link.startswith("#")}
    assert inside <= set(ids) and {"tag-sessions", "type-SessionPolicy", "introduction"} <= inside
    for link in {link for link in links if not link.startswith("#")}:
        assert (await served.client.get(link)).status_code == 200, link


async def test_the_page_loads_nothing_and_runs_no_script(served):
    response = await served.client.get("/docs")
    assert response.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'"
    page = response.text
    assert all(address.startswith(served.url) for address in re.findall(r"https?://[^\s\"<]+", page))
    assert not re.search(r"<script|<link|<img|\bsrc=|url\(|@import|\son\w+=", page)
    assert all(
        link.startswith(("#", "/")) and link[:2] != "//" for link in re.findall(r'href="([^"]*)"', page)
    )


async def test_every_example_body_is_valid(served):
    schema = (await served.client.get("/openapi.json")).json()
    page = await shown(served)
    sent = {name: shlex.split(command) for name, command in commands(page).items()}
    bodies = 0
    for method, path, spec in operations(schema):
        words = sent[spec["operationId"]]
        assert ("-d" in words) == ("requestBody" in spec)
        if "-d" not in words or words[words.index("-d") + 1] == "@body.json":
            continue
        body = spec["requestBody"]["content"]["application/json"]["schema"]
        check = Draft202012Validator({**body, "components": schema["components"]})
        assert not list(check.iter_errors(json.loads(words[words.index("-d") + 1]))), (method, path)
        bodies += 1
    assert bodies > 5


@needs_curl
async def test_the_commands_of_the_page_work_unchanged(served, shell):
    status, body = await shell.run("post", "/v1/sessions")
    session_id = json.loads(body)["session_id"]
    assert status == 201
    status, body = await shell.run("post", "/v1/sessions/{session_id}/messages", SESSION_ID=session_id)
    sent = json.loads(body)["continuation_id"]
    assert status == 202 and (await served.wait(sent))["status"] == "completed"
    status, body = await shell.run("get", "/v1/continuations/{continuation_id}", CONTINUATION_ID=sent)
    assert json.loads(body)["response"]["final_message"] == "The bedroom lights are old."
    status, body = await shell.run(
        "get", "/v1/sessions/{session_id}/search", SESSION_ID=session_id, Q="bedroom lights"
    )
    assert status == 200 and len(json.loads(body)["messages"]) == 2
    status, body = await shell.run("post", "/v1/ask")
    assert json.loads(body)["status"] == "completed"
    assert (await shell.run("post", "/v1/sessions/{session_id}/end", SESSION_ID=session_id))[0] == 200
    status, body = await shell.run("get", "/events/{session_id}", SESSION_ID=session_id)
    assert status == 200 and "event: final" in body
    assert any(command.startswith("curl -N ") for command in commands(await shown(served)).values())


@needs_curl
async def test_the_server_understands_every_command_of_the_page(served, shell):
    session_id = await served.start()
    exported = await served.client.get(f"/v1/sessions/{session_id}/export")
    (shell.folder / "body.json").write_bytes(exported.content)
    schema = (await served.client.get("/openapi.json")).json()
    for method, path, spec in operations(schema):
        asked = [p["name"] for p in spec.get("parameters", ()) if p.get("required")]
        status, body = await shell.run(method, path, **{name.upper(): "none" for name in asked})
        if status >= 300:
            assert re.fullmatch(r"\w+_(not_found|exists)", json.loads(body)["code"]), (method, path, body)


@needs_curl
async def test_the_commands_send_a_token_once_one_exists(served, shell):
    assert "-H &quot;Authorization" not in await shown(served)
    token = served.token()["Authorization"].removeprefix("Bearer ")
    assert "-H &quot;Authorization" in await shown(served)
    assert (await shell.run("get", "/v1/sessions", SASH_TOKEN=token))[0] == 200
    assert (await shell.run("get", "/v1/sessions", SASH_TOKEN="sash_wrong"))[0] == 401


async def test_the_page_is_rendered_once_for_all_addresses(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        "sash.server.routes.page_routes.render_api_reference",
        lambda schema, url, needs_token: written.append(url) or f"at {url}",
    )
    async with serving(tmp_path) as served:
        port = served.url.rpartition(":")[2]
        for _ in range(3):
            assert await shown(served) == f"at {served.url}"
        named = await served.client.get("/docs", headers={"Host": f"localhost:{port}"})
        assert named.text == f"at http://localhost:{port}" and len(written) == 1


async def test_all_codes_of_problems_are_listed_with_their_status(served):
    rows = re.findall(r'<th scope="row">(\d+)</th><td>(.*?)</td>', (await shown(served)).partition("<h2>")[0])
    listed = {code: int(status) for status, row in rows for code in re.findall(r"<code>(\w+)</code>", row)}
    known = STATUS_BY_CODE | {code: status for status, code in CODE_BY_STATUS.items()}
    assert known.items() <= listed.items()
    assert listed["invalid_limit"] == 422 and listed["internal_error"] == 500


def document(
    *, summary="Do it", about="", field=None, example=None, path="/do/{id}", name="id", tag="t", kind="Kind"
):
    """Return a small OpenAPI document with one operation that takes a body."""
    body = {
        "type": "object",
        "properties": {"value": {"type": "string"} if field is None else field},
        "description": about,
    }
    if example is not None:
        body["examples"] = [example]
    media = {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind}"}}}
    operation = {
        "operationId": f"op {summary}",
        "summary": summary,
        "description": about,
        "tags": [tag],
        "parameters": [{"name": name, "in": "path", "schema": field or {}, "description": about}],
        "requestBody": {"content": media},
        "responses": {"200": {"description": about, "content": media}},
    }
    return {
        "info": {"title": summary, "description": about},
        "paths": {path: {"post": operation}},
        "components": {"schemas": {kind: body}},
    }


def test_the_document_is_escaped_as_html():
    evil = '<script>alert("1")</script>\' "onload=x'
    names = dict.fromkeys(("summary", "path", "name", "tag", "kind"), evil)
    odd = {"type": evil, "pattern": evil, "format": evil}
    field = {"enum": [evil], "default": evil, "description": evil}
    schema = document(**names, about=f"`{evil}` {evil}", field=field, example={"value": evil})
    schema["components"]["schemas"]["Odd"] = {"oneOf": [odd, {"type": "object", "properties": {evil: odd}}]}
    operation = schema["paths"][evil]["post"]
    operation["parameters"].append({"name": "odd", "in": evil, "schema": odd})
    operation["responses"][evil] = {"description": evil, "content": {evil: {"example": evil}}}
    page = render_api_reference(schema, f"http://{evil}")
    assert "<script" not in page and page.count("&lt;script&gt;") > 20
    assert not re.search(r'="[^"]*"onload', page)


@needs_curl
@pytest.mark.parametrize(
    "base", ["http://h`echo x`", "http://h$(echo x)", 'http://h"; echo x; "', "http://h\\"]
)
async def test_addresses_and_examples_are_escaped_for_the_shell(base):
    example = {"value": 'it\'s $HOME `x` \\ "y"'}
    (command,) = commands(render_api_reference(document(example=example), base)).values()
    shell = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        'curl() { printf "%s\\0" "$@"; }\n' + command,
        env={"ID": "7"},
        stdout=asyncio.subprocess.PIPE,
    )
    said = await output(shell)
    words = said.decode().split("\0")[:-1]
    assert words[:3] == ["-X", "POST", f"{base}/do/7"] and json.loads(words[-1]) == example


FIELDS = [
    ({"type": "string", "minLength": 1, "maxLength": 256}, "string (1 to 256 characters)"),
    ({"type": "string", "minLength": 1}, "string (1 or more characters)"),
    ({"type": "string", "maxLength": 9, "pattern": "^a$"}, "string (at most 9 characters, pattern ^a$)"),
    ({"type": "string", "format": "date-time"}, "string (format date-time)"),
    ({"type": "integer", "minimum": 0, "maximum": 86400000}, "integer (0 to 86,400,000)"),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}, "number (at most 0.5, more than 0)"),
    ({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1}]}, "integer (1 or more) or null"),
    ({"anyOf": [{"$ref": "#/components/schemas/Kind"}, {"type": "null"}]}, "Kind or null"),
    (
        {"type": "array", "items": {"$ref": "#/components/schemas/Kind"}, "maxItems": 3},
        "list of Kind (at most 3 items)",
    ),
    ({"enum": ["a", 1, None]}, '"a" or 1 or null'),
    ({"const": False}, "false"),
    ({"type": ["string", "null"]}, "string or null"),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "object of integer"),
    ({"type": "object", "properties": {"url": {"type": "string"}}}, "{url: string}"),
    ({"type": "boolean", "default": False}, "boolean by default false"),
    ({"type": "string", "default": None}, "string by default null"),
    ({}, "anything"),
]


@pytest.mark.parametrize(("field", "words"), FIELDS)
def test_types_are_described_in_words(field, words):
    page = render_api_reference(document(field=field), BASE)
    cell = re.search(r"<code>value</code>.*?<td>(.*?)</td>", page, re.S)[1]
    assert html.unescape(re.sub(r"<[^>]+>", "", cell.replace("<small>", " "))) == words


def test_a_referenced_type_is_shown_in_the_body_and_in_the_list_of_types():
    page = render_api_reference(document(example={"value": "x"}, about="What there is to do."), BASE)
    body = re.search(r"<summary>Body(.*?)</details>", page, re.S)[1]
    assert "<code>value</code>" in body and "&quot;value&quot;: &quot;x&quot;" in body
    assert '<article id="type-Kind">' in page and page.count("What there is to do.") >= 3


def test_a_body_without_an_example_is_read_from_a_file():
    (command,) = commands(render_api_reference(document(), BASE)).values()
    assert shlex.split(command)[-2:] == ["-d", "@body.json"]
