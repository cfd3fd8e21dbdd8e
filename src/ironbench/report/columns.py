"""A column for each system, and one for its ratio to the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironbench.analyse.study import Part
from ironbench.analyse.summarise import Summary
from ironbench.report.numbers import times


def metrics_of(part: Part) -> dict[str, Summary]:
    """Of its main trials; empty where there are none."""
    return part.curve.main.metrics if part.curve.main else {}


def ratios(columns: Sequence[Mapping[str, Summary]], metric: str) -> list[str]:
    """Of each further column to the first."""
    first = columns[0].get(metric)
    return [
        times(other.centre / first.centre) if first and first.centre and (other := column.get(metric)) else "–"
        for column in columns[1:]
    ]
