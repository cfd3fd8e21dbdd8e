"""Footnotes to the tables of a run."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.note import Note, NoteRange, note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.sample import IN_TABLES, too_few
from ironbench.study.subjects import counted_in


def footnotes(records: Sequence[Record]) -> tuple[Note, ...]:
    notes = [*too_few([one for one in records if one.status.comparable], counted_in(records)[1], IN_TABLES)]
    loads = [record.cell.load for record in records]
    one, many = counted_in(records)
    if any(load.rate is None for load in loads):
        notes.append(note("closed-loop", unit=one))
    if any(load.rate is not None for load in loads):
        notes.append(note("open-loop", unit=one, units=many))
    if any(record.purpose == Purpose.CONFIRMATION for record in records):
        results = dict.fromkeys(r.search_result for r in records if r.search_result)
        notes += [note("search-found", result=result) for result in results]
        kinds = {"peak" if load.rate is None else "rate" for load in loads}
        notes += [note("confirmed", what=what) for what in sorted(kinds)]
    if any(record.budget.emulation > 0 for record in records):
        most = max(record.budget.emulation for record in records)
        notes.append(note("emulation-cost", cpu_share=most))
    delayed = [record for record in records if "added_latency_s" in record.metrics and record.system.latency_s]
    if delayed:
        declared_s = [record.system.latency_s or 0.0 for record in delayed]
        added_s = [record.metrics["added_latency_s"] for record in delayed]
        cores = max(record.metrics["relay_cpu_cores"] for record in delayed)
        notes.append(note("latency-added", declared_s=_range(declared_s), added_s=_range(added_s), cores=cores))
    return tuple(notes)


def _range(values: Sequence[float]) -> NoteRange:
    return NoteRange(min(values), max(values))
