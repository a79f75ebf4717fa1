"""Messages with tool calls, and functions that add and read messages."""


def call(id, name="light", arguments='{"on": true}'):
    """Return a tool call in the OpenAI format."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def contents(messages):
    """Return the content of every message."""
    return [m["content"] for m in messages]


async def talk(memory, *texts, conversation_id="c"):
    """Add texts, in turn from the user and the assistant."""
    for n, text in enumerate(texts):
        await memory.add_message(conversation_id, "assistant" if n % 2 else "user", text)
