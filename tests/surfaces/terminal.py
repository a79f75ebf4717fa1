"""Runs the program `sash` in a pseudo-terminal for tests."""

import asyncio
import codecs
import os
import pty
import re
import select
import subprocess
import sys
import time

from tests.models.wire import Reply, chunk
from tests.surfaces.command_line import SASH, WAIT_S

# After this time without an answer to Ctrl-C, Enter is pressed.
NUDGE_S = 2
PROMPT = "› "
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
# Makes the pseudo-terminal the controlling one, so that Ctrl-C becomes a signal.
IN_A_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
# A model that stops in the middle of a sentence and keeps the connection open.
HANGING = Reply(chunks=[chunk("Let me "), chunk("think about "), chunk("it")], then="hang")

_escapes = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x01\x02]")


class Terminal:
    """Runs `sash` in a pseudo-terminal. Tests press keys and wait for output."""

    def __init__(self, cli, *arguments, program=(SASH,), **environment):
        self._master, slave = pty.openpty()
        given = {
            "COLUMNS": "120",
            "LINES": "40",
            "TERM": "xterm-256color",
            **cli.environment,
            **environment,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", IN_A_TERMINAL, *program, *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=given,
            start_new_session=True,
        )
        os.close(slave)
        self.raw = ""
        self._read = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(WAIT_S)
        os.close(self._master)

    async def until(self, text):
        """Wait until a text is shown after the last text that was waited for."""
        seen = await asyncio.to_thread(self._wait_for, text, WAIT_S)
        assert seen, f"{text!r} was not shown: {self.shown[self._read :]!r}"

    async def interrupt(self, text):
        """Press Ctrl-C and wait until a text is shown.

        Python notices a Ctrl-C that comes just before it waits for a line only when the line is complete. So press
        Enter if nothing happens; at the next prompt it would be an empty line.
        """
        self.press(CTRL_C)
        if not await asyncio.to_thread(self._wait_for, text, NUDGE_S):
            self.press("\r")
            await self.until(text)

    def _wait_for(self, text, within_s):
        until = time.monotonic() + within_s
        while text not in self.shown[self._read :]:
            if not self._has_more(until):
                return False
            assert self._take(), f"the program ended without {text!r}: {self.shown!r}"
        self._read = self.shown.index(text, self._read) + len(text)
        return True

    def _has_more(self, until):
        """Wait for output or the end of the program. Return False after the deadline."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, until - time.monotonic()))
        return bool(ready)

    def _take(self):
        try:
            new = os.read(self._master, 1 << 16)
        except OSError:  # Linux reports a closed terminal like this.
            return False
        self.raw += self._decoder.decode(new)
        return bool(new)

    @property
    def shown(self):
        return _escapes.sub("", self.raw).replace("\r", "")

    def press(self, keys):
        os.write(self._master, keys.encode())

    def type(self, line):
        self.press(f"{line}\r")

    async def say(self, line):
        """Type a line at the next prompt of a chat."""
        await self.until(PROMPT)
        self.type(line)

    async def quit(self):
        """Press Ctrl-D at the next prompt of a chat, and wait for a clean end."""
        await self.until(PROMPT)
        self.press(CTRL_D)
        assert await self.leaves() == 0

    async def leaves(self):
        """Wait for the end of the program, and return its exit code."""
        return await asyncio.to_thread(self._leaves)

    def _leaves(self):
        until = time.monotonic() + WAIT_S
        while self._has_more(until):
            if not self._take():
                return self.process.wait(WAIT_S)
        raise AssertionError(f"the program did not end: {self.shown!r}")
