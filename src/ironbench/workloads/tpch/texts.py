"""The texts of the 22 queries: our own wording of the functional definitions, one for all engines where that works."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ironbench.workloads import base
from ironbench.workloads.tpch.parameters import Values

_FOLDER = Path(__file__).with_name("queries")


def text(query: int, engine: str, values: Values) -> str:
    """The query with its parameters filled in. KeyError for a parameter without a value."""
    return template(query, engine).format_map(values)


@cache
def template(query: int, engine: str) -> str:
    """`qNN.ENGINE.sql` where the engine needs a wording of its own, else `qNN.sql`; without its comment."""
    lines = base.text(_FOLDER, name(query), engine).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("--")).rstrip()


def about(query: int) -> str:
    """What the query asks, in words."""
    return (_FOLDER / f"{name(query)}.sql").read_text().splitlines()[0].removeprefix("-- ")


def name(query: int) -> str:
    """`q01` … `q22`, as parts of metrics and files are called."""
    return f"q{query:02d}"
