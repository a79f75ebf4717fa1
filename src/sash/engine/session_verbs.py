"""The runtime's methods for sessions: start, find, end, copy, move, search and erase."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Unpack

from sash.engine.ceiling import check_request, restrict
from sash.engine.detached import detached
from sash.engine.fixed_model import ALLOWED_OPTIONS, check_fixed_model
from sash.engine.memory_tools import drop_summary
from sash.engine.notes import clean_preferences
from sash.engine.parts import Parts
from sash.engine.recall import QuestionContext
from sash.engine.redaction import clean_label, clean_object, redact
from sash.engine.session_export import write_export
from sash.engine.session_fork import DigestRules, copy_bundle
from sash.engine.session_import import ImportRules, read_export
from sash.engine.session_titles import find_titles
from sash.engine.session_update import SessionChanges, apply_update
from sash.engine.transcript_search import TokenBudget, TranscriptSearch
from sash.engine.turn.runner import make_cut
from sash.engine.worker import SESSION_ENDED, Worker
from sash.errors import InvalidInput, PolicyExceedsOperator, TooManySessions
from sash.ports.session_rules import change_session, check_active, retry_on_change
from sash.ports.store import Artifact, Bundle, Page, StoredMessage
from sash.values.ids import is_ulid
from sash.values.media import check_media
from sash.values.requests import MessageTags, StartSession, UpdateSession
from sash.values.sessions import (
    DEFAULT_OWNER,
    Budgets,
    Defaults,
    ModelConfig,
    OperatorLimits,
    Session,
    SessionMemory,
    SessionPolicy,
    SessionStatus,
    WindowLimits,
    last_k_for,
    window_for,
)
from sash.values.stats import Stats
from sash.values.validation import (
    check_count,
    check_json,
    check_keywords,
    check_label,
    check_limit,
    check_tags,
)

MAX_SEARCH_WORDS = 32
MAX_DAYS = 36_500


class SessionVerbs:
    """Methods for sessions. Each method acts on the records of one owner only."""

    _parts: Parts
    _worker: Worker
    _max_message_bytes: int
    _allow_image_urls: bool
    defaults: Defaults

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
        instructions: str | None = None,
        context: dict[str, Any] | None = None,
    ) -> Session:
        """Start a session; `StartSession` describes the fields. `context` is stored for the caller."""
        request = StartSession(
            model=model,
            budgets=budgets,
            policy=policy,
            window=window,
            preferences=preferences,
            area=area,
            name=name,
            instructions=instructions,
        )
        return await self.start(request, owner=owner, context=context)

    async def start(
        self,
        request: StartSession,
        *,
        owner: str = DEFAULT_OWNER,
        context: dict[str, Any] | None = None,
        is_one_question: bool = False,
        is_task: bool = False,
    ) -> Session:
        """Start the session that a request describes, and return it. Raise `TooManySessions` at the limit.

        `Session` describes `is_one_question` and `is_task`.
        """
        session = replace(
            self._describe_session(request, owner),
            context={} if context is None else clean_object(check_json(context)),
            is_one_question=is_one_question,
            is_task=is_task,
        )
        if not is_task:
            session = await self._add_preferences(session)
        await self._check_room(owner)
        await self._parts.store.create_session(session)
        return session

    async def open_session(
        self, request: StartSession, *, owner: str = DEFAULT_OWNER, reopen: bool = False
    ) -> Session:
        """Return the active session with the name in the request, or start one.

        With `reopen`, an expired session of that name becomes active again instead. This is one atomic write:
        callers that open the same name at the same time get the same session.
        """
        check_request(request.policy, request.budgets, self._parts.operator)
        if request.name is not None:
            name = clean_label("name", request.name)
            named = await self._parts.store.find_session(check_label("owner", owner), name)
            if named is not None and named.status == "active":
                return named
        session = await self._add_preferences(self._describe_session(request, owner))
        await self._check_room(owner)
        return await self._parts.store.open_session(session, reopen=reopen)

    def default_window(self, model: ModelConfig) -> WindowLimits:
        """Return the window of a new session with this model, if its request does not say another one."""
        defaults, catalog = self.defaults, self._parts.catalog
        if defaults.window is not None:
            return defaults.window
        by_model = window_for(catalog.context_window(self._parts.model_name(model)))
        return replace(by_model, preserve_system=defaults.preserve_system)

    async def _add_preferences(self, session: Session) -> Session:
        """Return a new session with the preferences of its owner, which its own ones may replace."""
        known = (await self._parts.notes.read_known(session.owner)).preferences
        return replace(session, preferences=clean_preferences(known | session.preferences))

    def _describe_session(self, request: StartSession, owner: str) -> Session:
        """Return the session that a request describes. Raise if the operator or the model do not allow it."""
        parts, defaults = self._parts, self.defaults
        check_request(request.policy, request.budgets, parts.operator)
        model = parts.clean_model(request.model or ModelConfig())
        self._check_own_model(model)
        context_window = parts.catalog.context_window(parts.model_name(model))
        now = parts.clock.now()
        session = Session(
            parts.new_id(),
            check_label("owner", owner),
            now,
            now,
            model=model,
            budgets=request.budgets or defaults.budgets,
            policy=request.policy or defaults.policy,
            window=request.window or self.default_window(model),
            memory=SessionMemory(last_k=defaults.last_k or last_k_for(context_window)),
            preferences=clean_preferences(request.preferences or {}),
            area=None if request.area is None else clean_label("area", request.area),
            name=None if request.name is None else clean_label("name", request.name),
            instructions=None if request.instructions is None else redact(request.instructions),
        )
        return restrict(session, parts.operator)

    @property
    def _is_model_fixed(self) -> bool:
        """Return True if the operator or the defaults fix the model of every session."""
        return self._parts.operator.policy.enforce_fixed_model or self.defaults.policy.enforce_fixed_model

    def _check_own_model(self, model: ModelConfig) -> None:
        """Raise `ModelFixed` if the operator has fixed the model, and a session would have another one.

        Raise `PolicyExceedsOperator` if the operator limits costs, and the price of a call is unknown.
        """
        if self._is_model_fixed:
            check_fixed_model(model, self._parts.model.name)
        self._check_cost(model)

    def _check_cost(self, model: ModelConfig) -> None:
        if self._parts.spending.has_unknown_cost(model):
            refused = sorted(model.options.keys() - ALLOWED_OPTIONS)
            what = f"with the options {', '.join(refused)}" if refused else f"of the model {model.name!r:.80}"
            raise PolicyExceedsOperator(
                f"the price of a call {what:.200} is unknown, and the operator of this server limits costs: "
                f"{'leave them out' if refused else 'use another model'}"
            )

    async def _check_room(self, owner: str) -> None:
        """Raise `TooManySessions` if the owner has the maximum number of active sessions.

        Sessions that start at the same time may exceed the maximum slightly.
        """
        limit = self.defaults.max_sessions
        if limit is not None and await self._parts.store.count_active(owner) >= limit:
            raise TooManySessions(
                f"{owner} has {limit} active sessions, the maximum: end some, or raise max_sessions",
                limit=limit,
            )

    async def get_session(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> Session:
        """Return a session by its id. Raise `SessionNotFound` if the owner has no such session."""
        return await self._parts.store.get_session(owner, check_label("session_id", session_id))

    @property
    def operator(self) -> OperatorLimits:
        """The most that any session may do and spend."""
        return self._parts.operator

    async def find_session(self, name: str, *, owner: str = DEFAULT_OWNER) -> Session | None:
        """Return the active session with a name, else the newest inactive one, else None."""
        return await self._parts.store.find_session(owner, check_label("name", name))

    async def list_sessions(
        self,
        *,
        owner: str = DEFAULT_OWNER,
        status: SessionStatus | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        with_questions: bool = False,
    ) -> Page:
        """List an owner's sessions, newest first. `status` and `name` filter them.

        The ended sessions of `ask` are listed only `with_questions`.
        """
        check_limit("limit", limit)
        if cursor is not None and not is_ulid(cursor):
            raise InvalidInput(f"cursor must be the next_cursor of the previous page, got {cursor!r:.80}")
        return await self._parts.store.list_sessions(
            owner, status=status, name=name, limit=limit, cursor=cursor, with_questions=with_questions
        )

    async def find_titles(
        self, sessions: Iterable[Session], *, owner: str = DEFAULT_OWNER
    ) -> dict[str, str | None]:
        """Return the title of each of the owner's sessions: its name, or the first words of its user."""
        return await find_titles(self._parts.store, owner, sessions)

    async def update_session(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, **changes: Unpack[SessionChanges]
    ) -> Session:
        """Change some fields of a session and return it; `UpdateSession` describes the changes."""
        check_keywords("update_session", changes, SessionChanges.__annotations__)
        given: dict[str, Any] = {**changes}
        return await self.update(session_id, UpdateSession(**given), owner=owner)

    async def update(self, session_id: str, request: UpdateSession, *, owner: str = DEFAULT_OWNER) -> Session:
        """Make the changes of a request and return the session. They apply from the next turn on.

        Raise `PolicyExceedsOperator` or `ModelFixed` if the operator does not allow a change, and
        `SessionExists` if another active session has the name.
        """
        parts = self._parts

        def change(session: Session) -> Session:
            changed = apply_update(session, request, parts.operator)
            if request.model is not None:
                changed = replace(changed, model=parts.clean_model(changed.model))
                if changed.policy.enforce_fixed_model:
                    check_fixed_model(changed.model, parts.model_name(session.model))
                self._check_own_model(changed.model)
            return changed

        return await change_session(parts.store, owner, session_id, change)

    async def set_preferences(
        self, session_id: str, preferences: dict[str, Any] | None, *, owner: str = DEFAULT_OWNER
    ) -> Session:
        """Change some preferences of a session and return the session. A value of None deletes the key."""
        return await self.update(session_id, UpdateSession(preferences=preferences), owner=owner)

    @detached
    async def end_session(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, reason: str | None = None
    ) -> Session:
        """End a session and return it. It takes no more turns, and its open turns are cancelled."""

        def end(session: Session) -> Session:
            return replace(session, status="ended") if session.status == "active" else session

        session = await change_session(self._parts.store, owner, session_id, end)
        reason = SESSION_ENDED if reason is None else reason
        await self._worker.cancel_all(owner, session_id, reason, interrupted_too=True)
        self._parts.hub.wake(session_id)
        return session

    async def reopen_session(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> Session:
        """Make an expired session active again and return it. Raise `SessionEnded` if it was ended."""

        def reopen(session: Session) -> Session:
            if session.status == "expired":
                return replace(session, status="active")
            check_active(session)
            return session

        if (await self.get_session(session_id, owner=owner)).status == "expired":
            await self._check_room(owner)
        return await change_session(self._parts.store, owner, session_id, reopen)

    async def reset_session(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> Session:
        """Empty the window of a session and return the session. The transcript, facts and pins stay.

        Raise `SessionBusy` while a turn runs or waits for an approval.
        """
        parts = self._parts

        async def attempt() -> Session:
            session = await self.get_session(session_id, owner=owner)
            check_active(session)
            window = await parts.read_window(session)
            evictions, now = window.reset(), parts.clock.now()
            memory = replace(drop_summary(session, now).memory, digest="", cut_at=now)
            cut = make_cut(window, evictions, "")
            return await parts.store.save_session(replace(session, memory=memory), cut=cut)

        saved = await retry_on_change(session_id, attempt)
        parts.windows.pop(session_id)
        parts.maintenance.after_cut(saved, ())
        return saved

    @detached
    async def delete_session(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> None:
        """Delete a session with all its records, and stop its turns. Its cost still counts for the day."""
        parts = self._parts
        await parts.store.delete_session(owner, session_id)
        parts.hub.wake(session_id)
        await self._worker.stop(owner, session_id)
        parts.windows.pop(session_id)
        parts.contexts.forget()

    async def list_inactive(self, *, owner: str = DEFAULT_OWNER, older_than_days: float = 0) -> list[str]:
        """Return the ids of ended and expired sessions that have not changed for `older_than_days`."""
        return await self._parts.store.list_inactive(owner, self._days_ago(older_than_days))

    @detached
    async def delete_inactive(self, *, owner: str = DEFAULT_OWNER, older_than_days: float = 0) -> int:
        """Delete the sessions that `list_inactive` returns, and return their number."""
        deleted = await self._parts.store.delete_inactive(owner, self._days_ago(older_than_days))
        self._parts.windows.drop_owner(owner)
        self._parts.contexts.forget()
        return deleted

    def _days_ago(self, days: float) -> datetime:
        if not 0 <= days <= MAX_DAYS:
            raise InvalidInput(f"older_than_days must be a number from 0 to {MAX_DAYS}, got {days!r:.80}")
        return self._parts.clock.now() - timedelta(days=days)

    @detached
    async def erase(self, *, owner: str = DEFAULT_OWNER) -> int:
        """Delete all records of an owner, and return the number of deleted sessions.

        What the owner spent in the last days stays, as a number: it still counts for `max_cost_per_day_usd`.
        """
        erased = await self._parts.store.erase(owner)
        self._parts.windows.drop_owner(owner)
        self._parts.contexts.forget()
        self._parts.hub.wake_all()
        await self._worker.stop(owner)
        return erased

    async def fork_session(
        self, session_id: str, *, owner: str = DEFAULT_OWNER, at: str | None = None
    ) -> Session:
        """Copy a session with its transcript and window, and return the copy. Both continue independently.

        With `at`, a continuation id, that turn is the last one of the copy.
        """
        await self._check_room(owner)
        source = await self._parts.store.export_session(owner, session_id)
        self._check_own_model(source.session.model)
        now, new_id = self._parts.clock.now(), self._parts.new_id()
        session = replace(
            restrict(source.session, self._parts.operator),
            id=new_id,
            created_at=now,
            updated_at=now,
            status="active",
            stats=Stats(),
            version=1,
            name=None,
            is_one_question=False,
        )
        rules = DigestRules(self._parts.counter.count_text, self._parts.digest_tokens)
        copy = await asyncio.to_thread(copy_bundle, source, session, at, rules)
        return await self._parts.store.import_session(copy)

    async def export_session(self, session_id: str, *, owner: str = DEFAULT_OWNER) -> dict[str, Any]:
        """Return a whole session as JSON values; `import_session` reads them."""
        bundle = await self._parts.store.export_session(owner, session_id)
        return await asyncio.to_thread(write_export, bundle, await self._parts.store.export_key())

    async def import_session(
        self,
        data: dict[str, Any],
        *,
        owner: str = DEFAULT_OWNER,
        adopt: Callable[[Bundle], Bundle] = lambda bundle: bundle,
    ) -> Session:
        """Import an exported session for this owner. `adopt` may change it before it is stored.

        The records get new ids, unless this store made the export for the same owner.
        """
        await self._check_room(owner)
        parts = self._parts
        rules = ImportRules(
            owner=check_label("owner", owner),
            now=parts.clock.now(),
            export_key=await parts.store.export_key(),
            new_id=parts.new_id,
            reserved_options=parts.model.reserved_options,
            max_message_bytes=self._max_message_bytes,
            counter=parts.counter,
            render=parts.renderer.render,
        )
        bundle = await asyncio.to_thread(read_export, data, rules)
        self._check_own_model(bundle.session.model)
        contents = [m.message.content for m in bundle.messages]
        contents += [c.request.attachments for c in bundle.continuations]
        for content in contents:
            check_media(() if isinstance(content, str) else content, allow_remote=self._allow_image_urls)
        bundle = adopt(bundle)
        session = await parts.store.import_session(
            replace(bundle, session=restrict(bundle.session, parts.operator))
        )
        parts.windows.drop_owner(owner)
        return session

    async def list_messages(
        self,
        session_id: str,
        *,
        owner: str = DEFAULT_OWNER,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
        tags: Iterable[str] = (),
    ) -> list[StoredMessage]:
        """Return the messages of a session's transcript after a position, in order, at most `limit`.

        With `before`, return the last ones of those before that position instead of the first ones. With
        `tags`, return only messages that have one of them.
        """
        check_count("after", after)
        if before is not None:
            check_count("before", before)
        check_limit("limit", limit)
        return await self._parts.store.messages(
            owner, session_id, after=after, before=before, limit=limit, tags=check_tags(tags)
        )

    @detached
    async def tag_message(
        self, session_id: str, message_id: str, tags: Iterable[str], *, owner: str = DEFAULT_OWNER
    ) -> StoredMessage:
        """Replace the tags of a message, except those that only Sash sets, and return the message.

        Evictions regard the new tags from the next turn on.
        """
        parts, wanted = self._parts, MessageTags(tags=tuple(tags)).tags
        clean = frozenset(clean_label("tag", tag) for tag in wanted)
        session, stored = await parts.store.tag_message(owner, session_id, message_id, clean)
        parts.windows.replace_message(session, stored.message)
        return stored

    async def search(
        self,
        query: str,
        *,
        owner: str = DEFAULT_OWNER,
        session_id: str | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
    ) -> list[StoredMessage]:
        """Find messages for a query, best first, in one session or in all sessions of the owner.

        The rarer a word of the query is, the more it counts, with the messages around it. A query that asks
        something also finds messages without its words, because an answer seldom repeats them, and in one
        session messages of similar meaning, if there is an embedder. With `max_tokens`, the result has at
        most so many tokens by `token_count`, and also has messages around the matches, ranked by score. A
        query has at most 256 characters and 32 words. The first 12 words that are not stop words are
        searched. Questions that repeat the query come last with their answers. Results of tools are left out.
        """
        session = None if session_id is None else await self.get_session(session_id, owner=owner)
        check_limit("limit", limit)
        if max_tokens is not None:
            check_limit("max_tokens", max_tokens)
        words = " ".join(dict.fromkeys(check_label("query", query).split()))
        if words.count(" ") >= MAX_SEARCH_WORDS:
            raise InvalidInput(f"a search may have at most {MAX_SEARCH_WORDS} words: search for fewer")
        parts = self._parts
        context = QuestionContext(
            parts.clock.now().astimezone(parts.local_time.zone), parts.find_language(session)
        )
        budget = None if max_tokens is None else TokenBudget(max_tokens, parts.counter.count_text)
        search = TranscriptSearch(parts.store, owner, session_id, parts.embedder)
        return await search.search(check_label("query", query), context, limit, budget)

    async def get_artifact(self, artifact_id: str, *, owner: str = DEFAULT_OWNER) -> Artifact:
        """Return a large result by its id. It is stored outside of the transcript."""
        return await self._parts.store.get_artifact(owner, artifact_id)
