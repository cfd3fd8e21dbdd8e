"""The lines of `--progress` have pgbench's fields, followed by the rate that users of the workload expect."""

from __future__ import annotations

from typing import Any

import pytest

from ironbench import workloads
from ironbench.trial.drive.run import ProgressLines


class Passed:
    """The progress of a trial whose window has four complete seconds."""

    phase = "run"

    def seconds(self, after: int) -> list[tuple[float, int, int, float, float, int]]:
        return [(1.0, 100, 1, 0.002, 0.001, committed) for committed in (40, 44, 43, 41)][after:]


def lines(workload: str, **given: str) -> list[str]:
    own, said = workloads.get(workload), list[str]()
    rate = own.progress_rate("postgres", own.validated(given))
    progress: Any = Passed()
    ProgressLines(said.append, 2, rate).update(progress)
    return said


@pytest.mark.parametrize(
    ("workload", "rates"),
    [("tpcc", ["2520 NOPM", "2520 NOPM"]), ("sysbench", ["2000 qps", "2000 qps"])],
)
def test_the_rate_of_the_workload_ends_the_line(workload: str, rates: list[str]) -> None:
    assert [line.split(", ")[-1] for line in lines(workload)] == rates


def test_the_other_fields_are_those_of_pgbench() -> None:
    first, second = lines("select-only", scale="1")
    assert first == "progress: 2.0 s, 100.0 tps, lat 2.000 ms stddev 1.000, 2 failed"
    assert second.startswith("progress: 4.0 s, 100.0 tps, ") and second.endswith(", 2 failed")
