"""Typer classes whose help shows a flag without a value, and that accept --allow without one."""

from typing import Any

from typer.core import TyperCommand, TyperGroup

from sash.cli.allowed_services import complete_allow


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> Any:
        return _hide_flag_values(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, complete_allow(args))


class Group(TyperGroup):
    """A command with subcommands."""

    def get_params(self, ctx: Any) -> Any:
        return _hide_flag_values(super().get_params(ctx))


def _hide_flag_values(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


class ListingGroup(Group):
    """A group with a command `list`. Without a command, and with options alone, it runs that one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_list = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, ["list", *args] if is_list else args)
