"""Reads the values of options without pydantic. Importing pydantic and building its schemas took 90 ms in each command.

This module reads texts, switches, and values that have a parser such as `mistakes.whole`. typer still reads options of
any other type. If a later version of typer has different internals, typer reads all options.
"""

from __future__ import annotations

import types
import typing
from typing import Any

import typer


def without_pydantic(command: Any) -> None:
    """Changes how a command and its subcommands read option values. The new functions need no schema."""
    try:
        from typer._coercion import RuntimeParam
    except ImportError:
        return

    class Plain(RuntimeParam):
        def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
            read = self.parameter_info.parser or (lambda text: text)
            return [read(one) for one in value] if isinstance(value, list | tuple) else read(value)

    for below in getattr(command, "commands", {}).values():
        without_pydantic(below)
    for param in (*command.params, command.get_help_option(typer.Context(command))):
        described = getattr(param, "type_descriptor", None)
        if described is not None and (described.parameter_info.parser or _is_text(described.annotation)):
            param._runtime_param = Plain(described.parameter_info, described.annotation)
        if param.param_type_name == "argument":
            # `<list[str]>` means nothing to users, and the help text describes the value
            param.display_type = lambda _: ""


def _is_text(annotation: Any) -> bool:
    """Returns whether a type is `str`, `list[str]` or `bool`, or a union of one of these types with None."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        kinds = [one for one in typing.get_args(annotation) if one is not types.NoneType]
        return len(kinds) == 1 and _is_text(kinds[0])
    return annotation in (str, bool, list[str])
