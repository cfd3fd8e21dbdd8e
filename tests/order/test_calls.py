"""How functions and classes are called."""

from __future__ import annotations

import ast

import pytest
from test_imports import FILES, parsed

pytestmark = pytest.mark.xdist_group("sources")

MOST_BY_POSITION = 8
"""Of more values nobody sees which is which, and a new field in between moves all that follow."""


def test_many_values_are_passed_by_name() -> None:
    calls = [(path, node) for path in FILES for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    assert len(calls) > 10_000
    assert not [f"{path}:{call.lineno}" for path, call in calls if len(call.args) > MOST_BY_POSITION]
