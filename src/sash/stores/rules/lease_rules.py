"""The rules of leases: which worker may write to a continuation, and how long."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NoReturn

from sash.errors import LeaseLost
from sash.ports.turns import ClaimRequest, Lease
from sash.stores.states import LeaseState, TurnState
from sash.values.continuations import Continuation, Status

# A lease that expires later than this was taken before the clock was set back.
MAX_LEASE = timedelta(hours=1)


def check_lease(lease: Lease, turn: TurnState | None) -> TurnState:
    """Return the turn. Raise `LeaseLost` if its lease was released or replaced, or the turn was deleted."""
    if turn is None or (turn.lease.worker, turn.lease.epoch) != (lease.worker, lease.epoch):
        raise_lease_lost(lease)
    return turn


def raise_lease_lost(lease: Lease) -> NoReturn:
    """Raise `LeaseLost`: the worker no longer holds the continuation."""
    raise LeaseLost(lease.continuation_id)


def make_lease(continuation: Continuation, state: LeaseState) -> Lease:
    """Return the lease that a worker has been granted on a continuation."""
    assert state.worker is not None
    return Lease(continuation.id, continuation.session_id, state.worker, state.epoch)


def grant_lease(current: LeaseState, claim: ClaimRequest, now: datetime) -> LeaseState:
    """Return the lease state after a claim: the new worker, the new end and the next epoch."""
    return LeaseState(claim.worker, lease_end(now, claim.lease_s), current.epoch + 1)


def lease_end(now: datetime, lease_s: float) -> datetime:
    """Return the time at which a lease that is granted or renewed now expires."""
    return now + timedelta(seconds=lease_s)


def renew_lease(current: LeaseState, worker: str, until: datetime) -> LeaseState | None:
    """Return a worker's lease with its new end, or None if the worker does not hold it."""
    return current._replace(until=until) if current.worker == worker else None


def is_lost(status: Status, lease: LeaseState, now: datetime, dead_workers: Collection[str] = ()) -> bool:
    """Return True if a continuation is running without a valid lease, or its worker is dead."""
    if status != "running":
        return False
    if lease.until is None or lease.worker in dead_workers:
        return True
    return not now < lease.until <= now + MAX_LEASE
