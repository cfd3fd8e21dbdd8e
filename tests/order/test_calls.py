"""Rules for calls of functions and classes."""

from __future__ import annotations

import pytest
from test_imports import FILES, calls

pytestmark = pytest.mark.xdist_group("sources")

MOST_BY_POSITION = 8
"""Maximum number of values by position. With more values, readers cannot see which is which, and a new field in between
shifts all values that follow."""


def test_many_values_are_passed_by_name() -> None:
    found = [(path, call) for path in FILES for call in calls(path)]
    assert len(found) > 10_000
    assert not [f"{path}:{call.lineno}" for path, call in found if len(call.args) > MOST_BY_POSITION]
