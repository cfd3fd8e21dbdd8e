"""Warnings of a lab's study: its order of trials, its comparisons, and percentiles or reads that mislead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from ironbench.model.finding import Finding
from ironbench.model.lab import Configuration, Lab
from ironbench.model.note import FLAGGED, Note, note
from ironbench.model.record import (
    DUET,
    SLICES,
    TRIALS,
    Record,
    machine_of,
)
from ironbench.model.sample import too_few
from ironbench.study.archive import Archive
from ironbench.study.ceiling import Baseline
from ironbench.study.device_io import stored_on
from ironbench.study.study import CellResults
from ironbench.study.subjects import (
    counted_in,
)

_Subject = TypeVar("_Subject", Configuration, Finding)


def lab_warnings(
    lab: Lab,
    settled: Sequence[Record],
    cells: Sequence[CellResults],
    findings: Sequence[Finding],
    baselines: Mapping[str, Baseline],
    archive: Archive,
) -> tuple[Note, ...]:
    """Returns the notes on a lab's results, in the order of the report. `findings`: the comparisons with verdicts."""
    return (
        *_of_order(lab),
        *_of_duet(settled),
        *_of_findings(findings),
        *_of_times(cells),
        *_of_reads(cells, baselines, archive),
        *_of_percentiles(settled),
    )


def _of_percentiles(settled: Sequence[Record]) -> tuple[Note, ...]:
    """Returns notes on the percentiles that are left out."""
    usable = [record for record in settled if record.status.comparable]
    return too_few(usable, counted_in(usable)[1])


def _of_duet(settled: Sequence[Record]) -> tuple[Note, ...]:
    """Returns a note if each system ran on half of the cores (a duet). Absolute values then do not apply to the whole
    machine."""
    return (note("half-of-cores"),) if any(one.method == DUET for one in settled) else ()


def _of_order(lab: Lab) -> tuple[Note, ...]:
    """Returns a note if the order of trials was fixed. Tests are valid only if the order is random (Fisher, The Design
    of Experiments, 1935, ch. IV)."""
    if lab.method.order != "fixed":
        return ()
    by_slices = SLICES if lab.method.slice_s is not None else TRIALS
    return (note("fixed-order", method=DUET if lab.method.duet else by_slices),)


def _of_findings(findings: Sequence[Finding]) -> tuple[Note, ...]:
    """Returns the notes of comparisons with verdicts, without duplicates and with the affected comparisons. Notes on
    flagged trials are excluded, because a separate note covers the flagged trials of all comparisons.
    """
    every = [(finding, one) for finding in findings for one in finding.warnings if one.code != FLAGGED]
    return tuple(
        one if len(known) == len(findings) else _of_comparisons(known, one) for one, known in _by_note(every).items()
    )


def _of_comparisons(compared: Sequence[Finding], one: Note) -> Note:
    """Adds the affected comparisons to a note. `comparisons` contains each name as separate parts. A joined name could
    not be split again, because names in the lab file may contain the words with which the parts are joined."""
    parts = tuple((*known.sides, known.where) for known in compared)
    return note("of-subjects", subjects=tuple(known.name for known in compared), comparisons=parts, note=one)


def _of_times(cells: Sequence[CellResults]) -> tuple[Note, ...]:
    every = [(cell.configuration, one) for cell in cells if cell.time for one in cell.time.warnings]
    return tuple(
        one if len(known) == len(cells) else note("of-subjects", subjects=tuple(known), note=one)
        for one, known in _by_note(every).items()
    )


def _of_reads(cells: Sequence[CellResults], baselines: Mapping[str, Baseline], archive: Archive) -> tuple[Note, ...]:
    """Returns a note if configurations store data on different devices, but none of them read much from its device. The
    comparison then shows little about the devices."""
    devices = {_data_device(cell.usable[0], archive) for cell in cells if cell.usable} - {""}
    known = [baselines[cell.name] for cell in cells if cell.usable]
    if len(devices) < 2 or not all(one.cached for one in known):
        return ()
    return (note("reads-from-memory", share=max(one.read_share or 0.0 for one in known)),)


def _data_device(record: Record, archive: Archive) -> str:
    """Returns the name of the device that stores the data. Returns an empty text if it is unknown. The name does not
    contain the directory, because each version of an engine has its own data directory, usually on the same device."""
    if (emulated := record.system.layout.device_of("data")) is not None:
        return f"emulated {emulated.model}"
    return next(iter(stored_on(record, "data", archive.machine(machine_of(record)))), "")


def _by_note(every: Iterable[tuple[_Subject, Note]]) -> dict[Note, list[_Subject]]:
    """Lists each note once, with the affected subjects."""
    subjects_by_note: dict[Note, list[_Subject]] = {}
    for subject, one in every:
        subjects_by_note.setdefault(one, []).append(subject)
    return subjects_by_note
