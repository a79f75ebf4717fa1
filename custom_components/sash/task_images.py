"""The images of an AI task, as parts of a message to a model."""

import base64
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from homeassistant.components.conversation import Attachment
from homeassistant.core import HomeAssistant

from .task_errors import TaskFailed

# Types that models accept. Others are converted.
ACCEPTED = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
# The bytes of all images of a message. As base64 they are a third longer, and a message has at most 1 MiB.
MAX_BYTES = 700_000
# Models do not see more pixels than these.
MAX_SIDE = 2048
MIN_SIDE = 256
JPEG_QUALITY = 85


async def read_images(hass: HomeAssistant, attachments: Sequence[Attachment]) -> tuple[dict[str, Any], ...]:
    """Return images in OpenAI's form. Large ones are made smaller. Raise `TaskFailed` for others."""
    for attachment in attachments:
        if not attachment.mime_type.startswith("image/"):
            name, kind = attachment.media_content_id, attachment.mime_type
            raise TaskFailed("attachment_not_image", name=name, type=kind)
    if not attachments:
        return ()
    max_bytes = MAX_BYTES // len(attachments)
    return await hass.async_add_executor_job(
        lambda: tuple(_read(attachment, max_bytes) for attachment in attachments)
    )


def _read(attachment: Attachment, max_bytes: int) -> dict[str, Any]:
    try:
        data = Path(attachment.path).read_bytes()
    except OSError as error:
        raise TaskFailed(
            "attachment_unreadable", name=attachment.media_content_id, message=str(error)
        ) from error
    kind = attachment.mime_type
    if len(data) > max_bytes or kind not in ACCEPTED:
        data, kind = _shrink(attachment, data, max_bytes), "image/jpeg"
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _shrink(attachment: Attachment, data: bytes, max_bytes: int) -> bytes:
    """Return an image as a JPEG of at most `max_bytes`."""
    from PIL import Image, ImageOps

    try:
        with Image.open(BytesIO(data)) as opened:
            image = ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise TaskFailed("attachment_broken", name=attachment.media_content_id) from error
    side = MAX_SIDE
    while side >= MIN_SIDE:
        image.thumbnail((side, side))
        written = BytesIO()
        image.save(written, "JPEG", quality=JPEG_QUALITY)
        if written.tell() <= max_bytes:
            return written.getvalue()
        side = side * 3 // 4
    raise TaskFailed("attachment_too_large", name=attachment.media_content_id)
