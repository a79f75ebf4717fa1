"""Methods whose work goes on if their caller is cancelled."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from sash.engine.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")


class _HasWorker(Protocol):
    _worker: Worker


S = TypeVar("S", bound=_HasWorker)


def detached(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Run an async method in a task of its own, so that a cancelled caller does not stop it halfway."""

    @wraps(method)
    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._worker.detach(method(self, *args, **kwargs))

    return run
