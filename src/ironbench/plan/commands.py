"""Determines which of the user's commands are in effect for a trial of a lab, for how long, and how often a person is
needed.

A trial has a stack of scopes: commands of the lab, commands of the block, changes by hand, and commands of the trial
itself. After a trial, scopes are undone from the top of the stack. Scopes at the bottom stay in effect if the next
trial has the same scopes. A change by hand is requested once for all trials of a block that need it. Such trials form a
*whole plot* of a split-plot design. Plots are in random order, and so are the trials of each plot. If a block ends with
the plot with which the next block starts, the change is undone and made again. Blocks that share a change would not be
independent, and the confidence intervals of their ratios would be too narrow (Webb, Lucas and Borkowski, "Factorial
experiments when factor levels are not necessarily reset", J. Quality Technology 36, 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.errors import InputError, written
from ironbench.fields.lab import PairSection, range_of
from ironbench.fields.sections import CommandsSection
from ironbench.model.commands import ASK, Commands, manual_step_text, plot
from ironbench.model.lab import Lab
from ironbench.model.purpose import Purpose
from ironbench.model.system import Setup, Trial

LONGEST = 1000
"""Maximum number of characters of a command. Commands are part of each record, and records must be small."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A pair of commands, and the period in which its change is in effect."""

    lasts: tuple[object, ...]
    """Key of the period in which the commands are in effect. Trials in the same period have equal keys."""
    commands: Commands

    @property
    def own(self) -> bool:
        """Whether the scope ends with its trial."""
        return self.lasts[0] == "trial"


def of_lab(lab: Lab) -> list[Scope]:
    """Returns the scope of the commands that stay in effect as long as the lab runs."""
    return [Scope(("lab",), lab.commands)]


def scopes(lab: Lab, setup: Setup, trial: Trial) -> list[Scope]:
    """Returns the scopes of a trial from the bottom of the stack. The first scope is set up first and undone last."""
    block = (trial.block,) if trial.purpose == Purpose.LAB else ("before",)
    asks = [one for one in setup.system.commands if one.by_hand]
    own = [one for one in setup.system.commands if not one.by_hand]
    return [
        *of_lab(lab),
        Scope(("block", *block), lab.block_commands),
        *(Scope(("plot", *block, one), one) for one in asks),
        *(Scope(("trial", trial.purpose, trial.block, trial.cell.name, trial.attempt, one), one) for one in own),
    ]


def plots(setups: Sequence[Setup]) -> dict[str, str]:
    """Returns, for each configuration, the key of its changes by hand. Configurations with equal keys are measured one
    after another."""
    return {setup.cell.name: plot(setup.system.commands) for setup in setups}


def asks(lab: Lab) -> int:
    """Returns how often a person is prompted in the blocks of a lab if every trial succeeds at the first attempt."""
    stack: list[Scope] = []
    count = 0
    for trial in lab.trials:
        wanted = scopes(lab, lab.setup(trial.cell.name), trial)
        kept = shared(stack, wanted)
        count += sum(bool(manual_step_text(one.commands.cleanup)) for one in stack[kept:])
        count += sum(bool(manual_step_text(one.commands.prepare)) for one in wanted[kept:])
        stack = wanted
    return count + sum(bool(manual_step_text(one.commands.cleanup)) for one in stack)


def shared(stack: Sequence[Scope], wanted: Sequence[Scope]) -> int:
    """Counts the scopes that stay in effect for the next trial. These scopes are at the bottom of both stacks."""
    same = (have == want for have, want in zip(stack, wanted, strict=False))
    return next((place for place, one in enumerate(same) if not one), min(len(stack), len(wanted)))


def read(section: CommandsSection, of: str) -> Commands:
    """Reads and validates the commands of a trial. `of`: as in `Commands.of`. Raises InputError."""
    return _read(section, of, "commands", section.command_limit)


def of_pair(section: PairSection, limit: str | int | float, of: str) -> Commands:
    """Reads the commands of the lab or of its blocks, with the section's time limit. Raises InputError."""
    return _read(section, of, f"commands.{of}", limit)


def _read(pair: CommandsSection | PairSection, of: str, where: str, limit: str | int | float) -> Commands:
    commands = Commands(pair.prepare.strip(), pair.cleanup.strip(), of=of)
    for name, text in (("prepare", commands.prepare), ("cleanup", commands.cleanup)):
        _validate(written(f"{where}.{name}"), text)
    if limit == "":
        return commands
    limit_s = range_of("commands.command_limit").read(written("commands.command_limit"), limit)
    return Commands(commands.prepare, commands.cleanup, limit_s, of)


def _validate(subject: str, text: str) -> None:
    if "\0" in text:
        raise InputError(subject, "contains a NUL character", "remove it")
    if len(text) > LONGEST:
        raise InputError(
            subject, f"has more than {LONGEST} characters", "put the commands into a script and run the script"
        )
    if text.startswith(ASK) and not manual_step_text(text):
        raise InputError(subject, "has no text after `ask:`", f'write for example "{ASK} change the driver"')
