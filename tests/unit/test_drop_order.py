"""The order in which MariaDB can drop tables that reference each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ironbench.engines.mariadb.administration import in_order

NUMBERS = st.integers(0, 9)


@given(st.sets(st.tuples(NUMBERS, NUMBERS)), st.permutations(range(10)))
def test_every_table_goes_before_those_that_it_refers_to(pairs: set[tuple[int, int]], names: list[int]) -> None:
    # Larger numbers reference smaller ones or themselves, so there are no cycles.
    references = [(f"t{names[max(pair)]}", f"t{names[min(pair)]}") for pair in pairs]
    tables = sorted(f"t{number}" for number in range(10))
    order = in_order(tables, references)
    assert sorted(order) == tables
    assert all(child == parent or order.index(child) < order.index(parent) for child, parent in references)


def test_tables_that_refer_to_each_other_are_left_to_the_server() -> None:
    assert sorted(in_order(["a", "b"], [("a", "b"), ("b", "a")])) == ["a", "b"]
