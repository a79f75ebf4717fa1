"""The error classes of Sash."""

import inspect

from sash import errors


def all_errors() -> list[type[BaseException]]:
    """Return every exception class that `sash.errors` defines, in the order of their names."""
    classes = (kind for _, kind in inspect.getmembers(errors, inspect.isclass))
    return [kind for kind in classes if issubclass(kind, BaseException)]


def sash_errors() -> list[type[errors.SashError]]:
    """Return the error classes that surfaces map to a status; control signals are not among them."""
    return [kind for kind in all_errors() if issubclass(kind, errors.SashError)]
