"""Chooses the number of blocks and the trial length of a lab. Estimates its time and minimum detectable effect.

Uses the same statistics as the analysis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ironbench import engines, workloads
from ironbench.devices import expression
from ironbench.errors import InputError
from ironbench.fields.lab import range_of
from ironbench.host.fingerprint import content_key, fingerprint
from ironbench.lab.slices import slice_plan
from ironbench.model.finding import Noise
from ironbench.model.lab import Lab, Stage
from ironbench.model.record import SLICES, TRIALS
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup
from ironbench.plan import blocks, budget, commands, fixed_rates
from ironbench.plan.budget import LabTimes, PairVariation
from ironbench.plan.labfile import DeclaredLab
from ironbench.plan.sweep import CONFIRMATIONS
from ironbench.records import labs, noise
from ironbench.records.work import work_of_noise
from ironbench.trial.load import estimate, snapshot
from ironbench.trial.load.estimate import Content


@dataclass(frozen=True, slots=True)
class Resolution:
    """The effects that a lab of this size can detect."""

    detectable: float | None
    """Smallest relative difference that the lab detects with 90% power after its last stage. The value is None if there
    are too few blocks for a verdict."""
    target: float
    """A relative difference smaller than `detectable` that a user might want to detect."""
    needed: int | None
    """Number of blocks that are needed to detect `target`, or None if more than 500 are needed."""
    trial_s: float
    """Trial length in seconds for which `detectable` was computed. If lengths differ, this is the shortest, because it
    has the most noise."""
    spread: PairVariation

    @property
    def varies(self) -> float:
        """The variation from which the number of blocks is calculated: an upper bound of the measured variation,
        converted to the trial length."""
        from ironbench.stats import power

        return power.likely_spread(self.spread.at(self.trial_s), self.spread.seen)


def detector(comparisons: int) -> budget.Detect:
    """Returns a function that computes the minimum detectable effect. As in the findings, the effect is corrected for
    the number of comparisons."""
    from ironbench.stats import power
    from ironbench.stats.multiplicity import LEVEL, levels

    def detect(spread: PairVariation, trial_s: float, stages: tuple[Stage, ...]) -> float:
        planned = tuple(sum(stage.blocks for stage in stages[: place + 1]) for place in range(len(stages)))
        level = levels(LEVEL / max(1, comparisons), planned)[-1]
        return power.detectable(spread.at(trial_s), planned[-1], level, spread.seen) or float("inf")

    return detect


def resolution(
    setups: Sequence[Setup], stages: tuple[Stage, ...], spread: PairVariation, comparisons: int, analyses: int | None
) -> Resolution:
    detect = detector(comparisons)
    trial_s = min(
        (setup.cell.load.duration_s or spread.trial_s for setup in measurable(setups)), default=spread.trial_s
    )
    found = detect(spread, trial_s, stages) if sum(stage.blocks for stage in stages) >= blocks.FIRST else None
    target = budget.next_target(found if found is not None else 0.2)
    return Resolution(found, target, budget.needed(trial_s, target, analyses, spread, detect), trial_s, spread)


def of_blocks(setups: Sequence[Setup], count: int) -> Resolution:
    """Computes what a lab could detect that compares two configurations in `count` blocks, with trials like those of a
    run."""
    spread = of_machine(setups, "throughput", noise.stored_floors(labs.results()), content_key(fingerprint()))
    return resolution(setups, (Stage(1, count),), spread, 1, 1)


def comparisons(lab: Lab) -> int:
    """Returns the number of comparisons for which findings are corrected."""
    from ironbench.study.findings import declared

    return len(declared(lab))


def of_machine(
    setups: Sequence[Setup], metric: str, known: Sequence[Noise], machine: str, method: str = TRIALS
) -> PairVariation:
    """Returns the variation that `lab noise` measured on this machine with this `method`. If it was not measured for
    this work, returns the largest variation of any work. Returns an assumption if nothing was measured.
    """
    whole = (noise for noise in known if noise.blocks > 1 and 0 < noise.spread < math.inf)
    alike = (noise for noise in whole if noise.method == method)
    here = [noise for noise in alike if (noise.machine, noise.metric) == (machine, metric)]
    works = {work_of_noise(setup.choice) for setup in setups}
    fitting = [noise for noise in here if noise.work in works] or here
    if not fitting:
        return budget.ASSUMED
    found = max(fitting, key=lambda noise: noise.spread)
    return PairVariation(found.spread, found.trial_s, found.blocks, f"measured by {found.source}")


MOST_OBSERVED = 0.1
"""Maximum fraction of a budget for trials with observers. If they would take more, they are not planned."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A sized lab, and the estimates behind its size."""

    lab: Lab
    secrets: dict[str, Secrets]
    """Credentials of each configuration. The key is the configuration's name."""
    costs: LabTimes
    resolution: Resolution
    crowded_out: bool = False
    """Whether fixed-rate configurations were left out because the budget is too small for them."""
    warnings: tuple[str, ...] = ()
    """Warnings about requirements that are not met yet, such as machines that a cluster still lacks."""


def sized(
    draft: Lab,
    declared: DeclaredLab,
    contents: Mapping[str, Content],
    budget_s: float | None,
    secrets: dict[str, Secrets],
) -> Planned:
    """Plans a lab with the declared size, or else with the best size within the budget. Computes the minimum detectable
    effect."""
    method = TRIALS if draft.method.slice_s is None else SLICES
    known = noise.stored_floors(labs.results())
    spread = of_machine(draft.setups, draft.method.metric, known, content_key(fingerprint()), method)
    count = comparisons(draft)
    sized, rated_blocks = draft, fixed_rates.in_blocks(draft.method.blocks)
    if budget_s is not None:
        sized, rated_blocks = _within(draft, declared, contents, budget_s, detector(count), spread)
    sized = slice_plan.fitted(sized)
    able = sized.measurable
    costs = slice_plan.costing(
        sized, estimate.cells(slice_plan.placed(sized), contents, True, sized.rated, rated_blocks)
    )
    trials = blocks.trials(
        [setup.cell for setup in able],
        sized.method.stages,
        declared.seed,
        sized.method.order,
        [setup.cell for setup in sized.rated],
        rated_blocks,
        plots=commands.plots([*able, *sized.rated]),
    )
    final = replace(
        sized,
        trials=trials,
        estimate_s=costs.lab_s(0.0, sized.method.blocks),
        estimate_bytes=estimate.space_bytes(slice_plan.placed(sized), contents, len(trials)),
    )
    found = resolution(final.setups, final.method.stages, spread, count, declared.analyses)
    crowded_out = bool(draft.rated) and not final.rated
    return Planned(final, secrets, costs, found, crowded_out)


def _within(
    draft: Lab,
    declared: DeclaredLab,
    contents: Mapping[str, Content],
    budget_s: float,
    detect: budget.Detect,
    spread: budget.PairVariation,
) -> tuple[Lab, int]:
    """Chooses the number of blocks and the trial length with which the lab detects the smallest difference within the
    budget. Returns the lab, and the number of its blocks that include fixed-rate trials. Raises InputError.
    """
    able = draft.measurable
    if any(setup.cell.load.duration_s is None and contents[setup.cell.name].work_s is None for setup in able):
        raise InputError(
            f"{declared.file}, load.transactions",
            "a budget needs trials with a known duration",
            "use load.duration instead, or measure.repeats without a budget",
        )
    own_times = keep_lengths(able)
    cells = estimate.cells(slice_plan.placed(draft), contents, own_times, draft.rated, fixed_rates.MOST_BLOCKS)
    costs = slice_plan.costing(draft, cells)
    if costs.observed_s > MOST_OBSERVED * budget_s:
        draft, costs = replace(draft, method=replace(draft.method, observed=False)), replace(costs, observed_s=0.0)
    checkpoints = [setup.cell.load.checkpoint_s for setup in able]
    lengths = budget.lengths(declared_s(declared, able), checkpoints)
    if draft.method.slice_s is not None:
        lengths = tuple(one for one in lengths if slice_plan.fits(one, draft.method.slice_s)) or lengths[-1:]
    own = {setup.cell.name for setup in draft.setups}
    wanted = 0 if all(own.issuperset(claim.cells) for claim in draft.claims) else blocks.FIRST
    size = budget.sized(
        costs,
        lengths,
        budget_s,
        declared.analyses,
        spread,
        detect,
        declared.file,
        wanted,
        checkpoint_s=max((interval for interval in checkpoints if interval is not None), default=0.0),
        least_s=slice_plan.LEAST_TURNS * (draft.method.slice_s or 0.0),
    )
    short = bool(draft.rated) and size.rated_blocks < blocks.FIRST
    for_rates_s = budget.for_rated_s(costs, lengths, blocks.FIRST) if short else None
    method = replace(draft.method, stages=size.stages, budget_s=budget_s, budget_for_rates_s=for_rates_s)
    sized = replace(draft, method=method)
    if not own_times:
        sized = replace(
            sized,
            setups=tuple(of_length(setup, size.trial_s) for setup in draft.setups),
            rated=tuple(of_length(setup, size.trial_s) for setup in draft.rated),
        )
    return (sized if size.rated_blocks else fixed_rates.without(sized)), size.rated_blocks


def keep_lengths(setups: Sequence[Setup]) -> bool:
    """Returns whether a budget must not change the lengths of these trials."""
    loads = [setup.cell.load for setup in setups]
    own = any(load.curve is not None for load in loads)
    own |= any(workloads.get(setup.choice.workload).own_length for setup in setups)
    return own or len({load.duration_s for load in loads}) > 1 or loads[0].duration_s is None


def of_run(setups: Sequence[Setup], declared: bool, budget_s: float) -> tuple[int, float]:
    """Chooses the number of blocks and the trial length of a run whose trials have a fixed duration. `declared`:
    whether the user set the duration. Raises InputError if the budget is too small.
    """
    contents = {setup.cell.name: content(setup, "auto") for setup in setups}
    # The plan uses the size of the dump, because `--resume` must make the same plan when copies are already stored.
    for setup in setups:
        if setup.choice.data is not None and setup.choice.data.imported:
            name = setup.cell.name
            contents[name] = replace(contents[name], bytes=setup.choice.data.data_bytes)
    loads = [setup.cell.load for setup in setups]
    lengths = budget.lengths(loads[0].duration_s if declared else None, [load.checkpoint_s for load in loads])
    own_length = workloads.get(setups[0].choice.workload).own_length
    if own_length:
        lengths = tuple({load.duration_s or 0.0 for load in loads})
    confirmations = CONFIRMATIONS if len(setups) > 1 and loads[0].rate is None else 0
    once_s = estimate.cells(setups[:1], contents, True).once_s
    resting_s = workloads.get(setups[0].choice.workload).resting_s(setups[0].choice.options)
    around_s = [load.warmup_s + resting_s for load in loads]
    around = "pauses between passes" if resting_s else budget.WARMUP
    return budget.sized_run(around_s, confirmations, once_s, lengths, budget_s, around, own_length)


def declared_s(declared: DeclaredLab, setups: Sequence[Setup]) -> float | None:
    """Returns the trial length that the lab file declares. Returns None if there is none. A budget may shorten this
    length but not extend it."""
    asked = declared.base["load"].get("duration", "") != ""
    return setups[0].cell.load.duration_s if asked else None


def of_length(setup: Setup, trial_s: float) -> Setup:
    """Returns the setup with the trial length `trial_s`."""
    return replace(setup, cell=replace(setup.cell, load=replace(setup.cell.load, duration_s=trial_s)))


def budget_s(declared: DeclaredLab, asked_s: float | None) -> float | None:
    if asked_s is not None or declared.measure.budget == "":
        return asked_s
    return range_of("measure.budget").read(f"{declared.file}, measure.budget", declared.measure.budget)


def content(setup: Setup, restore: str) -> Content:
    workload, engine = workloads.get(setup.choice.workload), setup.system.engine
    data, size = setup.choice.data, data_bytes(setup)
    key = workload.content_key(engine, setup.choice.options)
    key = data.key if data is not None and data.imported else key
    basis = setup.system.dsn or engines.get(engine).basis(setup.system)
    work_s = workload.expected_s(engine, setup.choice.options) if setup.cell.load.transactions is None else None
    if work_s is not None:
        work_s += _reading_s(setup, workload)
    once = restore == "auto" and not (
        workload.writes(setup.choice.options) or workload.starts_from_copy or setup.system.dsn
    )
    return Content(f"{engine} {basis} {key}" if key else "", int(size), work_s, once)


def data_bytes(setup: Setup) -> int:
    """Estimates the size in bytes of the data at the start of a trial."""
    data, workload = setup.choice.data, workloads.get(setup.choice.workload)
    if data is not None and data.imported:
        return snapshot.known_bytes(setup.system, data) or data.data_bytes
    return int(workload.estimate_bytes(setup.system.engine, setup.choice.options))


def _reading_s(setup: Setup, workload: workloads.Workload) -> float:
    """Estimates how many seconds a trial takes longer because it reads from an emulated device. This applies to
    workloads that end when their work is done."""
    device = setup.system.layout.device_of("data")
    if device is None:
        return 0.0
    cold = setup.cell.load.cache == "cold"
    memory_bytes = setup.system.memory_total_bytes
    read_bytes = workload.expected_read_bytes(setup.system.engine, setup.choice.options, memory_bytes, cold)
    if read_bytes <= 0:
        return 0.0
    size = engines.get(setup.system.engine).traits.costs.mixed_read_bytes
    return read_bytes / expression.mixed_read_rate(device.model, sum(one.bytes for one in device.partitions), size)


def measurable(setups: Sequence[Setup]) -> list[Setup]:
    return [setup for setup in setups if not setup.skipped]
