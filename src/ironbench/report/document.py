"""The page of a study, which consists of a head, the answer, cards, caveats, sections and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from ironbench.model.finding import Finding
from ironbench.model.plan import AT_STAKE
from ironbench.model.record import Record
from ironbench.report import presentation, theme, wording
from ironbench.report.answer import answer
from ironbench.report.cell import (
    ABSENT,
    EMPTY,
    UNKNOWN,
    Content,
    Missing,
    Row,
    TableCell,
    centre,
    count,
    failed,
    spread,
)
from ironbench.report.charts.base import Table
from ironbench.report.charts.effects import STYLES
from ironbench.report.finding_tables import detectable_cell, interval_cell, ratio_cell
from ironbench.report.headline import NAMED, of_score
from ironbench.report.numbers import confidence, failed_note, moment, quantity, unit_of
from ironbench.report.page import Card, Command, Page, Section
from ironbench.report.reproduce import run_command
from ironbench.report.sections import sections
from ironbench.report.study_json import document
from ironbench.report.wording.answers import report_notes, run_answer
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.report.wording.findings import dropped_blocks
from ironbench.study.archive import EMPTY as EMPTY_ARCHIVE
from ironbench.study.archive import Archive
from ironbench.study.curve import Peak
from ironbench.study.differences import UNKNOWN_MACHINE
from ironbench.study.interim import analysis_after
from ironbench.study.rate import Rate, recorded_pace
from ironbench.study.study import Study, SubjectResults
from ironbench.study.subjects import counted_in
from ironbench.study.timelines import SecondOfTrial, every_second
from ironbench.trial.drive import checkpoints
from ironbench.units import rate
from ironbench.words import counted, some

_MOST_CARDS = 4
"""Maximum number of comparisons that are shown as cards. If there are more, no cards are shown. The chart shows all
comparisons in any case."""
_USUAL = 0.95
"""Confidence level of an interval that is not corrected for multiple comparisons or interim analyses."""


def report(study: Study, archive: Archive = EMPTY_ARCHIVE) -> Page:
    """Returns the page of a study. `archive`: the stored data from which the values of every second are read."""
    return Page(
        title=title(study),
        lead=study.work,
        answer=answer(study),
        sections=tuple(sections(study)),
        caveats=tuple(caveats(study)),
        notes=tuple(notes(study)),
        derived=study.derived,
        kicker=tuple(kicker(study)),
        cards=tuple(cards(study)),
        peaks=peaks(study),
        commands=tuple(commands(study)),
        caption=next(iter(wording.sentences(study.footnotes[:1])), ""),
        kind="labs" if study.lab else "studies",
        seconds=partial(_seconds, study, archive),
        fields=partial(document, study),
    )


def _seconds(study: Study, archive: Archive) -> Iterator[tuple[str, SecondOfTrial]]:
    for part in study.parts:
        for trial in part.subject.records:
            name = f"{part.name}, {counted(trial.cell.load.clients, 'client')}"
            yield from ((name, one) for one in every_second(trial, archive))
    for cell in study.cells:
        name = wording.terms.label(cell.configuration)
        yield from ((name, one) for trial in cell.trials for one in every_second(trial, archive))


def title(study: Study) -> str:
    if study.lab:
        return study.lab.question
    names = [_system_name(parts) for parts in study.systems]
    return " vs. ".join(names) if len(names) <= NAMED else f"{len(names)} systems: {', '.join(names)}"


def _system_name(parts: Sequence[SubjectResults]) -> str:
    system = parts[0].subject.records[0].system
    return parts[0].name if len(parts) == 1 else f"{system.label or system.engine} at {len(parts)} rates"


def kicker(study: Study) -> list[str]:
    """Returns the time and the machine of the measurement as short phrases."""
    machine = {name.partition(".")[2]: value for name, value in study.shared.items() if name.startswith("machine.")}
    words = [moment(study.started_at)] if study.started_at else []
    words += [counted(study.trials, "trial")]
    words += ["server machine unknown"] if UNKNOWN_MACHINE in study.shared else []
    words += [machine["cpu.model"]] if "cpu.model" in machine else []
    words += [_cores(machine["cpu.cores"])] if "cpu.cores" in machine else []
    memory = machine.get("memory_bytes", "")
    words += [f"{quantity(float(memory), 'memory')} memory"] if memory.isdigit() else []
    virtual = machine.get("virtualisation", "none")
    words += [f"virtual machine ({virtual})"] if virtual != "none" else []
    return words


def _cores(text: str) -> str:
    return counted(int(text), "core") if text.isdigit() else f"{text} cores"


def cards(study: Study) -> list[Card]:
    """Returns the page's cards. Runs have a card for each system. A lab has a card for each comparison, or no cards if
    there are more than `_MOST_CARDS` comparisons."""
    if study.lab:
        return [_of_finding(one) for one in study.findings] if len(study.findings) <= _MOST_CARDS else []
    return [_of_part(part, place) for place, part in enumerate(study.parts)]


def _of_part(part: SubjectResults, place: int) -> Card:
    mark, colour = theme.MARKS[place % len(theme.MARKS)], f"s{place % theme.SYSTEMS}"
    if part.curve.main is None:
        return Card(part.name, mark, colour, EMPTY, "no usable trial")
    if (shown := presentation.of_part(part)) is not None:
        figure, unit, facts = shown.card(part)
        return Card(part.name, mark, colour, figure, unit, tuple(facts))
    main, records = part.curve.main, part.subject.records
    units = counted_in(records)[1]
    figure, unit, rows = _of_rate(main, units) if isinstance(main, Rate) else _reached(main, records, units)
    times_shown = not isinstance(part.curve.main, Rate) or part.curve.main.is_kept
    for label, metric in (
        ("median response time", "response_time_p50_s"),
        ("99th-percentile response time", "response_time_p99_s"),
    ):
        if metric in part.curve.main.metrics and times_shown:
            rows.append((label, centre(part.curve.main.metrics[metric], "s")))
    if part.standing and part.standing.ratio:
        rows.append((f"ratio to {part.reference}", TableCell(part.standing.ratio, "times")))
    return Card(part.name, mark, colour, figure, unit, tuple(rows))


def _reached(peak: Peak, records: Sequence[Record], units: str) -> tuple[TableCell, str, list[tuple[str, Content]]]:
    rows: list[tuple[str, Content]] = [
        ("clients", count(peak.clients)),
        ("range", spread(peak.throughput, "1/s")),
        ("failed", failed(peak.trials)),
        ("based on", wording.text(peak.basis)),
    ]
    if first := of_score(records[0], peak):
        rows.insert(1, (f"all {units}", centre(peak.throughput, "1/s")))
        return TableCell(peak.metrics[first].centre, unit_of(first), bare=True), metric_words(first), rows
    multiple = recorded_pace(records[0])
    at_pace = "" if multiple is None else f" {run_answer.pace(multiple)}"
    return TableCell(peak.throughput.centre, "1/s", bare=True), f"{units}/s{at_pace}", rows


def _of_rate(one: Rate, units: str) -> tuple[Content, str, list[tuple[str, Content]]]:
    """Returns the figure, the unit and the facts of a card about an open loop. The figure is the target rate if the
    system sustained it. Otherwise, it is the rate that the system reached."""
    finished = centre(one.finished, "1/s")
    rows: list[tuple[str, Content]] = [
        ("clients", count(one.clients)),
        ("completed", finished),
        ("failed", failed(one.trials)),
        ("based on", wording.text(one.basis)),
    ]
    if one.is_kept:
        return TableCell(one.rate, "rate", bare=True), f"{units}/s {wording.text(one.outcome)}", rows
    figure = replace(finished, bare=True) if isinstance(finished, TableCell) else finished
    outcome = f"the target rate of {rate(one.rate)} was {wording.text(one.outcome)}"
    return figure, f"{units}/s completed; {outcome}", rows


def _of_finding(finding: Finding) -> Card:
    colour, mark = STYLES[finding.conclusion]
    facts: tuple[tuple[str, Content], ...] = (
        ("compared", wording.terms.configuration(finding.sides[0])),
        ("baseline", wording.terms.configuration(finding.sides[1])),
        *([("with", wording.terms.configuration(finding.where))] if finding.where.values else []),
        (f"{confidence(finding.confidence)} CI", interval_cell(finding)),
        *([("drift", wording.text(finding.changed))] if finding.changed else []),
        ("blocks", count(finding.blocks)),
        *([("min. detectable effect", detectable_cell(finding))] if finding.detectable is not None else []),
    )
    return Card(finding.conclusion.word, mark, colour, ratio_cell(finding), metric_words(finding.metric), facts)


def peaks(study: Study) -> Table:
    """Returns a row for each system that ran in a closed loop. The row contains the peak throughput, and the response
    times and failures at the peak."""
    if (shown := presentation.of_study(study)) is not None:
        return shown.peaks(study)
    rows: list[Row] = []
    for part in study.closed:
        peak = part.curve.peak
        if peak is None:
            rows.append((part.name, Missing("no usable trial"), *(EMPTY for _ in range(6))))
            continue
        slow = [peak.metrics.get(f"response_time_{name}_s") for name in ("p50", "p99")]
        latencies = [centre(one, "s") if one else ABSENT for one in slow]
        figures = (centre(peak.throughput, "1/s"), spread(peak.throughput, "1/s"))
        rows.append((part.name, count(peak.clients), *figures, failed(peak.trials), *latencies, _to_reference(part)))
    alone = all(part.curve.peak is None or part.curve.peak.alone for part in study.closed)
    head = (
        "system",
        "clients" if alone else "clients at peak",
        "throughput",
        "range of repeats",
        "failed",
        "median",
        "99th percentile",
        "ratio",
    )
    return Table(head, tuple(rows))


def _to_reference(part: SubjectResults) -> Content:
    if part.standing is None:
        return count(1, "reference")
    return UNKNOWN if part.standing.ratio is None else TableCell(part.standing.ratio, "times")


def caveats(study: Study) -> list[str]:
    """Returns the caveats that a reader must know before using the numbers. The most serious caveats come first."""
    systems_by_text: dict[str, list[str]] = {}
    for part in study.parts:
        incoherent = (wording.text(part.little.note),) if part.little and not part.little.holds else ()
        for text in (*map(wording.text, (*part.left_out, *part.warnings)), *incoherent):
            systems_by_text.setdefault(text, []).append(part.name)
    everyone, all_words = len(study.parts), "all systems" if len(study.systems) > 1 else "all rates"
    return [
        *(report_notes.not_measured(study.configuration(name), why) for name, why in study.skipped),
        *map(wording.text, study.left_out),
        *map(report_notes.excluded, dropped_blocks(study.dropped)),
        *map(wording.text, study.warnings),
        *(_of_systems(text, names, everyone, all_words) for text, names in systems_by_text.items()),
        *(f"{one.name}: {text}" for one in study.scalings for text in wording.texts(one.caveats)),
        *wording.sentences(study.unlike),
    ]


def _of_systems(text: str, names: list[str], everyone: int, all_words: str) -> str:
    """Returns a caveat with the systems to which it applies, if the study has several."""
    if everyone == 1:
        return text
    return f"{all_words if len(names) == everyone else some(names)}: {text}"


def commands(study: Study) -> list[Command]:
    """Returns commands that repeat the measurement. A lab has one command, and runs have a command for each system."""
    if study.lab:
        return [Command(f"ironbench lab run {study.lab.name}.toml", file=study.lab.name, source=study.lab.source)]
    return [Command(run_command(part.subject.records), part.name) for part in study.parts]


def notes(study: Study) -> list[str]:
    """Returns notes on how to read the figures."""
    if study.lab is None:
        averaged = any(one.standing and one.standing.ratio and one.standing.a.n > 1 for one in study.parts)
        means = [report_notes.medians_and_means()] if averaged else []
        return [*means, *wording.sentences(study.footnotes), *_power_note(study)]
    setups = [cell.setup for cell in study.cells]
    checkpoint_words = checkpoints.interval_note(setups, study.lab.method.crash)
    chosen = f"Checkpoints: {checkpoint_words}." if checkpoint_words else ""
    texts = [
        report_notes.ratios(),
        report_notes.equivalence(study.lab.method.margin),
        report_notes.minimum_detectable_effect(),
        report_notes.p_values(),
        _confidence_note(study),
        chosen,
        *_power_note(study),
    ]
    return [note for note in texts if note]


def _power_note(study: Study) -> list[str]:
    """States how many trials ended with a simulated power failure, and in how many of them all checks passed
    afterwards."""
    records = [*(one for part in study.parts for one in part.subject.records)]
    records += [one for cell in study.cells for one in cell.trials]
    cut = [one for one in records if one.power_cut]
    if not cut:
        return []
    held = sum(bool(one.checks) and all(check.passed for check in one.checks) for one in cut)
    at_stake = [one.metrics[AT_STAKE] for one in cut if AT_STAKE in one.metrics]
    return [report_notes.power_cut(len(cut), held, at_stake)]


def _confidence_note(study: Study) -> str:
    """Explains why confidence intervals have a level above 95%. Returns an empty text if none has such a level."""
    findings = (*study.findings, *study.claimed)
    levels = sorted({one.confidence for one in findings if one.confidence > _USUAL + 1e-9})
    if not levels:
        return ""
    method, comparisons = study.lab.method if study.lab else None, len(findings)
    analyses = analysis_after(method, method.stages[-1].number).analyses if method else 1
    return report_notes.wider_intervals(levels, _USUAL, analyses, comparisons)


def contents(studies: Sequence[Study]) -> Section | None:
    """Returns the table of contents, with a row for each system of each kind of work, in the report's order.

    Returns None for labs. Also returns None for a single kind of work if the answer names all systems anyway, or if
    there is only one system at several rates. The answer should then come first.
    """
    one_system = len(studies) == 1 and (len(studies[0].parts) <= NAMED or len(studies[0].systems) == 1)
    if any(study.lab for study in studies) or one_system:
        return None
    rows = [
        (study.work if place == 0 else "", part.name, *_leading_figure(part), _tally(part))
        for study in studies
        for place, part in enumerate(study.parts)
    ]
    systems, trials = sum(len(study.systems) for study in studies), sum(study.trials for study in studies)
    table = Table(("work", "system", "result", "load", "trials"), tuple(rows))
    return Section("contents", "Contents", report_notes.contents(len(studies), systems, trials), tables=(("", table),))


def _leading_figure(part: SubjectResults) -> tuple[Content, Content]:
    """Returns the main result of a system and the load at which the result was measured."""
    main = part.curve.main
    if main is None:
        return Missing("no usable trial"), EMPTY
    if (known := presentation.of_part(part)) is not None:
        figure, unit, _ = known.card(part)
        return (replace(figure, note=unit) if isinstance(figure, TableCell) else Missing(unit)), EMPTY
    clients = counted(main.clients, "client")
    if isinstance(main, Rate):
        figure, unit, _ = _of_rate(main, counted_in(part.subject.records)[1])
        if main.is_kept:
            return TableCell(main.rate, "rate", note=wording.text(main.outcome)), clients
        return (replace(figure, note=unit) if isinstance(figure, TableCell) else Missing(unit)), clients
    if first := of_score(part.subject.records[0], main):
        words = ", ".join(filter(None, (metric_words(first), failed_note(main.trials))))
        return TableCell(main.metrics[first].centre, unit_of(first), bare=True, note=words), clients
    return TableCell(main.throughput.centre, "1/s", note=failed_note(main.trials)), clients


def _tally(part: SubjectResults) -> TableCell:
    doubtful, out = len(part.subject.suspect), len(part.subject.left_out)
    known = [
        f"{counted(number, 'trial')} {word}" for number, word in ((doubtful, "flagged"), (out, "excluded")) if number
    ]
    return count(len(part.subject.records), ", ".join(known))
