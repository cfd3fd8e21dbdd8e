"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.report import numbers
from ironbench.study.summarise import summarise

plain = numbers.THIN


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.0123456, "s", "12.3 ms"),
        (0.0000025, "s", "2.50 µs"),
        (0.99999, "s", "1.00 s"),
        (0.00099996, "s", "1.00 ms"),
        (300.0, "s", "5.00 min"),
        (0.0, "s", "0 s"),
        (1234567.0, "1/s", "1,230,000/s"),
        (999.6, "1/s", "1,000/s"),
        (22e6, "bytes/s", "22.0 MB/s"),
        (310.0, "bytes", "310 B"),
        (24 << 30, "memory", "24.0 GiB"),
        (0.123, "share", "12%"),
        (0.0312, "share", "3.1%"),
        (0.0001, "share", "0.01%"),
        (1.0, "share", "100%"),
        (0.0, "share", "0%"),
        (None, "s", "not known"),
        (math.nan, "s", "not known"),
    ],
)
def test_a_quantity_has_three_digits_and_a_fitting_unit(value: float | None, unit: str, said: str) -> None:
    assert numbers.quantity(value, unit).replace(plain, " ") == said


def test_a_range_is_said_in_one_unit() -> None:
    found = summarise([0.0009, 0.0011])
    assert found is not None
    assert numbers.span(found, "s").replace(plain, " ") == "0.900 to 1.10 ms"


def test_a_single_value_has_no_range() -> None:
    found = summarise([1.0])
    assert found is not None
    assert numbers.span(found, "s") == "n=1: no range"


@given(st.floats(1e-9, 1e12))
def test_rounding_errs_by_less_than_half_a_percent(value: float) -> None:
    assert float(numbers.number(value).replace(",", "")) == pytest.approx(value, rel=5.1e-3)


def test_shares_and_fractions_are_known_by_name() -> None:
    assert numbers.unit_of("wait_share{event=CPU}") == "share"
    assert numbers.unit_of("failed_fraction") == "share"
    assert numbers.unit_of("throughput{script=x}") == "1/s"
    assert numbers.unit_of("unheard_of") == "1"
