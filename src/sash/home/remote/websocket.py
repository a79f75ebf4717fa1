"""One connection to Home Assistant's WebSocket API, from the login until the connection is lost."""

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
_NOT_HOME_ASSISTANT = "the server there is not Home Assistant: check the address and the port"
_LOST = "the connection was lost"
_NO_HEARTBEAT = "it stopped responding: check the network, and that Home Assistant runs"
_CLOSE_S = 2.0
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits and intervals in seconds.

    The delay before a retry starts at `retry_s` and doubles up to `max_retry_s`. It starts again at `retry_s`
    after a connection has lasted `stable_s`. A refused token is retried after `refused_retry_s`, because Home
    Assistant may ban clients that retry often. The exposed entities are read every `exposure_s`.
    """

    connect_s: float = 10.0
    response_s: float = 30.0
    long_response_s: float = 60.0
    heartbeat_s: float = 30.0
    starting_s: float = 1.0
    exposure_s: float = 60.0
    retry_s: float = 0.5
    max_retry_s: float = 30.0
    stable_s: float = 30.0
    refused_retry_s: float = 300.0


class RequestRefused(Exception):
    """Home Assistant answered a request with an error code and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def check_address(url: str) -> str:
    """Return the base address of Home Assistant. Raise `InvalidInput` if the URL is not valid.

    The errors do not repeat the value, because a user may have pasted the token instead.
    """
    if not isinstance(url, str) or any(character.isspace() for character in url.strip()):
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
    """Return the token without white space around it. Raise `InvalidInput`, without the token, if invalid."""
    clean = token.strip() if isinstance(token, str) else ""
    if not clean or not clean.isascii() or not clean.isprintable() or " " in clean:
        raise InvalidInput(
            "the token must be a long-lived access token: make one in your profile in Home Assistant"
        )
    return clean


def raise_unavailable(name: str, reason: str, cause: Exception | None = None) -> NoReturn:
    """Raise `HomeUnavailable`. Its message names the home; its field `reason` has the reason alone."""
    raise HomeUnavailable(f"{name} cannot be reached: {reason}", reason=reason) from cause


def raise_unauthorized(name: str, server_message: str = "") -> NoReturn:
    """Raise `HomeUnauthorized`. Its message says how to get a new token."""
    quoted = f' ("{server_message}")' if server_message else ""
    reason = (
        f"it refuses the token{quoted}: make a new long-lived access token in your profile under Security"
    )
    raise HomeUnauthorized(f"{name} cannot be used: {reason}", reason=reason)


def make_session(name: str) -> aiohttp.ClientSession:
    """Return a session that refuses redirects, so that the token goes to no other address."""

    async def refuse_redirect(
        session: aiohttp.ClientSession, context: SimpleNamespace, params: aiohttp.TraceRequestRedirectParams
    ) -> NoReturn:
        where = params.response.headers.get("Location", "another address")
        raise_unavailable(name, f"it redirects to {where:.200}: use that address")

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(refuse_redirect)
    return aiohttp.ClientSession(trace_configs=[trace], timeout=aiohttp.ClientTimeout(total=None))


def explain_failure(error: Exception) -> str:
    """Return a text for users with the cause of a failed connection and the remedy."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "no host has that name: check the address"
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
            return f"its response was not understood ({type(error).__name__})"


def _explain_status(status: int) -> str:
    if status in (401, 403):
        return (
            f"it refuses this machine (HTTP {status}): it may be banned after wrong logins, see ip_bans.yaml"
            " among Home Assistant's files"
        )
    if status in (502, 503, 504):
        return f"a proxy cannot reach Home Assistant (HTTP {status}): check that it runs"
    return f"{_NOT_HOME_ASSISTANT}, and that a proxy lets WebSockets through (HTTP {status})"


class HomeAssistantSocket:
    """Sends requests and receives events over one WebSocket. Responses arrive only while `read` runs."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, name: str, timing: Timing) -> None:
        self._socket = socket
        self._name = name
        self._timing = timing
        self._ids = count(1)
        self._responses: dict[int, asyncio.Future[Any]] = {}
        self._pending: set[asyncio.Future[Any]] = set()
        self._listeners: dict[int, Callable[[Any], None]] = {}
        self._lost_reason: str | None = None

    @classmethod
    async def connect(
        cls, session: aiohttp.ClientSession, name: str, address: str, token: str, timing: Timing
    ) -> "HomeAssistantSocket":
        """Connect and log in. Raise `HomeUnavailable` or `HomeUnauthorized` if that fails."""
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
            raise_unavailable(name, explain_failure(error), error)
        return cls(socket, name, timing)

    @staticmethod
    async def _log_in(socket: aiohttp.ClientWebSocketResponse, name: str, token: str) -> None:
        if _read_type(await socket.receive()) != "auth_required":
            raise_unavailable(name, _NOT_HOME_ASSISTANT)
        await socket.send_str(json.dumps({"type": "auth", "access_token": token}))
        response = await socket.receive()
        if _read_type(response) == "auth_invalid":
            message = str(json.loads(response.data).get("message", ""))
            raise_unauthorized(name, message.replace(token, "…")[:200])
        if _read_type(response) != "auth_ok":
            raise_unavailable(name, _NOT_HOME_ASSISTANT)

    async def request(self, kind: str, *, timeout_s: float | None = None, **fields: Any) -> Any:
        """Send a request and return its result.

        Raises `RequestRefused` for an error response, and `HomeUnavailable` if no response arrives.
        """
        return await self._request(next(self._ids), kind, timeout_s, fields)

    async def subscribe(self, kind: str, listener: Callable[[Any], None], **fields: Any) -> None:
        """Start a subscription. The listener is called with each event."""
        number = next(self._ids)
        self._listeners[number] = listener
        await self._request(number, kind, None, fields)

    async def subscribe_and_wait(self, kind: str, listener: Callable[[Any], None], **fields: Any) -> None:
        """Subscribe, and wait until the listener has received the first event."""
        first_event = asyncio.get_running_loop().create_future()

        def listen(event: Any) -> None:
            listener(event)
            if not first_event.done():
                first_event.set_result(None)

        await self.subscribe(kind, listen, **fields)
        await self._wait(first_event, kind)

    async def read(self) -> NoReturn:
        """Receive messages until the connection is lost, then raise `HomeUnavailable`."""
        raise_unavailable(self._name, await self._read())

    async def _read(self) -> str:
        """Receive messages until the connection is lost. Return the reason, and fail all open requests."""
        reason = _LOST
        try:
            async for message in self._socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    break
                self._dispatch(json.loads(message.data))
            if isinstance(self._socket.exception(), TimeoutError):
                reason = _NO_HEARTBEAT
        except Exception as error:
            _logger.exception("could not read a message of %s", self._name)
            reason = explain_failure(error)
        finally:
            self._lost_reason = reason
            message_text = f"{self._name} cannot be reached: {reason}"
            for future in self._pending:
                if not future.done():
                    future.set_exception(HomeUnavailable(message_text, reason=reason))
        return reason

    async def close(self) -> None:
        await self._socket.close()

    async def _request(self, number: int, kind: str, timeout_s: float | None, fields: dict[str, Any]) -> Any:
        try:
            text = json.dumps({"id": number, "type": kind, **fields}, allow_nan=False, ensure_ascii=False)
            text.encode()
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"Home Assistant accepts JSON only: {error!s:.200}") from error
        response = self._responses[number] = asyncio.get_running_loop().create_future()
        try:
            return await self._wait(response, kind, timeout_s, text)
        finally:
            del self._responses[number]

    async def _wait(
        self, future: asyncio.Future[Any], kind: str, timeout_s: float | None = None, text: str = ""
    ) -> Any:
        """Send the text, if any, and return the future's result. Raise `HomeUnavailable` after a timeout."""
        if self._lost_reason is not None:
            raise_unavailable(self._name, self._lost_reason)
        limit_s = timeout_s or self._timing.response_s
        self._pending.add(future)
        try:
            async with asyncio.timeout(limit_s):
                if text:
                    await self._socket.send_str(text)
                return await future
        except TimeoutError:
            raise_unavailable(self._name, f"it did not answer within {limit_s:g} s ({kind})")
        except (aiohttp.ClientError, ConnectionError) as error:
            raise_unavailable(self._name, _LOST, error)
        finally:
            self._pending.discard(future)
            # Retrieve the exception of an abandoned request, or asyncio would log it.
            if future.done() and not future.cancelled():
                future.exception()

    def _dispatch(self, message: Any) -> None:
        """Pass a message to its listener or request. Under load, Home Assistant sends several in one list."""
        for part in message if isinstance(message, list) else (message,):
            number = part.get("id")
            if part.get("type") == "event" and number in self._listeners:
                self._listeners[number](part["event"])
            elif part.get("type") == "result" and number in self._responses:
                self._resolve(self._responses[number], part)

    @staticmethod
    def _resolve(future: asyncio.Future[Any], response: dict[str, Any]) -> None:
        if future.done():
            return
        if response.get("success"):
            future.set_result(response.get("result"))
            return
        error = response.get("error") or {}
        future.set_exception(
            RequestRefused(str(error.get("code", "")), str(error.get("message", "no reason given")))
        )


def _read_type(message: aiohttp.WSMessage) -> str:
    """Return the type of a login message; empty if it is not a JSON object."""
    if message.type is not aiohttp.WSMsgType.TEXT:
        return ""
    try:
        content = json.loads(message.data)
    except ValueError:
        return ""
    return str(content.get("type", "")) if isinstance(content, dict) else ""
