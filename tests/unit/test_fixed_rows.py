"""Samples of large tables cover the whole range of keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ironbench.workloads.fixed_rows import windows


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**10))
def test_windows_begin_at_the_lowest_key_and_end_at_the_highest(low: int, span: int) -> None:
    firsts = windows(low, low + span)
    assert firsts[0] == low
    assert firsts[-1] + 2_000 > low + span
    assert list(firsts) == sorted(set(firsts))
