"""All charts and tables of a study, in reading order; shared by every format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ironbench.analyse.balance import Entry
from ironbench.analyse.compare import ratio as compared
from ironbench.analyse.differences import Difference, telling
from ironbench.analyse.rate import Rate
from ironbench.analyse.study import Part, Study
from ironbench.analyse.subjects import counted_in, leading
from ironbench.analyse.summarise import overlap
from ironbench.catalogue import part_of
from ironbench.model.record import Record, Statement
from ironbench.report import own, read_cost
from ironbench.report.charts import scalability as law
from ironbench.report.charts.base import Table
from ironbench.report.charts.curves import curves, failed_share
from ironbench.report.charts.device_io import device_io
from ironbench.report.charts.latency import latency
from ironbench.report.charts.queries import by_query
from ironbench.report.charts.role_latency import role_latency
from ironbench.report.charts.shares import budget, waits
from ironbench.report.charts.timelines import devices, timelines
from ironbench.report.findings import metric_words
from ironbench.report.numbers import NOT_KNOWN, between, measured, number, quantity, span, times, unit_of
from ironbench.report.section import Answer, Point, Section
from ironbench.words import counted

REST = "Everything else that differs"
_CONFIGURATION = ("system", "load", "machine", "engine", "software")
_BY_SCRIPT = (
    *(("throughput", "1/s"), ("response_time_mean_s", "s"), ("response_time_p50_s", "s")),
    ("response_time_p99_s", "s"),
)
_LEAD_STATEMENTS = "From sending a command to its answer; the time between commands is not in it."
_TOLD = 3
"""Of more systems than this, the headline names the first and the one with the highest peak; the table has all."""


def sections(study: Study) -> list[Section]:
    """Everything with something to show; a section without content is left out."""
    found = [
        Section("curves", "Throughput and response time", charts=tuple(curves(study))),
        Section("rates", "Rates asked for", _LEAD_RATES, tables=_some(rates(study))),
        Section("queries", "Query by query", charts=tuple(by_query(study.queries))),
        Section(
            "law", "Scalability", law.lead(study.scalings), tuple(law.scalability(study.scalings, study.counts[1]))
        ),
        Section("latency", "Latency", charts=tuple(latency(study))),
        Section("scripts", f"Script by script, {study.place}", tables=tuple(scripts(study))),
        Section(
            "statements", f"Statement by statement, {study.place}", _LEAD_STATEMENTS, tables=tuple(statements(study))
        ),
        Section("time", "Over time", _lead_time(study), tuple(timelines(study))),
        Section("cpu", "Where the CPU time went", charts=tuple(budget(study))),
        Section("waits", "What backends waited for", charts=tuple(waits(study))),
        Section("devices", "Devices", _lead_time(study), (*devices(study), *role_latency(study.role_latencies))),
        Section("device-io", "I/Os by latency and by size", _LEAD_IO.format(study.place), tuple(device_io(study))),
        read_cost.section(study.read_costs),
        Section("balance", "Balance sheet", _LEAD_BALANCE, tables=(("", balance(study)),)),
        Section("differences", "What differs", _lead_differences(study), tables=tuple(differences(study))),
        Section("texts", "The scripts", texts=study.scripts),
        Section("configuration", "Configuration in common", tables=tuple(configuration(study.shared))),
    ]
    if (shown := own.presentation(study)) is not None:
        found = [*shown.sections(study), *(section for section in found if section.id not in shown.hides)]
    return [section for section in found if section.has_content]


_LEAD_IO = "Every I/O of the emulated devices during the trials {}, by what it belonged to."
_LEAD_RATES = (
    "In an open loop transactions start at the rate asked for, whatever the system does: it keeps that rate or does "
    "not. Response times of a rate that is not kept grow as long as the trial lasts."
)
_LEAD_BALANCE = (
    "Ratios decide whether a small system stands for a big one: compare these with the system you have in mind, "
    "not the sizes."
)


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


def rates(study: Study) -> Table:
    """One row per rate and number of clients: whether the system kept it."""
    head = ("system", "rate asked for", "clients", "kept", "finished", "failed", "trials", "median", "99th percentile")
    rows: list[tuple[str, ...]] = []
    for part in study.parts:
        asked = part.subject.records[0].cell.load.rate
        if asked is None:
            continue
        if not part.curve.rates:
            rows.append((part.name, quantity(asked, "1/s"), "", "no usable trial", "", "", "", "", ""))
        for one in part.curve.rates:
            finished = one.metrics.get("throughput")
            slow = [one.metrics.get(f"response_time_{name}_s") for name in ("p50", "p99")]
            times_said = [measured(time, "s") if time and one.is_kept else "–" for time in slow]
            done = (one.words, measured(finished, "1/s"), failed_share(one.trials), str(len(one.trials)))
            rows.append((part.name, quantity(asked, "1/s"), str(one.clients), *done, *times_said))
    return Table(head, tuple(rows))


def scripts(study: Study) -> list[tuple[str, Table]]:
    """A table per system with what each script of its mix gave."""
    found = []
    for part in study.parts:
        metrics = part.curve.main.metrics if part.curve.main else {}
        names = dict.fromkeys(part_of(name) for name in metrics if part_of(name).startswith("script="))
        rows = []
        for script in names:
            cells = [measured(metrics.get(f"{metric}{{{script}}}"), unit) for metric, unit in _BY_SCRIPT]
            failed = _failed(script, part.curve.main.trials if part.curve.main else ())
            rows.append((script.removeprefix("script="), cells[0], failed, *cells[1:]))
        if len(rows) > 1:
            head = ("script", "throughput", "failed", "mean", "median", "99th percentile")
            found.append((part.name, Table(head, tuple(rows))))
    return found


def _failed(script: str, trials: Sequence[Record]) -> str:
    """Failed transactions of a script. A record that counts them names only scripts with some."""
    of_parts = [name for trial in trials for name in trial.metrics if name.startswith("failed{")]
    if not of_parts and any(trial.metrics.get("failed", 1) for trial in trials):
        return NOT_KNOWN
    return f"{sum(trial.metrics.get(f'failed{{{script}}}', 0.0) for trial in trials):,.0f}"


def statements(study: Study) -> list[tuple[str, Table]]:
    """A table per system with the time of every SQL command, all trials of its main point together."""
    found = []
    for part in study.parts:
        alike: dict[tuple[str, int, int], list[Statement]] = {}
        for trial in part.curve.main.trials if part.curve.main else ():
            for one in trial.statements:
                alike.setdefault((one.script, one.line, one.command), []).append(one)
        rows = []
        for (script, line, _), group in alike.items():
            count = sum(one.count for one in group)
            mean_s = sum(one.count * one.mean_s for one in group) / count
            squares = sum(one.count * (one.stdev_s**2 + (one.mean_s - mean_s) ** 2) for one in group)
            times_s = (quantity(mean_s, "s"), quantity(math.sqrt(squares / count), "s"))
            failed = sum(one.failed for one in group)
            rows.append((f"{script}:{line}  {group[0].text}", *times_s, f"{count:,}", f"{failed:,}"))
        if rows:
            head = ("statement", "mean", "standard deviation", "answers", "failed")
            found.append((part.name, Table(head, tuple(rows))))
    return found


def balance(study: Study) -> Table:
    names = list(dict.fromkeys(entry.name for part in study.parts for entry in part.balance))
    rows = []
    for name in names:
        cells = []
        for part in study.parts:
            entry = next((entry for entry in part.balance if entry.name == name), None)
            cells.append(ratio_of(entry))
        rows.append((name, *cells))
    return Table((study.place, *(part.name for part in study.parts)), tuple(rows))


def ratio_of(entry: Entry | None) -> str:
    """A ratio of the balance sheet in words."""
    if entry is None:
        return "–"
    known = quantity(entry.value, entry.unit) if entry.value is not None else entry.said or NOT_KNOWN
    said = known + (" to 1" if entry.value is not None and entry.name.startswith("data to") else "")
    return f"{said} ({entry.note})" if entry.note else said


def differences(study: Study) -> list[tuple[str, Table]]:
    """What a reader must see, without a name; under a name of its own the rest."""
    told, rest = telling(study.differences)
    head = ("fact", *(part.name for part in study.parts))
    named = (("", told), (REST, rest))
    return [(name, Table(head, difference_rows(rows))) for name, rows in named if rows]


def difference_rows(rows: Sequence[Difference]) -> tuple[tuple[str, ...], ...]:
    """A row per fact, its value in every system."""
    return tuple(
        (f"{row.room}: {fact_name(row.name)}", *(fact(row.name, value) for value in row.values)) for row in rows
    )


def configuration(shared: Mapping[str, str]) -> list[tuple[str, Table]]:
    """Facts in common, a table per room."""
    found = []
    for room in _CONFIGURATION:
        rows = [
            (fact_name(name.partition(".")[2]), fact(name, value))
            for name, value in shared.items()
            if name.partition(".")[0] == room
        ]
        if rows:
            found.append((room.capitalize(), Table(("fact", "value"), tuple(rows))))
    return found


def fact_name(name: str) -> str:
    """A fact's name without the unit that its value now shows."""
    return name.removesuffix("_bytes").removesuffix("_hz")


def fact(name: str, value: str) -> str:
    """Sizes in powers of 1024, as memory is sold and as engines count; all else as recorded."""
    if name.endswith("_bytes") and value.isdigit():
        return quantity(float(value), "memory")
    if name.endswith("_hz") and value.isdigit():
        return f"{number(float(value) / 1e9)} GHz"
    return value


def cautions(study: Study) -> list[str]:
    """Everything a reader must know before using the numbers, the gravest first."""
    said: dict[str, list[str]] = {}
    for part in study.parts:
        incoherent = (part.little.sentence,) if part.little and not part.little.holds else ()
        for text in (*part.left_out, *part.warnings, *incoherent):
            said.setdefault(text, []).append(part.name)
    everyone = len(study.parts)
    found = [f"{_who(names, everyone)}: {text}" for text, names in said.items()]
    return [*found, *law.cautions(study.scalings), *study.unlike]


def _who(names: list[str], everyone: int) -> str:
    return "all systems" if len(names) == everyone > 1 else ", ".join(names)


def overview(studies: Sequence[Study]) -> Table | None:
    """A row per system of every work, in the order of the report; None where the first lines name all of them."""
    if len(studies) == 1 and len(studies[0].parts) <= _TOLD:
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


def title(study: Study) -> str:
    names = [part.name for part in study.parts]
    return " against ".join(names) if len(names) <= _TOLD else f"{len(names)} systems: {', '.join(names)}"


def answer(study: Study) -> Answer:
    """How systems stand to the first, the clearest first, and what each came to. No verdict: their trials were not run
    in blocks."""
    found = [Point(text, name) for name, text in headline(study)]
    return Answer(found[0], tuple(found[1:]))


def headline(study: Study) -> list[tuple[str, str]]:
    """Sentences that the data support, each as a system's name and what is said of it."""
    if (shown := own.presentation(study)) is not None:
        return [*_leading_ratios(study), *shown.headline(study)]
    with_peak = [part for part in study.parts if part.curve.peak]
    kept = _rate_sentences(study)
    if not with_peak:
        return kept or [("", "No trial ended well enough to be reported.")]
    told = with_peak
    if len(told) > _TOLD:
        best = max(with_peak, key=lambda part: part.curve.peak.throughput.centre if part.curve.peak else 0.0)
        told = [with_peak[0], best] if best is not with_peak[0] else [best]
    apart = sorted(told[1:], key=_clearness)
    sentences = [(part.name, _ratio_sentence(part)) for part in apart]
    sentences += [(part.name, _peak_sentence(part)) for part in told]
    return [*((name, text) for name, text in sentences if text), *kept]


def _rate_sentences(study: Study) -> list[tuple[str, str]]:
    """Of each system driven in open loops: which rates it kept."""
    systems: list[list[Part]] = []
    for part in study.parts:
        if part.curve.rate:
            system = part.subject.records[0].system
            own = next((parts for parts in systems if parts[0].subject.records[0].system == system), None)
            if own is None:
                systems.append([part])
            else:
                own.append(part)
    said = []
    for parts in systems[:_TOLD]:
        if len(parts) <= _TOLD:
            said += [(part.name, _rate_sentence(part.curve.rate)) for part in parts if part.curve.rate]
            continue
        rates = sorted((part.curve.rate for part in parts if part.curve.rate), key=lambda one: one.rate)
        kept = [one.rate for one in rates if one.is_kept]
        text = f"kept {len(kept)} of the {len(rates)} rates asked for"
        text += f", up to {quantity(max(kept), '1/s')}" if kept else ""
        said.append((parts[0].subject.records[0].system.label, f"{text}."))
    return said


def _rate_sentence(one: Rate) -> str:
    units = counted_in(one.trials)[1]
    asked = f"{number(one.rate)} {units} per second with {counted(one.clients, 'client')}"
    trials = counted(len(one.trials), "trial")
    if one.is_kept:
        slow = one.metrics.get("response_time_p99_s")
        tail = f"; 99 % of them took {quantity(slow.centre, 's')} or less" if slow else ""
        return f"keeps {asked} ({trials}){tail}."
    finished = one.metrics.get("throughput")
    part = f"; it finished {quantity(finished.centre / one.rate, 'share')} of them" if finished else ""
    if one.kept:
        return f"keeps {asked} in {one.kept} of {trials} only{part}."
    return f"does not keep {asked} ({trials}){part}."


def _clearness(part: Part) -> tuple[bool, float]:
    """Those whose repeats do not overlap first, of them the farthest from 1."""
    standing = part.standing
    if standing is None or standing.ratio is None:
        return True, 0.0
    return standing.overlap, -abs(math.log(standing.ratio))


def _leading_ratios(study: Study) -> list[tuple[str, str]]:
    """Of work whose result is not a throughput: the figure that leads, against the first system's."""
    first = study.parts[0]
    of_first = first.curve.main.metrics if first.curve.main else {}
    found = []
    for part in study.parts[1:]:
        of_part = part.curve.main.metrics if part.curve.main else {}
        names = [name for name in leading(part.subject.records[0].choice) if name in of_first and name in of_part]
        ratio = compared(of_first[names[0]].centre, of_part[names[0]].centre) if names else None
        if ratio is not None:
            a, b, unit = of_first[names[0]], of_part[names[0]], unit_of(names[0])
            text = f"has {times(ratio)} the {metric_words(names[0])} of {first.name}: "
            text += f"{measured(b, unit)} against {measured(a, unit)}"
            single = "each is a single trial, so the spread is not known"
            ranges = "overlap" if overlap(a, b) else "do not overlap"
            text += f"; {single if a.n == b.n == 1 else f'the ranges of the trials {ranges}'}."
            found.append((overlap(a, b), -abs(math.log(ratio)), part.name, text))
    return [(name, text) for _, _, name, text in sorted(found)]


def _peak_sentence(part: Part) -> str:
    peak = part.curve.peak
    if peak is None:
        return ""
    clients = counted(peak.clients, "client")
    many = len(part.curve.points) > 1
    verb = "peaks at" if many else "reaches"
    spread = f"range {span(peak.throughput, '1/s')}, " if peak.throughput.n > 1 else "n=1: no spread, "
    slow = peak.metrics.get("response_time_p99_s")
    tail = f"; 99 % of them took {quantity(slow.centre, 's')} or less" if slow else ""
    rate = measured(peak.throughput, "1/s").replace("/s", f" {counted_in(peak.trials)[1]} per second")
    failed = failed_share(peak.trials)
    lost = f"; {failed} of the transactions failed" if failed not in ("0", "–") else ""
    return f"{verb} {rate} with {clients} ({spread}{peak.basis}){tail}{lost}."


def _ratio_sentence(part: Part) -> str:
    standing = part.standing
    if standing is None or standing.ratio is None:
        return ""
    text = f"has {times(standing.ratio)} the throughput of {standing.reference}"
    if standing.low is None or standing.high is None or standing.low == standing.high:
        return f"{text}; each is a single trial, so the spread is not known."
    ranges = "overlap" if standing.overlap else "do not overlap"
    low_high = between(standing.low, standing.high, "1")
    return f"{text} ({low_high} between the extremes of the repeats, whose ranges {ranges})."


def _lead_time(study: Study) -> str:
    ids = [part.timeline.trial for part in study.parts if part.timeline]
    return f"One typical trial of each system, {study.place}: {', '.join(ids)}." if ids else ""


def _lead_differences(study: Study) -> str:
    if len(study.parts) < 2:
        return ""
    if not study.differences:
        return "Nothing that was recorded differs between these systems."
    return "Everything recorded that is not the same for all systems."


def _some(table: Table) -> tuple[tuple[str, Table], ...]:
    return (("", table),) if table.rows else ()
