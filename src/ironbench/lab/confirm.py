"""Confirms the results of a screen. New blocks compare the baseline with each factor that matters, and with all of
these factors together. These blocks have their own interim analyses and verdicts, as in any lab. The number of blocks
is chosen so that they detect the smallest effect that the screen found. The calculation uses the variation between the
screen's pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ironbench.errors import in_a_file
from ironbench.fields.sections import USUAL_DURATION_S
from ironbench.lab import size
from ironbench.lab.build import Builder
from ironbench.model.lab import CHANGES, SCREEN, Confirmation, Lab, Stage, named
from ironbench.model.record import Record
from ironbench.model.redact import redacted_toml
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup
from ironbench.plan import blocks, budget, design, labfile
from ironbench.plan import screen as planned
from ironbench.plan.budget import PairVariation
from ironbench.plan.labfile import DeclaredLab
from ironbench.printer import Printer
from ironbench.records.labs import LabDirectory
from ironbench.study.screen import Screen, screen
from ironbench.words import counted


def start_confirmation(directory: LabDirectory, records: Sequence[Record], printer: Printer) -> bool:
    """Starts the confirmation of a finished screen. Returns whether it did so.

    From then on, the lab contains the configurations and blocks of the confirmation.
    """
    lab = directory.lab()
    if lab.design != SCREEN or directory.confirmation() is not None:
        return False
    found = screen(lab, records)
    if found is None or not found.complete or not found.matter:
        return False
    confirmation = confirming(lab, found, printer)
    directory.keep_confirmation(confirmation)
    names = ", ".join(one.name for one in found.matter)
    count = sum(stage.blocks for stage in confirmation.stages)
    printer.say(f"the screen is complete; new blocks compare these configurations with the baseline: {names}")
    printer.say(f"at most {counted(count, 'block')}, {counted(len(confirmation.trials), 'trial')}")
    return True


def confirming(lab: Lab, found: Screen, printer: Printer) -> Confirmation:
    """Plans the confirmation. Raises InputError if the lab file can no longer be read."""
    with in_a_file():
        setups = list(_built(lab, found, printer))
    base = lab.setup(lab.baseline)
    cells = [base.cell, *(setup.cell for setup in setups)]
    trial_s = lab.estimate_s / max(1, len(lab.trials))
    stages = _stages(lab, found, len(setups), len(cells) * trial_s)
    trials = blocks.trials(cells, stages, lab.method.seed, "random", first=1 + max(trial.block for trial in lab.trials))
    pairs = tuple((setup.cell.name, lab.baseline) for setup in setups)
    return Confirmation(tuple(setups), pairs, stages, trials, len(trials) * trial_s)


def secrets_of(lab: Lab, secrets: Mapping[str, Secrets]) -> dict[str, Secrets]:
    """Returns the credentials of a confirmed lab. New configurations use the same servers as existing configurations,
    and therefore the same credentials."""
    by_dsn = {setup.system.dsn: secrets[setup.cell.name] for setup in lab.setups if setup.cell.name in secrets}
    new = {setup.cell.name: by_dsn[setup.system.dsn] for setup in lab.setups if setup.system.dsn in by_dsn}
    return {**new, **secrets}


def _stages(lab: Lab, found: Screen, comparisons: int, block_s: float) -> tuple[Stage, ...]:
    """Chooses enough blocks to detect the smallest effect that the screen found. The effect is first reduced by one
    standard error, because effects that were selected for their size are overestimated. The budget may allow fewer
    blocks.
    """
    base = lab.setup(lab.baseline)
    trial_s = base.cell.load.duration_s or USUAL_DURATION_S
    spread = PairVariation(
        found.spread or 0.0, trial_s, found.freedom + 1, "measured by the pairs of trials in the screen"
    )
    seen = min(abs(math.log(one.ratio)) - one.error for one in found.matter)
    detect, target = size.detector(comparisons), math.expm1(max(seen, 1e-6))
    count = budget.needed(trial_s, target, None, spread, detect) if spread.share else planned.FIRST_ANALYSIS
    most = planned.MOST_CONFIRMING
    if lab.method.budget_s is not None:
        most = min(most, int((lab.method.budget_s - lab.estimate_s) / block_s))
    chosen = max(planned.FIRST_ANALYSIS, min(count or most, most))
    stages, first = budget.staged(chosen, None), len(lab.method.stages) + 1
    return tuple(Stage(first + place, stage.blocks, added=place == 0) for place, stage in enumerate(stages))


def _built(lab: Lab, found: Screen, printer: Printer) -> Iterator[Setup]:
    """Yields setups of configurations that the screen did not measure. Impossible configurations are reported and left
    out."""
    declared = _declared_again(lab)
    builder = Builder(declared.seed, declared.measure.crash, declared.file)
    base = lab.setup(lab.baseline)
    own_length = size.keep_lengths(lab.setups)
    for name, levels in _cells(declared, found):
        cell = design.at(declared, levels, name)
        setup = builder.setup(name, design.labelled(declared, cell), levels, cell.added)
        if setup.skipped:
            printer.say(f"skipped: {name}: {setup.skipped}")
            continue
        if not own_length and base.cell.load.duration_s is not None:
            setup = size.of_length(setup, base.cell.load.duration_s)
        # The seed is the baseline's. Seeds are usually derived from the lab file, but passwords were removed from its
        # stored text, so that another seed would result.
        yield replace(setup, cell=replace(setup.cell, load=replace(setup.cell.load, seed=base.cell.load.seed)))


def _cells(declared: DeclaredLab, found: Screen) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the configurations to compare with the baseline. For each factor that matters and each of its values
    except the baseline's, one configuration differs from the baseline only in this value. If several factors have a
    better value than the baseline's, another configuration combines the better values."""
    base = {one.name: one.names[0] for one in declared.factors}
    for one in found.matter:
        for level in (*one.between, one.last):
            yield named({one.name: level}), base | {one.name: level}
    changed = {one.name: one.last for one in found.matter if one.differs_from_baseline}
    if len(changed) > 1:
        yield named(changed, CHANGES), base | changed


def _declared_again(lab: Lab) -> DeclaredLab:
    """Returns the declared lab. If the lab file is unchanged, it is read again, because the stored text contains no
    passwords."""
    path, text = Path(lab.file), lab.source
    if path.is_file() and redacted_toml(written := path.read_text(encoding="utf-8")) == lab.source:
        text = written
    return labfile.read(text, lab.file, SCREEN)
