"""Converts a lab file to a lab that this machine can run, or explains why it cannot run it. Starts and writes
nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ironbench import engines, units, workloads
from ironbench.catalogue import typed
from ironbench.devices.arrange import ROLES
from ironbench.errors import InputError, collected, each, in_a_file, together
from ironbench.fields.lab import range_of
from ironbench.host import trust
from ironbench.lab import metric_checks, profiling, screen_size, server_control, size
from ironbench.lab.build import Builder, without_password
from ironbench.lab.size import Planned, measurable
from ironbench.lab.slices import slice_plan
from ironbench.model.lab import SCREEN, Claim, Factor, Lab, Method, Stage, named
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup
from ironbench.plan import blocks, claims, commands, design, fixed_rates, labfile, profiles, screen, sweep, tags
from ironbench.plan.design import DeclaredCell
from ironbench.plan.labfile import DeclaredLab
from ironbench.plan.vary import VariedFactor
from ironbench.records.described import losses
from ironbench.report import wording
from ironbench.trial.load.estimate import Content


def lab(
    path: Path, budget_s: float | None = None, design: str = "", tag: Sequence[str] = ()
) -> tuple[Lab, dict[str, Secrets]]:
    """Reads a lab file and plans its lab. Returns the lab and the credentials by configuration name. Raises InputError.

    `tag`: KEY=VALUE texts, which override the file's tags.
    """
    declared = read(path, design)
    every = {**declared.tags, **tags.read("--tag", tag)}
    tags.validate("--tag", every)
    found = planned(replace(declared, tags=every), budget_s)
    return found.lab, found.secrets


def read(path: Path, design: str = "") -> DeclaredLab:
    """Reads a lab file. `design`: as in `labfile.read`. Raises InputError if the file is missing, not text or not a lab
    file."""
    text = typed.text_of(path, str(path), "give the path of a lab file; see docs/how/lab-files.md")
    return labfile.read(text, str(path), design)


def script_warnings(lab: Lab) -> list[str]:
    """Lists possible mistakes in the scripts of the configurations that are measured, without duplicates."""
    found: list[str] = []
    for setup in lab.measurable:
        engine = setup.system.engine
        protocol = engines.get(engine).protocol(setup.cell.load.protocol)
        found += workloads.get(setup.choice.workload).warnings(engine, setup.choice, protocol)
        found += wording.texts(losses(setup.system))
    return list(dict.fromkeys([*found, *forecasts(lab.measurable)]))


def forecasts(setups: Iterable[Setup], most: float | None = None) -> list[str]:
    """Returns what is known about the trials of these configurations before they start. Of several rates, only the
    highest is considered. `most`: the highest rate of a search."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], list[str]] = {}
    for setup in sorted(setups, key=lambda setup: setup.cell.load.rate or 0.0, reverse=True):
        choice, load = setup.choice, setup.cell.load
        load = replace(load, rate=most) if most else load
        of_choice = found.setdefault((choice.workload, frozenset(choice.options.items())), [])
        of_choice += [] if of_choice else wording.texts(workloads.get(choice.workload).forecast(load, choice))
    return [text for texts in found.values() for text in texts]


def requirements(setups: Iterable[Setup]) -> list[str]:
    """Returns what workloads require of existing servers, for a dry run."""
    found = [
        requirement.note
        for setup in setups
        if setup.system.dsn is not None
        and (requirement := workloads.get(setup.choice.workload).requirement(setup.choice.options)) is not None
    ]
    return list(dict.fromkeys(wording.texts(found)))


def refuse_in_use(setups: Sequence[Setup]) -> None:
    """Raises InputError if another server is running in one of these configurations' directories."""
    for error in _in_use(setups):
        raise error


def in_use(setups: Sequence[Setup]) -> list[str]:
    """Returns warnings about servers that run in directories of these configurations, for a dry run. The servers may
    have ended when the lab runs, so they are not errors."""
    return list(dict.fromkeys(f"{error}; stop this server before you run the lab" for error in _in_use(setups)))


def _in_use(setups: Sequence[Setup]) -> Iterator[InputError]:
    for system in (setup.system for setup in measurable(setups)):
        if system.dsn is None and (error := engines.get(system.engine).in_use(system)) is not None:
            yield error


def planned(declared: DeclaredLab, budget_s: float | None = None, *, machines_needed: bool = True) -> Planned:
    """Plans a lab. Impossible configurations are named and skipped.

    Raises InputError if the baseline is impossible or fewer than two configurations remain. With
    `machines_needed=False`, the lab's cluster may still lack machines.
    """
    with in_a_file():
        return _planned(declared, budget_s, machines_needed)


def _planned(declared: DeclaredLab, budget_s: float | None, machines_needed: bool) -> Planned:
    cells = design.cells(declared)
    _refuse_varied_search(declared, cells)
    builder = Builder(declared.seed, declared.measure.crash, declared.file, machines_needed)
    expected: list[Claim] = []
    compared: list[tuple[str, str]] = []
    setups: list[Setup] = []
    checks: tuple[Callable[[], object], ...] = (
        lambda: expected.extend(claims.read(declared, cells)),
        lambda: compared.extend(claims.comparisons(declared, cells)),
        lambda: claims.require_metric(declared.measure.metric, f"{declared.file}, measure.metric"),
        lambda: setups.extend(_setups(builder, declared, cells)),
    )
    collected(checks)
    _enough_remain(declared, setups, builder.hints)
    server_control.require_use(measurable(setups))
    profiling.require(profiles.read(declared.measure.profile), measurable(setups))
    _refuse_unused_devices(declared, cells)
    _refuse_equal(declared, measurable(setups))
    names = {setup.cell.name for setup in measurable(setups)}
    comparisons = tuple(pair for pair in compared if names.issuperset(pair))
    if declared.measure.compare and not comparisons:
        why = ", ".join(f"{setup.cell.name}: {setup.skipped}" for setup in setups if setup.skipped)
        raise InputError(
            f"{declared.file}, measure.compare",
            f"no comparison is left, because some configurations cannot be measured on this machine ({why})",
            "compare other configurations",
        )
    draft = Lab(
        name=declared.name,
        series=sweep.new_series(),
        question=declared.question,
        factors=_factors(declared, cells, setups),
        design=declared.design,
        setups=tuple(setups),
        baseline=cells[0].name,
        comparisons=comparisons,
        method=_method(declared),
        claims=tuple(expected),
        trials=(),
        source=declared.source,
        tags=declared.tags,
        **_commands_of_lab(declared),
    )
    if declared.design == SCREEN:
        _require_every_run(declared, setups, builder.hints)
        draft = replace(draft, file=str(Path(declared.file).absolute()))
    else:
        draft = fixed_rates.extended(draft, declared.measure.rates, f"{declared.file}, measure.rates", _allows_rate)
    claims.refuse_unrated(expected, draft, declared.file)
    metric_checks.refuse_impossible(expected, declared.measure.metric, measurable(draft.all_setups), declared.file)
    contents = {setup.cell.name: size.content(setup, declared.measure.restore) for setup in measurable(setups)}
    draft = _by_slices(draft, declared, contents)
    sized = screen_size.sized if declared.design == SCREEN else size.sized
    found = sized(draft, declared, contents, size.budget_s(declared, budget_s), builder.secrets)
    unchecked = (
        f"the settings of the programs in {directory} were not checked, because a dry run does not start programs "
        "that the lab file names; add --trust to start these programs"
        for directory in trust.withheld_directories()
    )
    return replace(found, warnings=(*builder.warnings, *unchecked))


def _setups(builder: Builder, declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> list[Setup]:
    """Builds the setups of all configurations. Raises InputError. If several configurations have the same mistake, it
    is reported only for the first of them."""
    known: set[tuple[str, str]] = set()

    def of(cell: DeclaredCell) -> Setup | None:
        try:
            return builder.setup(cell.name, design.labelled(declared, cell), cell.levels, cell.added)
        except InputError as error:
            place = f"{declared.file}, configuration {cell.name}"
            found = {(one.subject.removeprefix(place), one.cause): one for one in each(error)}
            new = [one for same, one in found.items() if same not in known]
            known.update(found)
            if new:
                raise together(new) from None
            return None

    return [setup for setup in collected(partial(of, cell) for cell in cells) if setup]


def _by_slices(draft: Lab, declared: DeclaredLab, contents: Mapping[str, Content]) -> Lab:
    """Returns the lab with the method that it will use. If the method `slices` was declared or is the default but is
    not possible, the lab uses trials and contains the reason. Raises InputError if the declared slice length is not
    possible."""
    measure = declared.measure
    if measure.method == "trials":
        if measure.slice != "":
            hint = 'add method = "slices", or remove measure.slice'
            raise InputError(f"{declared.file}, measure.slice", "applies only to the method `slices`", hint)
        return draft
    slice_s = slice_plan.USUAL_S
    if measure.slice != "":
        slice_s = range_of("measure.slice").read(f"{declared.file}, measure.slice", measure.slice)
    if why := slice_plan.why_trials(draft, contents):
        return replace(draft, method=replace(draft.method, why_trials=why))
    piloted = measure.slice == ""
    duration_s = draft.measurable[0].cell.load.duration_s or 0.0
    if piloted and not slice_plan.fits(duration_s, slice_plan.LENGTHS_S[0]):
        why = (
            f"a duration of {units.span(duration_s)} is too short for {slice_plan.LEAST_TURNS} slices of "
            f"{units.span(slice_plan.LENGTHS_S[0])}, the shortest slice length"
        )
        return replace(draft, method=replace(draft.method, why_trials=why))
    if not slice_plan.fits(duration_s, slice_s) and not piloted:
        raise InputError(
            f"{declared.file}, measure.slice",
            f"each system needs at least {slice_plan.LEAST_TURNS} slices of {units.span(slice_s)}, but a duration of "
            f"{units.span(duration_s)} is too short for them",
            f'use load.duration = "{slice_plan.LEAST_TURNS * slice_s:g}s" or more, or a shorter slice',
        )
    method = replace(draft.method, slice_s=slice_s, slice_piloted=piloted, observed=True)
    return slice_plan.fitted(replace(draft, method=method))


def _require_every_run(declared: DeclaredLab, setups: Sequence[Setup], hints: Mapping[str, str]) -> None:
    """Raises InputError if a screen contains an unsuitable run. All runs must be possible on this machine, need no
    changes by hand, and have a fixed load."""
    for setup in setups:
        if setup.skipped:
            levels = named(setup.cell.levels)
            hint = hints[setup.cell.name] or "correct the value, or remove the factor"
            hint = f"a screen needs all of its trials: {hint}"
            raise InputError(f"{declared.file}, vary", f"{setup.skipped} (with {levels})", hint)
        if any(one.by_hand for one in setup.system.commands):
            cause = "a person would have to make a change before every second trial"
            raise InputError(f"{declared.file}, vary", cause, "use a separate lab for changes by hand")
        if setup.search:
            best = wording.search.search_subject(setup.search.of)
            cause = f"a search for the best {best} would be necessary in each of the {len(setups)} trials"
            raise InputError(f"{declared.file}, load.{setup.search.of}", cause, f"set a fixed load.{setup.search.of}")


def _commands_of_lab(declared: DeclaredLab) -> dict[str, Any]:
    """Returns the arguments for `Lab` that concern the user's commands: the commands and the directory in which they
    run. Raises InputError."""
    limit = declared.commands.command_limit
    pairs = {"commands": (declared.commands.lab, "lab"), "block_commands": (declared.commands.block, "block")}
    found = {name: without_password(commands.of_pair(pair, limit, of)) for name, (pair, of) in pairs.items()}
    return {**found, "folder": str(Path(declared.file).absolute().parent)}


def _refuse_varied_search(declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> None:
    """Raises InputError if a lab that searches for the best load declares different loads or limits for its
    configurations."""
    base = declared.base["load"]
    for of in ("clients", "rate"):
        loads = {name: [getattr(cell.sections.load, name) for cell in cells] for name in (of, "limit")}
        if not any(sweep.requests_search(f"load.{of}", one) for one in (base.get(of), *loads[of])):
            continue
        for name, values in loads.items():
            if any(one != base.get(name, one) or one != values[0] for one in values):
                raise InputError(
                    f"{declared.file}, load.{name}",
                    f"varies, but the lab also searches for the best load.{of}",
                    "use the same search in every configuration, or set fixed loads",
                )


def _allows_rate(setup: Setup) -> bool:
    workload = workloads.get(setup.choice.workload)
    return not workload.drives and workload.core_work(setup.system.engine, setup.choice.options) is None


def _method(declared: DeclaredLab) -> Method:
    measure = declared.measure
    if declared.design == SCREEN:
        stages: tuple[Stage, ...] = (Stage(1, measure.repeats or screen.usual_blocks(len(declared.factors))),)
    elif isinstance(measure.stages, list):
        stages = tuple(Stage(number, count) for number, count in enumerate(measure.stages, 1))
    else:
        stages = blocks.stages(declared.repeats, measure.stages or 1)
    return Method(
        stages=stages,
        seed=declared.seed,
        margin=measure.margin,
        metric=measure.metric,
        answer=measure.answer,
        restore=measure.restore,
        quiet_s=range_of("measure.quiet").read(f"{declared.file}, measure.quiet", measure.quiet),
        order=measure.order,
        crash=measure.crash,
        profile=profiles.read(measure.profile),
    )


def _factors(declared: DeclaredLab, cells: Sequence[DeclaredCell], setups: Sequence[Setup]) -> tuple[Factor, ...]:
    if declared.factors:
        return tuple(
            Factor(factor.name, factor.names, factor.fields, _words(factor, setups)) for factor in declared.factors
        )
    return (Factor("cell", tuple(cell.name for cell in cells)),)


def _words(factor: VariedFactor, setups: Sequence[Setup]) -> tuple[str, ...]:
    """Returns the names that the workload gives to the factor's values. Returns an empty tuple if the values have no
    names, or if the factor varies anything but a single workload option."""
    chosen = {setup.cell.levels.get(factor.name, ""): setup.choice for setup in setups}
    of = {one.workload for one in chosen.values()}
    if len(factor.paths) != 1 or len(of) != 1 or not chosen.keys() >= set(factor.names):
        return ()
    (path,) = factor.paths
    words = next((one.words for one in workloads.get(of.pop()).options if path == ("workload", "with", one.name)), {})
    return tuple(words[chosen[name].options[path[2]]] for name in factor.names) if words else ()


def _refuse_unused_devices(declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> None:
    """Raises InputError if no configuration uses a declared device. Mistakes in such a device would not be noticed."""
    used = {getattr(cell.sections.layout, role) for cell in cells for role in ROLES}
    for name in dict.fromkeys(name for cell in cells for name in cell.sections.devices):
        if name not in used:
            hint = f'add layout.data = "{name}", or remove the device'
            raise InputError(f"{declared.file}, devices.{name}", "no configuration of the lab uses this device", hint)


def _enough_remain(declared: DeclaredLab, setups: Sequence[Setup], hints: Mapping[str, str]) -> None:
    if setups[0].skipped:
        raise InputError(
            f"{declared.file}, configuration {setups[0].cell.name}",
            f"the baseline cannot be measured on this machine: {setups[0].skipped}",
            f"every comparison needs the baseline: {hints[setups[0].cell.name] or 'list another value first'}",
        )
    if sum(not setup.skipped for setup in setups) < 2:
        skipped = "; ".join(f"{setup.cell.name}: {setup.skipped}" for setup in setups if setup.skipped)
        raise InputError(declared.file, "fewer than two configurations can be measured on this machine", skipped)


def _refuse_equal(declared: DeclaredLab, setups: Sequence[Setup]) -> None:
    """Raises InputError if two configurations are equal although they are written differently (such as `60s` and
    `1m`)."""
    known: dict[str, str] = {}
    for setup in setups:
        done = tuple(replace(one, of="") for one in setup.system.commands)
        system = replace(setup.system, label="", reference_score=None, commands=done)
        key = repr((system, setup.choice, setup.cell.load))
        if key in known:
            raise InputError(
                f"{declared.file}, vary",
                f"{known[key]} and {setup.cell.name} are the same configuration in different notation",
                "change or remove one of the two; to measure a configuration more often, use `measure.repeats`",
            )
        known[key] = setup.cell.name
