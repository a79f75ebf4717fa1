"""The use cases: the only verbs that any surface calls."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Self

from sash.engine.budget import Spending
from sash.engine.context import SYSTEM_PROMPT, ContextBuilder, prefix_share, report
from sash.engine.direct_call import DirectToolCall
from sash.engine.event_feed import EventFeeds
from sash.engine.event_hub import PARTIAL_INTERVAL_S, Event, EventHub
from sash.engine.local_time import LocalTime
from sash.engine.maintenance import Maintenance
from sash.engine.memory_tools import memory_tools as make_memory_tools
from sash.engine.notes import Notes, check_preferences
from sash.engine.parts import Parts
from sash.engine.policy import ActionRateLimiter
from sash.engine.redaction import redact
from sash.engine.rendering import MessageRenderer
from sash.engine.requests import (
    read_answer,
    read_label,
    read_model,
    read_object,
    read_recorded,
    read_request,
)
from sash.engine.session_import import read_bundle
from sash.engine.turn.progress import Progress
from sash.engine.window_cache import WindowCache
from sash.engine.worker import BusyPolicy, ContinuationResult, Worker
from sash.errors import (
    ContinuationFinal,
    ContinuationNotFound,
    ContinuationOpen,
    CursorUnknown,
    HomeUnavailable,
    InvalidConfig,
    InvalidInput,
    KeyReused,
    ModelFixed,
    NotAwaitingApproval,
    SashError,
    SessionNotFound,
    StoreUnavailable,
    TooManySessions,
)
from sash.home.live import LiveHome
from sash.intents.memory import MemoryIntents
from sash.intents.undo import UndoIntents
from sash.memory.tokens import TokenCounter
from sash.memory.window import Window
from sash.models.catalog import Catalog
from sash.models.offline import OfflineModel
from sash.ports.embedder import Embedder
from sash.ports.home import Home
from sash.ports.intents import Intents
from sash.ports.model import Model, close, name_of
from sash.ports.session_rules import change_session, check_active
from sash.ports.store import (
    LEASE_S,
    Artifact,
    Bundle,
    Page,
    Store,
    StoredMessage,
    SweepCounts,
)
from sash.ports.tools import ToolRegistry, ToolSpec
from sash.values.clock import Clock, SystemClock
from sash.values.codec import adapter
from sash.values.continuations import FINAL, Continuation
from sash.values.ids import Ulids, is_ulid
from sash.values.sessions import (
    CONTINUATION_RETENTION_HOURS,
    ONE_QUESTION,
    SESSION_IDLE_DAYS,
    Budgets,
    Defaults,
    Fact,
    ModelConfig,
    Pin,
    Session,
    SessionMemory,
    SessionPolicy,
    SessionStatus,
    WindowLimits,
    last_k_for,
    window_for,
)
from sash.values.stats import Stats, summary
from sash.values.steps import ApprovalGiven
from sash.values.validation import (
    MAX_MESSAGE_BYTES,
    check_count,
    check_flag,
    check_kind,
    check_label,
    check_limit,
)

if TYPE_CHECKING:
    from sash.intents.home import HomeIntents
    from sash.intents.vocabulary import Vocabulary

DEFAULT_OWNER = "local"
SWEEP_EVERY_S = 300.0
STATISTICS_DAYS = 7
MAX_DAYS = 366

_logger = logging.getLogger(__name__)


class Runtime:
    """Sessions and their turns, on one store, with one model and a set of tools.

    Without a `model` it is the one that needs no network, and understands little.
    `intents` understand sentences without the model, in their order. The tools `remember`, `forget` and
    `recall` are always there, unless `memory_tools` is False. With an `embedder` evicted turns are also found
    by their meaning. With a `home` the agent knows a house: its tools are there, and sentences about it are
    understood without the model, by a `vocabulary` of one's own, too. With `summaries` the model sums evicted
    turns up, off the turn's path. A session is given the `defaults` where it asks for nothing in particular,
    and `on_turn` is told of every turn that this process has brought to an end. Days begin, and the time is
    told, in `time_zone`: None is that of the machine.
    """

    def __init__(
        self,
        store: Store,
        model: Model | None = None,
        tools: Iterable[ToolSpec] = (),
        *,
        intents: Iterable[Intents] | None = None,
        memory_tools: bool = True,
        system_prompt: str = SYSTEM_PROMPT,
        catalog: Catalog | None = None,
        embedder: Embedder | None = None,
        home: Home | None = None,
        vocabulary: "Vocabulary | None" = None,
        summaries: bool = False,
        defaults: Defaults | None = None,
        on_turn: Callable[[ContinuationResult], None] | None = None,
        time_zone: tzinfo | None = None,
        clock: Clock | None = None,
        lease_s: float = LEASE_S,
        partial_interval_s: float = PARTIAL_INTERVAL_S,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self.store = store
        self._clock = clock or SystemClock()
        self.defaults = defaults or Defaults()
        self._hub = EventHub(partial_interval_s, redact)
        model = OfflineModel() if model is None else model
        ids, counter, catalog = Ulids(), TokenCounter(name_of(model)), catalog or Catalog()
        local_time = LocalTime(self._clock, time_zone)
        spending = Spending(store, catalog, counter, local_time.today)
        self._notebook = Notes(store, self._clock, lambda: ids.new(self._clock.now()))
        own_tools = [*make_memory_tools(store, self._notebook, embedder, time_zone)] if memory_tools else []
        self._warmed = asyncio.Event()
        self._home: LiveHome | None = None
        self._home_intents: HomeIntents | None = None
        if home is not None:
            self._home = LiveHome(home)
            own_tools += self._know(self._home, vocabulary, time_zone)
        self._parts = Parts(
            store=store,
            model=model,
            tools=ToolRegistry.of([*tools, *own_tools]),
            intents=self._default_intents() if intents is None else tuple(intents),
            catalog=catalog,
            embedder=embedder,
            home=self._home,
            clock=self._clock,
            local_time=local_time,
            ids=ids,
            counter=counter,
            renderer=MessageRenderer(time_zone),
            contexts=ContextBuilder(counter, system_prompt),
            windows=WindowCache(),
            hub=self._hub,
            spending=spending,
            rate_limiter=ActionRateLimiter(self._clock),
            maintenance=Maintenance(store, model, spending, embedder=embedder, summaries=summaries),
        )
        self._worker = Worker(self._parts, lease_s, on_turn)
        self._feeds = EventFeeds(store, self._hub)
        self._lease_s = lease_s
        self._max_message_bytes = max_message_bytes
        self._background: list[asyncio.Task[None]] = []

    def _know(
        self, home: LiveHome, vocabulary: "Vocabulary | None", zone: tzinfo | None
    ) -> Iterable[ToolSpec]:
        """Learn the sentences about a house, and return its tools; who has no house needs neither."""
        try:
            from sash.home.tools import home_tools
            from sash.intents.home import HomeIntents
        except ImportError as error:
            raise InvalidConfig(f"a home needs more packages: pip install 'sash[home]' ({error})") from error
        self._home_intents = HomeIntents(home, vocabulary=vocabulary, clock=self._clock, time_zone=zone)
        return home_tools(home, self._clock, zone)

    def _default_intents(self) -> tuple[Intents, ...]:
        if self._home_intents is None:
            return (MemoryIntents(),)
        return (MemoryIntents(), UndoIntents(), self._home_intents)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, *, recover: bool = True) -> None:
        """Open the store, take stock of what a dead process left behind, and start the housekeeping.

        Without `recover` that is only marked: one that may have another model or house, or is here for a
        moment, takes nothing over.
        """
        look_after = self.recover if recover else self.store.interrupt_lost
        await self.store.open()
        self._worker.open()
        try:
            await asyncio.to_thread(self._parts.counter.load)
            await asyncio.to_thread(self._parts.catalog.load)
            self._parts.ids.go_behind(await self.store.last_id())
            if self._home is not None:
                await self._home.open()
            await look_after()
        except BaseException:
            if self._home is not None:
                await self._home.close()
            await self.store.close()
            raise
        self._background = [
            asyncio.create_task(self._every(self._lease_s / 10, self._worker.heartbeat)),
            asyncio.create_task(self._warm_up()),
            asyncio.create_task(self._every(self._lease_s, look_after)),
            asyncio.create_task(self._every(SWEEP_EVERY_S, self.sweep)),
        ]

    async def close(self) -> None:
        """Stop. Turns under way are marked as interrupted, for the next process to go on with."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._worker.close()
        await self._parts.maintenance.close()
        self._hub.wake_all()
        if self._home is not None:
            await self._home.close()
        await close(self._parts.model)
        if self._parts.embedder is not None:
            await close(self._parts.embedder)
        await self.store.close()

    @property
    def model(self) -> Model:
        """The model that answers unless a session names another."""
        return self._parts.model

    async def wait_for_background(self) -> None:
        """Wait until no vectors or summaries are being made."""
        await self._parts.maintenance.settled()

    async def check(self) -> None:
        """Raise what keeps a turn from beginning: the store, or that it is enough."""
        self._worker.check_open()
        await self.store.last_id()

    async def drain(self, *, grace_s: float = 0.0) -> None:
        """Begin no more turns, give those under way some time, and mark what is not over then.

        Whoever waits for a turn, or listens to a session, is told so; what was marked can be resumed.
        """
        await self._worker.close(grace_s)
        self._hub.wake_all()

    async def home_ready(self, *, timeout_s: float | None = None) -> None:
        """Wait until the house can be asked, and talked to; if that takes too long, say what is wrong."""
        if self._home is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._home.ready()
                await self._warmed.wait()
        except TimeoutError:
            _ = self._home.index

    async def start_session(
        self,
        *,
        owner: str = DEFAULT_OWNER,
        model: ModelConfig | None = None,
        budgets: Budgets | None = None,
        policy: SessionPolicy | None = None,
        window: WindowLimits | None = None,
        preferences: dict[str, Any] | None = None,
        area: str | None = None,
        name: str | None = None,
        context: dict[str, Any] | None = None,
    ) -> Session:
        """Begin a session. Without a `window` its width is chosen for the model.

        `area` is where in the house the user is: "turn on the lights" means those there. By a `name` it is
        found again; an owner has one active session of a name. `context` is what the caller keeps with it.
        """
        now, parts = self._clock.now(), self._parts
        config = read_model(model)
        reads = parts.catalog.context_window(parts.model_name(config))
        usual = self.defaults.window or window_for(reads)
        session = Session(
            parts.new_id(),
            check_label("owner", owner),
            now,
            now,
            model=config,
            budgets=check_kind("budgets", self.defaults.budgets if budgets is None else budgets, Budgets),
            policy=check_kind("policy", self.defaults.policy if policy is None else policy, SessionPolicy),
            window=check_kind("window", usual if window is None else window, WindowLimits),
            memory=SessionMemory(last_k=last_k_for(reads)),
            preferences=check_preferences(preferences),
            context=read_object("context", context)
            | ({} if area is None else {"area": read_label("area", area)}),
            name=None if name is None else read_label("name", name),
        )
        await self._check_room(owner)
        await self.store.create_session(session)
        return session

    async def _check_room(self, owner: str) -> None:
        """Refuse one more session than an owner may have; a few begun at the same moment may pass."""
        most = self.defaults.max_sessions
        if most is not None and await self.store.count_active(owner) >= most:
            raise TooManySessions(
                f"{owner} has {most} active sessions, all that it may have: end some, or raise max_sessions",
                limit=most,
            )

    async def send_message(
        self,
        session_id: str,
        message: str,
        *,
        owner: str = DEFAULT_OWNER,
        allow_tools: bool = True,
        max_steps: int | None = None,
        time_budget_ms: int | None = None,
        planner_hints: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        model: ModelConfig | None = None,
        attachments: Sequence[dict[str, Any]] = (),
        metadata: dict[str, Any] | None = None,
        busy: BusyPolicy = "reject",
        retry_of: str | None = None,
    ) -> Continuation:
        """Begin a turn and return at once; it is safe in the store by then.

        `model` answers this turn only. `attachments` are images and audio as OpenAI's content parts.
        `metadata` is kept with the turn, and shown to no model.
        """
        request = read_request(
            self._max_message_bytes,
            message,
            allow_tools=allow_tools,
            max_steps=max_steps,
            time_budget_ms=time_budget_ms,
            planner_hints=planner_hints,
            idempotency_key=idempotency_key,
            model=model,
            attachments=attachments,
            metadata=metadata,
        )
        if request.model is not None:
            await self._check_model(owner, session_id, request.model)
        now = self._clock.now()
        new = Continuation(
            self._parts.new_id(), session_id, owner, "running", now, now, request, retry_of=retry_of
        )
        if busy not in ("reject", "enqueue", "interrupt"):
            raise InvalidInput(f"busy must be reject, enqueue or interrupt, got {busy!r}")
        return _same(new, await self._worker.begin(new, busy))

    async def record_turn(
        self,
        session_id: str,
        user_message: str,
        ai_response: str | None = None,
        *,
        owner: str = DEFAULT_OWNER,
        metadata: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Continuation:
        """Add a turn that somebody else has answered, without running the agent.

        Without an `ai_response` it is not answered yet: `amend_turn` gives it one.
        """
        request = read_recorded(self._max_message_bytes, user_message, metadata, idempotency_key)
        answer = None if ai_response is None else read_answer(self._max_message_bytes, ai_response)
        now = self._clock.now()
        new = Continuation(self._parts.new_id(), session_id, owner, "running", now, now, request)
        return _same(new, await self._worker.record(new, answer))

    async def amend_turn(
        self, continuation_id: str, ai_response: str, *, owner: str = DEFAULT_OWNER
    ) -> Continuation:
        """Give a completed turn its answer, or another one, wherever the turn stands by now."""
        answer = read_answer(self._max_message_bytes, ai_response)
        return await self._worker.amend(owner, continuation_id, answer)

    async def list_turns(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, most: int | None = None
    ) -> list[Continuation]:
        """List the turns that are in a session's window, oldest first; with `most` only the newest."""
        turns = await self.store.window_turns(owner, session_id)
        return turns if most is None else turns[max(0, len(turns) - check_count("most", most)) :]

    async def await_continuation(
        self, continuation_id: str, *, owner: str = DEFAULT_OWNER, timeout_s: float | None = None
    ) -> ContinuationResult:
        """Wait until a continuation has ended or waits for somebody, or time is up; say where it stands."""
        if timeout_s == 0:
            return await self._worker.result(owner, continuation_id)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._worker.settled(owner, continuation_id)
        except TimeoutError:
            return await self._worker.result(owner, continuation_id)

    async def cancel(
        self, continuation_id: str, *, owner: str = DEFAULT_OWNER, reason: str = "cancelled by the user"
    ) -> Continuation:
        """End a continuation, at once and for good."""
        cancelled = await self._worker.cancel(owner, continuation_id, reason)
        await self._worker.serve_next(cancelled.session_id)
        return cancelled

    async def resume(self, continuation_id: str, *, owner: str = DEFAULT_OWNER) -> Continuation:
        """Go on with an interrupted continuation, from the first step that is missing."""
        continuation = await self.store.get_continuation(owner, continuation_id)
        if continuation.status == "running":
            return continuation
        if continuation.status == "awaiting_approval":
            raise ContinuationOpen(f"continuation {continuation_id} waits for a yes or no: approve it")
        return await self._worker.take_over(continuation)

    async def retry(self, continuation_id: str, *, owner: str = DEFAULT_OWNER) -> Continuation:
        """Run the turn again as a new continuation."""
        old = await self.store.get_continuation(owner, continuation_id)
        if old.status not in FINAL and old.status != "interrupted":
            raise ContinuationOpen(f"continuation {continuation_id} is {old.status}: cancel it first")
        again = await self.send_message(
            old.session_id,
            old.request.message,
            owner=owner,
            allow_tools=old.request.allow_tools,
            max_steps=old.request.max_steps,
            time_budget_ms=old.request.time_budget_ms,
            planner_hints=old.request.planner_hints,
            model=old.request.model,
            attachments=old.request.attachments,
            metadata=old.request.metadata,
            retry_of=old.id,
        )
        if old.status == "interrupted":
            with suppress(ContinuationFinal):
                await self._worker.cancel(owner, continuation_id, "retried")
        return again

    async def approve(
        self,
        continuation_id: str,
        call_id: str,
        approved: bool = True,
        *,
        owner: str = DEFAULT_OWNER,
    ) -> Continuation:
        """Say yes or no to a call that waits for it; the turn goes on as far as it can."""
        waiting = await self._worker.result(owner, continuation_id)
        if waiting.status != "awaiting_approval":
            raise NotAwaitingApproval(
                f"continuation {continuation_id} is {waiting.status}, not awaiting approval"
            )
        calls = Progress.from_steps(waiting.continuation.request.message, waiting.steps).open_calls
        if call_id not in calls or not calls[call_id].awaits_approval:
            known = ", ".join(call.id for call in calls.values() if call.awaits_approval)
            raise NotAwaitingApproval(f"no call {call_id} waits for a yes; these do: {known}")
        answer = ApprovalGiven(call_id, check_flag("approved", approved))
        return await self._worker.take_over(waiting.continuation, (answer,))

    async def ask(
        self,
        message: str,
        *,
        owner: str = DEFAULT_OWNER,
        allow_tools: bool = True,
        model: ModelConfig | None = None,
        budgets: Budgets | None = None,
        policy: SessionPolicy | None = None,
        timeout_s: float | None = None,
    ) -> ContinuationResult:
        """Ask one question, and wait for the answer."""
        asked = await self.put_question(
            message, owner=owner, allow_tools=allow_tools, model=model, budgets=budgets, policy=policy
        )
        return await self.await_continuation(asked.id, owner=owner, timeout_s=timeout_s)

    async def put_question(
        self,
        message: str,
        *,
        owner: str = DEFAULT_OWNER,
        allow_tools: bool = True,
        model: ModelConfig | None = None,
        budgets: Budgets | None = None,
        policy: SessionPolicy | None = None,
    ) -> Continuation:
        """Ask one question in a session of its own, which ends with the answer, whoever waits for it."""
        session = await self.start_session(
            owner=owner, model=model, budgets=budgets, policy=policy, context={ONE_QUESTION: True}
        )
        try:
            return await self.send_message(session.id, message, owner=owner, allow_tools=allow_tools)
        except SashError:
            await self.end_session(session.id, owner=owner)
            raise

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        owner: str = DEFAULT_OWNER,
        session_id: str | None = None,
    ) -> Any:
        """Call a tool that only reads the house. What it keeps, such as a plot, needs a session."""
        return await DirectToolCall(self._parts, owner, session_id).make(name, arguments or {})

    @property
    def direct_tools(self) -> tuple[ToolSpec, ...]:
        """The tools that may be called directly."""
        return tuple(spec for spec in self._parts.tools.specs.values() if spec.direct)

    async def get_session(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> Session:
        """Return a session."""
        return await self.store.get_session(owner, session_id)

    async def find_session(self, name: str, *, owner: str = DEFAULT_OWNER) -> Session | None:
        """Return the active session of a name, or if there is none the newest one that had it."""
        return await self.store.find_session(owner, check_label("name", name))

    async def list_sessions(
        self,
        *,
        owner: str = DEFAULT_OWNER,
        status: SessionStatus | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        """List an owner's sessions, newest first: all, or those of a status or a name."""
        check_limit("limit", limit)
        if cursor is not None and not is_ulid(cursor):
            raise InvalidInput(f"cursor is the next_cursor of the last page, not {cursor!r:.80}")
        return await self.store.list_sessions(owner, status=status, name=name, limit=limit, cursor=cursor)

    async def open_continuations(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> list[Continuation]:
        """Return what is not over of a session, oldest first."""
        return await self.store.list_continuations(owner, session_id, open_only=True)

    async def end_session(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, reason: str = "the session was ended"
    ) -> Session:
        """End a session: it takes no more turns, and what runs or waits in it is cancelled."""

        def end(session: Session) -> Session:
            return replace(session, status="ended") if session.status == "active" else session

        session = await change_session(self.store, owner, session_id, end)
        await self._worker.cancel_all(owner, session_id, reason)
        self._hub.wake(session_id)
        return session

    async def reopen_session(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> Session:
        """Let a session that has expired go on; one that was ended stays so."""

        def reopen(session: Session) -> Session:
            if session.status == "expired":
                return replace(session, status="active")
            check_active(session)
            return session

        if (await self.get_session(session_id, owner=owner)).status == "expired":
            await self._check_room(owner)
        return await change_session(self.store, owner, session_id, reopen)

    async def delete_session(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> None:
        """Delete a session with everything in it, and stop what runs in it. What it cost stays spent."""
        spending = self._parts.spending
        spent = await spending.spent_today(owner)
        await self.store.delete_session(owner, session_id)
        self._hub.wake(session_id)
        await self._worker.stop(owner, session_id)
        self._parts.windows.pop(session_id)
        self._parts.contexts.forget()
        spending.spend_outside_turns(owner, max(0.0, spent - await spending.spent_today(owner)))

    async def fork_session(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> Session:
        """Copy a session with its transcript and window, so that both go on apart."""
        await self._check_room(owner)
        source = await self.store.export_session(owner, session_id)
        now, new_id = self._clock.now(), self._parts.new_id()
        session = replace(
            source.session,
            id=new_id,
            created_at=now,
            updated_at=now,
            status="active",
            stats=Stats(),
            version=1,
            name=None,
        )
        messages = tuple(
            replace(stored, session_id=new_id, continuation_id=None) for stored in source.messages
        )
        await self.store.import_session(
            Bundle(
                session,
                messages=messages,
                turn_starts=source.turn_starts,
                evicted=source.evicted,
                evicted_count=source.evicted_count,
            )
        )
        return session

    async def export_session(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> dict[str, Any]:
        """Return a whole session as JSON values."""
        bundle = await self.store.export_session(owner, session_id)
        data = await asyncio.to_thread(adapter(Bundle).dump_python, bundle, mode="json")
        return {"format": "sash.session", "version": 1, **data}

    async def import_session(
        self,
        data: dict[str, Any],
        *,
        owner: str = DEFAULT_OWNER,
        adopt: Callable[[Session], Session] = lambda session: session,
    ) -> Session:
        """Bring an exported session back; it becomes the owner's, as `adopt` lets it be."""
        await self._check_room(owner)
        bundle = await asyncio.to_thread(read_bundle, data, owner)
        session = await self.store.import_session(replace(bundle, session=adopt(bundle.session)))
        self._parts.windows.drop_owner(owner)
        return session

    async def list_messages(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, after: int = 0, limit: int = 100
    ) -> list[StoredMessage]:
        """Return a session's transcript behind a position."""
        check_count("after", after)
        return await self.store.messages(owner, session_id, after=after, limit=check_limit("limit", limit))

    async def get_artifact(self, artifact_id: str, *, owner: str = DEFAULT_OWNER) -> Artifact:
        """Return a large result that was kept apart."""
        return await self.store.get_artifact(owner, artifact_id)

    async def search(
        self, query: str, *, owner: str = DEFAULT_OWNER, session_id: str | None = None, limit: int = 10
    ) -> list[StoredMessage]:
        """Find messages in the owner's transcripts."""
        check_limit("limit", limit)
        return await self.store.search(owner, check_label("query", query), session_id=session_id, limit=limit)

    async def remember(self, session_id: str, text: str, *, owner: str = DEFAULT_OWNER) -> Fact:
        """Note a fact, for as long as the session lives."""
        return await self._notebook.remember(owner, session_id, text)

    async def forget(self, session_id: str, about: str, *, owner: str = DEFAULT_OWNER) -> tuple[Fact, ...]:
        """Drop a fact by its id, or all that have every word of `about`; return what was dropped."""
        return await self._notebook.forget(owner, session_id, about)

    async def pin(self, session_id: str, text: str, *, owner: str = DEFAULT_OWNER) -> Pin:
        """Let a text always be part of a session's context."""
        return await self._notebook.pin(owner, session_id, text)

    async def unpin(self, session_id: str, pin_id: str, *, owner: str = DEFAULT_OWNER) -> None:
        """Take a pin away."""
        await self._notebook.unpin(owner, session_id, pin_id)

    async def set_preferences(
        self, session_id: str, preferences: dict[str, Any], *, owner: str = DEFAULT_OWNER
    ) -> Session:
        """Change a session's preferences; one that is None is dropped."""
        return await self._notebook.prefer(owner, session_id, preferences)

    async def erase(self, *, owner: str = DEFAULT_OWNER) -> int:
        """Delete everything of an owner, and return how many sessions that were."""
        erased = await self.store.erase(owner)
        self._parts.windows.drop_owner(owner)
        self._parts.contexts.forget()
        self._hub.wake_all()
        await self._worker.stop(owner)
        return erased

    async def context_report(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> dict[str, Any]:
        """Say what the next model call of a session would be made of, but the message and what it recalls.

        `prefix_share` is how much of it is byte for byte the beginning of the last call, which a provider can
        serve from its cache; None if this process has not made that call.
        """
        session, parts = await self.store.get_session(owner, session_id), self._parts
        window = await self.store.window(owner, session_id)
        rendered = [parts.renderer.render(message) for message in window.messages]
        cached = parts.windows.get(session_id, session.version)
        last_prompt, briefing = (cached.last_prompt, cached.briefing) if cached else (None, None)
        if briefing is None:
            with suppress(HomeUnavailable):
                briefing = parts.brief_home(session)
        context = parts.contexts.build(
            session,
            Window.restore(window),
            [*cached.rendered.values()] if cached else rendered,
            parts.tools.schemas,
            home=briefing,
        )
        evicted = await self.store.evicted(owner, session_id)
        return {
            **report(context),
            "prefix_share": None
            if last_prompt is None
            else prefix_share(context, last_prompt, parts.counter),
            "evicted": [asdict(gone) for gone in evicted],
            "evicted_count": window.evicted_count,
            "digest": session.memory.digest,
        }

    async def statistics(self, *, owner: str = DEFAULT_OWNER, days: int = STATISTICS_DAYS) -> dict[str, Any]:
        """Add up what the owner's sessions have done and cost: in all, today, and day by day."""
        if check_limit("days", days) > MAX_DAYS:
            raise InvalidInput(f"days must be at most {MAX_DAYS}, got {days}")
        total, cursor, sessions = Stats(), None, 0
        while True:
            page = await self.store.list_sessions(owner, limit=500, cursor=cursor)
            for session in page.items:
                total += session.stats
            sessions, cursor = sessions + len(page.items), page.next_cursor
            if cursor is None:
                break
        today = self._parts.local_time.today()
        by_day = {(today - timedelta(days=n)).date().isoformat(): Stats() for n in range(days)}
        for ended_at, stats in await self.store.turn_stats(owner, today - timedelta(days=days - 1)):
            day = ended_at.astimezone(today.tzinfo).date().isoformat()
            by_day[day] = by_day.get(day, Stats()) + stats
        by_day[today.date().isoformat()] += Stats(cost_usd=self._parts.spending.outside_turns(owner))
        return {
            "sessions": sessions,
            **summary(total),
            "today": summary(by_day[today.date().isoformat()]),
            "days": [{"day": day, **summary(stats)} for day, stats in sorted(by_day.items())],
        }

    async def events(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, after: int = 0
    ) -> AsyncIterator[Event]:
        """Give a session's events behind a cursor, and go on with what happens until the session is over.

        Durable events come from the store, so that none is missed or doubled however slow the reader is, and
        whichever process has written them.
        """
        await self.check_cursor(session_id, after, owner=owner)
        with (
            self._hub.subscribe(session_id) as subscriber,
            self._feeds.read(owner, session_id, after) as feed,
        ):
            try:
                while True:
                    is_last_look = self._worker.closed
                    subscriber.news.clear()
                    new = await feed.after(after)
                    progress, subscriber.progress = subscriber.progress, []
                    for event in progress:
                        yield event
                    for event in new:
                        after = event.cursor or after
                        yield event
                    if new:
                        continue
                    for event in self._hub.partials(session_id, subscriber):
                        yield event
                    if feed.over or is_last_look:
                        return
                    await feed.news(subscriber)
            except (SessionNotFound, ContinuationNotFound):
                return  # it was erased
            except StoreUnavailable:
                if not self._worker.closing:
                    raise

    async def check_cursor(self, session_id: str, cursor: int, *, owner: str = DEFAULT_OWNER) -> None:
        """Refuse a cursor that the session has not given: it is of another one, or of a later backup."""
        last = await self.store.last_cursor(owner, session_id)
        if cursor > last:
            raise CursorUnknown(
                f"session {session_id} has given no cursor {cursor}, its last is {last}: listen from there",
                session_id=session_id,
                last_cursor=last,
            )

    async def recover(self) -> list[Continuation]:
        """Mark what a dead process left behind as interrupted; serve queues, and resume what is to be."""
        return await self._worker.recover()

    async def sweep(self) -> SweepCounts:
        """Expire idle sessions and forgotten continuations."""
        now = self._clock.now()
        return await self.store.sweep(
            idle_before=now - timedelta(days=SESSION_IDLE_DAYS),
            ended_before=now - timedelta(hours=CONTINUATION_RETENTION_HOURS),
        )

    async def _warm_up(self) -> None:
        """Get ready for the first sentence about the house, as soon as the house is known."""
        if self._home is None or self._home_intents is None:
            return
        await self._home.ready()
        try:
            await self._home_intents.warm_up()
        except Exception as error:
            _logger.warning("the sentences about the house are not warmed up: %s", error)
        self._warmed.set()

    async def _every(self, seconds: float, job: Any) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await job()
            except Exception as error:
                _logger.warning("%s failed: %s", job.__name__, error)

    async def _check_model(self, owner: str, session_id: str, model: ModelConfig) -> None:
        """Refuse another model than the session's, if its policy says so."""
        session = await self.store.get_session(owner, session_id)
        if session.policy.enforce_fixed_model and model.name not in (
            None,
            self._parts.model_name(session.model),
        ):
            raise ModelFixed(
                f"session {session_id} is fixed to its model (enforce_fixed_model): leave `model` out, or "
                "start another session"
            )


def _same(new: Continuation, kept: Continuation) -> Continuation:
    """Return what is kept under the idempotency key of a new turn, if that was the same one."""
    if kept.id != new.id and kept.request.message != new.request.message:
        raise KeyReused(
            f"the idempotency_key {new.request.idempotency_key!r:.80} belongs to another message, of "
            f"{kept.id}: use a new key for each message",
            continuation_id=kept.id,
        )
    return kept
