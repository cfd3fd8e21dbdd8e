"""What every format writes of a study, of runs or of a lab: head, answer, cards, cautions, sections, notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.analyse.curve import Peak
from ironbench.analyse.rate import Rate
from ironbench.analyse.study import Effect, Part, Study
from ironbench.analyse.subjects import counted_in
from ironbench.drive import checkpoints
from ironbench.report import own, theme
from ironbench.report.answer import answer
from ironbench.report.charts.base import Table
from ironbench.report.charts.effects import LOOKS
from ironbench.report.findings import interval, metric_words, ratio, resolved
from ironbench.report.headline import NAMED
from ironbench.report.numbers import confidence, measured, moment, number, quantity, span, times
from ironbench.report.section import Answer, Section
from ironbench.report.sections import law, sections
from ironbench.report.sections.curves import failed_share
from ironbench.words import THIN, counted

_MOST_CARDS = 4
"""More comparisons than this are told by the chart alone."""
_USUAL = 0.95
"""Confidence of an interval that answers one question, asked once."""


@dataclass(frozen=True, slots=True)
class Card:
    """What a system came to, or how a comparison ended, at a glance."""

    name: str
    mark: str
    colour: str
    """Both names of the theme."""
    figure: str
    unit: str
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """How to measure the same again."""

    line: str
    name: str = ""
    """Of the system that it measures; empty for the whole."""
    file: str = ""
    """Name of the file that it reads, without its ending."""
    source: str = ""
    """That file's text."""


@dataclass(frozen=True, slots=True)
class Report:
    """A study in reading order; a format only writes it down."""

    study: Study
    title: str
    kicker: tuple[str, ...]
    """When and on what, in short words."""
    answer: Answer
    cards: tuple[Card, ...]
    peaks: Table
    """The cards as a table; without rows where a section says it all."""
    cautions: tuple[str, ...]
    sections: tuple[Section, ...]
    commands: tuple[Command, ...]
    notes: tuple[str, ...]

    @property
    def work(self) -> str:
        return self.study.work

    @property
    def derived(self) -> str:
        return self.study.derived


def report(study: Study) -> Report:
    return Report(
        study,
        title(study),
        tuple(kicker(study)),
        answer(study),
        tuple(cards(study)),
        peaks(study),
        tuple(cautions(study)),
        tuple(sections(study)),
        tuple(commands(study)),
        tuple(notes(study)),
    )


def title(study: Study) -> str:
    if study.lab:
        return study.lab.question
    names = [part.name for part in study.parts]
    return " against ".join(names) if len(names) <= NAMED else f"{len(names)} systems: {', '.join(names)}"


def kicker(study: Study) -> list[str]:
    """When and on what, in short words."""
    machine = {name.partition(".")[2]: value for name, value in study.shared.items() if name.startswith("machine.")}
    words = [moment(study.started_at)] if study.started_at else []
    words += [counted(study.trials, "trial")]
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
    """One for each system of runs, or for each comparison of a lab, if they are few."""
    if study.lab:
        return [_of_effect(one) for one in study.effects] if len(study.effects) <= _MOST_CARDS else []
    return [_of_part(part, place) for place, part in enumerate(study.parts)]


def _of_part(part: Part, place: int) -> Card:
    mark, colour = theme.MARKS[place % len(theme.MARKS)], f"s{place % theme.SYSTEMS}"
    if part.curve.main is None:
        return Card(part.name, mark, colour, "", "no usable trial")
    if (shown := own.presentation_of(part)) is not None:
        figure, unit, facts = shown.card(part)
        return Card(part.name, mark, colour, figure, unit, tuple(facts))
    figure, unit, rows = _asked(part.curve.main) if isinstance(part.curve.main, Rate) else _reached(part.curve.main)
    times_shown = not isinstance(part.curve.main, Rate) or part.curve.main.is_kept
    for label, metric in (("median response", "response_time_p50_s"), ("99th percentile", "response_time_p99_s")):
        if metric in part.curve.main.metrics and times_shown:
            rows.append((label, measured(part.curve.main.metrics[metric], "s")))
    if part.standing and part.standing.ratio:
        rows.append((f"ratio to {part.standing.reference}", times(part.standing.ratio)))
    units = f"{counted_in(part.subject.records)[1]}/s"
    return Card(part.name, mark, colour, figure, f"{units} {unit}".strip(), tuple(rows))


def _reached(peak: Peak) -> tuple[str, str, list[tuple[str, str]]]:
    rows = [("clients", str(peak.clients)), ("range", span(peak.throughput, "1/s")), ("rests on", peak.basis)]
    return measured(peak.throughput, "1/s").removesuffix("/s"), "", rows


def _asked(one: Rate) -> tuple[str, str, list[tuple[str, str]]]:
    """Of an open loop the figure is what was asked for; that it was kept is the result."""
    finished = measured(one.metrics.get("throughput"), "1/s")
    rows = [("clients", str(one.clients)), ("finished", finished), ("rests on", one.basis)]
    return number(one.rate), one.words, rows


def _of_effect(effect: Effect) -> Card:
    finding = effect.finding
    colour, mark = LOOKS[finding.conclusion]
    facts = (
        ("compared", effect.contrast.cell),
        ("baseline", effect.contrast.baseline),
        *([("at", effect.contrast.where)] if effect.contrast.where else []),
        (f"{confidence(finding.confidence)} interval", interval(finding)),
        ("blocks", str(finding.blocks)),
        ("finds differences from", resolved(finding)),
    )
    return Card(finding.conclusion.value, mark, colour, ratio(finding.ratio), metric_words(finding.metric), facts)


def peaks(study: Study) -> Table:
    """One row per system driven in a closed loop: its peak and what it rests on."""
    if (shown := own.presentation(study)) is not None:
        return shown.peaks(study)
    rows: list[tuple[str, ...]] = []
    for part in study.closed:
        peak = part.curve.peak
        if peak is None:
            rows.append((part.name, "no usable trial", "", "", "", "", "", ""))
            continue
        slow = [peak.metrics.get(f"response_time_{name}_s") for name in ("p50", "p99")]
        latencies = [measured(one, "s") if one else "–" for one in slow]
        ratio = times(part.standing.ratio) if part.standing else "1 (reference)"
        figures = (measured(peak.throughput, "1/s"), span(peak.throughput, "1/s"))
        rows.append((part.name, str(peak.clients), *figures, failed_share(peak.trials), *latencies, ratio))
    head = (
        "system",
        "clients at peak",
        "throughput",
        "range of repeats",
        "failed",
        "median",
        "99th percentile",
        "ratio",
    )
    return Table(head, tuple(rows))


def cautions(study: Study) -> list[str]:
    """Everything a reader must know before using the numbers, the gravest first."""
    said: dict[str, list[str]] = {}
    for part in study.parts:
        incoherent = (part.little.sentence,) if part.little and not part.little.holds else ()
        for text in (*part.left_out, *part.warnings, *incoherent):
            said.setdefault(text, []).append(part.name)
    everyone = len(study.parts)
    return [
        *(f"{name} was not measured: {why}" for name, why in study.skipped),
        *study.left_out,
        *(f"Left out of the comparison: {text}" for text in study.dropped),
        *study.warnings,
        *(f"{_who(names, everyone)}: {text}" for text, names in said.items()),
        *law.cautions(study.scalings),
        *study.unlike,
    ]


def _who(names: list[str], everyone: int) -> str:
    return "all systems" if len(names) == everyone > 1 else ", ".join(names)


def commands(study: Study) -> list[Command]:
    """Each system's `run`, or the lab with its file."""
    if study.lab:
        return [Command(f"ironbench lab run {study.lab.name}.toml", file=study.lab.name, source=study.lab.source)]
    return [Command(part.command, part.name) for part in study.parts]


def notes(study: Study) -> list[str]:
    """How to read the figures."""
    if study.lab is None:
        return list(study.footnotes)
    margin = study.lab.method.margin
    setups = [cell.setup for cell in study.cells]
    chosen = f"Checkpoints: {checkpoints.said(setups)}." if checkpoints.said(setups) else ""
    found = [
        "A ratio is the geometric mean of the ratios of each block, cell over baseline; pairing by block takes out "
        "what a whole block shared, such as a drift of the machine.",
        f"Equivalent means that two one-sided tests at 5{THIN}% each rule out a ratio below {1 / (1 + margin):.3g} and "
        f"one above {1 + margin:.3g}. That is when the 90{THIN}% interval lies between the two; the interval shown is "
        "wider and may reach beyond. Several looks or comparisons share that chance out, too. Cannot tell means that "
        "these blocks show neither a difference nor its absence.",
        "Finds from: the smallest difference that this many blocks with this spread would find nine times in ten.",
        "p is two-sided and corrected for the number of comparisons.",
        _why_so_sure(study),
        chosen,
    ]
    return [note for note in found if note]


def _why_so_sure(study: Study) -> str:
    """Why an interval is at more than 95 %: the other figure is met nowhere else."""
    effects = (*study.effects, *study.claimed)
    levels = sorted({effect.finding.confidence for effect in effects if effect.finding.confidence > _USUAL + 1e-9})
    if not levels:
        return ""
    looks, comparisons = len(study.lab.method.stages) if study.lab else 1, len(effects)
    among = [f"{looks} looks at the findings"] if looks > 1 else []
    among += [f"{comparisons} comparisons"] if comparisons > 1 else []
    said = " to ".join(confidence(level) for level in dict.fromkeys((levels[0], levels[-1])))
    return (
        f"Where an interval is at {said}, not {confidence(_USUAL)}: the 5{THIN}% chance of a false alarm is shared out "
        f"among {' and '.join(among) or 'the looks'}, so that all of them together keep it."
    )


def overview(studies: Sequence[Study]) -> Table | None:
    """A row per system of every work, in the order of the report; None where the first lines name all of them."""
    if any(study.lab for study in studies) or (len(studies) == 1 and len(studies[0].parts) <= NAMED):
        return None
    rows = [
        (study.work if place == 0 else "", part.name, *_came_to(part), _tally(part))
        for study in studies
        for place, part in enumerate(study.parts)
    ]
    return Table(("work", "system", "came to", "at", "trials"), tuple(rows))


def contents(studies: Sequence[Study]) -> str:
    """What is in a report of many records, in a sentence."""
    systems, trials = sum(len(study.parts) for study in studies), sum(study.trials for study in studies)
    works = f"{counted(len(studies), 'kind')} of work"
    return (
        f"{works}, {counted(systems, 'system')}, {counted(trials, 'trial')}; each kind of work has a part of its own."
    )


def _came_to(part: Part) -> tuple[str, str]:
    """The figure that leads, and where it was measured."""
    main = part.curve.main
    if main is None:
        return "no usable trial", ""
    if (shown := own.presentation_of(part)) is not None:
        figure, unit, _ = shown.card(part)
        return f"{figure} {unit}".strip(), ""
    clients = counted(main.clients, "client")
    if isinstance(main, Rate):
        return f"{quantity(main.rate, '1/s')} {main.words}", clients
    return measured(main.throughput, "1/s"), clients


def _tally(part: Part) -> str:
    doubtful, out = len(part.subject.suspect), len(part.subject.left_out)
    known = [f"{count} {word}" for count, word in ((doubtful, "suspect"), (out, "left out")) if count]
    return str(len(part.subject.records)) + (f" ({', '.join(known)})" if known else "")
