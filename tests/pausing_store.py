"""A store whose calls pause before and after their work."""


class PausingStore:
    """Awaits `pause(verb)` before and after each call of the wrapped store."""

    def __init__(self, store, pause):
        self._store, self._pause = store, pause

    def __getattr__(self, verb):
        method = getattr(self._store, verb)

        async def run(*args, **kwargs):
            await self._pause(verb)
            result = await method(*args, **kwargs)
            await self._pause(verb)
            return result

        return run
