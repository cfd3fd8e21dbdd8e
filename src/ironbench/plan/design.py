"""Determines which combinations of values a lab measures, and which of them it compares."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ironbench import units
from ironbench.errors import InputError, nearest
from ironbench.fields import check
from ironbench.fields.check import Path
from ironbench.fields.sections import CommandsSection, Sections
from ironbench.model.lab import SCREEN, named
from ironbench.plan import paths, screen
from ironbench.plan.labfile import DeclaredLab
from ironbench.plan.vary import VariedFactor
from ironbench.plan.vary import value_name as level_name
from ironbench.words import grouped

MOST_CELLS = 1000
MOST_TRIALS = 100_000
"""Maximum number of trials, because a results directory is designed for this many records."""


@dataclass(frozen=True, slots=True)
class DeclaredCell:
    """A combination of values, with the sections of the lab file after these values are applied."""

    name: str
    levels: Mapping[str, str]
    """For each factor, the name of its value."""
    sections: Sections
    added: tuple[tuple[str, CommandsSection], ...] = ()
    """Commands of factor values, which run in addition to the commands in `sections`. An entry also contains the factor
    value, such as `governor=performance`."""


def labelled(declared: DeclaredLab, cell: DeclaredCell) -> Sections:
    """Returns the sections of a configuration. Their name of the system also contains the factor values by which the
    system differs from the systems of other configurations."""
    sections = {"system", "layout", "limits", "commands", "data"}
    changed = [
        f"{factor.name}={cell.levels[factor.name]}"
        for factor in declared.factors
        if any(path[0] in sections for path in factor.paths)
    ]
    if declared.design == SCREEN:  # every factor varies, so a list of the values would be too long
        changed = [cell.name]
    own = cell.levels.get("cell", "") if not declared.factors else ""
    system, parts = cell.sections.system, (cell.sections.system.label, own, *changed)
    label = " ".join(part for part in parts if part)
    return msgspec.structs.replace(cell.sections, system=msgspec.structs.replace(system, label=label))


def number_of_cells(declared: DeclaredLab) -> int:
    """Returns the number of configurations without creating them."""
    if declared.design == "explicit":
        return len(declared.explicit)
    if declared.design == SCREEN:
        return 2 * screen.pairs(len(declared.factors))
    sizes = [len(factor.levels) for factor in declared.factors]
    return math.prod(sizes) if declared.design == "full" else 1 + sum(size - 1 for size in sizes)


def cells(declared: DeclaredLab) -> tuple[DeclaredCell, ...]:
    """Returns the configurations of the design, with the baseline first. Raises InputError if there are fewer than two,
    if there are too many, or if two are equal."""
    if declared.design == SCREEN:
        screen.validate(declared)
    _not_too_many(declared)
    if declared.design == SCREEN:
        return tuple(at(declared, levels, name) for name, levels in screen.runs(declared))
    cells = tuple(_explicit(declared) if declared.design == "explicit" else combined(declared))
    if len(cells) < 2:
        raise InputError(f"{declared.file}, cell", "a single configuration cannot be compared", "add a second [[cell]]")
    _all_different(cells, declared.file)
    return cells


def comparisons(declared: DeclaredLab, found: Sequence[DeclaredCell]) -> tuple[tuple[str, str], ...]:
    """Returns pairs of names: the compared configuration, and its baseline. Returns no pairs for a screen, because its
    confirmation chooses the comparisons. In one-at-a-time and explicit designs, every configuration is compared with
    the baseline. In a full design, every configuration is compared with each configuration that has the first value of
    one factor and is otherwise equal. Such a comparison shows the effect of a value with everything else equal.
    Configurations that differ only in their rate are compared only if there are no other comparisons. The effect of a
    different target rate is known without a measurement, and each additional comparison makes the other comparisons
    less precise (Holm).
    """
    if declared.design == SCREEN:
        return ()
    cells = {cell.name: cell for cell in found}
    every = _pairs(declared, found)
    # The throughputs of two workloads have different units.
    pairs = tuple(p for p in every if len({cells[name].sections.workload.name for name in p}) == 1) or every
    telling = tuple(pair for pair in pairs if not _differ_in_rate_alone(*(cells[name] for name in pair)))
    return telling or pairs


def _differ_in_rate_alone(one: DeclaredCell, other: DeclaredCell) -> bool:
    cell, baseline = one.sections, other.sections
    load = msgspec.structs.replace(cell.load, rate=baseline.load.rate)
    alike = msgspec.structs.replace(cell, load=load) == baseline and one.added == other.added
    return cell.load.rate != baseline.load.rate and alike


def _pairs(declared: DeclaredLab, found: Sequence[DeclaredCell]) -> tuple[tuple[str, str], ...]:
    if declared.design != "full":
        return tuple((cell.name, found[0].name) for cell in found[1:])
    by_levels = {frozenset(cell.levels.items()): cell.name for cell in found}
    return tuple(
        (cell.name, by_levels[frozenset({**cell.levels, factor.name: factor.names[0]}.items())])
        for factor in declared.factors
        for cell in found
        if cell.levels[factor.name] != factor.names[0]
    )


def _not_too_many(declared: DeclaredLab) -> None:
    count = number_of_cells(declared)
    trials = count * declared.repeats
    if count <= MOST_CELLS and trials <= MOST_TRIALS:
        return
    what = f"{grouped(count)} configurations in {grouped(declared.repeats)} blocks are {grouped(trials)} trials"
    spent = f"at 30 s per trial, they would take {units.span(trials * 30.0)}"
    most = f"the maximum is {grouped(MOST_CELLS)} configurations and {grouped(MOST_TRIALS)} trials"
    hint = 'vary fewer values, or use design = "one-at-a-time"' if count > MOST_CELLS else "vary fewer values"
    raise InputError(declared.file, f"{what}; {spent}", f"{hint}; {most}")


def combined(declared: DeclaredLab) -> Iterator[DeclaredCell]:
    """Yields the configurations of every design except the explicit one."""
    factors = declared.factors
    for levels in _one_at_a_time(factors) if declared.design == "one-at-a-time" else _full(factors):
        yield at(declared, levels, named(levels))


def _one_at_a_time(factors: Sequence[VariedFactor]) -> Iterator[dict[str, str]]:
    baseline = {factor.name: factor.names[0] for factor in factors}
    yield baseline
    for factor in factors:
        for level in factor.names[1:]:
            yield baseline | {factor.name: level}


def _full(factors: Sequence[VariedFactor]) -> Iterator[dict[str, str]]:
    for levels in itertools.product(*(factor.names for factor in factors)):
        yield dict(zip((factor.name for factor in factors), levels, strict=True))


def at(declared: DeclaredLab, levels: Mapping[str, str], name: str, own: Mapping[Path, Any] = {}) -> DeclaredCell:
    """Returns the configuration with these factor values. `own`: fields that are set only for this configuration."""
    chosen = {f"{factor.name}={levels[factor.name]}": factor.levels[levels[factor.name]] for factor in declared.factors}
    chosen[name] = {**chosen.get(name, {}), **own}
    changes: dict[Path, Any] = {}
    added = []
    where = f"{declared.file}, configuration {name}"
    for level, of_level in chosen.items():
        commands = {path[1]: value for path, value in of_level.items() if path[0] == "commands"}
        changes |= {path: value for path, value in of_level.items() if path[0] != "commands"}
        if commands:
            inherited = {name: one for name, one in declared.base["commands"].items() if name == "command_limit"}
            added.append((level, check.converted(inherited | commands, CommandsSection, where)))
    document = paths.applied(declared.base, changes)
    return DeclaredCell(name, dict(levels), check.converted(document, Sections, where), tuple(added))


def _explicit(declared: DeclaredLab) -> Iterator[DeclaredCell]:
    """Yields the configurations of an explicit design. A configuration selects values of factors. A factor that it does
    not mention has its first value. A configuration with a name may also set fields."""
    known = {factor.name: factor for factor in declared.factors}
    for number, table in enumerate(declared.explicit):
        where = f"{declared.file}, cell[{number}]"
        name = table.get("name", "")
        if not isinstance(name, str):
            raise InputError(f"{where}.name", "must be text in quotes", 'write name = "…"')
        levels = {factor.name: factor.names[0] for factor in declared.factors}
        own = {}
        for key, value in table.items():
            if key in known:
                levels[key] = _level(known[key], value, f"{where}.{key}")
            elif key != "name":
                own[key] = value
        if own and not name:
            unknown = next(iter(own))
            hint = f"{nearest(unknown, list(known))}; or, " if known else ""
            raise InputError(
                f"{where}.{unknown}", "is not a factor", f'{hint}if this [[cell]] sets fields, add name = "…"'
            )
        if not name and not known:
            raise InputError(where, "has no name", 'add name = "…" and the fields that this configuration changes')
        changes = paths.overrides(own, declared.base, where)
        shown = levels if known else {"cell": name}
        yield _cell_of(declared, levels, shown, name or named(levels), changes)


def _cell_of(
    declared: DeclaredLab,
    levels: Mapping[str, str],
    shown: Mapping[str, str],
    name: str,
    changes: Mapping[Path, Any],
) -> DeclaredCell:
    cell = at(declared, levels, name, changes)
    return replace(cell, levels=dict(shown))


def _level(factor: VariedFactor, value: Any, where: str) -> str:
    name = level_name(value)
    if name not in factor.names:
        raise InputError(where, f"{name} is not a value of {factor.name}", nearest(name, list(factor.names)))
    return name


def _all_different(setups: Sequence[DeclaredCell], file: str) -> None:
    names: set[str] = set()
    documents: dict[Any, str] = {}
    for cell in setups:
        if cell.name in names:
            raise InputError(
                f"{file}, cell", f"two configurations have the name {cell.name}", "use a different name for each"
            )
        names.add(cell.name)
        key = msgspec.json.encode((cell.sections, [one for _, one in cell.added]), order="deterministic")
        if key in documents:
            raise InputError(
                f"{file}, cell",
                f"{documents[key]} and {cell.name} are the same configuration",
                "change or remove one of the two; to measure a configuration more often, use `measure.repeats`",
            )
        documents[key] = cell.name
