"""Builds the study of a lab from its plan and its records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace

from ironbench.model.finding import Finding, Noise
from ironbench.model.lab import Lab
from ironbench.model.note import MISSING, Note, note
from ironbench.model.record import (
    NOT_WHOLE,
    Record,
    Status,
    machine_of,
)
from ironbench.model.system import Setup
from ironbench.records import progress
from ironbench.records.progress import by_place
from ironbench.records.work import work_names
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.balance import balance
from ironbench.study.bottleneck import TimeSpent, where_time_goes
from ironbench.study.ceiling import baseline_of, ceilings
from ironbench.study.claims import JudgedClaim, judged
from ironbench.study.comparability import disturbances, left_out, trial_warnings
from ironbench.study.curve import MOST_POOLED, metrics_of
from ironbench.study.details import details
from ironbench.study.differences import chosen, completed, differences, facts, shared
from ironbench.study.explain import Explanation, explain, observed_of
from ironbench.study.factors import interactions, levels
from ironbench.study.findings import findings, highest_floor
from ironbench.study.growth import growths
from ironbench.study.interim import analysis_after, ends_of_earlier_rounds
from ironbench.study.lab_warnings import lab_warnings
from ironbench.study.same_load import fell_behind, same_loads, too_little_time
from ironbench.study.screen import of_confirmation, screen
from ironbench.study.shares import compared_blocks
from ironbench.study.study import CellResults, Round, Study, script_texts
from ironbench.study.subjects import (
    machine_cores,
    usable_cores,
)
from ironbench.study.versions import beside_version
from ironbench.study.wait_parts import functions_of_limit

MOST_EXPLAINED = 4
"""Maximum number of comparisons whose difference is explained in detail."""


def lab_study(
    lab: Lab,
    records: Sequence[Record],
    archive: Archive,
    noise: Sequence[Noise] = (),
    derived: Mapping[str, str] | None = None,
    stage: int | None = None,
    faults: Sequence[str] = (),
) -> Study:
    """Returns the study of a lab.

    `lab`: the lab with the stages that have started. `records`: all records of the lab. `noise`: known run-to-run
    variation of machines. `derived`: for a workload, the statement that must accompany its results. `stage`: number of
    the last stage that has started; None for the last stage with records. `faults`: descriptions of records that could
    not be read.
    """
    records = [_with_configurations(lab, record) for record in records]
    screened = screen(lab, records)
    if screened is not None:
        lab, records = of_confirmation(lab, records)
    settled = settling(records)
    stage = stage or max((record.stage for record in records), default=1)
    results = findings(records, lab, stage)
    # Trials of later stages are not due yet. They run only if the findings after this stage do not end the lab.
    due = [trial for trial in lab.trials if trial.stage <= stage]
    missing = progress.missing(due, records)
    at_rates = {setup.cell.name for setup in lab.rated}
    of_its_round, place = _of_its_round(lab, stage, settled), analysis_after(lab.method, stage)
    judged_ids = {record.id for record in of_its_round}
    measured = lab.measurable
    blocks = compared_blocks(lab.comparisons, settled)
    cells = tuple(
        _measured(setup, lab, settled, archive, records, blocks=blocks.get(setup.cell.name)) for setup in measured
    )
    known = completed(
        [facts(cell.usable[0], archive) if cell.usable else None for cell in cells],
        [chosen(cell.setup.system, cell.setup.cell.load) for cell in cells],
    )
    own = [finding for finding in results if finding.decides and _is_main(finding, lab)]
    usable, observed = [cell for cell in cells if cell.usable], _observed(records)
    by_cell = {cell.name: flat for cell, flat in zip(cells, known, strict=True) if cell.usable}
    baselines = {cell.name: baseline_of(cell.time, cell.usable) for cell in usable}
    return Study(
        lab=lab,
        work=work_names(setup.choice for setup in measured),
        cells=cells,
        findings=tuple(own),
        claimed=tuple(finding for finding in results if finding.decides and not _is_main(finding, lab)),
        others=tuple(finding for finding in results if not finding.decides and finding.cell not in at_rates),
        interactions=interactions(lab, settled),
        same_loads=same_loads(lab, results, of_its_round, archive),
        claims=_judgements(lab, results, of_its_round, stage),
        too_little_time=too_little_time(lab, place.first_stage, place.last_stage),
        last_stage=stage,
        earlier=_earlier(lab, records, settled, stage),
        growths=growths(lab, [(cell.setup, cell.usable) for cell in cells], archive),
        ceilings=tuple(ceilings(own, lab, baselines, by_cell)),
        beside_version=beside_version(
            [(one.cell, one.baseline) for one in own],
            by_cell,
            {cell.name: archive.engine(cell.usable[0].engine).get("lacks") for cell in usable},
        ),
        explanations=_explanations(own, cells, observed, archive),
        details=details(
            [(cell.configuration, cell.usable) for cell in usable], archive, in_blocks=True, observed=observed
        ),
        levels=levels(lab, [(cell.name, cell.usable) for cell in usable], archive),
        scripts=script_texts(settled, archive),
        noise=highest_floor(noise, lab.method.metric, settled),
        differences=differences(known),
        shared=shared(known),
        disturbances=disturbances(
            (cell.configuration, [record for record in cell.usable if record.id in judged_ids]) for cell in cells
        ),
        left_out=left_out(settled),
        warnings=(
            *(note("record-unreadable", fault=fault) for fault in faults),
            *trial_warnings(settled),
            *((note(MISSING, missing=len(missing), due=len(due)),) if missing else ()),
            *lab_warnings(lab, settled, cells, own, baselines, archive),
        ),
        derived=" ".join(dict.fromkeys((derived or {}).get(setup.choice.workload, "") for setup in measured)).strip(),
        started_at=min((record.started_at for record in records), default=""),
        trials=sum(record.status is not Status.CUT_SHORT for record in settled)
        + (screened.trials if screened and lab.comparisons else 0),
        screen=screened,
        missing=len(missing) or (screened.missing if screened else 0),
    )


def _with_configurations(lab: Lab, record: Record) -> Record:
    """Replaces the names of configurations in the record's causes with `Configuration` objects."""

    def with_configuration(cause: Note) -> Note:
        name = cause.values.get("system")
        if cause.code != NOT_WHOLE or not isinstance(name, str):
            return cause
        return replace(cause, values={**cause.values, "system": lab.configuration(name)})

    causes = tuple(map(with_configuration, record.causes))
    return record if causes == record.causes else replace(record, causes=causes)


def settling(records: Sequence[Record]) -> tuple[Record, ...]:
    """Selects one record for each configuration and block: the first comparable attempt, or the last attempt if none is
    comparable. The selected records are in order of start.
    """
    settled = [progress.first_usable(attempts) or attempts[-1] for attempts in by_place(records).values()]
    return tuple(sorted(settled, key=lambda record: (record.block, record.started_at)))


def _of_its_round(lab: Lab, stage: int, records: Sequence[Record]) -> list[Record]:
    place = analysis_after(lab.method, stage)
    return [record for record in records if place.first_stage <= record.stage <= place.last_stage]


def _earlier(lab: Lab, records: Sequence[Record], settled: Sequence[Record], stage: int) -> tuple[Round, ...]:
    rounds = []
    for number, last in enumerate(ends_of_earlier_rounds(lab.method, stage), 1):
        results, own = findings(records, lab, last, others=()), _of_its_round(lab, last, settled)
        rounds.append(Round(number, results, _judgements(lab, results, own, last)))
    return tuple(rounds)


def _observed(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Returns, for each configuration, its trials with observers."""
    found: dict[str, list[Record]] = {}
    for record in observed_of(records):
        found.setdefault(record.cell.name, []).append(record)
    return found


def _explanations(
    compared: Sequence[Finding],
    cells: Sequence[CellResults],
    observed: Mapping[str, Sequence[Record]],
    archive: Archive,
) -> tuple[Explanation, ...]:
    known = {cell.name: cell for cell in cells}
    pairs = [(known[finding.baseline], known[finding.cell]) for finding in compared[:MOST_EXPLAINED]]
    explained = []
    for pair in pairs:
        if all(cell.usable for cell in pair):
            before, after = ((cell.configuration, cell.usable) for cell in pair)
            seen = [(cell.configuration, observed[cell.name]) for cell in pair if cell.name in observed]
            of_both = (seen[0], seen[1]) if len(seen) == 2 else None
            explained.append(explain(before, after, archive, in_blocks=True, observed=of_both))
    return tuple(explained)


def of_two(lab: Lab, records: Sequence[Record], a: str, b: str, archive: Archive, stage: int) -> Study:
    """Returns a study of configuration `b` compared with configuration `a` only."""
    return lab_study(
        replace(
            lab,
            design="explicit",
            setups=tuple(setup for setup in lab.setups if setup.cell.name in (a, b)),
            baseline=a,
            comparisons=((b, a),),
            claims=(),
            trials=tuple(trial for trial in lab.trials if trial.cell.name in (a, b)),
            rated=(),
            rated_comparisons=(),
        ),
        [record for record in records if record.cell.name in (a, b)],
        archive,
        stage=stage,
    )


def _judgements(lab: Lab, results: Sequence[Finding], records: Sequence[Record], stage: int) -> tuple[JudgedClaim, ...]:
    """Judges the lab's claims by a round's findings and records. Configurations that did not sustain the target rate
    are added to the reasons."""
    return tuple(
        replace(one, reasons=(*one.reasons, *fell_behind(lab, one.claim.cells, records)))
        for one in judged(lab, results, records, analysis_after(lab.method, stage).level_alone)
    )


def _is_main(finding: Finding, lab: Lab) -> bool:
    return finding.metric == lab.method.metric and (finding.cell, finding.baseline) in lab.comparisons


def _measured(
    setup: Setup,
    lab: Lab,
    last: Sequence[Record],
    archive: Archive,
    records: Sequence[Record],
    blocks: Collection[int] | None,
) -> CellResults:
    name = setup.cell.name
    trials = tuple(record for record in last if record.cell.name == name)
    usable = [record for record in trials if record.status.comparable]
    machine = archive.machine(machine_of(usable[0])) if usable else {}
    metrics = metrics_of(usable, None, archive if len(records) <= MOST_POOLED else EMPTY)
    return CellResults(
        lab.configuration(name),
        setup,
        sum(trial.cell.name == name for trial in lab.trials),
        trials,
        metrics.get(lab.method.metric),
        _budget(usable),
        balance=balance(usable, machine, archive.engine(usable[0].engine)) if usable else (),
        cores=usable_cores(usable[0], machine_cores(machine)) if usable else None,
        time=_time(usable, blocks, archive),
        repeated=tuple(one for one in by_attempt(records, name) if one not in trials),
        metrics=metrics,
    )


def _time(records: Sequence[Record], blocks: Collection[int] | None, archive: Archive) -> TimeSpent | None:
    spent = where_time_goes(records, blocks)
    return replace(spent, functions=functions_of_limit(spent, records, archive)) if spent else None


def by_attempt(records: Sequence[Record], cell: str) -> list[Record]:
    """Lists every attempt of a configuration's trials, in order of blocks."""
    of_it = [attempts for (name, _), attempts in by_place(records).items() if name == cell]
    return [one for attempts in of_it for one in attempts]


def _budget(records: Sequence[Record]) -> dict[str, float]:
    budgets = [asdict(record.budget) for record in records if record.budget.measured]
    return {part: sum(budget[part] for budget in budgets) / len(budgets) for part in budgets[0]} if budgets else {}
