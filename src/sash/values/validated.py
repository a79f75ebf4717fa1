"""Values that check their own fields against their annotations when they are constructed or parsed."""

from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

from pydantic import AliasChoices, AliasGenerator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as pydantic_dataclass

from sash.errors import InvalidInput
from sash.values.codec import adapter
from sash.values.faults import describe_faults
from sash.values.validation import check_text

T = TypeVar("T")


def _accept_camel_case(name: str) -> str | AliasChoices:
    """Return the names of a field in input: its own name, and the same name in camelCase."""
    camel = to_camel(name)
    return name if camel == name else AliasChoices(name, camel)


_SPELLINGS = AliasGenerator(validation_alias=_accept_camel_case)


@dataclass_transform(frozen_default=True)
def validated(
    *, kw_only: bool = False, error: type[InvalidInput] = InvalidInput, example: Any = None
) -> Callable[[type[T]], type[T]]:
    """Make a class a frozen dataclass whose constructor raises `error` for a wrong or unknown field.

    Text with a lone surrogate raises `InvalidText`. `example` becomes part of the JSON schema. Input may
    have a field in camelCase instead; both spellings of one field are an error.
    """
    config = ConfigDict(extra="forbid", alias_generator=_SPELLINGS)
    if example is not None:
        config["json_schema_extra"] = {"examples": [example]}

    def decorate(cls: type[T]) -> type[T]:
        made: Any = pydantic_dataclass(frozen=True, slots=True, kw_only=kw_only, config=config)(cls)
        check = made.__init__

        def __init__(self: Any, *args: Any, **fields: Any) -> None:  # noqa: N807
            try:
                check(self, *args, **fields)
            except ValidationError as invalid:
                faults = invalid.errors(include_url=False)
                for fault in faults:
                    if fault["type"] == "string_unicode" and isinstance(fault["input"], str):
                        check_text(fault["input"])
                raise error(describe_faults(faults)) from invalid

        made.__init__ = __init__
        return made  # type: ignore[no-any-return]

    return decorate


def parse(kind: type[T], data: Any) -> T:
    """Return `data` (JSON values) as a value of `kind`, or raise `InvalidInput`."""
    try:
        value: T = adapter(kind).validate_python(data)
    except ValidationError as faults:
        raise InvalidInput(describe_faults(faults.errors(include_url=False))) from faults
    return value
