"""One connection to Home Assistant's WebSocket API, from the handshake until it is lost.

It knows no house: it asks, tells answers from events, and says in words what is wrong.
"""

import asyncio
import errno
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any, NoReturn
from urllib.parse import urlsplit

import aiohttp

from sash.errors import HomeUnauthorized, HomeUnavailable, InvalidInput

_EXAMPLE = 'write it like "http://homeassistant.local:8123"'
_NOT_HOME_ASSISTANT = "what answers there is not Home Assistant: check the address and the port"
_LOST = "the connection was lost"
_SILENT = "it has fallen silent: check the network, and that Home Assistant runs"
_CLOSE_S = 2.0
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """How many seconds to wait.

    A retry waits `retry_s`, then twice as long each time until `longest_retry_s`. A token that was refused is
    tried again after `refused_retry_s`: Home Assistant notes, and may ban, those who try often. Every
    `exposure_s` it is asked which entities are exposed.
    """

    connect_s: float = 10.0
    answer_s: float = 30.0
    long_answer_s: float = 60.0
    heartbeat_s: float = 30.0
    starting_s: float = 1.0
    exposure_s: float = 60.0
    retry_s: float = 0.5
    longest_retry_s: float = 30.0
    trusted_s: float = 30.0
    refused_retry_s: float = 300.0


class Refused(Exception):
    """Home Assistant answered a question with an error: its code, and its words."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def check_address(url: str) -> str:
    """Return an address without what may follow it; a mistake may be a token, so no error repeats it."""
    if not isinstance(url, str) or any(letter.isspace() for letter in url.strip()):
        raise InvalidInput(f"the address of Home Assistant must be a text without spaces: {_EXAMPLE}")
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput(f"the address of Home Assistant has no valid host or port: {_EXAMPLE}") from None
    if parts.scheme not in ("http", "https"):
        raise InvalidInput(f"the address of Home Assistant must begin with http:// or https://: {_EXAMPLE}")
    if not host or parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(f"the address of Home Assistant must be a host, with a port at most: {_EXAMPLE}")
    path = parts.path.rstrip("/").removesuffix("/websocket").removesuffix("/api")
    return f"{parts.scheme}://{parts.netloc}{path}"


def check_token(token: str) -> str:
    """Return a token without the line end that a file may have; no error repeats it."""
    clean = token.strip() if isinstance(token, str) else ""
    if not clean or not clean.isascii() or not clean.isprintable() or " " in clean:
        raise InvalidInput(
            "the token must be a long-lived access token: make one in your profile in Home Assistant"
        )
    return clean


def unavailable(name: str, reason: str) -> HomeUnavailable:
    """Return the error of a house that cannot be asked; its `reason` is for those who name the house."""
    return HomeUnavailable(f"{name} cannot be reached: {reason}", reason=reason)


def unauthorized(name: str, said: str = "") -> HomeUnauthorized:
    """Return the error of a token that is refused."""
    words = f' ("{said}")' if said else ""
    reason = f"it refuses the token{words}: make a new long-lived access token in your profile under Security"
    return HomeUnauthorized(f"{name} cannot be asked: {reason}", reason=reason)


def make_session(name: str) -> aiohttp.ClientSession:
    """Return a session that follows no redirect: a token is for the address that it was given for."""

    async def refuse(
        session: aiohttp.ClientSession, context: SimpleNamespace, params: aiohttp.TraceRequestRedirectParams
    ) -> NoReturn:
        where = params.response.headers.get("Location", "another address")
        raise unavailable(name, f"it sends on to {where:.200}: use that address")

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(refuse)
    return aiohttp.ClientSession(trace_configs=[trace], timeout=aiohttp.ClientTimeout(total=None))


def explain(error: Exception) -> str:
    """Say what keeps a house from being reached, and what to do about it."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "no host of that name is known: check the address"
        case aiohttp.ClientConnectorCertificateError():
            return (
                f"its certificate is not trusted ({error.certificate_error!s:.200}): use the name that the"
                " certificate is for, or http:// inside your own network"
            )
        case aiohttp.ClientSSLError():
            return "it does not speak https there: try http://, or check the port"
        case aiohttp.ClientConnectorError() if error.os_error.errno == errno.ECONNREFUSED:
            return "nothing listens there: check that Home Assistant runs, and the port"
        case aiohttp.ClientConnectorError():
            return f"the network says {error.os_error.strerror or error.os_error!s:.200}: check the address"
        case aiohttp.WSServerHandshakeError():
            return _explain_status(error.status)
        case TimeoutError():
            return "it does not answer: check the address, and that Home Assistant runs"
        case aiohttp.ClientError() | OSError():
            return "it closed the connection: if it speaks https, write https://"
        case _:
            return f"it said something that was not understood ({type(error).__name__})"


def _explain_status(status: int) -> str:
    if status in (401, 403):
        return (
            f"it refuses this machine (HTTP {status}): it may be banned after wrong logins, see ip_bans.yaml"
            " among Home Assistant's files"
        )
    if status in (502, 503, 504):
        return f"a proxy says that Home Assistant is not there (HTTP {status}): check that it runs"
    return f"{_NOT_HOME_ASSISTANT}, and that a proxy lets WebSockets through (HTTP {status})"


class Link:
    """Asks and listens over one WebSocket. `read` has to run for anything to come in."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, name: str, timing: Timing) -> None:
        self._socket = socket
        self._name = name
        self._timing = timing
        self._ids = count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._waiting: set[asyncio.Future[Any]] = set()
        self._listeners: dict[int, Callable[[Any], None]] = {}
        self._lost: str | None = None

    @classmethod
    async def connect(
        cls, session: aiohttp.ClientSession, name: str, address: str, token: str, timing: Timing
    ) -> "Link":
        """Connect and log in; `HomeUnavailable` or `HomeUnauthorized` if that cannot be."""
        try:
            async with asyncio.timeout(timing.connect_s):
                socket = await session.ws_connect(
                    f"{address}/api/websocket",
                    max_msg_size=0,
                    heartbeat=timing.heartbeat_s,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
                )
                try:
                    await cls._log_in(socket, name, token)
                except BaseException:
                    await socket.close()
                    raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise unavailable(name, explain(error)) from error
        return cls(socket, name, timing)

    @staticmethod
    async def _log_in(socket: aiohttp.ClientWebSocketResponse, name: str, token: str) -> None:
        if _kind(await socket.receive()) != "auth_required":
            raise unavailable(name, _NOT_HOME_ASSISTANT)
        await socket.send_str(json.dumps({"type": "auth", "access_token": token}))
        answer = await socket.receive()
        if _kind(answer) == "auth_invalid":
            said = str(json.loads(answer.data).get("message", ""))
            raise unauthorized(name, said.replace(token, "…")[:200])
        if _kind(answer) != "auth_ok":
            raise unavailable(name, _NOT_HOME_ASSISTANT)

    async def ask(self, kind: str, *, within_s: float | None = None, **fields: Any) -> Any:
        """Ask, and return the answer; `Refused` if it is an error, `HomeUnavailable` if none comes."""
        return await self._ask(next(self._ids), kind, within_s, fields)

    async def subscribe(self, kind: str, listener: Callable[[Any], None], **fields: Any) -> None:
        """Let a listener hear the events of a subscription."""
        number = next(self._ids)
        self._listeners[number] = listener
        await self._ask(number, kind, None, fields)

    async def first(self, kind: str, listener: Callable[[Any], None], **fields: Any) -> None:
        """Subscribe, and wait until the listener has heard the first event."""
        heard = asyncio.get_running_loop().create_future()

        def hear(event: Any) -> None:
            listener(event)
            if not heard.done():
                heard.set_result(None)

        await self.subscribe(kind, hear, **fields)
        await self._wait(heard, kind)

    async def read(self) -> NoReturn:
        """Take what comes until the connection is lost, which raises and lets every question fail at once."""
        raise unavailable(self._name, await self._read())

    async def _read(self) -> str:
        """Take what comes; return why nothing more does."""
        reason = _LOST
        try:
            async for message in self._socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    break
                self._take(json.loads(message.data))
            if isinstance(self._socket.exception(), TimeoutError):
                reason = _SILENT
        except Exception as error:
            _logger.exception("what %s sent was not understood", self._name)
            reason = explain(error)
        finally:
            self._lost = reason
            for future in self._waiting:
                if not future.done():
                    future.set_exception(unavailable(self._name, reason))
        return reason

    async def close(self) -> None:
        await self._socket.close()

    async def _ask(self, number: int, kind: str, within_s: float | None, fields: dict[str, Any]) -> Any:
        try:
            text = json.dumps({"id": number, "type": kind, **fields}, allow_nan=False, ensure_ascii=False)
            text.encode()
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"Home Assistant can be sent JSON only: {error!s:.200}") from error
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            return await self._wait(answer, kind, within_s, text)
        finally:
            del self._answers[number]

    async def _wait(
        self, future: asyncio.Future[Any], kind: str, within_s: float | None = None, text: str = ""
    ) -> Any:
        """Wait for what the connection will bring; what there is to say is sent first."""
        if self._lost is not None:
            raise unavailable(self._name, self._lost)
        limit_s = within_s or self._timing.answer_s
        self._waiting.add(future)
        try:
            async with asyncio.timeout(limit_s):
                if text:
                    await self._socket.send_str(text)
                return await future
        except TimeoutError:
            reason = f"it did not answer within {limit_s:g} s ({kind})"
            raise unavailable(self._name, reason) from None
        except (aiohttp.ClientError, ConnectionError) as error:
            raise unavailable(self._name, _LOST) from error
        finally:
            self._waiting.discard(future)
            # Who left before the answer came has no use for an error in it.
            if future.done() and not future.cancelled():
                future.exception()

    def _take(self, message: Any) -> None:
        """Take a message; a busy Home Assistant puts many in one."""
        for part in message if isinstance(message, list) else (message,):
            number = part.get("id")
            if part.get("type") == "event" and number in self._listeners:
                self._listeners[number](part["event"])
            elif part.get("type") == "result" and number in self._answers:
                self._answer(self._answers[number], part)

    @staticmethod
    def _answer(future: asyncio.Future[Any], answer: dict[str, Any]) -> None:
        if future.done():
            return
        if answer.get("success"):
            future.set_result(answer.get("result"))
            return
        error = answer.get("error") or {}
        future.set_exception(
            Refused(str(error.get("code", "")), str(error.get("message", "no reason given")))
        )


def _kind(message: aiohttp.WSMessage) -> str:
    """Return the type of a message of the handshake; empty if it is none."""
    if message.type is not aiohttp.WSMsgType.TEXT:
        return ""
    try:
        content = json.loads(message.data)
    except ValueError:
        return ""
    return str(content.get("type", "")) if isinstance(content, dict) else ""
