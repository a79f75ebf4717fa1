"""Kills a server again and again while clients use it, and checks that nothing was lost or doubled."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import aiohttp

from tests.home.fake_home_assistant import TOKEN
from tests.soak.checks import Verdict, check_home, check_session
from tests.soak.client import Client
from tests.soak.jobs import SimulatedHome, SimulatedModel

START_S = 120.0
END_S = 120.0
# This share of the starts is killed while the server opens its store and continues interrupted turns.
DOUBLE_SHARE = 0.35
MAX_EARLY_S = 2.0
MAX_CONNECTIONS = 200


@dataclass(frozen=True)
class Plan:
    """A storm: the store, the numbers of sessions and kills, and the seconds between two kills."""

    store: str
    sessions: int
    kills: int
    interval_s: float
    seed: int


@dataclass
class Progress:
    """The counts of a storm that is under way. An early kill is one while the server starts."""

    kills: int = 0
    early_kills: int = 0
    turns: int = 0
    events: int = 0


class Server:
    """`sash serve` as a process that is started and killed many times, with the same folder and port."""

    def __init__(self, folder: Path, store: str, home_url: str, model_url: str) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self._folder = folder
        self._log = folder / "server.log"
        self._data = folder / "data"
        self._command = [
            sys.executable,
            "-m",
            "sash",
            "serve",
            "--port",
            str(port),
            "--data",
            str(self._data),
        ]
        self._environment = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "SASH_STORE": store,
            "SASH_HOME_URL": home_url,
            "SASH_HOME_TOKEN": TOKEN,
            "SASH_MODEL": "m",
            "SASH_API_BASE": model_url,
            "SASH_API_KEY": "none",
            "SASH_ALLOW_ACTUATION": "true",
            "SASH_ALLOWLISTED_SERVICES": "light,notify",
        }

    async def start(self, *, resumes: bool) -> None:
        """Start the process. If `resumes`, it continues interrupted turns itself."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                cwd=self._folder,
                env=self._environment | {"SASH_RESUME_INTERRUPTED": str(resumes).lower()},
                stdout=log,
                stderr=log,
            )

    async def wait_until_ready(self, http: aiohttp.ClientSession) -> None:
        """Wait until the server answers; raise RuntimeError if the process ends or takes too long."""
        problem = "has ended"
        try:
            async with asyncio.timeout(START_S):
                while self._process.returncode is None:
                    try:
                        async with http.get(f"{self.address}/ready") as response:
                            if response.status == 200:
                                return
                    except (aiohttp.ClientError, OSError):
                        await asyncio.sleep(0.02)
        except TimeoutError:
            problem = f"did not answer within {START_S:.0f} s"
        raise RuntimeError(f"the server {problem}:\n{self._log.read_text()[-3000:]}")

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Stop the process as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        async with asyncio.timeout(START_S):
            await self._process.wait()

    async def examine_store(self) -> str:
        """Return what `sash doctor` prints if it finds something wrong, otherwise an empty text."""
        doctor = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "sash", "doctor", "--data", str(self._data)),
            cwd=self._folder,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(START_S):
            printed, _ = await doctor.communicate()
        return printed.decode() if doctor.returncode else ""


async def run_storm(plan: Plan, show: Callable[[Progress], None]) -> tuple[Verdict, Progress]:
    """Run a storm on a new store, and return what was found. `show` is called after every kill."""
    progress, random = Progress(), Random(plan.seed)
    async with _open_world(plan) as (server, home, http):
        clients = [Client(http, server.address, n, plan.seed) for n in range(plan.sessions)]
        await asyncio.gather(*(client.start() for client in clients))
        workers = [asyncio.create_task(client.work()) for client in clients]
        while progress.kills < plan.kills:
            await asyncio.sleep(random.uniform(0.1, 0.9) * plan.interval_s)
            await server.kill()
            progress.kills += 1
            while progress.kills < plan.kills and random.random() < DOUBLE_SHARE:
                await server.start(resumes=True)
                await asyncio.sleep(random.uniform(0, MAX_EARLY_S))
                await server.kill()
                progress.kills += 1
                progress.early_kills += 1
            await server.start(resumes=random.random() < 0.5)
            await server.wait_until_ready(http)
            progress.turns = sum(job.status != "" for c in clients for job in c.told.jobs.values())
            progress.events = sum(len(client.told.events) for client in clients)
            show(progress)
            for worker in workers:
                if worker.done():
                    worker.result()
        for client in clients:
            client.stop()
        async with asyncio.timeout(END_S):
            await asyncio.gather(*workers)
        verdict = await _check(clients, home)
        await server.stop()
        if found := await server.examine_store():
            verdict.wrong.append(f"sash doctor: {found}")
    return verdict, progress


@asynccontextmanager
async def _open_world(plan: Plan) -> AsyncIterator[tuple[Server, SimulatedHome, aiohttp.ClientSession]]:
    connector = aiohttp.TCPConnector(limit=MAX_CONNECTIONS, force_close=True)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            SimulatedHome(plan.sessions) as home,
            SimulatedModel() as model,
            aiohttp.ClientSession(connector=connector) as http,
        ):
            server = Server(Path(folder), plan.store, home.url, model.url)
            await server.start(resumes=False)
            try:
                await server.wait_until_ready(http)
                yield server, home, http
            finally:
                await server.kill()


async def _check(clients: list[Client], home: SimulatedHome) -> Verdict:
    verdict = Verdict(calls=home.notified.total() + home.dimmed.total())
    for client in clients:
        shown = await client.request("GET", f"/v1/sessions/{client.session_id}")
        messages, events = await client.read_messages(), await client.end()
        preference = shown["session"]["preferences"].get("count")
        check_session(verdict, client.number, client.told, messages, events, preference)
        check_home(verdict, client.number, client.told, messages, home)
    return verdict
