"""Commands whose help shows a flag as what it is: something that takes no value."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> Any:
        return _bare(super().get_params(ctx))


class Group(TyperGroup):
    """A command that has others."""

    def get_params(self, ctx: Any) -> Any:
        return _bare(super().get_params(ctx))


def _bare(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params
