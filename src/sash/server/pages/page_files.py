"""The files of the web page as a browser gets them: compressed, and not again while they are unchanged."""

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sash.web import CONTENT_SECURITY_POLICY, CONTENT_TYPES, PAGE_FOLDER

# A file of the page, in its folder or one below. No name can lead out of the folder.
FILE_NAME = re.compile(r"(?:[a-z]{1,20}/)?[a-z-]{1,40}\.[a-z]{1,5}")
MAX_FILES = 256
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # A browser asks each time whether the file has changed, so that an update takes effect at once.
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    content: bytes
    compressed: bytes
    etag: str


def send_page_file(request: Request, name: str) -> Response:
    """Return the response with a file of the page. Raise `HTTPException` with 404 if there is no such file.

    It reads the disk, so it belongs in a thread.
    """
    path = PAGE_FOLDER / name
    if not FILE_NAME.fullmatch(name) or path.suffix not in CONTENT_TYPES or not path.is_file():
        raise HTTPException(404, "the page has no such file")
    state = path.stat()
    file = _read(path, state.st_mtime_ns, state.st_size)
    headers = HEADERS | {"ETag": file.etag}
    if file.etag in request.headers.get("If-None-Match", ""):
        return Response(status_code=304, headers=headers)
    content = file.content
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        content = file.compressed
        headers["Content-Encoding"] = "gzip"
    return Response(content, headers=headers, media_type=CONTENT_TYPES[path.suffix])


@lru_cache(MAX_FILES)
def _read(path: Path, modified_ns: int, size: int) -> PageFile:
    """Read and compress a file. The time and the size make a changed file another one."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:32]
    # The weak form says that the compressed and the plain file are the same for a browser.
    return PageFile(content, gzip.compress(content, mtime=0), f'W/"{digest}"')
