"""How many tokens an image costs. The size is read from the image's own header, offline."""

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

UNKNOWN_SIZE = (1024, 1024)
_HEADER_CHARS = 1 << 16


@dataclass(frozen=True, slots=True)
class ImageCost:
    """A provider's published formula: tiles of 512 px, or patches of 32 px times a factor."""

    base: int = 85
    tile: int = 170
    patch_factor: float = 0.0

    def tokens(self, width: int, height: int, detail: str) -> int:
        if self.patch_factor:
            return math.ceil(_patches(width, height) * self.patch_factor)
        if detail == "low":
            return self.base
        return self.base + self.tile * _tiles(width, height)


# Longest prefix first: "gpt-4o-mini" before "gpt-4o".
_COSTS = (
    ("gpt-4o-mini", ImageCost(2833, 5667)),
    ("gpt-4.1-mini", ImageCost(patch_factor=1.62)),
    ("gpt-4.1-nano", ImageCost(patch_factor=2.46)),
    ("gpt-5-mini", ImageCost(patch_factor=1.62)),
    ("gpt-5-nano", ImageCost(patch_factor=2.46)),
    ("gpt-5", ImageCost(70, 140)),
    ("o4-mini", ImageCost(patch_factor=1.72)),
    ("o1", ImageCost(75, 150)),
    ("o3", ImageCost(75, 150)),
)


def image_cost(model: str) -> ImageCost:
    """Return the formula for `model`; the default is that of gpt-4o."""
    return next((cost for prefix, cost in _COSTS if model.startswith(prefix)), ImageCost())


def image_tokens(image: Mapping[str, Any] | str, detail: str | None, cost: ImageCost) -> int:
    """Count the tokens of an image: a URL with the part's `detail`, or `{"url": …, "detail": …}`."""
    options: Mapping[str, Any] = {"url": image, "detail": detail} if isinstance(image, str) else image
    width, height = image_size(str(options.get("url", "")))
    return cost.tokens(width, height, options.get("detail") or "auto")


def image_size(url: str) -> tuple[int, int]:
    """Return width and height of a `data:` image; a remote one is taken as 1024 x 1024."""
    if not url.startswith("data:"):
        return UNKNOWN_SIZE
    encoded = url.partition(",")[2][:_HEADER_CHARS]
    try:
        header = base64.b64decode(encoded[: len(encoded) // 4 * 4])
    except ValueError:
        return UNKNOWN_SIZE
    width, height = _png(header) or _gif(header) or _webp(header) or _jpeg(header) or UNKNOWN_SIZE
    return (width, height) if width and height else UNKNOWN_SIZE


def _tiles(width: int, height: int) -> int:
    """Fit into 2048 x 2048, shrink the shortest side to 768, count tiles of 512."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return math.ceil(int(width * scale) / 512) * math.ceil(int(height * scale) / 512)


def _patches(width: int, height: int, most: int = 1536) -> int:
    """Count patches of 32 px, the image shrunk so that at most `most` are needed."""
    patches = math.ceil(width / 32) * math.ceil(height / 32)
    if patches <= most:
        return patches
    shrink = math.sqrt(32 * 32 * most / (width * height))
    across, down = width * shrink / 32, height * shrink / 32
    shrink *= min(max(1, math.floor(across)) / across, max(1, math.floor(down)) / down)
    return min(most, math.ceil(width * shrink / 32) * math.ceil(height * shrink / 32))


def _png(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or len(data) < 24:
        return None
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def _gif(data: bytes) -> tuple[int, int] | None:
    if not data.startswith((b"GIF87a", b"GIF89a")) or len(data) < 10:
        return None
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _webp(data: bytes) -> tuple[int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return None
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return (
        int.from_bytes(data[26:28], "little") & 0x3FFF,
        int.from_bytes(data[28:30], "little") & 0x3FFF,
    )


def _jpeg(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\xff\xd8"):
        return None
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        at += 2 + int.from_bytes(data[at + 2 : at + 4])
    return None
