"""Numbers are formatted once, in the output; no code parses a formatted number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from test_imports import FILES, calls

pytestmark = pytest.mark.xdist_group("sources")

FORMATTERS = {
    *("quantity", "measured", "number", "times", "percent", "percents", "in_percent", "grouped", "between", "span"),
    *("ratio", "rate", "signed", "shown", "written", "confidence", "stored", "memory", "change", "change_bounds"),
}
"""Functions that format a number for people."""
TAKING_APART = {
    *("replace", "removesuffix", "removeprefix", "split", "rsplit", "partition", "rpartition", "strip", "rstrip"),
    *("startswith", "endswith", "find", "index", "isdigit"),
}
UNITS = {"/s", "%", " %", "x", " x", "ms", "µs"}
READERS = {"float", "int", "fullmatch", "match", "search"}


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def formats(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in FORMATTERS


def offences(tree: list[ast.Call]) -> Iterator[ast.Call]:
    for call in tree:
        takes_apart = isinstance(call.func, ast.Attribute) and call.func.attr in TAKING_APART
        formatted = isinstance(call.func, ast.Attribute) and formats(call.func.value)
        unit = any(isinstance(one, ast.Constant) and one.value in UNITS for one in call.args)
        reads = name_of(call.func) in READERS and any(map(formats, call.args))
        if reads or (takes_apart and (formatted or unit)):
            yield call


@pytest.mark.parametrize(
    "source",
    [
        'measured(score, "1/s").removesuffix("/s")', 'text.removesuffix("x")', 'float(quantity(value, "s"))',
        "_QUANTITY.fullmatch(shown(cell))",
    ],
)  # fmt: skip
def test_a_number_that_is_taken_apart_is_found(source: str) -> None:
    tree = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    assert list(offences(tree))


def test_no_formatted_number_is_taken_apart() -> None:
    rooms = ("report", "lab/dry_run", "serve", "cli")
    found = [path for path in FILES if any(f"/{room}/" in str(path) for room in rooms)]
    assert len(found) > 100
    assert not [f"{path}:{one.lineno}" for path in found for one in offences(list(calls(path)))]
