"""A lab file as a lab that this machine can run, or the reason why not. Nothing is started, nothing is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ironbench import engines, workloads
from ironbench.cli import request
from ironbench.engines.ideal import require as require_memory
from ironbench.errors import InputError
from ironbench.model.lab import Factor, Lab, Method, Stage
from ironbench.model.secrets import Secrets
from ironbench.model.system import Cell, Setup, System
from ironbench.plan import blocks, design, ideal, labfile, resolve, sweep, values
from ironbench.plan.design import DeclaredCell
from ironbench.plan.labfile import Declared


def lab(path: Path, budget_s: float | None = None) -> tuple[Lab, dict[str, Secrets]]:
    """The lab that a file declares, and what its cells need to log in, by name of cell. InputError."""
    return planned(read(path), budget_s)


def read(path: Path) -> Declared:
    """InputError: not there, no text, not a lab file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(str(path), "no such file", "name a lab file; docs/guide/lab-files.md shows one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read: {error}", "name a lab file, which is TOML in UTF-8") from None
    return labfile.read(text, str(path))


def planned(declared: Declared, budget_s: float | None = None) -> tuple[Lab, dict[str, Secrets]]:
    """Impossible cells are named and skipped; InputError when the baseline is one, or fewer than two remain."""
    cells = design.cells(declared)
    house = _House(declared)
    setups = tuple(house.setup(cell) for cell in cells)
    _enough_remain(declared, setups)
    possible = [setup.cell for setup in setups if not setup.skipped]
    names = {cell.name for cell in possible}
    method = _method(declared)
    return Lab(
        name=declared.name,
        series=sweep.new_series(),
        question=declared.question,
        factors=_factors(declared, cells),
        design=declared.design,
        setups=setups,
        baseline=cells[0].name,
        comparisons=tuple(pair for pair in design.comparisons(declared, cells) if names.issuperset(pair)),
        method=method,
        claims=(),
        trials=blocks.trials(possible, method.stages, method.seed, declared.measure.order),
        source=declared.source,
    ), house.secrets


def _method(declared: Declared) -> Method:
    measure = declared.measure
    if isinstance(measure.stages, list):
        stages = tuple(Stage(number, count) for number, count in enumerate(measure.stages, 1))
    else:
        stages = blocks.stages(declared.repeats, measure.stages)
    return Method(
        stages=stages,
        seed=declared.seed,
        margin=measure.margin,
        metric=measure.metric,
        restore=measure.restore,
        quiet_s=values.seconds(f"{declared.file}, measure.quiet", str(measure.quiet)),
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


@dataclass(slots=True)
class _House:
    """What cells share, so that equal systems are asked once."""

    declared: Declared
    secrets: dict[str, Secrets] = field(default_factory=dict)
    _asked: dict[str, tuple[System, Secrets] | InputError] = field(default_factory=dict)

    def setup(self, cell: DeclaredCell) -> Setup:
        """With the reason in `skipped` when this machine or engine cannot do it; InputError when the file is wrong."""
        sections, folder = cell.sections, Path(self.declared.file).absolute().parent
        where = f"{self.declared.file}, cell {cell.name}"
        try:
            if not sections.workload.name:
                raise InputError("workload.name", "is missing", "`ironbench list workloads` shows all")
            workload = workloads.get(sections.workload.name)
            engine = engines.get(sections.system.engine)
            available = os.sched_getaffinity(0)
            system = resolve.system(sections, self._label(cell), folder, available)
            system, load = ideal.arranged(system, resolve.load(sections.load, self.declared.seed), available)
            choice = resolve.choice(sections, workload.validated(resolve.options(sections)), folder)
            request.only_scripts_take_files(choice.scripts, workload)
            if engine.name in workload.engines:
                workload.compile(engine.name, choice, request.PROTOCOLS.get(engine.name, load.protocol))
        except InputError as error:
            raise resolve.in_words_of_the_file(error, where) from None
        setup = Setup(Cell(cell.name, load, dict(cell.levels)), system, choice)
        if engine.name not in workload.engines:
            return replace(setup, skipped=f"workload {workload.name} does not run on {engine.name}")
        try:
            found, self.secrets[cell.name] = self._validated(system, load.clients)
            estimate_bytes = workload.estimate_bytes(engine.name, choice.options)
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

    def _label(self, cell: DeclaredCell) -> str:
        """The declared name of the system, and the levels in which it differs from the others."""
        sections = {"system", "layout", "limits"}
        changed = [
            f"{factor.name}={cell.levels[factor.name]}"
            for factor in self.declared.factors
            if any(path[0] in sections for level in factor.levels for path in level.changes)
        ]
        own = cell.levels.get("cell", "") if not self.declared.factors else ""
        parts = [cell.sections.system.label, own, *changed]
        return " ".join(part for part in parts if part) or cell.sections.system.engine
