"""What the tests of turns say and hear."""

from sash.ports.prompt import split_time

WAIT_S = 10


async def turn(runtime, session, message="hi", **options):
    """Send a message and wait for its answer."""
    sent = await runtime.send_message(session.id, message, **options)
    return await runtime.await_continuation(sent.id, timeout_s=WAIT_S)


async def answer(runtime, session, message="hi", **options):
    """Return the answer to a message."""
    return (await turn(runtime, session, message, **options)).response.final_message


async def transcript(runtime, session):
    """Return who said what."""
    stored = await runtime.store.messages("local", session.id, limit=10_000)
    return [(m.message.role, m.message.text) for m in stored]


def said(request):
    """Return what a model is shown of the conversation, without the times."""
    shown = [m for m in request.messages if m["role"] != "system"]
    return [split_time(m["content"])[1] if m["role"] == "user" else m["content"] for m in shown]


def system_texts(request):
    """Return what Sash told a model, in its order."""
    return [m["content"] for m in request.messages if m["role"] == "system"]
