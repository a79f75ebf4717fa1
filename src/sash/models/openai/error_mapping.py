"""Translation of the SDK's and the providers' errors into Sash's model errors."""

import json
import re
from contextlib import suppress
from typing import NamedTuple, NoReturn

import httpx2
import openai

from sash.errors import (
    AnswerCutOff,
    ContentFiltered,
    ContextTooLong,
    ModelError,
    ModelKeyRefused,
    ModelQuotaReached,
    ModelUnknown,
    ModelUnreachable,
)

MAX_REASON_LENGTH = 500
# The SDK uses httpx2. A client that is passed to it may be of httpx, whose errors then pass through.
HTTP_ERRORS: tuple[type[Exception], ...] = (httpx2.HTTPError,)
with suppress(ImportError):
    import httpx

    HTTP_ERRORS += (httpx.HTTPError,)
SDK_ERRORS: tuple[type[Exception], ...] = (openai.OpenAIError, ValueError, *HTTP_ERRORS)

_CONTEXT_TOO_LONG = "cannot take a prompt of this length: lower the window's max_tokens"
_NO_QUOTA = "has no quota left: check the provider's billing"
_KEY_REFUSED = "refused the key: check {key}"


class SettingNames(NamedTuple):
    """The settings that the message of an error names."""

    key: str = "api_key"
    address: str = "api_base"

    def fill_in(self, text: str) -> str:
        """Return the text of a rule with the names of the settings."""
        return text.format(key=self.key, address=self.address)


MODEL_SETTINGS = SettingNames()


class _SdkRule(NamedTuple):
    """A rule for an exception of the SDK. Without `codes` it applies to all error codes of the provider."""

    caught: type[Exception]
    codes: tuple[str, ...]
    raised: type[ModelError]
    text: str


class _ProviderRule(NamedTuple):
    """A rule for a provider's own error, recognised by its code or by words of its message."""

    codes: tuple[str, ...]
    words: re.Pattern[str]
    raised: type[ModelError]
    text: str


_SDK_RULES = (
    _SdkRule(
        openai.APITimeoutError,
        (),
        ModelUnreachable,
        "did not answer in time: try again, or raise timeout_s",
    ),
    _SdkRule(
        openai.APIConnectionError,
        (),
        ModelUnreachable,
        "cannot be reached: check the network, and the address ({address})",
    ),
    _SdkRule(openai.AuthenticationError, (), ModelKeyRefused, _KEY_REFUSED),
    _SdkRule(
        openai.PermissionDeniedError, (), ModelKeyRefused, "refused the key: check {key} and its rights"
    ),
    _SdkRule(
        openai.RateLimitError,
        ("insufficient_quota", "billing_hard_limit_reached"),
        ModelQuotaReached,
        _NO_QUOTA,
    ),
    _SdkRule(
        openai.RateLimitError,
        (),
        ModelQuotaReached,
        "received too many requests: wait a moment, or raise the provider's limit",
    ),
    _SdkRule(
        openai.NotFoundError,
        (),
        ModelUnknown,
        "does not exist at this address: check its name, and the address ({address})",
    ),
    _SdkRule(
        openai.BadRequestError,
        ("context_length_exceeded", "string_above_max_length"),
        ContextTooLong,
        _CONTEXT_TOO_LONG,
    ),
    _SdkRule(
        openai.BadRequestError,
        ("content_filter", "content_policy_violation"),
        ContentFiltered,
        "did not get the prompt: the provider's content filter refused it",
    ),
)

_PROVIDER_RULES = (
    _ProviderRule(
        ("context_length_exceeded",),
        re.compile(
            r"maximum context length|context (?:window|length|size)|prompt is too long|too many tokens", re.I
        ),
        ContextTooLong,
        _CONTEXT_TOO_LONG,
    ),
    _ProviderRule(
        ("invalid_api_key",),
        re.compile(r"api key not valid|invalid api key|incorrect api key", re.I),
        ModelKeyRefused,
        _KEY_REFUSED,
    ),
    _ProviderRule(
        ("rate_limit_exceeded", "insufficient_quota"),
        re.compile(r"HTTP 402|insufficient (?:credits|quota|balance)", re.I),
        ModelQuotaReached,
        _NO_QUOTA,
    ),
)


def raise_model_error(error: Exception, model: str, settings: SettingNames = MODEL_SETTINGS) -> NoReturn:
    """Raise the `ModelError` for an exception of the SDK, with the cause and the remedy."""
    code = getattr(error, "code", None) or ""
    for rule in _SDK_RULES:
        if isinstance(error, rule.caught) and (not rule.codes or code in rule.codes):
            raise rule.raised(f"model {model} {settings.fill_in(rule.text)}") from error
    if isinstance(error, openai.APIStatusError):
        reason = _read_reason(error)
        raise_provider_error(
            model,
            code,
            f"HTTP {error.status_code}: {reason:.{MAX_REASON_LENGTH}}",
            cause=error,
            settings=settings,
        )
    if isinstance(error, openai.APIError):
        raise_provider_error(model, code, error.message, cause=error, settings=settings)
    if isinstance(error, (*HTTP_ERRORS, json.JSONDecodeError)):
        raise_cut_off(model, cause=error)
    reason = str(error) or type(error).__name__
    raise ModelError(f"the request to model {model} failed: {reason:.{MAX_REASON_LENGTH}}") from error


def _read_reason(error: openai.APIStatusError) -> str:
    """Return the provider's own message. Without one, return all that the provider sent."""
    message = error.body.get("message") if isinstance(error.body, dict) else None
    return message if message and isinstance(message, str) else error.response.text


def raise_provider_error(
    model: str,
    code: str,
    reason: str,
    *,
    cause: Exception | None = None,
    settings: SettingNames = MODEL_SETTINGS,
) -> NoReturn:
    """Raise the `ModelError` for a provider's code and message.

    Few providers use OpenAI's codes, so the words of the message are compared, too.
    """
    for rule in _PROVIDER_RULES:
        if code in rule.codes or rule.words.search(reason):
            raise rule.raised(f"model {model} {settings.fill_in(rule.text)}") from cause
    raise ModelError(f"model {model} failed: {reason:.{MAX_REASON_LENGTH}}") from cause


def raise_cut_off(model: str, *, cause: Exception | None = None) -> NoReturn:
    """Raise `AnswerCutOff` for an answer that began but did not end."""
    raise AnswerCutOff(f"the answer of model {model} was cut off: try again") from cause
