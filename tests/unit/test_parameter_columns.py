"""Columns with which statements compare their parameters."""

from __future__ import annotations

import pytest

from ironbench.engines.parameter_columns import columns_of_parameters


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("a in (2, $1) and f($2) = 3", {1: "a"}),
        ("a in ($1, 3, $2) and b = $3", {1: "a", 2: "a", 3: "b"}),
        ("a between $1 and $2 or b like $3", {1: "a", 2: "a", 3: "b"}),
        ("a between $1 and 2 and b = any ($3)", {1: "a", 3: "b"}),
    ],
)
def test_a_literal_in_a_list_is_no_parameter(condition: str, columns: dict[int, str]) -> None:
    found = columns_of_parameters(f"select 1 from t where {condition}", lambda _: (), lambda *_: True)
    assert found == {number: ("t", name) for number, name in columns.items()}
