"""A client attaches an image URL that leads the model's server to a file or into its private network."""

import json

import pytest

from sash.errors import InvalidInput
from sash.testing import ScriptedModel
from sash.values.media import check_image_url
from tests.runtime.conftest import clock, make_store, run  # noqa: F401
from tests.surfaces.serving import problem, serving

DATA = "data:image/png;base64,iVBORw0KGgo="
PUBLIC = (
    "https://example.com/a.png",
    "http://cam.example.com:8080/a.png?x=1#y",
    "https://93.184.216.34/a.png",
    "https://[2606:2800:220:1:248:1893:25c8:1946]/a.png",
    "https://xn--bcher-kva.example.com/a.png",
    "https://example.com./a.png",
)
NOT_PUBLIC = (
    *("file:///etc/passwd", "FILE:/etc/passwd", "ftp://example.com/a.png", "gopher://example.com/"),
    *(
        "data:text/html,x",
        "javascript:alert(1)",
        "blob:https://example.com/x",
        "//example.com/a.png",
        "a.png",
        "",
    ),
    *("http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/"),
    *("http://0177.0.0.1/", "http://127.0.0.1./", "http://0/", "http://0.0.0.0/", "http://127.0.0.1:8123/"),
    *("http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.1.2/", "http://169.254.169.254/latest/"),
    *("http://100.64.0.1/", "http://224.0.0.1/", "http://255.255.255.255/", "http://192.168.257/"),
    *("http://[::1]/", "http://[::]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fd00::1]/"),
    *(
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
    ),
    *(
        "http://[2002:7f00:1::]/",
        "http://[2001:0:7f00:1::]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://[::1/",
    ),
    *("http://localhost/", "http://LOCALHOST./", "http://a.localhost/", "http://homeassistant.local:8123/"),
    *("http://metadata.google.internal/", "http://router.lan/", "http://nas.home.arpa/", "http://printer/"),
    *("http://example.com@127.0.0.1/", "http://127.0.0.1@example.com/", "http://a:b@example.com/"),
    *("http://example.com\\@127.0.0.1/", "http:\\\\127.0.0.1\\", " http://127.0.0.1/", "ht\ntp://127.0.0.1/"),
    *(
        "http://127.0.0.1\t/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/",
        "http://loc%61lhost/",
        "http://%31%32%37.1/",
    ),
    *(
        "http:///a.png",
        "http://example.com:99999/",
        "http://example..com/",
        "http://exa mple.com/",
        "https:example.com",
    ),
)


def attach(url):
    return [{"type": "image_url", "image_url": {"url": url}}]


@pytest.mark.parametrize("url", NOT_PUBLIC)
def test_files_and_private_addresses_are_refused_whatever_the_setting_is(url):
    for allow_remote in (True, False):
        with pytest.raises(InvalidInput):
            check_image_url(url, allow_remote=allow_remote)


@pytest.mark.parametrize("url", PUBLIC)
def test_public_urls_depend_on_the_setting(url):
    check_image_url(url, allow_remote=True)
    with pytest.raises(InvalidInput, match="allow_image_urls"):
        check_image_url(url, allow_remote=False)


async def test_the_server_passes_only_allowed_urls_to_the_model(tmp_path):
    for allow in (False, True):
        model = ScriptedModel("I see.")
        async with serving(tmp_path, model=model, allow_image_urls=allow) as served:
            session_id = await served.start()
            at = f"/v1/sessions/{session_id}/messages"
            for url in NOT_PUBLIC[:3] + NOT_PUBLIC[10:14] + (() if allow else PUBLIC):
                for image in ({"url": url}, url):
                    body = {"message": "look", "attachments": [{"type": "image_url", "image_url": image}]}
                    problem(await served.client.post(at, json=body), 422, "invalid_input")
            for url in (DATA, *(PUBLIC if allow else ())):
                await served.wait(await served.send(session_id, "look", attachments=attach(url)))
            assert len(model.requests) == (1 + len(PUBLIC) if allow else 1)


async def test_an_import_brings_no_such_urls_in(run):  # noqa: F811
    runtime = await run("I see.")
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "look", attachments=attach(DATA))
    await runtime.await_continuation(sent.id, timeout_s=10)
    export = await runtime.export_session(session.id)
    await runtime.delete_session(session.id)
    for url in ("http://169.254.169.254/latest/", "file:///etc/passwd", "https://example.com/a.png"):
        in_message = json_with(export, url, "messages")
        in_turn = json_with(export, url, "continuations")
        for forged in (in_message, in_turn):
            with pytest.raises(InvalidInput):
                await runtime.import_session(forged)
    for part in ("messages", "continuations"):
        with pytest.raises(InvalidInput):
            await runtime.import_session(json_with(export, "video_url", part, "image_url"))
    await runtime.import_session(export)


HIDDEN = (
    {"type": "input_audio", "input_audio": {"url": "http://127.0.0.1/a.wav"}},
    {"type": "input_audio", "input_audio": {"data": "http://127.0.0.1/a.wav", "format": "wav"}},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "http://127.0.0.1/"}},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav", "url": "file:///etc/passwd"}},
    {"type": "input_audio", "input_audio": ["file:///etc/passwd"]},
    {"type": "image_url", "image_url": {"url": DATA, "source": "http://127.0.0.1/"}},
    {"type": "image_url", "image_url": {"url": DATA, "detail": "http://127.0.0.1/"}},
    {"type": "image_url", "image_url": {"detail": "low"}},
    {"type": "image_url", "image_url": DATA, "file_url": "http://127.0.0.1/"},
    {"type": "image_url", "image_url": DATA, "input_audio": {"data": "AAAA"}},
)


@pytest.mark.parametrize("part", HIDDEN, ids=str)
async def test_no_other_field_of_an_attachment_has_a_url(run, part):  # noqa: F811
    runtime = await run("I hear.")
    session = await runtime.start_session()
    with pytest.raises(InvalidInput):
        await runtime.send_message(session.id, "listen", attachments=[part])
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    sent = await runtime.send_message(session.id, "listen", attachments=[sound])
    await runtime.await_continuation(sent.id, timeout_s=10)
    export = await runtime.export_session(session.id)
    await runtime.delete_session(session.id)
    for place in ("messages", "continuations"):
        with pytest.raises(InvalidInput):
            await runtime.import_session(json_with(export, json.dumps(part), place, json.dumps(sound)))


def json_with(export, new, part, old=DATA):
    text = json.dumps(export[part])
    assert old in text
    return export | {part: json.loads(text.replace(old, new))}


async def test_a_retry_obeys_the_setting_of_today(tmp_path):
    async with serving(tmp_path, RuntimeError("no"), allow_image_urls=True) as served:
        session_id = await served.start()
        failed = await served.send(session_id, "look", attachments=attach(PUBLIC[0]))
        await served.wait(failed)
    async with serving(tmp_path) as served:
        refused = await served.client.post(f"/v1/continuations/{failed}/retry")
        problem(refused, 422, "invalid_input")
