"""Sash at work, to look at: a memory whose window slides, and a house that is talked to."""

import asyncio

from rich.console import Console

from sash.cli.showcase import home_talk, memory_window


def play(console: Console, pause_s: float = 0.0) -> None:
    """Play the demo on `console`, with a pause after each turn."""
    asyncio.run(_play(console, pause_s))


async def _play(console: Console, pause_s: float) -> None:
    await memory_window.play(console, pause_s)
    await home_talk.play(console, pause_s)
