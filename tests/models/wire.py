"""A fake server with OpenAI's wire format, over real HTTP on loopback. It can break the format on request."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Reply:
    """One HTTP response. `chunks` are sent as server-sent events; `then` says what follows: done, cut or hang.

    The response waits for `after`, if it is set.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    chunks: list[Any] | None = None
    then: str = "done"
    after: asyncio.Event | None = None


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: Any


class Wire:
    """Sends its replies in order, repeats the last one, and records the requests.

    A reply may be a function that makes it from the request.
    """

    def __init__(self, *replies: Reply | Callable[[Request], Reply]) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self._hanging: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> "Wire":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._hanging:
            task.cancel()
        await asyncio.gather(*self._hanging, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._hanging.add(asyncio.current_task())
        try:
            while line := await reader.readline():
                path = line.split()[1].decode()
                headers = {}
                while (line := await reader.readline()) not in (b"\r\n", b""):
                    name, _, value = line.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append(Request(path, headers, json.loads(body or b"null")))
                reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
                made = reply(self.requests[-1]) if callable(reply) else reply
                if not await self._answer(writer, made):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self._hanging.discard(asyncio.current_task())

    async def _answer(self, writer: asyncio.StreamWriter, reply: Reply) -> bool:
        if reply.after is not None:
            await reply.after.wait()
        streamed = reply.chunks is not None
        body = b"" if streamed else json.dumps(reply.body).encode()
        kind = "text/event-stream" if streamed else "application/json"
        length = {"transfer-encoding": "chunked"} if streamed else {"content-length": str(len(body))}
        headers = {"content-type": kind, **length, **reply.headers}
        head = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        for chunk in reply.chunks or ():
            text = chunk if isinstance(chunk, str) else json.dumps(chunk)
            self._write_chunk(writer, f"data: {text}\n\n".encode())
            await writer.drain()
        if reply.then == "hang":
            await asyncio.Event().wait()
        if streamed and reply.then == "done":
            self._write_chunk(writer, b"data: [DONE]\n\n")
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return reply.then == "done"

    @staticmethod
    def _write_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def chunk(content=None, calls=None, finish=None, **extra):
    """One chunk of Chat Completions."""
    delta = {key: value for key, value in (("content", content), ("tool_calls", calls)) if value is not None}
    choice = {"index": 0, "delta": delta | extra.pop("delta", {}), "finish_reason": finish}
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **extra,
    }


def usage(prompt, completion, cached=0, reasoning=0):
    """The last chunk, which has no choices."""
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [],
        "usage": counts,
    }


def said(*texts, **options):
    """A complete answer."""
    return Reply(chunks=[*map(chunk, texts), chunk(finish="stop"), usage(100, 10)], **options)


def failed(status, code=None, message="no", **headers):
    """An error response of the API."""
    return Reply(status, headers, {"error": {"message": message, "type": "x", "param": None, "code": code}})


def embedded(*vectors: Sequence[float]) -> Reply:
    """Return vectors as an embedding model does, in another order than the texts."""
    data = [{"object": "embedding", "index": n, "embedding": v} for n, v in enumerate(vectors)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Reply(body={"object": "list", "data": data[::-1], "model": "m", "usage": usage})
