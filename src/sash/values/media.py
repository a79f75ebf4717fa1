"""The images and recordings that a message may have. The model's server loads an image by its URL, perhaps
inside a private network.

A name may lead to a private address, which only a network lookup shows. So `http:` and `https:` URLs are off
by default. A recording is always data, never a URL.
"""

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Any, NoReturn
from urllib.parse import urlsplit

from sash.errors import InvalidInput
from sash.values.validation import ATTACHMENTS

PART_TYPES = ("text", *ATTACHMENTS)

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_-]{1,20}", re.ASCII)
# Spaces, control characters and backslashes are read in different ways by different programs.
_UNCLEAR = re.compile(r"[\x00-\x20\x7f\\]")
# The last labels of names that are not public.
_LOCAL_NAMES = frozenset(
    {
        *("arpa", "corp", "home", "internal", "intranet", "invalid", "lan", "local", "localdomain"),
        *("localhost", "onion", "private", "test"),
    }
)
_PUBLIC_V6 = IPv6Network("2000::/3")
# Public addresses that contain an IPv4 address, which may be private.
_EMBEDDED_V4 = (IPv6Network("2001::/32"), IPv6Network("2002::/16"))


def check_media(parts: Iterable[Mapping[str, Any]], *, allow_remote: bool) -> None:
    """Raise `InvalidInput` if a content part is of another type than text, image and recording.

    The same if it has an image URL that is not allowed, or a recording that is not base64. `data:` images are
    always allowed, public `http:` and `https:` images with `allow_remote`.
    """
    for part in parts:
        if part.get("type") not in PART_TYPES:
            _refuse(
                f"a part of a message must be one of {', '.join(PART_TYPES)}, got {part.get('type')!r:.80}"
            )
        _check_fields("a part of a message", part, "type", part["type"])
        if "image_url" in part:
            _check_image(part["image_url"], allow_remote=allow_remote)
        if "input_audio" in part:
            _check_recording(part["input_audio"])


def check_image_url(url: Any, *, allow_remote: bool) -> None:
    """Raise `InvalidInput` unless the URL has image data, or is public and `allow_remote` is set."""
    if not isinstance(url, str):
        _refuse("an image URL must be a string")
    if url[:11].lower() == "data:image/":
        return
    if _UNCLEAR.search(url):
        _refuse("an image URL may not contain spaces, control characters or backslashes")
    try:
        parsed = urlsplit(url)
        host = (parsed.hostname or "").lower()
        parsed.port  # noqa: B018  It raises ValueError if the port is invalid.
    except ValueError:
        _refuse("the image URL is invalid")
    if parsed.scheme not in ("http", "https"):
        _refuse("an image URL must begin with data:image/, https:// or http://")
    if "@" in parsed.netloc:
        _refuse("an image URL may not contain a user name")
    if not _is_public(host):
        _refuse(f"{host!r:.80} is not a public host")
    if not allow_remote:
        _refuse("image URLs are off: send the image as data:image/…, or turn on `allow_image_urls`")


def _check_image(image: Any, *, allow_remote: bool) -> None:
    if not isinstance(image, Mapping):
        check_image_url(image, allow_remote=allow_remote)
        return
    check_image_url(image.get("url"), allow_remote=allow_remote)
    _check_fields("image_url", image, "url", "detail")
    _check_word("image_url", image, "detail")


def _check_recording(recording: Any) -> None:
    data = recording.get("data") if isinstance(recording, Mapping) else None
    if not isinstance(data, str) or not _BASE64.fullmatch(data):
        _refuse("input_audio must be an object with the recording, as base64, in its field 'data'")
    _check_fields("input_audio", recording, "data", "format")
    _check_word("input_audio", recording, "format")


def _check_fields(what: str, value: Mapping[str, Any], one: str, other: str) -> None:
    """Raise `InvalidInput` if a value has more than these two fields: others could hide a second URL."""
    if not set(value) <= {one, other}:
        _refuse(f"{what} may have the fields {one!r} and {other!r} only")


def _check_word(what: str, value: Mapping[str, Any], field: str) -> None:
    if field in value and not (isinstance(value[field], str) and _WORD.fullmatch(value[field])):
        _refuse(f"the field {field!r} of {what} must be a short word, such as 'wav' or 'low'")


def _is_public(host: str) -> bool:
    """Return True if a host is a public address, or a name that may be public."""
    if ":" in host:
        return _is_public_v6(host)
    labels = host.removesuffix(".").split(".")
    if _is_number(labels[-1]):
        try:
            address = IPv4Address(host)
            return address.is_global and not address.is_multicast
        except ValueError:  # Other forms, such as 127.1 or 0x7f.1, are read as addresses by some programs.
            return False
    return len(labels) > 1 and labels[-1] not in _LOCAL_NAMES and all(map(_LABEL.fullmatch, labels))


def _is_public_v6(host: str) -> bool:
    try:
        address = IPv6Address(host)
    except ValueError:
        return False
    has_v4 = any(address in network for network in _EMBEDDED_V4)
    return address.is_global and address in _PUBLIC_V6 and not has_v4


def _is_number(label: str) -> bool:
    return label.isdigit() or label.startswith("0x")


def _refuse(problem: str) -> NoReturn:
    raise InvalidInput(problem)
