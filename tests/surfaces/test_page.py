"""The files of the web page, as the server sends them."""

import re

import pytest

from sash.web import CONTENT_SECURITY_POLICY, CONTENT_TYPES, PAGE_FOLDER

MAX_BYTES = 300_000


async def test_the_page_allows_no_foreign_file_and_no_inline_script(served):
    response = await served.client.get("/")
    assert response.headers["content-type"].startswith("text/html")
    policy = response.headers["content-security-policy"]
    assert policy == CONTENT_SECURITY_POLICY
    assert "unsafe" not in policy and "http" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|https?:", response.text)


async def test_every_address_of_the_page_is_relative_and_exists(served):
    page = (await served.client.get("/")).text
    addresses = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert addresses and not any(address.startswith("/") for address in addresses)
    for address in addresses:
        assert (await served.client.get(f"/{address}")).status_code == 200, address


async def test_every_import_of_a_module_exists(served):
    for path in PAGE_FOLDER.rglob("*.js"):
        for name in re.findall(r"""(?:from|import\()\s*["'](\.[^"']+)["']""", path.read_text()):
            target = (path.parent / name).resolve().relative_to(PAGE_FOLDER)
            response = await served.client.get(f"/page/{target}")
            assert response.status_code == 200, f"{path.name} imports {name}"
            assert response.headers["content-type"] == "text/javascript; charset=utf-8"
            assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "name",
    [
        "../__init__.py",
        "__init__.py",
        "%2e%2e/app.py",
        "..%2f..%2f__init__.py",
        "nothing.js",
        "views",
        "vendor/NOTICE.md",
    ],
)
async def test_other_files_are_not_sent(served, name):
    assert (await served.client.get(f"/page/{name}")).status_code == 404


async def test_the_whole_page_is_small(served):
    """All files of all views count as a browser gets them. A person has one language, so the largest one counts."""
    sizes = {"page": [], "language": []}
    for path in PAGE_FOLDER.rglob("*"):
        if path.suffix in CONTENT_TYPES:
            kind = "language" if path.suffix == ".json" else "page"
            sizes[kind].append(await measure(served, path.relative_to(PAGE_FOLDER)))
    assert len(sizes["page"]) > 40
    assert sum(sizes["page"]) + max(sizes["language"]) < MAX_BYTES


async def measure(served, name):
    """Return the number of bytes that travel, with the headers."""
    async with served.client.stream("GET", f"/page/{name}", headers={"Accept-Encoding": "gzip"}) as response:
        body = sum([len(piece) async for piece in response.aiter_raw()])
        return body + sum(len(name) + len(value) + 4 for name, value in response.headers.raw)


async def test_an_unchanged_file_is_not_sent_again(served):
    first = await served.client.get("/page/app.js")
    assert first.headers["content-encoding"] == "gzip"
    again = await served.client.get("/page/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    changed = await served.client.get("/page/app.js", headers={"If-None-Match": 'W/"another"'})
    assert changed.text == first.text


async def test_a_client_that_cannot_decompress_gets_the_plain_file(served):
    response = await served.client.get("/page/app.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in response.headers
    assert response.content == (PAGE_FOLDER / "app.js").read_bytes()
