"""All charts and tables of a lab in reading order; shared by every format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ironbench.analyse.labstudy import LabStudy, Measured
from ironbench.drive import checkpoints
from ironbench.model.record import Status
from ironbench.report import read_cost, storage, trend
from ironbench.report.charts import levels
from ironbench.report.charts.base import Table
from ironbench.report.charts.blocks import by_block, points
from ironbench.report.charts.budgets import budgets
from ironbench.report.charts.effects import effects
from ironbench.report.charts.growth import growth
from ironbench.report.charts.order import order
from ironbench.report.charts.queries import by_query
from ironbench.report.charts.role_latency import role_latency
from ironbench.report.charts.same_load import same_load
from ironbench.report.charts.spent import spent, waterfalls
from ironbench.report.figures import configuration, fact, fact_name, ratio_of
from ironbench.report.findings import claimed_table, effect_table, metric_tables, ratio
from ironbench.report.numbers import confidence, quantity
from ironbench.report.same_load import same_load_tables
from ironbench.report.section import Section
from ironbench.stats.scalability import ENOUGH_DISTINCT, Estimate, Fit
from ironbench.words import THIN

_EVERY = "every cell"
_USUAL = 0.95
"""Confidence of an interval that answers one question, asked once."""


def sections(study: LabStudy) -> list[Section]:
    """Everything with something to show; a section without content is left out."""
    found = [
        Section("claims", "What was expected", tables=(*_some(claims(study)), *_some(claimed_table(study.claimed)))),
        Section(
            "findings",
            "Findings",
            charts=(*effects(study), *levels.whole(study.levels)),
            tables=_some(effect_table(study.effects)),
        ),
        storage.of_lab([(cell.name, cell.usable) for cell in study.cells]),
        Section("earlier", "Earlier rounds", _LEAD_EARLIER, tables=tuple(earlier(study))),
        Section(
            "queries",
            "Query by query",
            charts=(*by_query(study.queries), *levels.by_query(study.levels)) if _several(study) else (),
            tables=trend.tables(study.against),
        ),
        Section(
            "same-load",
            "At the same load",
            _LEAD_SAME_LOAD,
            tuple(same_load(study)),
            tuple(same_load_tables(study.same_loads)),
        ),
        Section("interactions", "Together and alone", _LEAD_TOGETHER, tables=_some(together(study))),
        Section("growth", "Scalability", _lead_growth(study), tuple(growth(study)), _some(laws(study))),
        Section("trials", "Every trial", charts=(*points(study), *by_block(study))),
        Section(
            "time",
            "Where the time goes",
            _LEAD_TIME,
            (*spent(study), *waterfalls(study)),
            (*_some(limits(study)), *_some(ceilings(study))),
        ),
        Section("cpu", "Where the CPU time went", charts=tuple(budgets(study))),
        Section("devices", "I/O of emulated devices", charts=tuple(role_latency(study.role_latencies))),
        read_cost.section(study.read_costs),
        Section("others", "Other metrics", _LEAD_OTHERS, tables=tuple(metric_tables(study.others))),
        Section("balance", "Balance sheet", _LEAD_BALANCE, tables=_some(balance(study))),
        Section("differences", "What differs between the cells", _LEAD_DIFFERENCES, tables=_some(differences(study))),
        Section("plan", "The plan and what became of it", _lead_plan(study), tuple(order(study)), tuple(plan(study))),
        Section("texts", "The scripts", texts=study.scripts),
        Section("configuration", "Configuration in common", tables=tuple(configuration(study.shared))),
    ]
    return [section for section in found if section.has_content]


def _several(study: LabStudy) -> bool:
    """Of one query alone everything else in the report tells already."""
    return study.queries is not None and len(study.queries.names) > 1


_LEAD_EARLIER = (
    "Blocks that were added after findings had been seen are a round of their own, and the findings above are those of "
    "the last one. This is what the rounds before it ended with, each on its own blocks; no later one takes it back."
)
_LEAD_SAME_LOAD = (
    "In a closed loop the faster system is given more work, so its response times are not at the same load. Here both "
    "serve the same transactions per second, a share of what the baseline does at its peak; response times count from "
    "the intended start. Ratios are paired by block and carry no verdict; where a claim "
    "names cells at a rate, its verdict stands with the claims."
)
_LEAD_TOGETHER = (
    "Two changes made together, over the product of what each does alone: 1 says that their effects multiply, more "
    "that each helps the other, less that they overlap. These carry no verdict."
)
_LEAD_OTHERS = (
    "The same trials by other metrics. These carry no verdict: the lab declared one metric to decide by, and whoever "
    "looks at many finds something by chance."
)
_LEAD_LAW = (
    "The line is the Universal Scalability Law, fitted to all trials. Contention is the share of work that waits for "
    "something held by one at a time, coherency what clients pay to agree with each other; beyond the knee more "
    "clients mostly wait."
)
_LEAD_TIME = (
    "A client's time per transaction, shared out among what its backend did or waited for. A share bounds what a "
    "faster part could bring; how much it does bring is told by a cell in which that part is free."
)
_LEAD_BALANCE = (
    "Ratios decide whether a small system stands for a big one: compare these with the system you have in mind, "
    "not the sizes."
)
_LEAD_DIFFERENCES = "Everything recorded that is not the same in all cells: what was varied, and what came with it."


def cautions(study: LabStudy) -> list[str]:
    """Everything a reader must know before using the numbers, the gravest first."""
    return [
        *(f"{name} was not measured: {why}" for name, why in study.skipped),
        *study.left_out,
        *(f"Left out of the comparison: {text}" for text in study.dropped),
        *study.warnings,
    ]


def claims(study: LabStudy) -> Table:
    """What the author expected, in the words of the lab file, and what became of it."""
    rows = tuple((judged.claim.text, judged.outcome, judged.reason) for judged in study.claims)
    return Table(("claim", "outcome", "because"), rows)


def earlier(study: LabStudy) -> list[tuple[str, Table]]:
    """Findings and claims of the rounds before the last one."""
    found = [(str(one.number), row) for one in study.earlier for row in claimed_table(one.effects).rows]
    held = [(str(one.number), judged) for one in study.earlier for judged in one.claims]
    findings = Table(("round", *claimed_table(()).head), tuple((number, *row) for number, row in found), numbers=True)
    expected = tuple((number, judged.claim.text, judged.outcome, judged.reason) for number, judged in held)
    tables = [("Findings", findings), ("What was expected", Table(("round", "claim", "outcome", "because"), expected))]
    return [(name, table) for name, table in tables if table.rows]


def together(study: LabStudy) -> Table:
    """A row for each pair of levels of a full design."""
    rows = tuple(
        (
            one.name,
            ratio(one.ratio),
            f"{ratio(one.low)} to {ratio(one.high)}" if one.blocks > 1 else "",
            str(one.blocks),
        )
        for one in study.interactions
    )
    return Table(("changes", "together over alone", "95 % interval", "blocks"), rows)


def laws(study: LabStudy) -> Table:
    """What the fitted law says of each curve, with 95 % intervals."""
    rows = []
    for curve in study.growths:
        fit = curve.fit
        if fit is None:
            continue
        values = (
            _estimate(fit.alpha, "share"),
            _estimate(fit.beta, "share"),
            _estimate(fit.gamma, "1/s"),
            _estimate(fit.knee, "1"),
            _estimate(fit.peak_clients, "1"),
            _estimate(fit.peak_throughput, "1/s"),
            _doubts_of(fit, curve.grows),
        )
        rows.append((curve.name, *values))
    head = ("cells", "contention", "coherency", "one client", "knee", "peak at", "peak", "to know")
    return Table(head, tuple(rows))


def _estimate(estimate: Estimate, unit: str) -> str:
    if not math.isfinite(estimate.value):
        return "none"
    high = quantity(estimate.high, unit) if math.isfinite(estimate.high) else "no end"
    return f"{quantity(estimate.value, unit)} ({quantity(estimate.low, unit)} to {high})"


def _doubts_of(fit: Fit, grows: bool) -> str:
    said = []
    if fit.misfit:
        said.append("the curve misses the means by more than repeats differ; intervals are widened")
    if grows:
        said.append(f"the peak lies beyond the {fit.last:g} clients that were measured: a prediction")
    elif not fit.peak_is_certain:
        said.append("the peak may lie beyond what was measured")
    if len(fit.residuals) < ENOUGH_DISTINCT:
        said.append(f"few numbers of clients ({len(fit.residuals)})")
    return "; ".join(said)


def _lead_growth(study: LabStudy) -> str:
    return _LEAD_LAW if any(curve.fit for curve in study.growths) else ""


def limits(study: LabStudy) -> Table:
    """What holds each cell back, in words."""
    rows = tuple((cell.name, cell.time.limit.sentence) for cell in study.cells if cell.time)
    return Table(("cell", "what limits"), rows)


def ceilings(study: LabStudy) -> Table:
    """What would be gained if a part were free, measured."""
    rows = tuple((" and ".join(one.parts), one.sentence) for one in study.ceilings)
    return Table(("made free", "what that brings"), rows)


def balance(study: LabStudy) -> Table:
    """A row for each ratio with a column for each cell; of many cells a row for each value with those that have it."""
    names = dict.fromkeys(entry.name for cell in study.cells for entry in cell.balance)
    known = [cell for cell in study.cells if cell.balance]
    said = {
        name: [(cell, ratio_of(next((e for e in cell.balance if e.name == name), None))) for cell in known]
        for name in names
    }
    if len(known) <= _SIDE_BY_SIDE:
        rows = [(name, *(words for _, words in cells)) for name, cells in said.items()]
        return Table(("ratio", *(cell.name for cell in known)), tuple(rows))
    rows = [(name, value, cells) for name in names for value, cells in _by_value(said[name])]
    return Table(("ratio", "value", "in"), tuple(rows))


_SIDE_BY_SIDE = 4
"""More cells than these do not fit beside each other."""


def differences(study: LabStudy) -> Table:
    """A row for each fact and value, with the cells that have it."""
    rows = []
    for row in study.differences:
        said = [(cell, fact(row.name, value)) for cell, value in zip(study.cells, row.values, strict=True)]
        rows += [(f"{row.room}: {fact_name(row.name)}", value, cells) for value, cells in _by_value(said)]
    return Table(("fact", "value", "in"), tuple(rows))


def _by_value(said: Sequence[tuple[Measured, str]]) -> Iterable[tuple[str, str]]:
    """Each value once, with the names of its cells."""
    cells: dict[str, list[str]] = {}
    for cell, value in said:
        cells.setdefault(value, []).append(cell.name)
    for value, names in cells.items():
        yield value, _EVERY if len(cells) == 1 else ", ".join(names)


def plan(study: LabStudy) -> list[tuple[str, Table]]:
    """What was varied, and each cell with the fate of its trials."""
    factors = Table(("factor", "levels"), tuple((f.name, ", ".join(f.levels)) for f in study.lab.factors))
    rows = []
    for cell in study.cells:
        tally = {status: sum(record.status is status for record in cell.trials) for status in Status}
        retried = sum(record.attempt > 1 for record in cell.trials)
        fate = ", ".join(f"{count} {status.value}" for status, count in tally.items() if count) or "none run"
        base = "baseline" if cell.name == study.lab.baseline else ""
        rows.append((cell.name, base, f"{len(cell.trials)} of {cell.planned}", fate, str(retried) if retried else ""))
    rows += [(name, "", "not measured", why, "") for name, why in study.skipped]
    cells = Table(("cell", "", "trials", "how they ended", "tried twice"), tuple(rows))
    return [("Factors", factors), ("Cells", cells)]


def _lead_plan(study: LabStudy) -> str:
    lab = study.lab
    blocks = "1 block" if lab.method.blocks == 1 else f"{lab.method.blocks} blocks"
    stages = "" if len(lab.method.stages) < 2 else f" in {len(lab.method.stages)} stages"
    cells = len(study.cells)
    order = f"an order drawn with seed {lab.method.seed}, so that a drift of the machine meets all cells alike"
    if lab.method.order == "fixed":
        order = 'the order of the lab file (order = "fixed")'
    return (
        f"{lab.design.capitalize()} design: {cells} cells in {blocks}{stages}; every block runs each cell once, in "
        f"{order}."
    )


def kicker(study: LabStudy) -> list[str]:
    """When and on what, in short words."""
    from ironbench.report.numbers import moment

    machine = {name.partition(".")[2]: value for name, value in study.shared.items() if name.startswith("machine.")}
    words = [moment(study.started_at)] if study.started_at else []
    words += ["1 trial" if study.trials == 1 else f"{study.trials} trials"]
    words += [machine["cpu.model"]] if "cpu.model" in machine else []
    words += [f"{machine['cpu.cores']} cores"] if "cpu.cores" in machine else []
    memory = machine.get("memory_bytes", "")
    words += [f"{quantity(float(memory), 'memory')} memory"] if memory.isdigit() else []
    virtual = machine.get("virtualisation", "none")
    return [*words, *([f"virtual machine ({virtual})"] if virtual != "none" else [])]


def notes(study: LabStudy) -> list[str]:
    """How to read the figures."""
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


def _why_so_sure(study: LabStudy) -> str:
    """Why an interval is at more than 95 %: the other figure is met nowhere else."""
    effects = (*study.effects, *study.claimed)
    levels = sorted({effect.finding.confidence for effect in effects if effect.finding.confidence > _USUAL + 1e-9})
    if not levels:
        return ""
    looks, comparisons = len(study.lab.method.stages), len(effects)
    among = [f"{looks} looks at the findings"] if looks > 1 else []
    among += [f"{comparisons} comparisons"] if comparisons > 1 else []
    said = " to ".join(confidence(level) for level in dict.fromkeys((levels[0], levels[-1])))
    return (
        f"Where an interval is at {said}, not {confidence(_USUAL)}: the 5{THIN}% chance of a false alarm is shared out "
        f"among {' and '.join(among) or 'the looks'}, so that all of them together keep it."
    )


def _some(table: Table) -> tuple[tuple[str, Table], ...]:
    return (("", table),) if table.rows else ()
