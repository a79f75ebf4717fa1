"""Idle connections do not use up the files that the server may open."""

import resource
import socket
import subprocess
import sys
from contextlib import ExitStack

from tests.surfaces.process import killed_if_late, running
from tests.surfaces.serve_process import ask

SOFT_LIMIT, CONNECTIONS = 128, 300


def test_more_connections_than_the_usual_limit_of_files_leave_room_for_others(tmp_path):
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    command = [sys.executable, "-m", "sash", "serve", "--port", "0", "--data", str(tmp_path / "data")]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "SASH_HOME": "none"}
    limit = f'ulimit -S -n {SOFT_LIMIT}; exec "$@"'
    with (
        ExitStack() as connections,
        running("sh", "-c", limit, "sh", *command, stdout=subprocess.PIPE, env=environment) as server,
    ):
        assert maximum > CONNECTIONS * 2
        with killed_if_late(server):
            port = int(server.stdout.readline().rpartition(":")[2])
        for _ in range(CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", port), timeout=30)
            connections.enter_context(connection).sendall(b"GET / HTTP/1.1\r\n")
        assert ask(f"http://127.0.0.1:{port}", "/v1/sessions", {})["session_id"]
