"""A lab file as a lab that this machine can run, or the reason why not. Nothing is started, nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ironbench import engines, ranges, workloads
from ironbench.catalogue import typed
from ironbench.cli import measurable, request, resolving
from ironbench.cli.resolving import Resolution
from ironbench.devices import arrange, expression
from ironbench.devices.declared import wanted
from ironbench.drive import caches
from ironbench.engines.ideal import require as require_memory
from ironbench.errors import InputError, collected
from ironbench.load import estimate
from ironbench.load.estimate import Content
from ironbench.machine.fingerprint import content_key, fingerprint
from ironbench.model.lab import Claim, Factor, Lab, Method, Stage
from ironbench.model.secrets import Secrets
from ironbench.model.system import Cell, Setup, System
from ironbench.plan import blocks, budget, claims, design, ideal, labfile, resolve, same_load, sweep
from ironbench.plan.budget import Cells
from ironbench.plan.design import DeclaredCell
from ironbench.plan.labfile import Declared
from ironbench.record import noise


@dataclass(frozen=True, slots=True)
class Planned:
    """A lab, and what went into sizing it."""

    lab: Lab
    secrets: dict[str, Secrets]
    """By name of cell."""
    costs: Cells
    resolution: Resolution
    crowded_out: bool = False
    """Whether the budget had no room for the rated cells."""


def lab(path: Path, budget_s: float | None = None) -> tuple[Lab, dict[str, Secrets]]:
    """The lab that a file declares, and what its cells need to log in, by name of cell. InputError."""
    found = planned(read(path), budget_s)
    return found.lab, found.secrets


def read(path: Path) -> Declared:
    """InputError: not there, no text, not a lab file."""
    text = typed.text_of(path, str(path), "name a lab file; docs/guide/lab-files.md shows one")
    return labfile.read(text, str(path))


def cautions(lab: Lab) -> list[str]:
    """What may be a mistake in the scripts of the cells that are measured, each once."""
    found: list[str] = []
    for setup in _possible(lab.setups):
        engine = setup.system.engine
        protocol = engines.get(engine).protocol(setup.cell.load.protocol)
        found += workloads.get(setup.choice.workload).cautions(engine, setup.choice, protocol)
    return list(dict.fromkeys(found))


def planned(declared: Declared, budget_s: float | None = None) -> Planned:
    """Impossible cells are named and skipped; InputError when the baseline is one, or fewer than two remain."""
    cells = design.cells(declared)
    house = _House(declared)
    expected: list[Claim] = []
    compared: list[tuple[str, str]] = []
    setups: list[Setup] = []
    checks: tuple[Callable[[], object], ...] = (
        lambda: expected.extend(claims.read(declared, cells)),
        lambda: compared.extend(claims.comparisons(declared, cells)),
        lambda: claims.known(declared.measure.metric, f"{declared.file}, measure.metric"),
        lambda: setups.extend(house.setups(cells)),
    )
    collected(checks)
    _enough_remain(declared, setups)
    _refuse_equal(declared, _possible(setups))
    names = {setup.cell.name for setup in _possible(setups)}
    comparisons = tuple(pair for pair in compared if names.issuperset(pair))
    if declared.measure.compare and not comparisons:
        why = ", ".join(f"{setup.cell.name}: {setup.skipped}" for setup in setups if setup.skipped)
        raise InputError(
            f"{declared.file}, measure.compare", f"none of it can be measured ({why})", "compare other cells"
        )
    draft = Lab(
        name=declared.name,
        series=sweep.new_series(),
        question=declared.question,
        factors=_factors(declared, cells),
        design=declared.design,
        setups=tuple(setups),
        baseline=cells[0].name,
        comparisons=comparisons,
        method=_method(declared),
        claims=tuple(expected),
        trials=(),
        source=declared.source,
    )
    draft = same_load.extended(draft, declared.measure.rates, f"{declared.file}, measure.rates", _paced)
    claims.refuse_unrated(expected, draft, declared.file)
    measurable.refuse_impossible(expected, declared.measure.metric, _possible(draft.all_setups), declared.file)
    contents = {setup.cell.name: _content(setup, declared.measure.restore) for setup in _possible(setups)}
    return _sized(draft, declared, contents, _budget_s(declared, budget_s), house.secrets)


def _sized(
    draft: Lab, declared: Declared, contents: Mapping[str, Content], budget_s: float | None, secrets: dict[str, Secrets]
) -> Planned:
    """With as many blocks, of such length, as declared or as the budget allows; and what that resolves."""
    spread = resolving.of_machine(draft, noise.known(_results()), content_key(fingerprint()))
    count = resolving.comparisons(draft)
    sized, rated_blocks = draft, same_load.in_blocks(draft.method.blocks)
    if budget_s is not None:
        sized, rated_blocks = _within(draft, declared, contents, budget_s, resolving.detector(count), spread)
    possible = _possible(sized.setups)
    costs = estimate.cells(possible, contents, True, sized.rated, rated_blocks)
    trials = blocks.trials(
        [setup.cell for setup in possible],
        sized.method.stages,
        declared.seed,
        sized.method.order,
        [setup.cell for setup in sized.rated],
        rated_blocks,
    )
    final = replace(
        sized,
        trials=trials,
        estimate_s=costs.lab_s(0.0, sized.method.blocks),
        estimate_bytes=estimate.space_bytes(possible, contents, len(trials)),
    )
    resolution = resolving.resolution(final, costs, spread, count, declared.looks)
    crowded_out = bool(draft.rated) and not final.rated
    return Planned(final, secrets, costs, resolution, crowded_out)


def _results() -> Path:
    """Where noise floors are kept, beside the labs."""
    return Path(os.environ.get("IRONBENCH_RESULTS", "ironbench-results"))


def _within(
    draft: Lab,
    declared: Declared,
    contents: Mapping[str, Content],
    budget_s: float,
    detect: budget.Detect,
    spread: budget.Spread,
) -> tuple[Lab, int]:
    """The lab with the blocks and trial length that resolve most, and how many blocks have rated cells. InputError."""
    possible = _possible(draft.setups)
    if any(setup.cell.load.duration_s is None and contents[setup.cell.name].work_s is None for setup in possible):
        raise InputError(
            f"{declared.file}, load.transactions",
            "a budget needs trials of a known time",
            "declare load.duration instead, or measure.repeats without a budget",
        )
    own_times = len({setup.cell.load.duration_s for setup in possible}) > 1 or possible[0].cell.load.duration_s is None
    costs = estimate.cells(possible, contents, own_times, draft.rated, same_load.MOST_BLOCKS)
    lengths = budget.lengths(_declared_s(declared, possible), [setup.cell.load.checkpoint_s for setup in possible])
    own = {setup.cell.name for setup in draft.setups}
    wanted = 0 if all(own.issuperset(claim.cells) for claim in draft.claims) else blocks.FIRST
    size = budget.sized(costs, lengths, budget_s, declared.looks, spread, detect, declared.file, wanted)
    short = bool(draft.rated) and size.rated_blocks < blocks.FIRST
    for_rates_s = budget.for_rated_s(costs, lengths, blocks.FIRST) if short else None
    method = replace(draft.method, stages=size.stages, budget_s=budget_s, budget_for_rates_s=for_rates_s)
    sized = replace(draft, method=method)
    if not own_times:
        sized = replace(
            sized,
            setups=tuple(_of_length(setup, size.trial_s) for setup in draft.setups),
            rated=tuple(_of_length(setup, size.trial_s) for setup in draft.rated),
        )
    return (sized if size.rated_blocks else same_load.without(sized)), size.rated_blocks


def _declared_s(declared: Declared, possible: Sequence[Setup]) -> float | None:
    """The trial length that the file asks for; the budget may shorten it, never stretch it."""
    asked = declared.base["load"].get("duration", "") != ""
    return possible[0].cell.load.duration_s if asked else None


def _of_length(setup: Setup, trial_s: float) -> Setup:
    return replace(setup, cell=replace(setup.cell, load=replace(setup.cell.load, duration_s=trial_s)))


def _budget_s(declared: Declared, told: float | None) -> float | None:
    if told is not None or declared.measure.budget == "":
        return told
    return ranges.read("budget", f"{declared.file}, measure.budget", declared.measure.budget)


def _content(setup: Setup, restore: str) -> Content:
    workload, engine = workloads.get(setup.choice.workload), setup.system.engine
    key, size = (ask(engine, setup.choice.options) for ask in (workload.content_key, workload.estimate_bytes))
    basis = setup.system.dsn or engines.get(engine).basis(setup.system)
    work_s = workload.expected_s(engine, setup.choice.options) if setup.cell.load.transactions is None else None
    if work_s is not None:
        work_s += _reading_s(setup, workload)
    once = restore == "auto" and not (
        workload.writes(setup.choice.options) or workload.starts_from_copy or setup.system.dsn
    )
    return Content(f"{engine} {basis} {key}" if key else "", int(size), work_s, once)


def _reading_s(setup: Setup, workload: workloads.Workload) -> float:
    """What reads of an emulated device add to work that ends by itself."""
    device = next((d for d in setup.system.layout.devices if any(p.role == "data" for p in d.partitions)), None)
    if device is None:
        return 0.0
    cold = setup.cell.load.cache == "cold"
    memory_bytes = setup.system.memory_total_bytes
    read_bytes = workload.expected_read_bytes(setup.system.engine, setup.choice.options, memory_bytes, cold)
    if read_bytes <= 0:
        return 0.0
    size = engines.get(setup.system.engine).traits.costs.mixed_read_bytes
    return read_bytes / expression.mixed_read_rate(device.model, sum(one.bytes for one in device.partitions), size)


def _paced(setup: Setup) -> bool:
    workload = workloads.get(setup.choice.workload)
    return not workload.drives and workload.core_work(setup.system.engine, setup.choice.options) is None


def _possible(setups: Sequence[Setup]) -> list[Setup]:
    return [setup for setup in setups if not setup.skipped]


def _method(declared: Declared) -> Method:
    measure = declared.measure
    if isinstance(measure.stages, list):
        stages = tuple(Stage(number, count) for number, count in enumerate(measure.stages, 1))
    else:
        stages = blocks.stages(declared.repeats, measure.stages or 1)
    return Method(
        stages=stages,
        seed=declared.seed,
        margin=measure.margin,
        metric=measure.metric,
        restore=measure.restore,
        quiet_s=ranges.read("quiet", f"{declared.file}, measure.quiet", measure.quiet),
        order=measure.order,
    )


def _factors(declared: Declared, cells: Sequence[DeclaredCell]) -> tuple[Factor, ...]:
    if declared.factors:
        return tuple(Factor(factor.name, factor.names) for factor in declared.factors)
    return (Factor("cell", tuple(cell.name for cell in cells)),)


def _enough_remain(declared: Declared, setups: Sequence[Setup]) -> None:
    if setups[0].skipped:
        raise InputError(
            f"{declared.file}, cell {setups[0].cell.name}",
            f"the baseline cannot be measured here: {setups[0].skipped}",
            "every comparison needs it; mend it, or make another level the first",
        )
    if sum(not setup.skipped for setup in setups) < 2:
        skipped = "; ".join(f"{setup.cell.name}: {setup.skipped}" for setup in setups if setup.skipped)
        raise InputError(declared.file, "fewer than two cells can be measured here", skipped)


def _refuse_equal(declared: Declared, setups: Sequence[Setup]) -> None:
    """`60s` and `1m` are different words for the same cell."""
    known: dict[str, str] = {}
    for setup in setups:
        key = repr((replace(setup.system, label="", reference_score=None), setup.choice, setup.cell.load))
        if key in known:
            raise InputError(
                f"{declared.file}, vary",
                f"{known[key]} and {setup.cell.name} are equal, only written in other words",
                "cells must differ; measure.repeats repeats them",
            )
        known[key] = setup.cell.name


@dataclass(slots=True)
class _House:
    """What cells share, so that equal systems are asked once."""

    declared: Declared
    secrets: dict[str, Secrets] = field(default_factory=dict)
    _asked: dict[str, tuple[System, Secrets] | InputError] = field(default_factory=dict)

    def setups(self, cells: Sequence[DeclaredCell]) -> list[Setup]:
        """Of every cell. InputError: a mistake that several cells share is named with the first of them."""
        known: set[tuple[str, str]] = set()

        def of(cell: DeclaredCell) -> Setup | None:
            try:
                return self.setup(cell)
            except InputError as error:
                same = error.subject.removeprefix(f"{self.declared.file}, cell {cell.name}"), error.cause
                if same in known:
                    return None
                known.add(same)
                raise

        return [setup for setup in collected(partial(of, cell) for cell in cells) if setup]

    def setup(self, cell: DeclaredCell) -> Setup:
        """With the reason in `skipped` when this machine or engine cannot do it; InputError when the file is wrong."""
        sections, folder = cell.sections, Path(self.declared.file).absolute().parent
        where = f"{self.declared.file}, cell {cell.name}"
        try:
            if not sections.workload.name:
                raise InputError("workload.name", "is missing", "`ironbench list workloads` shows all")
            workload = workloads.get(sections.workload.name)
            engine = engines.get(sections.system.engine) if sections.system.engine else engines.default(workload.needs)
            available = os.sched_getaffinity(0)
            system = replace(
                resolve.system(sections, self._label(cell, engine.name), folder, available), engine=engine.name
            )
            storage = wanted(sections.devices, sections.layout, folder)
            choice = resolve.choice(sections, workload.validated(resolve.options(sections)), folder)
            usual = workload.usual_duration_s(choice.options), workload.usual_warmup_s
            system, load = ideal.arranged(system, resolve.load(sections.load, self.declared.seed, *usual), available)
            request.only_scripts_take_files(choice.scripts, workload)
            choice = workload.identified(choice)
            if engine.name in workload.engines:
                workload.accepts(system, load, choice)
                workload.compile(engine.name, choice, engine.protocol(load.protocol))
        except InputError as error:
            raise resolve.in_words_of_the_file(error, where) from None
        setup = Setup(Cell(cell.name, load, dict(cell.levels)), system, choice)
        if engine.name not in workload.engines:
            return replace(setup, skipped=f"workload {workload.name} does not run on {engine.name}")
        try:
            estimate_bytes = workload.estimate_bytes(engine.name, choice.options)
            mounted = arrange.arranged(storage, estimate_bytes, "layout")
            system = replace(system, layout=arrange.laid_out(system.layout, mounted))
            system = request.preset(system, workload, choice)
            found, self.secrets[cell.name] = self._validated(system, load.clients)
            caches.require(found, load)
            workload.fits(found, choice)
            request.room(found, estimate_bytes)
            if "data" in found.ideal:
                require_memory("data", estimate_bytes)
        except InputError as error:
            told = resolve.in_words_of_the_file(error, where)
            return replace(setup, skipped=f"{told.subject.removeprefix(where + ', ')}: {told.cause}")
        return replace(setup, system=found)

    def _validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """InputError, the same one for the same question."""
        key = repr((replace(system, label=""), clients))
        if key not in self._asked:
            try:
                self._asked[key] = engines.get(system.engine).validated(system, clients)
            except InputError as error:
                self._asked[key] = error
        answer = self._asked[key]
        if isinstance(answer, InputError):
            raise answer
        found, secrets = answer
        return replace(found, label=system.label), secrets

    def _label(self, cell: DeclaredCell, engine: str) -> str:
        """The declared name of the system, and the levels in which it differs from the others."""
        sections = {"system", "layout", "limits"}
        changed = [
            f"{factor.name}={cell.levels[factor.name]}"
            for factor in self.declared.factors
            if any(path[0] in sections for level in factor.levels for path in level.changes)
        ]
        own = cell.levels.get("cell", "") if not self.declared.factors else ""
        parts = [cell.sections.system.label, own, *changed]
        return " ".join(part for part in parts if part) or engine
