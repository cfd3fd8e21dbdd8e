"""Prints the results of `run` and `lab run` when they end."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.note import note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, Status
from ironbench.model.sample import IN_TABLES, lacking, late, too_few
from ironbench.model.search import Search
from ironbench.printer import Printer
from ironbench.report import text_layout, wording
from ironbench.report.cell import ABSENT, EMPTY, Missing, Row, TableCell, count, with_range
from ironbench.report.charts.base import Table
from ironbench.report.derived import sentences
from ironbench.report.document import report
from ironbench.report.numbers import quantity, unit_of
from ironbench.report.page import CAVEATS
from ironbench.study.archive import Archive
from ironbench.study.comparability import left_out, trial_warnings
from ironbench.study.curve import metrics_of
from ironbench.study.optimum import SearchResult
from ironbench.study.runstudy import studies
from ironbench.study.study import Study
from ironbench.study.subjects import counted_in
from ironbench.study.summarise import Summary
from ironbench.words import counted

_OF_A_RATE = ("response_time_p50_s", "response_time_p99_s")


def run_summary(records: Sequence[Record], archive: Archive, printer: Printer) -> None:
    """Prints the results of `run`: a summary for each kind of work."""
    for study in studies(records, archive, sentences(records)) if records else ():
        summary(study, printer)


def summary(study: Study, printer: Printer) -> None:
    """Prints the answer, the sections for the end of a run, and the caveats that a reader must know before using the
    numbers."""
    content = report(study)
    ended = [] if study.lab else [_statuses(study)]
    blocks = [text_layout.clean(content.title), *ended, content.derived, text_layout.answer(content.answer)]
    blocks += [
        block for part in content.sections if part.printed_at_end for block in text_layout.section(part, brief=True)
    ]
    blocks += [] if study.lab else [_sample_caveat(study)]
    blocks.append(text_layout.bullets(CAVEATS, content.caveats))
    printer.data("\n\n".join(block for block in blocks if block))


def _sample_caveat(study: Study) -> str:
    trials = [trial for part in study.parts for trial in part.subject.records]
    found = too_few([trial for trial in trials if trial.status.comparable], study.counts[1], IN_TABLES)
    return " ".join(wording.sentences(found))


def _statuses(study: Study) -> str:
    records = [record for part in study.parts for record in part.subject.records]
    tally = [(status, sum(record.status is status for record in records)) for status in Status]
    return ", ".join(f"{counted(number, 'trial')} {status.word}" for status, number in tally if number)


def search_summary(
    search: Search, records: Sequence[Record], archive: Archive, answer: SearchResult | None = None
) -> str:
    """Returns the result of a search for a rate. The text contains the answer, a table of the rates that the search
    tried, and the warnings of the trials."""
    # Some workloads also have clients that follow no schedule. The target rate does not include their transactions.
    finished = "scheduled_throughput"
    if not all(finished in record.metrics for record in records if record.status.comparable):
        finished = "throughput"
    names = dict.fromkeys([finished, *_OF_A_RATE, *(limit.metric for limit in search.limits)])
    rates = sorted({record.cell.load.rate or 0.0 for record in records})
    rows: list[Row] = []
    for rate in rates:
        trials = [record for record in records if record.cell.load.rate == rate and record.purpose != Purpose.PILOT]
        usable = [record for record in trials if record.status.comparable]
        # Trials in which the search tried a rate do not count as confirmation trials, as in the report.
        fresh = [record for record in usable if record.purpose == Purpose.CONFIRMATION]
        notes = [f"{counted(len(fresh), 'confirmation')} of {len(trials)}" if fresh else f"of {len(trials)}"]
        usable = fresh or usable
        missed = sum(record.kept_rate is False for record in usable)
        kept = not missed
        notes += [f"target rate not sustained in {missed}"] if missed else []
        shown = [name for name in names if kept or not any(late(record, name) for record in usable)]
        summaries = metrics_of(usable, shown, archive)
        tried = (_tried(name, summaries.get(name), usable) for name in names)
        rows.append((TableCell(rate, "rate"), count(len(usable), ", ".join(notes)), *tried))
    limits = [f"limit on {one.metric}: at most {quantity(one.most, unit_of(one.metric))}" for one in search.limits]
    known = wording.texts((*left_out(records), *trial_warnings(records)))
    table = text_layout.table(Table(("target rate", "usable trials", *names), tuple(rows)))
    usable = [record for record in records if record.status.comparable]
    if few := lacking(usable, list(names)):
        known.append(wording.text(note("percentiles-of-too-few", units=counted_in(records)[1], needs=few)))
    answered = [*wording.sentences([answer.note]), ""] if answer else []
    return "\n".join([*answered, *limits, table, *(f"  - {line}" for line in known)])


def _tried(name: str, summary: Summary | None, records: Sequence[Record]) -> TableCell | Missing:
    if summary is None:
        return ABSENT if any(name in record.metrics for record in records) else EMPTY
    return with_range(summary, unit_of(name))
