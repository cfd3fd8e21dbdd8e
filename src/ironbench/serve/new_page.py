"""Pages that create a lab file from a question: forms for the kinds of `ironbench lab new`, with an input for each
option of the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import HTMLResponse

from ironbench.errors import IronbenchError
from ironbench.fields.new import NewLab
from ironbench.fields.row import Field
from ironbench.host import trust
from ironbench.lab import new
from ironbench.model.redact import redacted
from ironbench.serve.page import page

_SEVERAL = 3
"""Minimum number of input elements that the form shows for a field with several values. If the user needs more values,
they can be added in the lab file."""


def questions() -> HTMLResponse:
    """Shows the questions for which ironbench can write a lab file."""
    kinds = [(name, one.question, one.about) for name, one in new.KINDS.items()]
    return page("new.html", "New lab", at="/new", kinds=kinds)


def form(kind: str, given: Mapping[str, Sequence[str]], problem: str = "") -> HTMLResponse:
    """Shows the form of a kind. Raises InputError if there is no such kind. `given`: the input so far."""
    template = new.lab_template(kind)
    return page(
        "new_kind.html",
        template.question,
        at="/new",
        status=422 if problem else 200,
        kind=kind,
        question=template.question,
        about=template.about,
        problem=problem,
        fields=[_input(one, given.get(one.name, ()), one.name in template.required) for one in new.fields(kind)],
    )


def _input(field: Field, given: Sequence[str], required: bool) -> dict[str, object]:
    """Describes a field for the template of the form. Input that contains a password is not shown again."""
    values = [value for value in given if value and redacted(value) == value]
    inputs = [*values, *[""] * (_SEVERAL - len(values))] if field.many else [*values, ""][:1]
    return {
        "name": field.name,
        "help": field.row.help,
        "usual": field.usual,
        "placeholder": field.placeholder,
        "required": required,
        "suggestions": new.suggestions(field),
        "inputs": inputs,
    }


def text(kind: str, given: Mapping[str, Sequence[str]]) -> str:
    """Returns the lab file that `ironbench lab new` would write. Queries the database server that the user named, but
    runs no programs. Raises InputError if an input is invalid, and FailureError if the server cannot be queried."""
    values: dict[str, Any] = {one.attribute: _value(one, given.get(one.name, ())) for one in new.fields(kind)}
    with trust.reading_only(installed_run=False):
        here = new.lab_context(kind, NewLab(**values), None)
        return new.text(kind, here, f"{kind}.toml")


def _value(field: Field, given: Sequence[str]) -> str | list[str]:
    values = [value.strip() for value in given if value.strip()]
    return values if field.many else "".join(values[-1:])


def words(error: IronbenchError) -> str:
    """Returns the text of an error with its hint."""
    return str(error) + (f"\n{error.hint}" if error.hint else "")
