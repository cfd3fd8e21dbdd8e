"""The plan of a lab and its progress, the texts of scripts, and the shared configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ironbench import units
from ironbench.errors import shortened
from ironbench.model.lab import Lab
from ironbench.model.record import DUET, Record, Status
from ironbench.report import theme, wording
from ironbench.report.cell import EMPTY, Row, count
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Depth, Key, Table
from ironbench.report.facts import configuration
from ironbench.report.page import Section
from ironbench.report.wording.terms import label
from ironbench.study.study import CellResults, Study
from ironbench.words import counted, upper_first

PLACE = 2500
CPU_TAKEN = "cpu-taken"
"""Code of the warning that other programs used CPU time during a trial."""


def sections(study: Study) -> Iterator[Section]:
    if study.lab:
        title = "Plan and trials"
        yield Section("plan", title, _lead(study), tuple(order(study)), tuple(plan(study)))
    yield Section("texts", "Scripts", texts=study.scripts, depth=Depth.DOCUMENT)
    tables = tuple(configuration(study.shared))
    yield Section("configuration", "Common configuration", tables=tables, depth=Depth.PAGE)


def plan(study: Study) -> list[tuple[str, Table]]:
    """Returns a table of the lab's factors, and a table of its configurations with the outcomes of their trials."""
    lab_factors = study.lab.factors if study.lab else ()
    factors = Table(("factor", "values"), tuple((f.name, ", ".join(f.levels)) for f in lab_factors), words=True)
    rows: list[tuple[str, ...]] = []
    for cell in study.cells:
        tally = {status: sum(record.status is status for record in cell.trials) for status in Status}
        fate = ", ".join(f"{count} {status.word}" for status, count in tally.items() if count) or "not run"
        base = "baseline" if cell.name == study.baseline else ""
        rows.append((label(cell.configuration), base, f"{len(cell.trials)} of {cell.planned}", fate, _retried(cell)))
    rows += [(label(study.configuration(name)), "", "not measured", why, "") for name, why in study.skipped]
    head: tuple[str, ...] = ("configuration", "", "trials", "outcomes", "retried")
    if changes := _changes(study.cells, study.baseline):
        head, rows = (*head, "changes from the baseline"), [(*row, changes.get(row[0], "")) for row in rows]
    return [("Factors", factors), ("Configurations", Table(head, tuple(rows), words=True))]


def _changes(cells: Sequence[CellResults], baseline: str) -> dict[str, str]:
    """Maps the label of each configuration to the factor values that differ from the baseline. This is needed for
    labels that do not show these values, such as `run 5` of a screening experiment. If all labels show them, returns an
    empty dict."""
    levels = {cell.name: cell.setup.cell.levels for cell in cells}
    first = levels.get(baseline, {})
    changed = {
        name: [f"{factor}={level}" for factor, level in own.items() if first.get(factor) != level]
        for name, own in levels.items()
    }
    told = all(cell.configuration.values or not changed[cell.name] for cell in cells)
    return {} if told else {label(cell.configuration): ", ".join(changed[cell.name]) for cell in cells}


def _retried(cell: CellResults) -> str:
    """States how many trials were repeated, and why their first attempts were not used."""
    count = sum(record.attempt > 1 for record in cell.trials)
    reasons = dict.fromkeys(
        f"{one.status.word}: {shortened(why)}" for one in cell.repeated if (why := wording.cause(one))
    )
    return f"{count}{' (' if reasons else ''}{'; '.join(reasons)}{')' if reasons else ''}" if count else ""


def _lead(study: Study) -> str:
    assert study.lab is not None
    lab, cells = study.lab, len(study.cells)
    blocks = "1 block" if lab.method.blocks == 1 else f"{lab.method.blocks} blocks"
    stages = "" if len(lab.method.stages) < 2 else f" in {len(lab.method.stages)} stages"
    fixed = 'the order of the lab file (order = "fixed")' if lab.method.order == "fixed" else ""
    order = fixed or (
        f"a random order (seed {lab.method.seed}), so that changes in the machine's speed affect all configurations "
        "alike"
    )
    design = f"{upper_first(lab.design)} design: {counted(cells, 'configuration')} in {blocks}{stages}"
    if lab.method.slice_s is not None:
        started = "" if _has_existing_server(lab) else " (ironbench starts new servers for each block)"
        how = f"{design}, interleaved in slices. Within a block, all systems run at the same time{started}."
        if any(one.method == DUET for cell in study.cells for one in cell.trials):
            return (
                f"{how} They are under load simultaneously in slices of {_length(study, lab.method.slice_s)}, each "
                "system on one half of the cores, and then they swap the halves (a duet). The result compares each "
                f"system on half of the machine while the other system is also under load.{_dropped(study)}"
            )
        others = "idle on the same server, which is not paused" if _has_existing_server(lab) else "paused"
        return (
            f"{how} They are under load one after another for {_length(study, lab.method.slice_s)} each, in "
            f"{fixed or 'a new random order for each rotation (one slice of each system)'}. While one system is under "
            f"load, the other systems are {others}.{_dropped(study)}"
        )
    why = f" The trials were not interleaved in slices: {lab.method.why_trials}." if lab.method.why_trials else ""
    return f"{design}; every block runs each configuration once, in {order}.{why}"


def _has_existing_server(lab: Lab) -> bool:
    return any(setup.system.dsn is not None for setup in lab.measurable)


def _length(study: Study, planned_s: float) -> str:
    """Returns the length of the slices as measured. If none was measured yet, returns the planned length."""
    lengths = {one.metrics.get("slice_length_s") for cell in study.cells for one in cell.trials} - {None}
    return " or ".join(map(units.span, sorted(filter(None, lengths)) or [planned_s]))


def _dropped(study: Study) -> str:
    """States how many slices were dropped, and how many records still contain disturbed slices. Returns an empty text
    if no slice was dropped."""
    trials = [one for cell in study.cells for one in cell.trials]
    figures = [one.metrics for one in trials]
    dropped, kept = (round(sum(one.get(name, 0.0) for one in figures)) for name in ("slices_dropped", "slices"))
    if not dropped:
        return ""
    verb = "was" if dropped == 1 else "were"
    stayed = sum(one.warned(CPU_TAKEN) for one in trials)
    return (
        f" {dropped} of {counted(dropped + kept, 'slice')} {verb} dropped and repeated, because other programs "
        "disturbed at least one slice of their rotation; a rotation (one slice of each system) is always repeated as "
        "a whole."
        + (
            f" {stayed} of {counted(len(trials), 'record')} still {'contains' if stayed == 1 else 'contain'} disturbed "
            "slices; see the warnings."
            if stayed
            else ""
        )
    )


_SQUARE = 24
_MOST = 24
"""Maximum number of blocks for which the chart is drawn."""
_NOT_RUN = "not run"
_USABLE = tuple(status.word for status in Status if status.comparable)


def order(study: Study) -> list[Chart]:
    """Draws the planned trials of each block in their order, with their outcomes."""
    if study.lab is None or study.lab.method.slice_s is not None:  # slices: trials have no order
        return []
    labels = {cell.name: label(cell.configuration) for cell in study.cells}
    names = list(labels.values())
    blocks: dict[int, list[str]] = {}
    for trial in (one for one in study.lab.trials if one.cell.name in labels):
        blocks.setdefault(trial.block, []).append(labels[trial.cell.name])
    if not 1 < len(names) <= theme.SYSTEMS or not 1 < len(blocks) <= _MOST:
        return []
    done = {(labels[cell.name], record.block): record for cell in study.cells for record in cell.trials}
    data = [
        _place(name, block, place, done.get((name, block)))
        for block, order in blocks.items()
        for place, name in enumerate(order)
    ]
    return [
        Chart(
            "order",
            "Order of the trials",
            f"{len(blocks)} blocks of {len(names)} trials in execution order; "
            f"{sum(row['status'] not in _USABLE for row in data)} trials have no usable result.",
            base.specification(_layers(names), {"order": data}, len(blocks) * _SQUARE + 40),
            _table(blocks, done),
            "left to right: first to last trial of a block"
            + (", without configurations at a target rate" if study.lab.rated else ""),
            tuple(Key(name, f"s{place % theme.SYSTEMS}", "square") for place, name in enumerate(names)),
            "× failed, invalid or aborted; ? flagged; – not run." if any(row["sign"] for row in data) else "",
        )
    ]


def _place(name: str, block: int, place: int, record: Record | None) -> dict[str, Any]:
    row: dict[str, Any] = {"system": name, "block": block + 1, "place": place + 1}
    if record is None:
        return row | {"status": _NOT_RUN, "sign": "–", "cause": ""}
    sign = "" if record.status is Status.OK else theme.STATUS_SIGNS[record.status]
    return row | {"status": record.status.word, "sign": sign, "cause": wording.cause(record)}


def _layers(names: list[str]) -> list[dict[str, Any]]:
    x = {
        "field": "place",
        "type": "ordinal",
        "axis": {"title": None, "labels": False, "ticks": False, "domain": False},
        "scale": {"paddingInner": 0.06, "paddingOuter": 0},
    }
    y = {
        "field": "block",
        "type": "ordinal",
        "axis": {"title": "block", "domain": False, "ticks": False, "labelOverlap": "greedy"},
        "scale": {"paddingInner": 0.14, "paddingOuter": 0},
    }
    tooltip = [
        {"field": "system", "title": "configuration"},
        *({"field": name} for name in ("block", "status", "cause")),
    ]
    square = {
        "data": {"name": "order"},
        "mark": {"type": "rect", "cornerRadius": 2},
        "encoding": {
            "x": x,
            "y": y,
            "color": base.colour(names),
            "opacity": {
                "condition": {"test": " || ".join(f"datum.status == '{one}'" for one in _USABLE), "value": 0.9},
                "value": 0.25,
            },
            "tooltip": tooltip,
        },
    }
    sign = {
        "data": {"name": "order"},
        "mark": {"type": "text", "fontSize": 13, "fontWeight": 700, "color": "@ink", "baseline": "middle"},
        "encoding": {"x": x, "y": y, "text": {"field": "sign"}},
    }
    return [square, sign]


def _table(blocks: dict[int, list[str]], done: dict[tuple[str, int], Record]) -> Table:
    rows: list[Row] = []
    for block, names in blocks.items():
        cells = []
        for name in names:
            record = done.get((name, block))
            status = _NOT_RUN if record is None else "" if record.status is Status.OK else record.status.word
            cells.append(f"{name} ({status})" if status else name)
        rows.append((count(block + 1), *cells))
    widest = max(len(row) for row in rows)
    head = ("block", *(f"{place}." for place in range(1, widest)))
    return Table(head, tuple((*row, *(EMPTY for _ in range(widest - len(row)))) for row in rows), words=True)
