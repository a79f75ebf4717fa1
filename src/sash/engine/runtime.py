"""The runtime: sessions and their turns on one store. Surfaces call the methods of `Runtime` only."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from sash.engine.budget import Spending
from sash.engine.context import ContextBuilder
from sash.engine.detached import detached
from sash.engine.event_feed import EventFeeds
from sash.engine.event_hub import PARTIAL_INTERVAL_S, EventHub
from sash.engine.fact_extraction import FactExtractor
from sash.engine.local_time import LocalTime
from sash.engine.long_work import LongWork
from sash.engine.maintenance import Maintenance
from sash.engine.memory_tools import memory_tools as make_memory_tools
from sash.engine.note_verbs import NoteVerbs
from sash.engine.notes import Notes
from sash.engine.owner_pacing import OwnerPacing
from sash.engine.parts import Parts
from sash.engine.policy import ActionRateLimiter
from sash.engine.readiness import Readiness
from sash.engine.redaction import redact
from sash.engine.rendering import MessageRenderer
from sash.engine.reply_verbs import ReplyVerbs
from sash.engine.report_verbs import ReportVerbs
from sash.engine.turn.continuation_result import ContinuationResult
from sash.engine.turn.fired_turn import CALL_TOOL
from sash.engine.turn_tools import SessionTools, ToolFinder
from sash.engine.waiting_tools import WaitingTools, waiting_tools
from sash.engine.waiting_turns import WaitingTurns
from sash.engine.waiting_verbs import WaitingVerbs
from sash.engine.window_cache import WindowCache
from sash.engine.worker import Worker
from sash.errors import InvalidConfig
from sash.home.home_time_zone import HomeTimeZone
from sash.home.live_home import LiveHome
from sash.intents.memory_intents import MemoryIntents
from sash.memory.digest import DIGEST_TOKENS, check_digest_tokens
from sash.memory.recall_lexicon import load_all_lexicons
from sash.memory.tokens import TokenCounter
from sash.models.catalog import Catalog
from sash.models.offline import OfflineModel
from sash.ports.embedder import Embedder
from sash.ports.home import Home
from sash.ports.intents import Intents
from sash.ports.model import Model, complete_model
from sash.ports.store import Store, SweepCounts
from sash.ports.tools import FindTools, ToolRegistry, ToolSpec
from sash.ports.turns import LEASE_S
from sash.values.clock import Clock, SystemClock
from sash.values.continuations import Continuation
from sash.values.ids import Ulids
from sash.values.sessions import (
    UNLIMITED,
    Defaults,
    OperatorLimits,
    Retention,
)
from sash.values.validation import MAX_MESSAGE_BYTES, check_keywords, check_label, check_limit

if TYPE_CHECKING:
    from sash.intents.everyday_intents import EverydayIntents
    from sash.intents.vocabulary import Vocabulary

SWEEP_INTERVAL_S = 300.0

_logger = logging.getLogger(__name__)


class RuntimeOptions(TypedDict, total=False):
    """The optional parts and settings of a `Runtime`."""

    intents: Iterable[Intents]
    """They answer sentences without a model, and are asked in this order. Default: memory, everyday."""
    first_intents: Iterable[Intents]
    """They are asked before those of `intents`, or before the default ones."""
    more_intents: Iterable[Intents]
    """They are asked after those of `intents`, or after the default ones."""
    memory_tools: bool
    """Whether the agent has tools for its memory, such as `remember` and `recall`. Default: True."""
    waiting_tools: bool
    """Whether the agent has tools to do something later, such as `do_later`. Default: as `memory_tools`."""
    turn_tools: FindTools | None
    """Finds more tools for each turn, by its session and its request. They join the other tools for it."""
    system_prompt: str | None
    """The text at the start of the prompt. Default: the rules of Sash, with the name of the home."""
    catalog: Catalog
    """Prices and context windows of models."""
    embedder: Embedder | None
    """Makes vectors, so that evicted messages are also found by their meaning."""
    home: Home | None
    """The home. It adds tools, and sentences that need no model."""
    vocabulary: "Vocabulary | None"
    """The household's own words for things."""
    summaries: bool
    """Whether the model summarises evicted turns, outside of any turn. Default: False."""
    fact_extraction: bool
    """Whether the model looks for lasting facts in messages, outside of any turn. Default: False."""
    summary_tokens: int
    """The maximum tokens of the digest of evicted turns, and of a summary. At least 32. Default: 2000."""
    retention: Retention
    """How long sessions and the steps of turns are kept."""
    household: str | None
    """An owner whose notes all owners know, in addition to their own. Default: None, no such owner.

    With a household, `max_cost_per_day_usd` limits what all owners of the store spend together.
    """
    defaults: Defaults | None
    """Budgets, policy and window of a session that is started without them."""
    operator: OperatorLimits | None
    """The most that any session may do and spend, whatever its own policy and budgets say. Default: none."""
    on_turn: Callable[[ContinuationResult], None] | None
    """Called for every turn that this process has ended."""
    on_turn_change: Callable[[ContinuationResult], None] | None
    """Called for every turn of this process when it begins or continues to run, pauses, and ends."""
    time_zone: tzinfo | None
    """The zone in which a day begins and times are shown. Default: the zone of the machine."""
    clock: Clock | None
    max_open_turns: int
    """The number of turns that may run in one session at the same time. Default: 1."""
    lease_s: float
    """Seconds until a lease expires that its worker does not renew. Default: 30."""
    partial_interval_s: float
    """Seconds between two events with partial text. Default: 0.5."""
    max_message_bytes: int
    allow_image_urls: bool
    """Whether a message may have images by public `http:` and `https:` URLs. Default: only `data:` images."""


class Runtime(ReplyVerbs, ReportVerbs, NoteVerbs, WaitingVerbs):
    """Sessions and their turns, on one store, with one model and a set of tools.

    Without a `model` only everyday sentences are answered, which needs no network. `RuntimeOptions`
    describes the other arguments.
    """

    def __init__(
        self,
        store: Store,
        model: Model | None = None,
        tools: Iterable[ToolSpec] = (),
        **options: Unpack[RuntimeOptions],
    ) -> None:
        check_keywords(type(self).__name__, options, RuntimeOptions.__annotations__)
        self.model = OfflineModel() if model is None else model
        model = complete_model(self.model)
        clock, home = options.get("clock") or SystemClock(), options.get("home")
        live_home = None if home is None else LiveHome(home)
        if live_home is not None and options.get("time_zone") is None:
            options["time_zone"] = HomeTimeZone(live_home)
        zone = options.get("time_zone")
        ids = Ulids()
        windows = WindowCache()
        household = options.get("household")
        if household is not None:
            check_label("household", household)
        notes = Notes(store, clock, lambda: ids.new(clock.now()), windows.follow, household)
        all_tools = [*tools]
        if options.get("memory_tools", True):
            all_tools += make_memory_tools(store, notes, options.get("embedder"), zone, clock, live_home)
        if live_home is None:
            self._everyday = _load_talk(clock, zone) if isinstance(self.model, OfflineModel) else None
        else:
            self._everyday, home_tools = _load_home(live_home, options.get("vocabulary"), clock, zone)
            all_tools += home_tools
        if options.get("waiting_tools", options.get("memory_tools", True)):
            all_tools += waiting_tools(self._make_waiting_tools(all_tools))
        intents = options.get("intents")
        intents = self._default_intents() if intents is None else tuple(intents)
        intents = (*options.get("first_intents", ()), *intents, *options.get("more_intents", ()))
        has_extraction = options.get("fact_extraction", False) and not isinstance(self.model, OfflineModel)
        extractor = FactExtractor(notes) if has_extraction else None
        self._parts = _make_parts(
            store,
            model,
            ToolRegistry.of(all_tools),
            intents,
            live_home,
            clock,
            ids,
            windows,
            notes,
            extractor,
            options,
        )
        self.defaults = options.get("defaults") or Defaults()
        self._retention = options.get("retention", Retention())
        self.swept = SweepCounts()
        self._lease_s = options.get("lease_s", LEASE_S)
        self._allow_image_urls = options.get("allow_image_urls", False)
        self._max_message_bytes = options.get("max_message_bytes", MAX_MESSAGE_BYTES)
        self._worker = Worker(
            self._parts, self._lease_s, options.get("on_turn"), options.get("on_turn_change")
        )
        self._waiting_turns = WaitingTurns(self._parts, self._worker)
        self._readiness = Readiness(store, clock)
        self._feeds = EventFeeds(store, self._parts.hub)
        self._warmed_up = asyncio.Event()
        self._background: list[asyncio.Task[None]] = []

    def _make_waiting_tools(self, tools: Iterable[ToolSpec]) -> WaitingTools:
        call_service = next((spec for spec in tools if spec.name == CALL_TOOL), None)
        return WaitingTools(lambda: (self._parts, self._waiting_turns), call_service)

    def _default_intents(self) -> tuple[Intents, ...]:
        return (MemoryIntents(),) if self._everyday is None else (MemoryIntents(), self._everyday)

    @property
    def store(self) -> Store:
        return self._parts.store

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, *, recover: bool = True, warm_up: bool = True) -> None:
        """Open the store, recover the turns of dead processes and start the background jobs.

        Without `recover` such turns are only marked as interrupted. A short-lived process, or one with
        another model or home, must not take them over. Without `warm_up` the caller calls it later, when the
        machine has less to do.
        """
        recover_turns = self.recover if recover else self.store.interrupt_lost
        home = self._parts.home
        try:
            await self.store.open()
            self._worker.open()
            await asyncio.to_thread(self._parts.counter.load)
            await asyncio.to_thread(self._parts.catalog.load)
            await asyncio.to_thread(load_all_lexicons)
            self._parts.ids.continue_after(await self.store.last_id())
            if home is not None:
                await home.open()
            self._waiting_turns.open()
            await recover_turns()
            if recover:
                await self._waiting_turns.reload()
        except BaseException:
            self._waiting_turns.close()
            if home is not None:
                await home.close()
            await self.store.close()
            raise
        self._background = [
            asyncio.create_task(self._repeat(self._lease_s / 10, self.heartbeat)),
            asyncio.create_task(self._repeat(self._lease_s, recover_turns)),
            asyncio.create_task(self._repeat(SWEEP_INTERVAL_S, self.sweep)),
            asyncio.create_task(self._waiting_turns.run()),
        ]
        if recover:
            again = self._repeat(self._lease_s, self._waiting_turns.reload)
            self._background.append(asyncio.create_task(again))
        if warm_up:
            self._background.append(asyncio.create_task(self.warm_up()))

    async def warm_up(self) -> None:
        """Prepare the model and the sentences. Without this, the first turn that needs them does it."""
        await self.warm_up_model()
        await self.warm_up_sentences()

    async def warm_up_model(self) -> None:
        """Prepare the first request to the model."""
        try:
            await self._parts.model.open()
        except Exception as error:
            _logger.warning("could not prepare the model in advance: %s", redact(str(error)))

    async def warm_up_sentences(self) -> None:
        """Load the grammar of the home's sentences when the home is connected."""
        if self._parts.home is None or self._everyday is None:
            return
        await self._parts.home.wait_until_ready()
        try:
            await self._everyday.warm_up()
        except Exception as error:
            _logger.warning("could not load the sentences about the home in advance: %s", error)
        self._warmed_up.set()

    async def close(self) -> None:
        """Stop. Running turns are marked as interrupted; another process can resume them."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._waiting_turns.close()
        await self._worker.close()
        await self._parts.maintenance.close()
        await self._readiness.close()
        self._parts.hub.close()
        if self._parts.home is not None:
            await self._parts.home.close()
        await self._parts.model.close()
        if close := getattr(self._parts.embedder, "close", None):
            await close()
        await self.store.close()
        self._parts.pacing.close()

    async def drain(self, *, grace_s: float = 0.0) -> None:
        """Accept no more turns, wait at most `grace_s` for running ones, and mark the rest as interrupted."""
        await self._worker.close(grace_s)
        self._parts.hub.wake_all()

    async def check(self) -> None:
        """Raise the error that a new turn would raise: the runtime is stopping, or the store fails."""
        self._worker.check_open()
        await self._readiness.check()

    @property
    def home(self) -> LiveHome | None:
        """The home with its index, or None if the runtime has no home."""
        return self._parts.home

    @property
    def running_turns(self) -> int:
        """The number of turns that run in this process."""
        return self._worker.running_turns

    @property
    def unwritten_ends(self) -> int:
        """The number of ended turns that the store has not accepted yet."""
        return self._worker.unwritten_ends

    def count_subscribers(self, session_id: str | None = None) -> int:
        """Return the number of subscribers in this process, of one session or of all."""
        return self._parts.hub.count_subscribers(session_id)

    @detached
    async def heartbeat(self) -> None:
        """Renew the leases of running turns now, and write ends that the store could not write before."""
        await self._worker.heartbeat()

    async def wait_for_turns(self) -> None:
        """Wait until no turn runs in this process."""
        await self._worker.wait_idle()

    async def abandon_turns(self) -> None:
        """Stop all turns and write nothing, as if the process had died. For tests of recovery."""
        await self._worker.abandon()

    async def wait_for_background(self) -> None:
        """Wait until no vectors, summaries or facts are being made."""
        await self._parts.maintenance.settled()

    async def home_ready(self, *, timeout_s: float | None = None) -> None:
        """Wait until the home is connected and the grammar of its sentences is loaded.

        After `timeout_s`, raise `HomeUnavailable` if the home is not connected.
        """
        home = self._parts.home
        if home is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await home.wait_until_ready()
                await self._warmed_up.wait()
        except TimeoutError:
            _ = home.index

    @detached
    async def recover(self) -> list[Continuation]:
        """Mark the turns of dead processes as interrupted, start queued turns, and resume where allowed.

        Return the turns that were marked.
        """
        return await self._worker.recover()

    async def sweep(self) -> SweepCounts:
        """Expire idle sessions and abandoned continuations, and delete what `Retention` no longer keeps."""
        now, days = self._parts.clock.now(), self._retention.transcript_retention_days
        swept = await self.store.sweep(
            idle_before=now - timedelta(days=self._retention.session_idle_days),
            ended_before=now - timedelta(hours=self._retention.continuation_retention_hours),
            delete_before=None if days is None else now - timedelta(days=days),
        )
        self.swept += swept
        self._parts.hub.wake_all()
        if swept != SweepCounts():
            _logger.info(
                "sweep: expired %d sessions and %d turns, deleted %d sessions, %d steps and %d artifacts",
                swept.sessions,
                swept.continuations,
                swept.deleted_sessions,
                swept.steps,
                swept.artifacts,
            )
        return swept

    async def _repeat(self, interval_s: float, job: Callable[[], Awaitable[Any]]) -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                await job()
            except Exception as error:
                _logger.warning("%s failed: %s", getattr(job, "__name__", job), error)


def _make_parts(
    store: Store,
    model: Model,
    tools: ToolRegistry,
    intents: tuple[Intents, ...],
    home: LiveHome | None,
    clock: Clock,
    ids: Ulids,
    windows: WindowCache,
    notes: Notes,
    fact_extractor: FactExtractor | None,
    options: RuntimeOptions,
) -> Parts:
    catalog, embedder, zone = options.get("catalog"), options.get("embedder"), options.get("time_zone")
    catalog = Catalog() if catalog is None else catalog
    counter, local_time = TokenCounter(model.name), LocalTime(clock, zone)
    operator, find_tools = options.get("operator") or UNLIMITED, options.get("turn_tools")
    session_tools = SessionTools(tools, operator.policy)
    summary_tokens = check_digest_tokens("summary_tokens", options.get("summary_tokens", DIGEST_TOKENS))
    has_household = options.get("household") is not None
    spending = Spending(store, catalog, counter, local_time.today, model.name, operator, has_household)
    return Parts(
        store=store,
        model=model,
        tools=tools,
        session_tools=session_tools,
        tool_finder=None if find_tools is None else ToolFinder(find_tools, session_tools),
        intents=intents,
        catalog=catalog,
        embedder=embedder,
        home=home,
        clock=clock,
        local_time=local_time,
        ids=ids,
        counter=counter,
        renderer=MessageRenderer(zone),
        contexts=ContextBuilder(counter, options.get("system_prompt")),
        windows=windows,
        hub=EventHub(options.get("partial_interval_s", PARTIAL_INTERVAL_S)),
        long_work=LongWork(),
        pacing=OwnerPacing(),
        spending=spending,
        rate_limiter=ActionRateLimiter(clock),
        maintenance=Maintenance(
            store,
            model,
            spending,
            embedder=embedder,
            summaries=options.get("summaries", False),
            summary_tokens=summary_tokens,
            operator=operator,
            fact_extractor=fact_extractor,
            on_session=windows.follow,
        ),
        notes=notes,
        household=options.get("household"),
        operator=operator,
        digest_tokens=summary_tokens,
        max_open_turns=check_limit("max_open_turns", options.get("max_open_turns", 1)),
    )


def _load_talk(clock: Clock, zone: tzinfo | None) -> "EverydayIntents | None":
    """Return the intents of a conversation without a home; None without the `home` extra."""
    try:
        from sash.intents.everyday_intents import EverydayIntents
    except ImportError:
        return None
    return EverydayIntents(None, None, clock=clock, time_zone=zone)


def _load_home(
    home: LiveHome, vocabulary: "Vocabulary | None", clock: Clock, zone: tzinfo | None
) -> "tuple[EverydayIntents, list[ToolSpec]]":
    """Return the intents and the tools of a home. Raise `InvalidConfig` without the `home` extra."""
    try:
        from sash.home.home_tools import build_home_tools
        from sash.intents.everyday_intents import EverydayIntents
        from sash.intents.home_intents import HomeIntents
    except ImportError as error:
        raise InvalidConfig(f"a home needs more packages: pip install 'sash[home]' ({error})") from error
    grammar = HomeIntents(home, vocabulary=vocabulary, clock=clock, time_zone=zone)
    intents = EverydayIntents(home, grammar, clock=clock, time_zone=zone)
    return intents, list(build_home_tools(home, clock, zone))
