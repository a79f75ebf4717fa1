"""`/`, `/page` and `/docs`: the web page with its files, and the API reference."""

from functools import cache

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import HTMLResponse, Response

from sash.app.access import Tokens
from sash.server.pages.api_reference import render_api_reference
from sash.server.pages.layout import HEADERS
from sash.server.pages.page_files import send_page_file

# The page is rendered once with this address, which each response replaces by the address of the request.
PLACEHOLDER_URL = "http://sash.invalid"


def make_router(app: FastAPI, tokens: Tokens) -> APIRouter:
    """Return the routes of the HTML pages. The page `/docs` describes `app`."""
    router = APIRouter(include_in_schema=False)

    @cache
    def render(needs_token: bool) -> str:
        return render_api_reference(app.openapi(), PLACEHOLDER_URL, needs_token=needs_token)

    @router.head("/")
    @router.get("/")
    def show_page(request: Request) -> Response:
        return send_page_file(request, "index.html")

    @router.head("/page/{name:path}")
    @router.get("/page/{name:path}")
    def show_page_file(request: Request, name: str) -> Response:
        return send_page_file(request, name)

    @router.head("/docs")
    @router.get("/docs")
    async def show_api_reference(request: Request) -> Response:
        url = str(request.base_url).rstrip("/")
        html = render(needs_token=tokens.needed).replace(PLACEHOLDER_URL, url)
        return HTMLResponse(html, headers=HEADERS)

    return router
