"""Keeps the garbage collector away from objects that are never garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collection() -> Iterator[None]:
    """Create many objects that live as long as the process, such as modules or a grammar.

    Python would search all objects of the process for garbage meanwhile, and again for every quarter of them
    that is new. With a million objects this stops all threads for half a second. Here it waits, and later
    searches skip the objects that exist at the end. These are never freed, so use it once for each such load.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
