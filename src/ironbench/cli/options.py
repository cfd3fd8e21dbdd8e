"""Options and arguments that several commands share, and groups of commands."""

from __future__ import annotations

from typing import Annotated

import typer


def _formats() -> list[str]:
    from ironbench.report import formats

    return formats.names()


def policies() -> list[str]:
    """Returns the policies for an inconclusive gate, such as `fail`."""
    from ironbench.study.gate import POLICIES

    return list(POLICIES)


BASELINE = Annotated[
    str,
    typer.Argument(
        help="The baseline: a record, series, label, configuration or factor value of the lab in "
        "--results. To select from another directory of results, write DIR/NAME."
    ),
]
RESULTS = Annotated[str, typer.Option(metavar="DIR", help="Directory of the records.", envvar="IRONBENCH_RESULTS")]
OUTPUT = Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="File to write.  [default: stdout]")]
FORMAT = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Output format: html, png, svg, md, csv, json, text, folded or pprof.  "
        "[default: by the suffix of FILE, else text]",
        autocompletion=_formats,
    ),
]
PRICES = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="Price sheet, in addition to the built-in one; may be repeated."),
]
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


def group(name: str, help: str | None = None) -> typer.Typer:
    """Builds a command with subcommands."""
    return typer.Typer(
        name=name,
        help=help,
        rich_markup_mode=None,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
