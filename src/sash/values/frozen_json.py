"""JSON values that cannot be changed: objects become `FrozenDict`, arrays become tuples."""

from typing import Any, NoReturn


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed. `thaw` returns a copy that can be changed."""

    __slots__ = ()

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            "this is part of a stored message and cannot be changed: change a copy from to_openai()"
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: Any) -> "FrozenDict":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


def freeze(value: Any) -> Any:
    """Return a copy of JSON values that cannot be changed."""
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
