"""A lab file as a lab that this machine can run, or the reason why not. Nothing is started, nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ironbench import engines, ranges, workloads
from ironbench.analyse import optimum
from ironbench.catalogue import typed
from ironbench.devices import arrange
from ironbench.devices.arrange import Request, requested_devices
from ironbench.drive import caches
from ironbench.drive.power import WAYS
from ironbench.engines.ideal import require as require_memory
from ironbench.errors import InputError, collected, in_a_file, nearest, written
from ironbench.experiment import metric_checks, screening, size, watching
from ironbench.experiment.size import Planned, possible
from ironbench.load import own
from ironbench.machine import space
from ironbench.model.commands import Commands
from ironbench.model.lab import SCREEN, Claim, Factor, Lab, Method, Stage
from ironbench.model.secrets import Secrets, hidden
from ironbench.model.system import Cell, Choice, Load, Setup, System
from ironbench.plan import blocks, claims, commands, design, labfile, resolve, same_load, screen, sweep
from ironbench.plan.design import DeclaredCell
from ironbench.plan.labfile import Declared
from ironbench.process import place
from ironbench.record.redact import redacted
from ironbench.workloads import Workload


def lab(path: Path, budget_s: float | None = None, design: str = "") -> tuple[Lab, dict[str, Secrets]]:
    """The lab that a file declares, and what its cells need to log in, by name of cell. InputError."""
    found = planned(read(path, design), budget_s)
    return found.lab, found.secrets


def read(path: Path, design: str = "") -> Declared:
    """`design`: as in `labfile.read`. InputError: not there, no text, not a lab file."""
    text = typed.text_of(path, str(path), "name a lab file; docs/guide/lab-files.md shows one")
    return labfile.read(text, str(path), design)


def cautions(lab: Lab) -> list[str]:
    """What may be a mistake in the scripts of the cells that are measured, each once."""
    found: list[str] = []
    for setup in possible(lab.setups):
        engine = setup.system.engine
        protocol = engines.get(engine).protocol(setup.cell.load.protocol)
        found += workloads.get(setup.choice.workload).cautions(engine, setup.choice, protocol)
    return list(dict.fromkeys(found))


def refuse_in_use(setups: Sequence[Setup]) -> None:
    """InputError: another server runs in a directory of these cells."""
    for error in _in_use(setups):
        raise error


def in_use(setups: Sequence[Setup]) -> list[str]:
    """The same as cautions, for a plan: it starts nothing, and the directory may be free later."""
    return list(dict.fromkeys(f"{error}; nothing can be measured there until it stops" for error in _in_use(setups)))


def _in_use(setups: Sequence[Setup]) -> Iterator[InputError]:
    for setup in possible(setups):
        if (error := engines.get(setup.system.engine).in_use(setup.system)) is not None:
            yield error


def planned(declared: Declared, budget_s: float | None = None) -> Planned:
    """Impossible cells are named and skipped; InputError when the baseline is one, or fewer than two remain."""
    with in_a_file():
        return _planned(declared, budget_s)


def _planned(declared: Declared, budget_s: float | None) -> Planned:
    cells = design.cells(declared)
    _refuse_varied_search(declared, cells)
    builder = Builder(declared)
    expected: list[Claim] = []
    compared: list[tuple[str, str]] = []
    setups: list[Setup] = []
    checks: tuple[Callable[[], object], ...] = (
        lambda: expected.extend(claims.read(declared, cells)),
        lambda: compared.extend(claims.comparisons(declared, cells)),
        lambda: claims.known(declared.measure.metric, f"{declared.file}, measure.metric"),
        lambda: setups.extend(builder.setups(cells)),
    )
    collected(checks)
    _enough_remain(declared, setups)
    _refuse_equal(declared, possible(setups))
    names = {setup.cell.name for setup in possible(setups)}
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
        **_commands_of_lab(declared),
    )
    if declared.design == SCREEN:
        _require_every_run(declared, setups)
        draft = replace(draft, file=str(Path(declared.file).absolute()))
    else:
        draft = same_load.extended(draft, declared.measure.rates, f"{declared.file}, measure.rates", _paced)
    claims.refuse_unrated(expected, draft, declared.file)
    metric_checks.refuse_impossible(expected, declared.measure.metric, possible(draft.all_setups), declared.file)
    contents = {setup.cell.name: size.content(setup, declared.measure.restore) for setup in possible(setups)}
    sized = screening.sized if declared.design == SCREEN else size.sized
    return sized(draft, declared, contents, size.budget_s(declared, budget_s), builder.secrets)


def _require_every_run(declared: Declared, setups: Sequence[Setup]) -> None:
    """InputError: a run of a screen cannot be measured, or what it would measure is not known beforehand."""
    for setup in setups:
        if setup.skipped:
            levels = design.named(setup.cell.levels)
            hint = "a screen needs every run: mend the level, or leave its factor out"
            raise InputError(f"{declared.file}, vary", f"{setup.skipped} (with {levels})", hint)
        if any(one.by_hand for one in setup.system.commands):
            cause = "a person would have to change something for every other run"
            raise InputError(f"{declared.file}, vary", cause, "compare what is changed by hand in a lab of its own")
        if setup.search:
            cause = f"the best {setup.search.of} would be searched for in each of {len(setups)} runs"
            raise InputError(f"{declared.file}, load.{setup.search.of}", cause, "name the load")


def _commands_of_lab(declared: Declared) -> dict[str, Any]:
    """Fields of the lab. InputError."""
    limit = declared.commands.command_limit
    pairs = {"commands": (declared.commands.lab, "lab"), "block_commands": (declared.commands.block, "block")}
    found = {name: without_password(commands.of_pair(pair, limit, of)) for name, (pair, of) in pairs.items()}
    return {**found, "folder": str(Path(declared.file).absolute().parent)}


def without_password(found: Commands) -> Commands:
    """The commands, which records and reports show. InputError: one holds a password."""
    for name, text in (("prepare", found.prepare), ("cleanup", found.cleanup)):
        if redacted(hidden(text)) != text:
            hint = "let it read the password from a file, or from a variable of the environment"
            raise InputError(written(f"commands.{name}"), "holds a password, and records show commands", hint)
    return found


def _refuse_varied_search(declared: Declared, cells: Sequence[DeclaredCell]) -> None:
    """InputError: the best load is searched for, and some cells declare theirs."""
    base = declared.base["load"]
    for of in ("clients", "rate"):
        loads = {name: [getattr(cell.sections.load, name) for cell in cells] for name in (of, "limit")}
        if not any(sweep.asked(f"load.{of}", one) for one in (base.get(of), *loads[of])):
            continue
        for name, values in loads.items():
            if any(one != base.get(name, one) or one != values[0] for one in values):
                raise InputError(
                    f"{declared.file}, load.{name}",
                    f"varies from cell to cell, and the best load.{of} is searched for",
                    "search the same way in every cell, or name the loads",
                )


def _paced(setup: Setup) -> bool:
    workload = workloads.get(setup.choice.workload)
    return not workload.drives and workload.core_work(setup.system.engine, setup.choice.options) is None


def _method(declared: Declared) -> Method:
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
        restore=measure.restore,
        quiet_s=ranges.read("quiet", f"{declared.file}, measure.quiet", measure.quiet),
        order=measure.order,
        crash=measure.crash,
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
        done = tuple(replace(one, of="") for one in setup.system.commands)
        system = replace(setup.system, label="", reference_score=None, commands=done)
        key = repr((system, setup.choice, setup.cell.load))
        if key in known:
            raise InputError(
                f"{declared.file}, vary",
                f"{known[key]} and {setup.cell.name} are equal, only written in other words",
                "cells must differ; measure.repeats repeats them",
            )
        known[key] = setup.cell.name


@dataclass(slots=True)
class Builder:
    """Makes setups of declared cells, for lab files and the command line alike; equal systems are asked once."""

    declared: Declared
    secrets: dict[str, Secrets] = field(default_factory=dict)
    """By name of cell."""
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
        """InputError: what was written is wrong. What this machine or engine cannot do is the `skipped` of a cell of a
        lab file, and an InputError at the command line."""
        file = self.declared.file
        try:
            setup, devices = self._wanted(cell)
        except InputError as error:
            subject = f"{file}, cell {cell.name}, {error.subject}" if file else error.subject
            raise InputError(subject, error.cause, error.hint) from None
        try:
            return self._possible(setup, devices)
        except InputError as error:
            if not file:
                raise
            return replace(setup, skipped=f"{error.subject}: {error.cause}")

    def _wanted(self, cell: DeclaredCell) -> tuple[Setup, tuple[Request, ...]]:
        """What the cell declares, read field by field, and the devices that it names."""
        sections, file = cell.sections, self.declared.file
        folder = Path(file).absolute().parent if file else None
        if not sections.workload.name:
            raise InputError("workload.name", "is missing", "`ironbench list workloads` shows all")
        workload = workloads.get(sections.workload.name)
        named, dsn = sections.system.engine, sections.system.dsn
        engine = (engines.get(named) if named else engines.default(workload.needs, dsn)).behind(dsn)
        available = os.sched_getaffinity(0)
        label = self._label(cell, workload.name if engine.can("bare machine") else engine.name)
        system = resolve.system(sections, label, folder, available)
        system = watching.validated(replace(system, engine=engine.name, commands=self._commands(cell)))
        devices = requested_devices(sections.devices, sections.layout, folder or Path())
        choice = resolve.choice(sections, workload.validated(resolve.options(sections)), folder)
        usual = workload.usual_duration_s(choice.options), workload.usual_warmup_s, workload.usual_max_tries
        at_highest, search = sweep.searched(sections.load)
        load = resolve.load(at_highest, self.declared.seed, *usual)
        system, load = resolve.with_ideal_parts(system, load, available)
        if choice.scripts and workload.name != "script":
            raise InputError(
                choice.scripts[0],
                f"workload {workload.name} has scripts of its own",
                f"to run your own: ironbench run script {' '.join(choice.scripts)}",
            )
        choice = workload.identified(choice)
        if (data := resolve.own_data(sections.data, folder)) is not None:
            choice = replace(choice, data=own.identified(data, system, workload))
        if not engine.missing(workload.needs):
            workload.accepts(system, load, choice)
            workload.compile(engine.name, choice, engine.protocol(load.protocol))
            _require_tables(workload, engine.name, choice)
        if search and "throughput" not in workload.scores:
            cause = f"workload {workload.name} has no throughput to search by"
            raise InputError(written(f"load.{search.of}"), cause, "name the numbers")
        if search:
            search = replace(search, expected=optimum.expected_trials(search))
        return Setup(Cell(cell.name, load, dict(cell.levels)), system, choice, search=search), devices

    def _commands(self, cell: DeclaredCell) -> tuple[Commands, ...]:
        """Those of every trial, then those of its levels. InputError."""
        every = [("trial" if self.declared.file else "run", cell.sections.commands), *cell.added]
        return tuple(one for of, section in every if (one := without_password(commands.read(section, of))))

    def _possible(self, setup: Setup, devices: Sequence[Request]) -> Setup:
        """The setup as the engine knows it, on devices that this machine can emulate."""
        system, choice, load = setup.system, setup.choice, setup.cell.load
        workload, crash = workloads.get(choice.workload), self.declared.measure.crash
        if missing := engines.get(system.engine).missing(workload.needs):
            raise InputError(
                written("system.engine", system.engine),
                f"workload {workload.name} does not run on it, which lacks: {', '.join(missing)}",
                f"it runs on: {', '.join(workload.engines)}",
            )
        _require_checkpoints(system, load)
        estimate_bytes = size.data_bytes(setup)
        roles = ", ".join(written(f"layout.{role}") for role in arrange.ROLES)
        mounted = arrange.arranged(devices, estimate_bytes, roles, cuttable=bool(crash))
        system = replace(system, layout=arrange.laid_out(system.layout, mounted))
        if system.dsn is None:  # a server of others stays as it is
            system = replace(system, settings=workload.preset(system, choice.options) | system.settings)
        asked, connections = system, workload.connections(load.clients)
        system, self.secrets[setup.cell.name] = self._validated(asked, connections)
        if choice.data and choice.data.brought and asked.layout.data is None and system.layout.data is not None:
            # What ironbench keeps by default stays as it is: the user's data get a directory of their own.
            asked = replace(asked, layout=asked.layout.at({"data": f"{system.layout.data}-own"}))
            system, self.secrets[setup.cell.name] = self._validated(asked, connections)
        caches.require(system, load)
        workload.fits(system, choice)
        _require_room(system, estimate_bytes)
        if "data" in system.ideal:
            require_memory("data", estimate_bytes)
        if crash:
            require_cut(crash, system, workload, choice)
        return replace(setup, system=system)

    def _validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """InputError, the same one for the same question."""
        key = repr((replace(system, label="", commands=()), clients))
        if key not in self._asked:
            try:
                self._asked[key] = engines.get(system.engine).validated(system, clients)
            except InputError as error:
                self._asked[key] = error
        answer = self._asked[key]
        if isinstance(answer, InputError):
            raise answer
        found, secrets = answer
        return replace(found, label=system.label, commands=system.commands), secrets

    def _label(self, cell: DeclaredCell, usual: str) -> str:
        """The declared name of the system, and the levels in which it differs from the others."""
        sections = {"system", "layout", "limits", "commands", "data"}
        changed = [
            f"{factor.name}={cell.levels[factor.name]}"
            for factor in self.declared.factors
            if any(path[0] in sections for level in factor.levels for path in level.changes)
        ]
        if self.declared.design == SCREEN:  # of all factors, a run says as much by its name
            changed = [cell.name]
        own = cell.levels.get("cell", "") if not self.declared.factors else ""
        parts = [cell.sections.system.label, own, *changed]
        return " ".join(part for part in parts if part) or usual


def _require_tables(workload: Workload, engine: str, choice: Choice) -> None:
    """InputError where nobody has written the workload's tables in the engine's dialect."""
    dataset = workload.dataset(engine, choice.options)
    if dataset is not None and not dataset.schema:
        cause = f"the tables of workload {workload.name} are not written in its dialect yet"
        raise InputError(written("system.engine", engine), cause, f"it runs on: {', '.join(workload.engines)}")


def _require_checkpoints(system: System, load: Load) -> None:
    """InputError where an interval of checkpoints means nothing, or is set twice."""
    engine, field = engines.get(system.engine), written("load.checkpoint")
    if load.checkpoint_s is None:
        return
    if not engine.can("checkpoints"):
        raise InputError(field, f"{engine.name} has no such checkpoints", "leave it out")
    setting = engine.administration.checkpoint_setting
    if setting in system.settings:
        raise InputError(field, f"given together with {written('system.set', setting)}", "choose one of them")


def _require_room(system: System, estimate_bytes: int) -> None:
    """Refuses data that cannot fit. A directory of ours may hold them already: the load sees that, and asks again."""
    data = system.layout.data
    device_bytes = arrange.room_bytes(system.layout.devices, "data")
    if device_bytes is not None:
        arrange.require_room(device_bytes, estimate_bytes)
    elif data is not None and not place.ours(Path(data)):
        space.require(data, estimate_bytes, "the workload's data")


def require_cut(how: str, system: System, workload: Workload, choice: Choice) -> None:
    """InputError where a power cut is unknown, cannot be made, or would take nothing."""
    subject = written("measure.crash", how)
    if how not in WAYS:
        raise InputError(subject, "there is no such power cut", nearest(how, list(WAYS)))
    able = engines.able(("power cut", "scripts"))
    if system.engine not in able:
        raise InputError(subject, f"{system.engine} is not among the engines it is for", f"these: {', '.join(able)}")
    if workload.drives or not workload.writes(choice.options):
        cause = f"workload {workload.name} has no transactions that write, so nothing could be lost"
        raise InputError(subject, cause, "choose one that commits, e.g. tpcb-like")
    emulated = system.layout.emulated
    places = {"data": system.layout.data, "log": system.layout.log}
    kept = [role for role, place in places.items() if place not in emulated and (place or role == "data")]
    if kept:
        cause = f"the power of emulated devices is cut, and {' and '.join(kept)} would not be on one"
        raise InputError(subject, cause, f"name a device, e.g. {written(f'layout.{kept[0]}', 'hdd-7200')}")
