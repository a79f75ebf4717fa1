"""Cancels a coroutine at one of its suspensions, for tests that cancel at every `await`."""

import asyncio
import types


class CancelPoint:
    """Suspension number `n` of the coroutines that run with it. Number 0 is before the first step.

    The task is cancelled as soon as it suspends. If `is_late`, it is cancelled when the awaited future is done, but
    before the task continues. With `act`, that function is called instead of a cancellation.
    """

    def __init__(self, n, *, is_late=False, act=None):
        self._left, self._is_late, self._act = n, is_late, act
        self.is_reached = n == 0

    def _pass(self, future):
        self._left -= 1
        if self._left != 0:
            return
        self.is_reached = True
        act = self._act or asyncio.current_task().cancel
        if self._is_late and future is not None:
            future.add_done_callback(lambda _: act())
        else:
            act()

    @types.coroutine
    def watch(self, coroutine):
        """Run a coroutine and count its suspensions."""
        resume = coroutine.send, None
        while True:
            try:
                future = resume[0](resume[1])
            except StopIteration as stop:
                return stop.value
            self._pass(future)
            try:
                resume = coroutine.send, (yield future)
            except BaseException as error:
                resume = coroutine.throw, error

    async def run(self, coroutine):
        """Run a coroutine in a task that is cancelled at this point. Return its result, or None if cancelled."""
        task = asyncio.create_task(self.run_task(coroutine))
        if self.is_reached:
            task.cancel()
        await asyncio.wait({task})
        coroutine.close()  # A task that is cancelled before its first step never starts it.
        return None if task.cancelled() else task.result()

    async def run_task(self, coroutine):
        """Run the coroutine of a task that is cancelled at this point."""
        return await self.watch(coroutine)
