"""Values of options without pydantic: its import and a schema for each option took 90 ms of every command.

Options of ours are text, switches, or read by a parser of ours (`mistakes.whole`). Whatever else an option may be is
left to typer, and so is everything where a later typer keeps its readers elsewhere.
"""

from __future__ import annotations

import types
import typing
from typing import Any

import typer


def without_pydantic(command: Any) -> None:
    """Gives the options of the command, and of those below it, readers that need no schema."""
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
            param.display_type = lambda _: ""  # `<list[str]>` is a word of Python's; the help says what it is


def _is_text(annotation: Any) -> bool:
    """Whether it is `str`, `list[str]` or `bool`, or one of them and None."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        kinds = [one for one in typing.get_args(annotation) if one is not types.NoneType]
        return len(kinds) == 1 and _is_text(kinds[0])
    return annotation in (str, bool, list[str])
