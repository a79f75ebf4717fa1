"""A relay on loopback whose connections a test can cut, as a lost network does."""

import socket
import threading
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Self
from urllib.parse import urlsplit

PIECE = 1 << 16


class Relay(ThreadingTCPServer):
    """Passes bytes on to the server at the address `target`."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        parts = urlsplit(target)
        self.target = (parts.hostname, parts.port)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.is_cut = False
        self.open_sockets: set[socket.socket] = set()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.cut()
        self.server_close()

    def cut(self) -> None:
        """Close all connections, and refuse new ones until `mend`."""
        self.is_cut = True
        for each in list(self.open_sockets):
            close(each)

    def mend(self) -> None:
        self.is_cut = False


class _Handler(BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        if self.server.is_cut:
            return
        with socket.create_connection(self.server.target) as far:
            ends = {self.request, far}
            self.server.open_sockets |= ends
            back = threading.Thread(target=pump, args=(far, self.request), daemon=True)
            back.start()
            pump(self.request, far)
            back.join()
            self.server.open_sockets -= ends


def pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
    close(source)
    close(target)


def close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
