"""A request has both Content-Length and Transfer-Encoding, so that a proxy and the server disagree on its end."""

import asyncio
from urllib.parse import urlsplit

import pytest

from tests.surfaces.serving import WAIT_S, serving

HIDDEN = b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = b"0\r\n\r\n" + HIDDEN


async def exchange(url, *parts):
    """Send raw bytes, and return everything that the server answers until it closes the connection."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        async with asyncio.timeout(WAIT_S):
            for part in parts:
                writer.write(part)
            await writer.drain()
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("line", ["POST /v1/sessions", "GET /health", "DELETE /v1/sessions/x"])
@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: {length}", "Transfer-Encoding: chunked"),
        ("transfer-encoding: Chunked", "content-length: {length}"),
        ("Content-Length: 0", "Transfer-Encoding: chunked"),
    ],
)
async def test_a_request_with_two_lengths_is_refused_and_nothing_after_it_is_read(tmp_path, line, headers):
    async with serving(tmp_path) as served:
        head = [f"{line} HTTP/1.1", "Host: localhost", *headers, "", ""]
        sent = "\r\n".join(head).format(length=len(CHUNKED)).encode()
        answered = await exchange(served.url, sent, CHUNKED)
        assert answered.startswith(b"HTTP/1.1 400 ")
        assert b"length_ambiguous" in answered
        assert answered.count(b"HTTP/1.1 ") == 1
        assert (await served.client.get("/v1/sessions")).json()["sessions"] == []


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5, 6",),
        ("Content-Length: +5",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding : chunked",),
    ],
)
async def test_other_unclear_lengths_are_refused(tmp_path, headers):
    async with serving(tmp_path) as served:
        head = ["POST /v1/sessions HTTP/1.1", "Host: localhost", *headers, "", ""]
        answered = await exchange(served.url, "\r\n".join(head).encode(), CHUNKED)
        assert answered.split(b" ")[1] in (b"400", b"501")
        assert answered.count(b"HTTP/1.1 ") == 1
