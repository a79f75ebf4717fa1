"""Requests that the server refuses: foreign hosts and origins, bad heads, large and late bodies."""

import asyncio
import json
from contextlib import aclosing, suppress

import httpx
import pytest

from sash.app.access import SCOPES, Tokens
from sash.errors import InvalidConfig
from sash.server.listener import listen as listen_at
from tests.surfaces.serving import REQUEST_S, WAIT_S, problem, serving

PORTS = ("localhost:8821.evil.example", "[::1].evil.example", "localhost:evil")


async def test_foreign_hosts_and_origins_are_refused(served):
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", *PORTS):
        refused = await served.client.get("/health", headers={"Host": host})
        problem(refused, 421, "host_refused")
    port = served.url.rpartition(":")[2]
    for host in (f"localhost:{port}", f"[::1]:{port}", "127.0.0.1"):
        assert (await served.client.get("/health", headers={"Host": host})).status_code == 200
    for origin in ("http://evil.example", "null", "http://localhost.evil.example", "file://"):
        refused = await served.client.get("/v1/sessions", headers={"Origin": origin})
        problem(refused, 403, "origin_refused")
    assert (await served.client.get("/v1/sessions", headers={"Origin": served.url})).status_code == 200


async def test_an_allowed_origin_may_call(tmp_path):
    origin = "https://panel.example"
    async with serving(tmp_path, allowed_origins=("https://Panel.example/",)) as served:
        asked = await served.client.get("/v1/sessions", headers={"Origin": origin})
        assert asked.headers["access-control-allow-origin"] == origin
        before = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        assert (await served.client.options("/v1/sessions", headers=before)).status_code == 200


async def test_a_public_address_is_refused_without_a_token(tmp_path):
    from sash import Runtime
    from sash.app.settings import Settings
    from sash.server.metrics import Metrics
    from sash.stores.memory import MemoryStore

    settings = Settings(host="0.0.0.0", port=0, data=tmp_path)
    async with Runtime(MemoryStore()) as runtime:
        with pytest.raises(InvalidConfig, match="sash token create"):
            async with listen_at(runtime, settings, Metrics()):
                pass


async def test_host_and_origin_are_checked_on_a_public_address(tmp_path):
    Tokens(tmp_path / "tokens.json").create("anna", SCOPES)
    async with serving(tmp_path, host="0.0.0.0", allowed_hosts=("sash.example",)) as served:
        url = served.url.replace("0.0.0.0", "127.0.0.1")
        headers = served.token("anna")
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=REQUEST_S) as client:
            for host in ("sash.example", "192.168.1.20:8765", "localhost"):
                assert (await client.get("/v1/sessions", headers={"Host": host})).status_code == 200
            problem(await client.get("/v1/sessions", headers={"Host": "evil.example"}), 421, "host_refused")
            refused = await client.get("/v1/sessions", headers={"Origin": "http://evil.example"})
            problem(refused, 403, "origin_refused")


async def test_large_and_deeply_nested_bodies_are_refused(served):
    session_id = await served.start()
    at = f"/v1/sessions/{session_id}/messages"
    large = json.dumps({"message": "x" * 10_000_000})
    problem(await served.client.post(at, content=large), 413, "body_too_large")

    async def chunks():
        for _ in range(100):
            yield b"x" * 100_000

    problem(await served.client.post(at, content=chunks()), 413, "body_too_large")
    for body in ("[" * 10_000, "[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000):
        sent = await served.client.post(at, content=body, headers={"Content-Type": "application/json"})
        assert sent.status_code in (400, 422), sent.text
        assert sent.json()["code"] in ("invalid_json", "invalid_input")
    nested = '{"message": "hi", "planner_hints": ' + '{"a":' * 70 + "1" + "}" * 71
    for path in (at, "/v1/sessions/import"):
        sent = await served.client.post(path, content=nested, headers={"Content-Type": "application/json"})
        problem(sent, 422, "invalid_input")
    brackets = json.dumps({"message": '[{"\\' * 1000})
    sent = await served.client.post(at, content=brackets, headers={"Content-Type": "application/json"})
    assert sent.status_code == 202


async def raw(served, request: bytes) -> bytes:
    host, port = served.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    answer = b""
    with suppress(ConnectionResetError):
        while got := await asyncio.wait_for(reader.read(1024), WAIT_S):
            answer += got
    writer.close()
    return answer


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/sessions HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 300_000 + b"\r\n\r\n",
        b"GET /v1/sessions\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"NONSENSE\r\n\r\n",
    ],
)
async def test_malformed_heads_get_a_4xx_and_the_server_survives(served, head):
    answer = await raw(served, head)
    assert answer.startswith(b"HTTP/1.1 4"), answer[:200]
    assert (await served.client.get("/health")).status_code == 200


async def test_a_body_that_never_arrives_times_out(tmp_path):
    head = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"
    async with serving(tmp_path, timeouts={"body_s": 0.05, "body_bytes_per_s": 10**9}) as served:
        answer = await raw(served, head + b"{")
    assert answer.startswith(b"HTTP/1.1 408") and b"body_too_slow" in answer


async def test_an_incomplete_request_head_times_out(tmp_path):
    async with serving(tmp_path, timeouts={"request_head_s": 0.1}) as served:
        for begun in (b"", b"GET /health HTT", b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: "):
            assert await raw(served, begun) == b""


async def test_a_request_under_way_outlasts_the_time_limit_for_heads(tmp_path):
    # The limit is long enough for a complete head on a slow machine.
    async with serving(tmp_path, timeouts={"request_head_s": 0.5}) as served:
        finished = await raw(served, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")
        assert finished.startswith(b"HTTP/1.1 200")
        session_id = await served.start()
        async with (
            asyncio.timeout(WAIT_S),
            served.client.stream("GET", f"/events/{session_id}") as stream,
            aclosing(stream.aiter_lines()) as lines,
        ):
            assert await anext(lines) == "id: 0"
            assert await raw(served, b"") == b"", "a later connection timed out, so the stream lasted longer"
            await served.wait(await served.send(session_id))
            await served.client.post(f"/v1/sessions/{session_id}/end")
            assert "event: final" in [line async for line in lines]


@pytest.mark.parametrize("origin", ["http://[", "http://]", "://", "http://a b", "x" * 5000])
async def test_a_malformed_origin_is_refused(served, origin):
    problem(await served.client.get("/v1/sessions", headers={"Origin": origin}), 403, "origin_refused")


async def test_unknown_methods_share_one_metric(served):
    for method in ("ZZ1", "ZZ2"):
        await served.client.request(method, "/v1/sessions")
    metrics = (await served.client.get("/metrics")).text
    assert "ZZ1" not in metrics and 'method="other"' in metrics


async def test_an_artifact_type_with_a_line_break_is_not_imported(served):
    session_id = await served.start()
    exported = (await served.client.get(f"/v1/sessions/{session_id}/export")).json()
    await served.client.delete(f"/v1/sessions/{session_id}")
    ref = {"id": "01KA3V8Q6Z4T6P8C1YB8J7W0AE", "type": "text/plain\r\nSet-Cookie: a=b", "size": 1, "name": ""}
    artifact = {"ref": ref, "session_id": session_id, "owner": "local", "data": "eA=="}
    refused = await served.client.post("/v1/sessions/import", json={**exported, "artifacts": [artifact]})
    problem(refused, 422, "invalid_export")
