"""How faithful the replay of a capture was. Tables compare the recorded work with the work of the replay."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.report import wording
from ironbench.report.cell import ABSENT, Content, Row, TableCell
from ironbench.report.charts.base import Table
from ironbench.report.page import Section
from ironbench.report.wording.terms import label
from ironbench.report.wording.work import MEASURES
from ironbench.study.study import CellResults, Study, SubjectResults
from ironbench.words import in_percent
from ironbench.workloads.capture.fidelity import DIVERGENCE, FLAGGED, MIX, NOTED, RECORDED, REPLAYED
from ironbench.workloads.capture.marks import COUNTED

PLACE = 112
_LEAD = (
    f"A note lists each measure that differs from the recording by more than {in_percent(NOTED)}. A difference of "
    f"more than {in_percent(FLAGGED)} in the number of statements, their mix, failed statements, changed rows or "
    "WAL records flags the trial. The other measures also depend on the server's memory, on query plans, and on "
    "checkpoints, because WAL after a checkpoint contains full-page images."
)
_NOT_COUNTED = (
    "Rows, WAL and blocks are not compared, because the capture has no marks, the marks are from another database, or "
    "only part of the work was replayed."
)
_UNITS = {"wal_bytes": "bytes", "log_bytes": "bytes"}


def sections(study: Study) -> Iterator[Section]:
    systems = [one for one in study.main if _value(one, DIVERGENCE, MIX) is not None]
    if not systems:
        return
    several = len(systems) > 1
    rows = tuple(
        ((label(one.configuration),) if several else ()) + _row(measure, one)
        for measure in MEASURES
        for one in systems
        if _value(one, DIVERGENCE, measure) is not None
    )
    head = ("measure", "recorded", "replayed", "difference")
    table = Table(("configuration", *head) if several else head, rows)
    title = f"Fidelity of the replay, {wording.text(study.place)}" if study.parts else "Fidelity of the replay"
    counted = any(_value(one, RECORDED, measure) is not None for measure in COUNTED for one in systems)
    sentences = () if counted else (_NOT_COUNTED,)
    yield Section("fidelity", title, _LEAD, tables=(("", table),), sentences=sentences, printed_at_end=True)


_System = SubjectResults | CellResults


def _value(system: _System, metric: str, measure: str) -> float | None:
    found = system.metrics.get(f"{metric}{{of={measure}}}")
    return None if found is None else found.centre


def _row(measure: str, system: _System) -> Row:
    recorded, replayed, divergence = (_value(system, metric, measure) for metric in (RECORDED, REPLAYED, DIVERGENCE))
    unit = _UNITS.get(measure, "count")
    return (MEASURES[measure], _cell(recorded, unit), _cell(replayed, unit), _cell(divergence, "share"))


def _cell(value: float | None, unit: str) -> Content:
    return ABSENT if value is None else TableCell(value, unit)
