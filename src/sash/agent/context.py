"""The prompt of one model call, stable parts first: system, memory, window, and then what is new."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sash.sessions import SessionMemory
from sash.tokens import TokenCounter

SYSTEM_PROMPT = (
    "You are Sash, an assistant that remembers exactly. Use the tools to find out and to act; never say that "
    "you did something that no tool has done. If a tool says that an outcome is unknown, say so."
)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the prompt; a stable one is the same from turn to turn until the memory or the cut moves."""

    name: str
    messages: tuple[dict[str, Any], ...]
    stable: bool


def build(memory: SessionMemory, window: Sequence[dict[str, Any]], hints: dict[str, Any]) -> list[Part]:
    """Put the parts of the prompt that come before a turn's own messages in their order."""
    parts = [
        Part("system", ({"role": "system", "content": SYSTEM_PROMPT},), stable=True),
        Part("memory", _memory(memory), stable=True),
        Part("window", tuple(window), stable=True),
        Part("hints", _hints(hints), stable=False),
    ]
    return [part for part in parts if part.messages]


def prompt(parts: list[Part]) -> list[dict[str, Any]]:
    """Return the messages of the parts."""
    return list(chain.from_iterable(part.messages for part in parts))


def report(parts: list[Part], tools: list[dict[str, Any]], counter: TokenCounter) -> dict[str, Any]:
    """Say what the prompt is made of, and what each part costs."""
    counted: list[dict[str, Any]] = [
        {
            "name": part.name,
            "tokens": sum(
                counter.count_message(m["content"], m.get("tool_calls", ()), m.get("name"))
                for m in part.messages
            ),
            "stable": part.stable,
        }
        for part in parts
    ]
    counted.insert(1, {"name": "tools", "tokens": counter.count_tools(tools), "stable": True})
    total = sum(part["tokens"] for part in counted)
    stable = sum(part["tokens"] for part in counted if part["stable"])
    return {
        "parts": counted,
        "total_tokens": total,
        "prefix_share": stable / total if total else 0.0,
    }


def _memory(memory: SessionMemory) -> tuple[dict[str, Any], ...]:
    sections = (
        ("Always keep in mind", [pin.text for pin in memory.pins]),
        ("What is known", [fact.text for fact in memory.facts]),
        ("Earlier turns, shortened", [memory.digest] if memory.digest else []),
    )
    text = "\n\n".join(f"{title}:\n" + "\n".join(lines) for title, lines in sections if lines)
    return ({"role": "system", "content": text},) if text else ()


def _hints(hints: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    if not hints:
        return ()
    lines = "\n".join(f"{key}: {value}" for key, value in sorted(hints.items()))
    return ({"role": "system", "content": f"Hints for this turn:\n{lines}"},)
