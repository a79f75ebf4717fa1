"""Token counts of images. The size comes from the image's own header, without a network."""

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

UNKNOWN_SIZE = (1024, 1024)
_HEADER_CHARS = 1 << 16
# PNG, GIF, WebP and JPEG: models take only these. The other parsers of `imagesize` see no untrusted data.
_SIGNATURES = (b"\x89PNG", b"GIF8", b"RIFF", b"\xff\xd8")


@dataclass(frozen=True, slots=True)
class ImageCost:
    """A provider's published formula for the tokens of an image.

    It counts tiles of 512 pixels, or patches of 32 pixels times a factor.
    """

    base: int = 85
    tile: int = 170
    patch_factor: float = 0.0

    def count_tokens(self, width: int, height: int, detail: str) -> int:
        if self.patch_factor:
            return math.ceil(_count_patches(width, height) * self.patch_factor)
        if detail == "low":
            return self.base
        return self.base + self.tile * _count_tiles(width, height)


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


def find_image_cost(model: str) -> ImageCost:
    """Return the formula of a model. An unknown model gets the formula of gpt-4o."""
    return next((cost for prefix, cost in _COSTS if model.startswith(prefix)), ImageCost())


def count_image_tokens(image: Mapping[str, Any] | str, detail: str | None, cost: ImageCost) -> int:
    """Count the tokens of an image: a URL with its `detail`, or `{"url": …, "detail": …}`."""
    options: Mapping[str, Any] = {"url": image, "detail": detail} if isinstance(image, str) else image
    width, height = read_image_size(str(options.get("url", "")))
    return cost.count_tokens(width, height, options.get("detail") or "auto")


def read_image_size(url: str) -> tuple[int, int]:
    """Return width and height of a `data:` image. A remote or unreadable image counts as 1024 x 1024."""
    if not url.startswith("data:"):
        return UNKNOWN_SIZE
    encoded = url.partition(",")[2][:_HEADER_CHARS]
    try:
        header = base64.b64decode(encoded[: len(encoded) // 4 * 4])
    except ValueError:
        return UNKNOWN_SIZE
    if not header.startswith(_SIGNATURES):
        return UNKNOWN_SIZE
    # Imported on first use: it imports urllib and an XML parser, which most programs never need.
    import imagesize  # type: ignore[import-untyped]

    width, height = imagesize.get(BytesIO(header))
    return (width, height) if width > 0 and height > 0 else UNKNOWN_SIZE


def _count_tiles(width: int, height: int) -> int:
    """Count tiles of 512 pixels. The image is first fitted into 2048 x 2048, its short side into 768."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return math.ceil(int(width * scale) / 512) * math.ceil(int(height * scale) / 512)


def _count_patches(width: int, height: int, limit: int = 1536) -> int:
    """Count patches of 32 pixels, after shrinking the image so that `limit` patches suffice."""
    patches = math.ceil(width / 32) * math.ceil(height / 32)
    if patches <= limit:
        return patches
    shrink = math.sqrt(32 * 32 * limit / (width * height))
    across, down = width * shrink / 32, height * shrink / 32
    shrink *= min(max(1, math.floor(across)) / across, max(1, math.floor(down)) / down)
    return min(limit, math.ceil(width * shrink / 32) * math.ceil(height * shrink / 32))
