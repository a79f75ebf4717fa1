"""From the data of a config entry to the models of its provider, and the checks of both."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from homeassistant.const import CONF_API_KEY, CONF_API_VERSION
from homeassistant.core import HomeAssistant
from homeassistant.helpers.httpx_client import get_async_client

from sash.errors import ModelError, ModelKeyRefused, ModelQuotaReached, ModelUnknown, ModelUnreachable
from sash.models.offline import OfflineModel
from sash.ports.model import Delta, Model, ModelRequest
from sash.values.garbage import pause_collection

from .agent_options import read_model
from .const import (
    AI_TASK_DEFAULTS,
    CONF_API_BASE,
    CONF_AZURE_ENDPOINT,
    CONF_MAX_OUTPUT_TOKENS,
    CONF_PROVIDER,
    DEFAULT_OPENAI_MODEL,
    PROVIDER_AZURE,
    PROVIDER_COMPATIBLE,
    PROVIDER_LOCAL,
    PROVIDER_OPENAI,
)
from .deferred_model import DeferredModel

if TYPE_CHECKING:
    from sash.models.openai.model import OpenAIModel

_LOGGER = logging.getLogger(__name__)

CHECK_SECONDS = 10
# A server at home may have to load the model first.
TRY_SECONDS = 60
# The Responses API accepts no smaller limit.
TRY_OUTPUT_TOKENS = 16

ERROR_CANNOT_CONNECT = "cannot_connect"
ERROR_INVALID_AUTH = "invalid_auth"
ERROR_MODEL_NOT_FOUND = "model_not_found"
ERROR_MODEL_REFUSED = "model_refused"
ERROR_QUOTA_REACHED = "quota_reached"
ERROR_TIMEOUT = "timeout"
ERROR_UNKNOWN = "unknown"
ERROR_WRONG_ADDRESS = "wrong_address"

_ERRORS: tuple[tuple[type[ModelError], str], ...] = (
    (ModelKeyRefused, ERROR_INVALID_AUTH),
    (ModelQuotaReached, ERROR_QUOTA_REACHED),
    (ModelUnknown, ERROR_MODEL_NOT_FOUND),
    (ModelUnreachable, ERROR_CANNOT_CONNECT),
)
# OpenAI lists its models of all kinds. These answer in a conversation.
_CHAT_MODEL = re.compile(
    r"(?:chatgpt|gpt|o\d|ft:)(?!.*(?:audio|image|instruct|live|realtime|search|transcri|tts))"
)
_EMBEDDING_MODEL = re.compile(r"embed|rerank|whisper", re.IGNORECASE)
_API_PATH = re.compile(r"/(?:chat/completions|completions|responses|models)/?$")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: the key of an error or None, the provider's reason, and its models.

    `models` is empty if the provider lists none, such as Azure's deployments.
    """

    error: str | None = None
    reason: str = ""
    models: tuple[str, ...] = ()


def provider_address(data: Mapping[str, Any]) -> str:
    """Return the address of a provider. It is empty for OpenAI itself, and for the provider `local`."""
    return str(data.get(CONF_AZURE_ENDPOINT) or data.get(CONF_API_BASE) or "")


def provider_title(data: Mapping[str, Any]) -> str:
    """Return the title of a config entry."""
    host = urlsplit(provider_address(data)).netloc.rpartition("@")[2]
    titles = {
        PROVIDER_OPENAI: "OpenAI",
        PROVIDER_AZURE: f"Azure OpenAI ({host.partition('.')[0]})",
        PROVIDER_COMPATIBLE: host,
        PROVIDER_LOCAL: "Local only",
    }
    return titles[data[CONF_PROVIDER]]


def provider_unique_id(data: Mapping[str, Any]) -> str:
    """Return an id of the provider, its address and its key, from which the key cannot be read."""
    key_print = sha256(data.get(CONF_API_KEY, "").encode()).hexdigest()
    parts = (data[CONF_PROVIDER], provider_address(data).lower(), key_print)
    return sha256("\n".join(parts).encode()).hexdigest()[:32]


def normalize_address(address: str, provider: str) -> str | None:
    """Return the address as the SDK needs it, or None if it is not an HTTP address.

    People paste the address of a single call, or leave out the scheme of a server at home.
    """
    address = address.strip()
    if "://" not in address:
        address = f"{'https' if provider == PROVIDER_AZURE else 'http'}://{address}"
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return None
    if not is_valid or re.search(r"\s", address):
        return None
    if provider == PROVIDER_AZURE:
        return f"{parts.scheme}://{parts.netloc}"
    path = _API_PATH.sub("", parts.path).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def create_model(hass: HomeAssistant, data: Mapping[str, Any]) -> Model:
    """Create the model of a provider; a request may name another model there.

    The provider `local` has the offline model.
    """
    if data[CONF_PROVIDER] == PROVIDER_LOCAL:
        return OfflineModel(is_spoken=True)
    return DeferredModel(
        DEFAULT_OPENAI_MODEL, partial(_create_openai_model, hass, data, DEFAULT_OPENAI_MODEL)
    )


async def check_provider(hass: HomeAssistant, data: Mapping[str, Any]) -> CheckResult:
    """Check the address and the key of a provider with one call that costs nothing: its list of models.

    The error is `invalid_auth`, `cannot_connect`, `wrong_address`, `timeout` or `unknown`.
    """
    if data[CONF_PROVIDER] == PROVIDER_LOCAL:
        return CheckResult()
    model = await _create_openai_model(hass, data, DEFAULT_OPENAI_MODEL, retries=0)
    try:
        await model.open()  # The first use of the SDK imports modules, which is not the server's time.
        async with asyncio.timeout(CHECK_SECONDS):
            names = await model.list_models()
    except TimeoutError:
        return CheckResult(ERROR_TIMEOUT)
    except ModelUnknown as error:
        # Some servers have no list. An address without a path more likely lacks "/v1".
        has_path = data[CONF_PROVIDER] == PROVIDER_COMPATIBLE and bool(urlsplit(provider_address(data)).path)
        return CheckResult() if has_path else CheckResult(ERROR_WRONG_ADDRESS, str(error))
    except ModelQuotaReached:
        # The key is accepted.
        return CheckResult()
    except ModelError as error:
        is_fault_of_server = getattr(error.__cause__, "status_code", 0) >= 500
        return _describe_failure(error, ERROR_CANNOT_CONNECT if is_fault_of_server else ERROR_WRONG_ADDRESS)
    except Exception:
        _LOGGER.exception("The check of the provider failed")
        return CheckResult(ERROR_UNKNOWN)
    finally:
        await model.close()
    return CheckResult(models=tuple(_choose_models(names, data[CONF_PROVIDER])))


async def check_model(
    hass: HomeAssistant, data: Mapping[str, Any], options: Mapping[str, Any]
) -> CheckResult:
    """Check a model and its parameters with one tiny request. A slow server is no error.

    The error is `model_not_found`, `model_refused` with the provider's reason, or one of `check_provider`.
    """
    config = read_model({**AI_TASK_DEFAULTS, **options, CONF_MAX_OUTPUT_TOKENS: TRY_OUTPUT_TOKENS})
    model = await _create_openai_model(hass, data, config.name or DEFAULT_OPENAI_MODEL, retries=0)
    request = ModelRequest([{"role": "user", "content": "Say hi."}], config=config)
    try:
        await model.open()
        answer = cast(AsyncGenerator[Delta], model.stream(request))
        async with asyncio.timeout(TRY_SECONDS), aclosing(answer):
            await anext(answer)
    except TimeoutError:
        return CheckResult()
    except ModelError as error:
        return _describe_failure(error, ERROR_MODEL_REFUSED)
    except Exception:
        _LOGGER.exception("The check of the model failed")
        return CheckResult(ERROR_UNKNOWN)
    finally:
        await model.close()
    return CheckResult()


def _describe_failure(error: ModelError, otherwise: str) -> CheckResult:
    """Return the key of an error of a model; `otherwise` is for errors without a kind of their own."""
    key = next((key for kind, key in _ERRORS if isinstance(error, kind)), otherwise)
    return CheckResult(key, str(error))


def _choose_models(names: Iterable[str], provider: str) -> list[str]:
    """Return the models that can answer. Azure lists models and not the deployments that requests name."""
    if provider == PROVIDER_AZURE:
        return []
    if provider == PROVIDER_OPENAI:
        return [name for name in names if _CHAT_MODEL.match(name)]
    return [name for name in names if not _EMBEDDING_MODEL.search(name)]


async def _create_openai_model(
    hass: HomeAssistant, data: Mapping[str, Any], name: str, **options: Any
) -> OpenAIModel:
    """Create a model of the official SDK, with Home Assistant's HTTP client.

    Importing the SDK takes a second, so a thread does it.
    """
    model_class = await hass.async_add_import_executor_job(_import_openai_model)
    return model_class(
        name,
        api_key=data.get(CONF_API_KEY, ""),
        base_url=data.get(CONF_API_BASE),
        azure_endpoint=data.get(CONF_AZURE_ENDPOINT),
        api_version=data.get(CONF_API_VERSION),
        http_client=get_async_client(hass),
        **options,
    )


def _import_openai_model() -> type[OpenAIModel]:
    with pause_collection():
        from sash.models.openai.model import OpenAIModel

    return OpenAIModel
