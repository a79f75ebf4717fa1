"""The runtimes of the runtime tests."""

from tests.runtime.conftest import clock, live, make_store, run

__all__ = ["clock", "live", "make_store", "run"]
