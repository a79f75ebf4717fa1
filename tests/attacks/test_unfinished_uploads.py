"""A server that is stopped in the middle of a request ends quietly, and answers the request."""

import json
import signal
import socket
import subprocess
import sys

import pytest

from tests.surfaces.process import killed_if_late, running

STOP_S = 30


def make_request(method, path, body, length=None):
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length or len(body)}\r\n\r\n{body}".encode()


UPLOADS = {
    "a body": make_request("POST", "/v1/sessions", '{"name":', 1000),
    "a change": make_request("PATCH", "/v1/sessions/x", '{"preferences":', 1000),
    "an import": make_request("POST", "/v1/sessions/import", '{"messages": [', 50_000_000),
    "an MCP call": make_request("POST", "/mcp", '{"jsonrpc":', 1000),
    "a body that has not begun": make_request("POST", "/v1/sessions", "", 1000),
    "a chunked body": (
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n'
    ),
    "a body after a response": make_request("GET", "/health", "")
    + make_request("POST", "/v1/sessions", '{"name":', 1000),
}


def read_all(client):
    chunks = []
    while chunk := client.recv(1 << 16):
        chunks.append(chunk)
    return b"".join(chunks)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_stops_during_uploads_says_so_and_logs_nothing(tmp_path, how):
    command = [sys.executable, "-m", "sash", "serve", "--port", "0", "--data", str(tmp_path / "data")]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "SASH_HOME": "none"}
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        running(*command, stdout=subprocess.PIPE, stderr=errors, env=environment) as server,
    ):
        with killed_if_late(server):
            port = int(server.stdout.readline().rpartition(":")[2])
        clients = {name: socket.create_connection(("127.0.0.1", port), STOP_S) for name in UPLOADS}
        for name, upload in UPLOADS.items():
            clients[name].sendall(upload)
        # The server reads in order. The last connection has a response, so it has read the others, too.
        assert clients["a body after a response"].recv(1, socket.MSG_PEEK)
        server.send_signal(how)
        for name, client in clients.items():
            with client:
                _, _, last = read_all(client).rpartition(b"HTTP/1.1 ")
            head, _, body = last.partition(b"\r\n\r\n")
            assert head.startswith(b"503 "), (name, last)
            assert b"connection: close" in head.lower()
            assert json.loads(body)["code"] == "shutting_down"
        assert server.wait(STOP_S) == 0
        assert "Stopped." in server.stdout.read()
    assert log.read_text() == ""
