"""Which rows a command of joined statements returns if an engine provides the connections."""

from __future__ import annotations

import duckdb
import pytest

from ironbench.engines.duckdb.trial_child import DuckdbClient


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("gset", (False, 1, [("b", "6")])),
        ("aset", (False, 1, [("a", "5"), ("b", "6")])),
        ("", False),
    ],
)
def test_of_joined_statements_gset_takes_the_last_ones_row_and_aset_those_of_all(wanted: str, answer: object) -> None:
    database = duckdb.connect(":memory:")
    (step,) = DuckdbClient(database.cursor(), [("select 5 as a; select 6 as b", wanted, True)]).steps
    assert step(()) == answer
    assert step(()) == answer, "nothing is left of the time before"
    database.close()
