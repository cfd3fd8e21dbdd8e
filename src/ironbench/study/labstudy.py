"""Builds the study of a lab from its plan and its records."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

from ironbench.model.finding import Conclusion, Finding, Noise
from ironbench.model.lab import Configuration, Lab
from ironbench.model.note import FLAGGED, MISSING, Note, note
from ironbench.model.record import (
    CAN_LOSE_DATA,
    DUET,
    EMULATION_LIMIT,
    NOT_WHOLE,
    SLICES,
    TRIALS,
    Record,
    Status,
    machine_of,
)
from ironbench.model.sample import too_few
from ironbench.model.system import Setup
from ironbench.records import progress
from ironbench.records.progress import by_place
from ironbench.records.work import work_names
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.balance import balance
from ironbench.study.bottleneck import where_time_goes
from ironbench.study.ceiling import Baseline, baseline_of, ceilings
from ironbench.study.claims import JudgedClaim, judged
from ironbench.study.comparability import disturbances, left_out, trial_warnings
from ironbench.study.curve import MOST_POOLED, metrics_of
from ironbench.study.details import details
from ironbench.study.device_io import stored_on
from ironbench.study.differences import chosen, completed, differences, facts, shared
from ironbench.study.explain import Explanation, explain, observed_of
from ironbench.study.factors import Contrast, contrasts, interactions, levels
from ironbench.study.findings import findings, highest_floor
from ironbench.study.growth import growths
from ironbench.study.looks import at, earlier
from ironbench.study.same_load import fell_behind, same_loads, too_little_time
from ironbench.study.screen import of_confirmation, screen
from ironbench.study.shares import compared_blocks
from ironbench.study.study import CellResults, Effect, Round, Study, script_texts
from ironbench.study.subjects import (
    counted_in,
    machine_cores,
    needs_mark,
    usable_cores,
)
from ironbench.study.versions import beside_version

_Subject = TypeVar("_Subject", Configuration, Contrast)

MOST_EXPLAINED = 4
"""Maximum number of comparisons whose difference is explained in detail."""


def lab_study(
    lab: Lab,
    records: Sequence[Record],
    archive: Archive,
    noise: Sequence[Noise] = (),
    derived: Mapping[str, str] | None = None,
    look: int | None = None,
    faults: Sequence[str] = (),
) -> Study:
    """Returns the study of a lab.

    `lab`: the lab with the stages that have started. `records`: all records of the lab. `noise`: known run-to-run
    variation of machines. `derived`: for a workload, the statement that must accompany its results. `look`: number of
    the last stage that has started; None for the last stage with records. `faults`: descriptions of records that could
    not be read.
    """
    records = [_with_configurations(lab, record) for record in records]
    screened = screen(lab, records)
    if screened is not None:
        lab, records = of_confirmation(lab, records)
    settled = settling(records)
    stage = look or max((record.stage for record in records), default=1)
    results = findings(records, lab, stage)
    # Later stages run only if the findings after this stage do not end the lab.
    due = [trial for trial in lab.trials if trial.stage <= stage]
    missing = progress.missing(due, records)
    unfinished = _unfinished(len(missing), len(due))
    at_rates = {setup.cell.name for setup in lab.rated}
    of_its_round, place = _of_its_round(lab, stage, settled), at(lab.method, stage)
    judged_ids = {record.id for record in of_its_round}
    judgements = tuple(
        _with_rates(lab, one, of_its_round) for one in judged(lab, results, of_its_round, place.level_alone)
    )
    measured = lab.measurable
    blocks = compared_blocks(lab.comparisons, settled)
    cells = tuple(
        _measured(setup, lab, settled, archive, records, blocks=blocks.get(setup.cell.name)) for setup in measured
    )
    known = completed(
        [facts(cell.usable[0], archive) if cell.usable else None for cell in cells],
        [chosen(cell.setup.system, cell.setup.cell.load) for cell in cells],
    )
    deciding = [finding for finding in results if finding.decides or finding.cell not in at_rates]
    effects = _effects(lab, deciding, settled)
    own = [effect for effect in effects if effect.finding.decides and _is_main(effect.finding, lab)]
    usable, observed = [cell for cell in cells if cell.usable], _observed(records)
    by_cell = {cell.name: flat for cell, flat in zip(cells, known, strict=True) if cell.usable}
    baselines = {cell.name: baseline_of(cell.time, cell.usable) for cell in usable}
    return Study(
        lab=lab,
        work=work_names(setup.choice for setup in measured),
        cells=cells,
        effects=tuple(own),
        claimed=tuple(effect for effect in effects if effect.finding.decides and effect not in own),
        others=tuple(effect for effect in effects if not effect.finding.decides),
        interactions=interactions(lab, settled),
        same_loads=same_loads(lab, results, of_its_round, archive),
        claims=judgements,
        too_little_time=too_little_time(lab, place.first_stage, place.last_stage),
        look=stage,
        earlier=_earlier(lab, records, settled, stage),
        growths=growths(lab, [(cell.setup, cell.usable) for cell in cells], archive),
        ceilings=tuple(ceilings([effect.finding for effect in own], lab, baselines, by_cell)),
        beside_version=beside_version(
            [(one.finding.cell, one.finding.baseline) for one in own],
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
            *unfinished,
            *_of_order(lab),
            *_of_duet(settled),
            *_of_findings(own),
            *_of_times(cells),
            *_of_reads(cells, baselines, archive),
            *_of_percentiles(settled),
        ),
        derived=" ".join(dict.fromkeys((derived or {}).get(setup.choice.workload, "") for setup in measured)).strip(),
        started_at=min((record.started_at for record in records), default=""),
        trials=sum(record.status is not Status.CUT_SHORT for record in settled)
        + (screened.trials if screened and lab.comparisons else 0),
        screen=screened,
        missing=len(missing) or (screened.missing if screened else 0),
    )


def _with_configurations(lab: Lab, record: Record) -> Record:
    """Returns the record, in whose causes names of configurations are replaced by `Configuration` objects."""

    def with_configuration(cause: Note) -> Note:
        name = cause.values.get("system")
        if cause.code != NOT_WHOLE or not isinstance(name, str):
            return cause
        return replace(cause, values={**cause.values, "system": lab.configuration(name)})

    causes = tuple(map(with_configuration, record.causes))
    return record if causes == record.causes else replace(record, causes=causes)


def settling(records: Sequence[Record]) -> tuple[Record, ...]:
    """Selects one record for each configuration and block: the first comparable attempt, or else the last attempt.
    Records are in order of start.
    """
    settled = [progress.first_usable(attempts) or attempts[-1] for attempts in by_place(records).values()]
    return tuple(sorted(settled, key=lambda record: (record.block, record.started_at)))


def _of_its_round(lab: Lab, stage: int, records: Sequence[Record]) -> list[Record]:
    place = at(lab.method, stage)
    return [record for record in records if place.first_stage <= record.stage <= place.last_stage]


def _earlier(lab: Lab, records: Sequence[Record], settled: Sequence[Record], stage: int) -> tuple[Round, ...]:
    rounds = []
    for number, last in enumerate(earlier(lab.method, stage), 1):
        results, own = findings(records, lab, last, others=()), _of_its_round(lab, last, settled)
        level = at(lab.method, last).level_alone
        judgements = tuple(_with_rates(lab, one, own) for one in judged(lab, results, own, level))
        rounds.append(Round(number, tuple(_effects(lab, results, own)), judgements))
    return tuple(rounds)


def _observed(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Returns, for each configuration, its trials with observers."""
    found: dict[str, list[Record]] = {}
    for record in observed_of(records):
        found.setdefault(record.cell.name, []).append(record)
    return found


def _explanations(
    effects: Sequence[Effect], cells: Sequence[CellResults], observed: Mapping[str, Sequence[Record]], archive: Archive
) -> tuple[Explanation, ...]:
    known = {cell.name: cell for cell in cells}
    pairs = [(known[effect.finding.baseline], known[effect.finding.cell]) for effect in effects[:MOST_EXPLAINED]]
    explained = []
    for pair in pairs:
        if all(cell.usable for cell in pair):
            before, after = ((cell.configuration, cell.usable) for cell in pair)
            seen = [(cell.configuration, observed[cell.name]) for cell in pair if cell.name in observed]
            of_both = (seen[0], seen[1]) if len(seen) == 2 else None
            explained.append(explain(before, after, archive, in_blocks=True, observed=of_both))
    return tuple(explained)


def of_two(lab: Lab, records: Sequence[Record], a: str, b: str, archive: Archive, look: int) -> Study:
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
        look=look,
    )


def _with_rates(lab: Lab, one: JudgedClaim, records: Sequence[Record]) -> JudgedClaim:
    """Adds the configurations that did not sustain the target rate to a claim's reasons."""
    behind = fell_behind(lab, one.claim.cells, records)
    return replace(one, reasons=(*one.reasons, *behind)) if behind else one


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
        time=where_time_goes(usable, blocks),
        repeated=tuple(one for one in by_attempt(records, name) if one not in trials),
        metrics=metrics,
    )


def by_attempt(records: Sequence[Record], cell: str) -> list[Record]:
    """Lists every attempt of a configuration's trials, in order of blocks."""
    of_it = [attempts for (name, _), attempts in by_place(records).items() if name == cell]
    return [one for attempts in of_it for one in attempts]


def _budget(records: Sequence[Record]) -> dict[str, float]:
    budgets = [asdict(record.budget) for record in records if record.budget.measured]
    return {part: sum(budget[part] for budget in budgets) / len(budgets) for part in budgets[0]} if budgets else {}


def _effects(lab: Lab, findings: Sequence[Finding], records: Sequence[Record]) -> list[Effect]:
    """Returns the effects of findings. Findings with verdicts come first; within both groups, the order is that of the
    lab's comparisons."""
    order = {pair: place for place, pair in enumerate(lab.comparisons)}
    pairs = list(dict.fromkeys([*lab.comparisons, *((finding.cell, finding.baseline) for finding in findings)]))
    names = contrasts(lab, pairs)
    ranked = sorted(
        findings, key=lambda finding: (not finding.decides, order.get((finding.cell, finding.baseline), len(order)))
    )
    return [_effect(finding, names[finding.cell, finding.baseline], records) for finding in ranked]


def _effect(finding: Finding, contrast: Contrast, records: Sequence[Record]) -> Effect:
    """Returns the effect of a finding: marks sides with emulated storage, and adds notes on settings with which only
    one side can lose data."""
    sides = [[one for one in records if one.cell.name == name] for name in (finding.cell, finding.baseline)]
    cell, baseline = (
        replace(side, emulated=needs_mark(side.name, own))
        for side, own in zip((contrast.cell, contrast.baseline), sides, strict=True)
    )
    lost = [
        dict.fromkeys(one for record in own for one in record.warnings if one.code == CAN_LOSE_DATA) for own in sides
    ]
    only = [one for mine, others in (lost, lost[::-1]) for one in mine if one not in others]
    whole = replace(contrast, cell=cell, baseline=baseline)
    limited = [
        (side, sum(any(one.code == EMULATION_LIMIT for one in record.warnings) for record in used), len(used))
        for side, own, faster in zip((cell, baseline), sides, (Conclusion.FASTER, Conclusion.SLOWER), strict=True)
        if (used := [record for record in own if record.status.comparable])
        # If the faster side is the one that emulation slows down, the real difference is even larger.
        and finding.conclusion not in (faster, Conclusion.EQUIVALENT)
    ]
    return Effect(finding, whole, tuple(only), tuple(one for one in limited if one[1]))


def _unfinished(missing: int, due: int) -> tuple[Note, ...]:
    """Returns a note on missing trials of the plan; empty if none is missing. Each finding has its own number of
    complete blocks."""
    return (note(MISSING, missing=missing, due=due),) if missing else ()


def _of_percentiles(settled: Sequence[Record]) -> tuple[Note, ...]:
    """Returns notes on the percentiles that are left out."""
    usable = [record for record in settled if record.status.comparable]
    return too_few(usable, counted_in(usable)[1])


def _of_duet(settled: Sequence[Record]) -> tuple[Note, ...]:
    """Returns a note if each system ran on half of the cores (a duet), because absolute values then do not apply to the
    whole machine."""
    return (note("half-of-cores"),) if any(one.method == DUET for one in settled) else ()


def _of_order(lab: Lab) -> tuple[Note, ...]:
    """Returns a note if the order of trials was fixed, because only a random order makes tests valid (Fisher, The
    Design of Experiments, 1935, ch. IV)."""
    if lab.method.order != "fixed":
        return ()
    by_slices = SLICES if lab.method.slice_s is not None else TRIALS
    return (note("fixed-order", method=DUET if lab.method.duet else by_slices),)


def _of_findings(effects: Sequence[Effect]) -> tuple[Note, ...]:
    """Returns the notes of comparisons with verdicts. Each note is listed once, with the affected comparisons. Notes on
    flagged trials are excluded, because a separate note covers the flagged trials of all comparisons.
    """
    every = [(effect.contrast, one) for effect in effects for one in effect.finding.warnings if one.code != FLAGGED]
    return tuple(
        one if len(known) == len(effects) else _of_comparisons(known, one) for one, known in _by_note(every).items()
    )


def _of_comparisons(compared: Sequence[Contrast], one: Note) -> Note:
    """Adds the affected comparisons to a note. `comparisons` contains the parts of their names, because a joined name
    cannot be split again: a name in the lab file may contain the joining words."""
    parts = tuple((known.cell, known.baseline, known.where) for known in compared)
    return note("of-subjects", subjects=tuple(known.name for known in compared), comparisons=parts, note=one)


def _of_times(cells: Sequence[CellResults]) -> tuple[Note, ...]:
    every = [(cell.configuration, one) for cell in cells if cell.time for one in cell.time.warnings]
    return tuple(
        one if len(known) == len(cells) else note("of-subjects", subjects=tuple(known), note=one)
        for one, known in _by_note(every).items()
    )


def _of_reads(cells: Sequence[CellResults], baselines: Mapping[str, Baseline], archive: Archive) -> tuple[Note, ...]:
    """Returns a note if configurations with different data devices were compared although none of them read much from
    its device."""
    devices = {_data_device(cell.usable[0], archive) for cell in cells if cell.usable} - {""}
    known = [baselines[cell.name] for cell in cells if cell.usable]
    if len(devices) < 2 or not all(one.cached for one in known):
        return ()
    return (note("reads-from-memory", share=max(one.read_share or 0.0 for one in known)),)


def _data_device(record: Record, archive: Archive) -> str:
    """Returns the name of the device that stores the data; "" if unknown. The directory is not part of the name,
    because each version of an engine has its own data directory, usually on the same device."""
    if (emulated := record.system.layout.device_of("data")) is not None:
        return f"emulated {emulated.model}"
    return next(iter(stored_on(record, "data", archive.machine(machine_of(record)))), "")


def _by_note(every: Iterable[tuple[_Subject, Note]]) -> dict[Note, list[_Subject]]:
    """Lists each note once, with the affected subjects."""
    subjects_by_note: dict[Note, list[_Subject]] = {}
    for subject, one in every:
        subjects_by_note.setdefault(one, []).append(subject)
    return subjects_by_note


def compare_cells(lab: Lab, records: Sequence[Record], a: str, b: str, look: int) -> tuple[Effect, ...]:
    """Returns the findings that compare configuration `b` with baseline `a`, even if the lab declares the opposite
    direction. The lab's metric is first. If no comparison or claim declares the pair, it was chosen after seeing the
    data, so its findings have no verdict.
    """
    pair, other = (b, a), (a, b)
    # An inverted comparison has the same p value and the inverted interval, so Holm's correction is unchanged.
    turned = tuple(pair if one == other else one for one in lab.comparisons)
    claims = tuple(
        replace(claim, cells=pair if {one, two} == {a, b} else (one, two))
        for claim in lab.claims
        for one, two in itertools.pairwise(claim.cells)
    )
    family = replace(lab, comparisons=turned, claims=claims)
    results = [one for one in findings(records, family, look) if (one.cell, one.baseline) == pair]
    if pair not in turned:
        claimed = {one.metric for one in results}
        undeclared = replace(lab, comparisons=(pair,), claims=())
        results += [
            replace(one, decides=False, conclusion=Conclusion.CANNOT_TELL, p=None, advice=None)
            for one in findings(records, undeclared, look)
            if one.metric not in claimed
        ]
    names = contrasts(lab, [pair])
    ranked = sorted(results, key=lambda finding: finding.metric != lab.method.metric)
    return tuple(_effect(finding, names[pair], records) for finding in ranked)
