"""Profiles. Tables show which functions and waits cause the difference between two configurations. Without a
comparison, they show which functions and waits take the most time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ironbench.report.cell import CONFIDENCE, Missing, Row, TableCell
from ironbench.report.charts import flame
from ironbench.report.charts.base import Table
from ironbench.report.finding_tables import NO_INTERVAL
from ironbench.report.page import Section, with_rows
from ironbench.report.wording import profile as wording
from ironbench.report.wording.terms import label
from ironbench.report.wording.values import CI
from ironbench.study.profiled import (
    FrameChange,
    GroupChange,
    PartChange,
    Profile,
    ProfileComparison,
    ProfiledTime,
    TimeChange,
)
from ironbench.study.study import Study

PLACE = 660
ID = "profile"
_MOST_GROUPS = 10
_RANKS = (0, 0, 3, 3, 0, 0, 4, 2, 0)
"""Ranks of the columns of a comparison's table. A narrow terminal leaves out the columns with the highest rank
first."""


def sections(study: Study) -> Iterator[Section]:
    yield section(study.details.profiles, [one.profile for one in study.explanations if one.profile])


def section(profiles: Sequence[Profile], comparisons: Sequence[ProfileComparison]) -> Section:
    """Returns the section about profiles. The tables show the comparisons, or the profile of each configuration if
    there are no comparisons. The section is empty if nothing was profiled."""
    tables = [table for one in comparisons for table in _compared(one)]
    if not comparisons:
        tables = [table for one in profiles for table in _alone(one)]
    flames = [
        *(flame.of_comparison(one, f"{ID}-difference-{place}") for place, one in enumerate(comparisons)),
        *(flame.of_profile(one, f"{ID}-{place}") for place, one in enumerate(profiles)),
    ]
    lead = f"{wording.LEAD} {wording.LEAD_COMPARED}" if comparisons else wording.LEAD if profiles else ""
    return Section(
        ID,
        "Profile",
        lead,
        tables=tuple(tables),
        flames=tuple(flames),
        sentences=tuple(map(wording.result, comparisons)),
        printed_at_end=bool(comparisons),
    )


def _compared(one: ProfileComparison) -> Iterator[tuple[str, Table]]:
    sides = (label(one.before), label(one.after))
    head = ("function", "where", *sides, "difference", CI, "in the function itself", "significant", "called by")
    frames = (
        (
            wording.function_name(frame),
            *_cells(frame, TableCell(frame.own_s, "s", signed=True)),
            wording.callers(frame),
        )
        for frame in one.frames
    )
    name = wording.sides(one)
    yield from with_rows(Table(head, tuple(frames), ranks=_RANKS), name)
    for kind, groups in (("activity", one.activities), ("kernel path", one.kernel)):
        rows = tuple((group.name, *_cells(group)) for group in groups[:_MOST_GROUPS])
        group_head = (kind, "where", *sides, "difference", CI, "significant")
        yield from with_rows(Table(group_head, rows, ranks=_RANKS[:6] + _RANKS[7:8]), f"{name}, by {kind}")
    parts = tuple((*wording.part(part), *_times(part)) for part in one.parts)
    part_head = ("where", "activity", "function", *sides, "difference", CI)
    yield from with_rows(Table(part_head, parts, ranks=(0, 0, 0, 3, 3, 0, 0)), wording.parts_title(one))


def _cells(one: FrameChange | GroupChange, *more: TableCell) -> Row:
    """Returns the cells of a comparison's row, without the name. `more`: cells to insert before the last one."""
    return (wording.area_name(one.area), *_times(one), *more, _significant(one, math.isfinite(one.low_s)))


def _times(one: TimeChange | PartChange) -> Row:
    """Returns the cells with both times, their difference, and its confidence interval."""
    known = math.isfinite(one.low_s)
    interval = TableCell(None, "s", one.low_s, one.high_s, CONFIDENCE) if known else Missing(NO_INTERVAL)
    sides = (TableCell(one.before_s, "s"), TableCell(one.after_s, "s"))
    return (*sides, TableCell(one.delta_s, "s", signed=True), interval)


def _significant(one: TimeChange, known: bool) -> str:
    return "yes" if one.called else "no" if known else "unknown"


def _alone(one: Profile) -> Iterator[tuple[str, Table]]:
    name = label(one.configuration)
    whole = sum(node.time_s for node in one.nodes if node.parent < 0)
    head = ("function", "where", "in the function itself", "of the profiled time", "with callees")
    frames = tuple(
        (wording.function_name(frame), wording.area_name(frame.area), *_own_time_cells(frame, whole))
        for frame in one.frames
    )
    yield from with_rows(Table(head, frames, ranks=(0, 0, 0, 1, 1)), name)
    for kind, groups in (("activity", one.activities), ("kernel path", one.kernel)):
        rows = tuple(
            (group.name, wording.area_name(group.area), TableCell(group.time_s, "s"), _share(group.time_s, whole))
            for group in groups[:_MOST_GROUPS]
        )
        group_head = (kind, "where", "time per transaction", "of the profiled time")
        yield from with_rows(Table(group_head, rows, ranks=(0, 0, 0, 1)), f"{name}, by {kind}")


def _own_time_cells(frame: ProfiledTime, whole: float) -> tuple[TableCell, TableCell, TableCell]:
    return TableCell(frame.own_s, "s"), _share(frame.own_s, whole), TableCell(frame.time_s, "s")


def _share(time_s: float, whole: float) -> TableCell:
    return TableCell(time_s / whole if whole else 0.0, "share")
