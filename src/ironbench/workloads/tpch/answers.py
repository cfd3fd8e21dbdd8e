"""Compares the answers of queries with the expected answers. Tolerances are those of TPC-H specification 2.17.3, clause
2.1.3.5.

Texts, keys, counts and dates must be equal. A sum of money may differ by 100, and an average or a ratio by one percent
after rounding to hundredths. Sums of quantities are sums of whole numbers and must also be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

from ironbench.model.session import Row

SAME, MONEY, RATIO = "the same", "within 100", "within 1%"
_MONEY_OFF = Decimal(100)
_RATIO_OFF = Decimal("0.01")
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """Answer of a query: column names, and rows of text. NULL is stored as None."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


_S, _M, _R = SAME, MONEY, RATIO
TOLERANCES: Mapping[int, tuple[str, ...]] = {
    1: (_S, _S, _S, _M, _M, _M, _R, _R, _R, _S),
    2: (_S,) * 8,
    3: (_S, _M, _S, _S),
    4: (_S, _S),
    5: (_S, _M),
    6: (_M,),
    7: (_S, _S, _S, _M),
    8: (_S, _R),
    9: (_S, _S, _M),
    10: (_S, _S, _M, _S, _S, _S, _S, _S),
    11: (_S, _M),
    12: (_S, _S, _S),
    13: (_S, _S),
    14: (_R,),
    15: (_S, _S, _S, _S, _M),
    16: (_S, _S, _S, _S),
    17: (_R,),
    18: (_S, _S, _S, _S, _S, _S),
    19: (_M,),
    20: (_S, _S),
    21: (_S, _S),
    22: (_S, _S, _M),
}
"""Tolerances of the columns of each query's answer."""
KEYED_BY = {11: 0}
"""Column by which the answer of a query is sorted before it is compared. Needed if a query orders its rows only by a
sum, because rows with equal sums have no defined order."""
ROW_COUNTS = {1: 4, 4: 5, 5: 5, 6: 1, 8: 2, 12: 2, 14: 1, 17: 1, 19: 1, 22: 7}
"""Number of rows in the answer of a query (2.4.x). From about scale factor 1 on, it does not depend on the parameters.
Other queries have no fixed number."""


_NAMES = (
    "l_returnflag l_linestatus s_name n_name p_mfgr s_phone o_orderpriority supp_nation cust_nation nation c_phone "
    "l_shipmode p_brand"
)
_PADDED = frozenset(_NAMES.split())
"""Fixed-length columns (1.4.1). Some engines pad them with blanks, which are not significant."""


def answer(columns: Sequence[str], rows: Sequence[Row]) -> QueryAnswer:
    """Converts an engine's result to an answer. Removes the padding of fixed-length columns."""
    padded = [name in _PADDED for name in columns]
    return QueryAnswer(
        tuple(columns),
        tuple(
            tuple(value.rstrip() if fill and value else value for fill, value in zip(padded, row, strict=True))
            for row in rows
        ),
    )


def difference(query: int, expected: QueryAnswer, actual: QueryAnswer) -> str:
    """Describes the first difference from the expected answer. Returns "" if the answer is correct."""
    if len(expected.rows) != len(actual.rows):
        return f"{len(actual.rows)} rows instead of {len(expected.rows)}"
    tolerances = TOLERANCES[query]
    for answer in (expected, actual):
        if any(len(row) != len(tolerances) for row in answer.rows):
            return f"{len(answer.columns)} columns instead of {len(tolerances)}"
    pairs = zip(_in_order(query, expected.rows), _in_order(query, actual.rows), strict=True)
    for number, (expected_row, got) in enumerate(pairs, 1):
        for column, tolerance, one, other in zip(expected.columns, tolerances, expected_row, got, strict=True):
            if not _agrees(tolerance, one, other):
                return f"row {number}, {column}: {_value_text(other)} instead of {_value_text(one)}"
    return ""


def _in_order(query: int, rows: Sequence[Row]) -> Sequence[Row]:
    key = KEYED_BY.get(query)
    return rows if key is None else sorted(rows, key=lambda row: row[key] or "")


def _agrees(tolerance: str, expected: str | None, actual: str | None) -> bool:
    if not expected or not actual:
        # NULL and an empty text are the same in a file. This is correct, because no answer contains an empty text.
        return not expected and not actual
    if expected.rstrip() == actual.rstrip():
        return True
    try:
        want, got = Decimal(expected), Decimal(actual)
    except InvalidOperation:
        return False
    return _NEAR[tolerance](want, got)


def _near_ratio(want: Decimal, got: Decimal) -> bool:
    want, got = (value.quantize(_CENT, ROUND_HALF_UP) for value in (want, got))
    return abs(want - got) <= _RATIO_OFF * abs(want)


_NEAR: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    SAME: lambda wanted, got: wanted == got,
    MONEY: lambda wanted, got: abs(wanted - got) <= _MONEY_OFF,
    RATIO: _near_ratio,
}


def _value_text(value: str | None) -> str:
    return value or "nothing"


def as_csv(answer: QueryAnswer) -> str:
    """Formats an answer as CSV: a header line, `|` between columns, and nothing for NULL. No value of this data
    contains a `|`."""
    lines: Iterable[Sequence[str | None]] = (answer.columns, *answer.rows)
    return "".join("|".join(value or "" for value in line) + "\n" for line in lines)


def from_csv(text: str) -> QueryAnswer:
    """Parses a text that `as_csv` wrote. Raises ValueError if lines have different numbers of columns."""
    head, *rows = (line.split("|") for line in text.removesuffix("\n").split("\n"))
    if any(len(row) != len(head) for row in rows):
        raise ValueError("the lines have different numbers of columns")
    return QueryAnswer(tuple(head), tuple(tuple(value or None for value in row) for row in rows))
