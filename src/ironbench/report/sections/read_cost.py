"""What a read costs the processor, as a table: shared by labs and reports of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironbench.analyse.read_cost import ReadCost
from ironbench.analyse.study import Study
from ironbench.analyse.summarise import Summary
from ironbench.report.charts.base import Table
from ironbench.report.numbers import count, measured, quantity, span
from ironbench.report.section import Section

PLACE = 2100


def sections(study: Study) -> Iterator[Section]:
    yield Section("read-cost", "What a read costs the processor", _LEAD, tables=(("", table(study.read_costs)),))


_LEAD = (
    "The same work from the device and cached: the difference in CPU time, for each read of the device. The engine's "
    "is user and system time of its processes; beside it the same with all that belongs to nobody known, the kernel's "
    "own threads and interrupts, and whatever other programs did. Where plans differ, the difference is theirs, too."
)


def table(found: Sequence[ReadCost]) -> Table:
    rows = tuple(
        (
            f"{one.name} over {one.cached}",
            count(one.reads.centre),
            measured(one.size_bytes, "bytes"),
            _cost(one.engine_s),
            _cost(one.whole_s),
            quantity(one.engine_s.centre * 1e9 / one.size_bytes.centre, "s") if one.size_bytes.centre > 0 else "–",
        )
        for one in found
    )
    head = ("reads over cached", "reads", "mean size", "CPU of the engine per read", "with the rest", "engine per GB")
    return Table(head, rows, numbers=True)


def _cost(found: Summary | None) -> str:
    if found is None:
        return "–"
    return measured(found, "s") + (f" ({span(found, 's')})" if found.low < found.high else "")
