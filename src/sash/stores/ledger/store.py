"""The async methods of the store contract, for a backend that keeps ledgers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from sash.stores.ledger.ledgers import Ledgers

T = TypeVar("T")
P = ParamSpec("P")


def _make_async(
    method: Callable[Concatenate[Ledgers, P], T],
) -> Callable[Concatenate["LedgerStore", P], Coroutine[Any, Any, T]]:
    """Return an async method of a store that calls a method of its ledgers, in the store's thread."""
    name = method.__name__  # a subclass of `Ledgers` may override the method

    async def run_method(self: "LedgerStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(lambda ledgers: getattr(ledgers, name)(*args, **kwargs))

    return run_method


class LedgerStore(ABC):
    """The methods of the contract for a backend with ledgers. A subclass decides which thread runs them."""

    @abstractmethod
    async def _run(self, job: Callable[[Ledgers], T]) -> T:
        """Run a job on the ledgers and return its result."""

    export_key = _make_async(Ledgers.export_key)
    check_write = _make_async(Ledgers.check_write)
    create_session = _make_async(Ledgers.create_session)
    open_session = _make_async(Ledgers.open_session)
    get_session = _make_async(Ledgers.get_session)
    list_sessions = _make_async(Ledgers.list_sessions)
    find_session = _make_async(Ledgers.find_session)
    count_active = _make_async(Ledgers.count_active)
    save_session = _make_async(Ledgers.save_session)
    delete_session = _make_async(Ledgers.delete_session)
    list_inactive = _make_async(Ledgers.list_inactive)
    delete_inactive = _make_async(Ledgers.delete_inactive)
    erase = _make_async(Ledgers.erase)
    owner_notes = _make_async(Ledgers.owner_notes)
    save_owner_notes = _make_async(Ledgers.save_owner_notes)
    add_waiting_turn = _make_async(Ledgers.add_waiting_turn)
    change_waiting_turn = _make_async(Ledgers.change_waiting_turn)
    cancel_waiting_turn = _make_async(Ledgers.cancel_waiting_turn)
    waiting_turns = _make_async(Ledgers.waiting_turns)
    begin = _make_async(Ledgers.begin)
    claim = _make_async(Ledgers.claim)
    claim_next = _make_async(Ledgers.claim_next)
    append = _make_async(Ledgers.append)
    finish = _make_async(Ledgers.finish)
    record = _make_async(Ledgers.record)
    amend = _make_async(Ledgers.amend)
    set_caller = _make_async(Ledgers.set_caller)
    cancel = _make_async(Ledgers.cancel)
    renew = _make_async(Ledgers.renew)
    interrupt_lost = _make_async(Ledgers.interrupt_lost)
    waiting = _make_async(Ledgers.waiting)
    last_id = _make_async(Ledgers.last_id)
    get_continuation = _make_async(Ledgers.get_continuation)
    list_continuations = _make_async(Ledgers.list_continuations)
    recent_continuations = _make_async(Ledgers.recent_continuations)
    journal = _make_async(Ledgers.journal)
    events = _make_async(Ledgers.events)
    last_cursor = _make_async(Ledgers.last_cursor)
    window = _make_async(Ledgers.window)
    prompts = _make_async(Ledgers.prompts)
    find_messages = _make_async(Ledgers.find_messages)
    window_totals = _make_async(Ledgers.window_totals)
    window_turns = _make_async(Ledgers.window_turns)
    evicted = _make_async(Ledgers.evicted)
    messages = _make_async(Ledgers.messages)
    first_texts = _make_async(Ledgers.first_texts)
    tag_message = _make_async(Ledgers.tag_message)
    find_words = _make_async(Ledgers.find_words)
    search_words = _make_async(Ledgers.search_words)
    messages_at = _make_async(Ledgers.messages_at)
    read_places = _make_async(Ledgers.read_places)
    add_vectors = _make_async(Ledgers.add_vectors)
    vectors = _make_async(Ledgers.vectors)
    turn_stats = _make_async(Ledgers.turn_stats)
    spend = _make_async(Ledgers.spend)
    put_artifact = _make_async(Ledgers.put_artifact)
    get_artifact = _make_async(Ledgers.get_artifact)
    export_session = _make_async(Ledgers.export_session)
    import_session = _make_async(Ledgers.import_session)
    sweep = _make_async(Ledgers.sweep)
