"""`/`, `/page` and `/docs`: the web page with its files, and the API reference."""

import re
from functools import cache

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response

from sash.app.access import Tokens
from sash.server.pages.api_reference import render_api_reference
from sash.server.pages.layout import HEADERS
from sash.web import CONTENT_SECURITY_POLICY, CONTENT_TYPES, PAGE_FOLDER

# The page is rendered once with this address, which each response replaces by the address of the request.
PLACEHOLDER_URL = "http://sash.invalid"
PAGE_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # A browser asks each time whether the file has changed, so that an update takes effect at once.
    "Cache-Control": "no-cache",
}


# A file of the page, in its folder or one below. No name can lead out of the folder.
FILE_NAME = re.compile(r"(?:[a-z]{1,20}/)?[a-z-]{1,40}\.[a-z]{1,5}")


def make_router(app: FastAPI, tokens: Tokens) -> APIRouter:
    """Return the routes of the HTML pages. The page `/docs` describes `app`."""
    router = APIRouter(include_in_schema=False)

    @cache
    def render(needs_token: bool) -> str:
        return render_api_reference(app.openapi(), PLACEHOLDER_URL, needs_token=needs_token)

    @router.head("/")
    @router.get("/")
    async def show_page() -> Response:
        return _send_file("index.html")

    @router.head("/page/{name:path}")
    @router.get("/page/{name:path}")
    async def show_page_file(name: str) -> Response:
        return _send_file(name)

    @router.head("/docs")
    @router.get("/docs")
    async def show_api_reference(request: Request) -> Response:
        url = str(request.base_url).rstrip("/")
        html = render(needs_token=tokens.needed).replace(PLACEHOLDER_URL, url)
        return HTMLResponse(html, headers=HEADERS)

    return router


def _send_file(name: str) -> Response:
    path = PAGE_FOLDER / name
    if not FILE_NAME.fullmatch(name) or path.suffix not in CONTENT_TYPES or not path.is_file():
        raise HTTPException(404, "the page has no such file")
    return FileResponse(path, headers=PAGE_HEADERS, media_type=CONTENT_TYPES[path.suffix])
