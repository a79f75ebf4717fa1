"""Functions that run turns, and that read prompts and transcripts."""

import asyncio

from sash.ports.prompt import split_time

WAIT_S = 30


async def turn(runtime, session, message="hi", **options):
    """Send a message and wait for its answer."""
    sent = await runtime.send_message(session.id, message, **options)
    return await runtime.await_continuation(sent.id, timeout_s=WAIT_S)


async def answer(runtime, session, message="hi", **options):
    """Return the answer to a message."""
    return (await turn(runtime, session, message, **options)).response.final_message


async def transcript(runtime, session):
    """Return the role and the text of every stored message."""
    stored = await runtime.store.messages("local", session.id, limit=10_000)
    return [(m.message.role, m.message.text) for m in stored]


async def tool_results(runtime, session):
    """Return the texts of the stored tool results."""
    return [text for role, text in await transcript(runtime, session) if role == "tool"]


async def subscribed(runtime, session, count=1):
    """Wait for `count` subscribers and their feed. Events that are not stored reach only present subscribers."""
    async with asyncio.timeout(WAIT_S):
        while runtime.count_subscribers(session.id) <= count:
            await asyncio.sleep(0)


def said(request):
    """Return the texts of the conversation in a model request, without the times."""
    shown = [m for m in request.messages if m["role"] != "system"]
    return [split_time(m["content"])[1] if m["role"] == "user" else m["content"] for m in shown]


def system_texts(request):
    """Return the texts of the system messages in a model request."""
    return [m["content"] for m in request.messages if m["role"] == "system"]
