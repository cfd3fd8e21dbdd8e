"""Derives command line options from the table of fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args

import msgspec
import typer

from ironbench.cli.known_names import names_of
from ironbench.fields.row import Field, optional, table


def option(section: type[msgspec.Struct], name: str, more: str = "") -> Any:
    """Returns the command line option of a field. `more` is appended to the option's help."""
    return _option(table(section)[name], more)


def _option(field: Field, more: str = "") -> Any:
    return typer.Option(
        *field.options,
        metavar=field.placeholder or None,
        help=field.row.help + more + (f"  [default: {field.usual}]" if field.usual else ""),
        envvar=field.row.variable or None,
        show_default=False,
        autocompletion=_values(field),
    )


def _values(field: Field) -> Callable[[], list[str]] | None:
    """Returns a function that lists an option's possible values for shell completion. Returns None if they cannot be
    listed."""
    if field.row.names:
        return names_of(field.row.names)
    return (lambda: [word for word in field.words if word]) if field.words else None


def declares(
    arguments: Mapping[str, Any], file: type[msgspec.Struct]
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Returns a decorator that adds the `arguments` to a command, and one option for each optional field of `file`.
    Arguments of type `str` are required. The command receives all values as keyword arguments. An option that was not
    given is None."""

    def with_options(command: Callable[..., int]) -> Callable[..., int]:
        every = [_parameter(name, one, get_args(one)[0] is str) for name, one in arguments.items()]
        every += [_parameter(one.attribute, Annotated[_kind(one) | None, _option(one)]) for one in optional(file)]
        command.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in every}
        return command

    return with_options


def _kind(field: Field) -> Any:
    return bool if field.switch else list[str] if field.many else str


def _parameter(name: str, annotation: Any, required: bool = False) -> inspect.Parameter:
    default = inspect.Parameter.empty if required else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
