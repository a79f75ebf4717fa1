"""JSON values that nobody can change: objects become `FrozenDict`, arrays become tuples."""

from typing import Any, NoReturn


class FrozenDict(dict[str, Any]):
    """A dict for reading; `thaw` makes a copy to change."""

    __slots__ = ()

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("this is part of a stored message and cannot be changed: use thaw() for a copy")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: Any) -> "FrozenDict":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


def freeze(value: Any) -> Any:
    """Copy JSON values so that the copy cannot be changed."""
    if isinstance(value, dict):
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(map(freeze, value))
    return value


def thaw(value: Any) -> Any:
    """Copy frozen JSON values into plain dicts and lists."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(thaw, value))
    return value
