"""The user's commands, which make and undo changes that ironbench cannot make itself, for example of a CPU governor, a
kernel parameter or a driver."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from ironbench.model.constraints import Amount, Positive, one_of

ASK = "ask:"
"""Prefix of a change that a person must make by hand. The text after the prefix is shown to the person."""
CONTROL = "control"
"""Value of `CommandRun.of` for changes on the server's machine that ironbench itself makes with the user's consent."""
LIMIT_S = 120.0
"""Default time limit of a command."""


@dataclass(frozen=True, slots=True)
class Commands:
    """A command that prepares a measurement, and a command that undoes the change. Either may be empty."""

    prepare: str = ""
    cleanup: str = ""
    limit_s: Positive = LIMIT_S
    """Time limit of each command. When it expires, the command is killed with all its child processes."""
    of: str = ""
    """Why the commands run. Either the factor value that needs them, such as `governor=performance`, or one of `lab`,
    `block`, `trial` and `run`."""

    def __bool__(self) -> bool:
        return bool(self.prepare or self.cleanup)

    @property
    def both(self) -> tuple[str, ...]:
        """The commands that are not empty."""
        return tuple(text for text in (self.prepare, self.cleanup) if text)

    @property
    def by_hand(self) -> bool:
        """Whether a person must make one of the changes by hand."""
        return any(manual_step_text(text) for text in self.both)


NO_COMMANDS = Commands()


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command that has ended."""

    when: Annotated[str, one_of("prepare", "cleanup")]
    """`prepare` or `cleanup`."""
    of: str
    """Why the command ran, as in `Commands.of`."""
    command: str
    """The beginning of the command, on one line."""
    status: int | None
    """Exit status; a negative status is the number of the signal that killed the command. The value is None if the
    command timed out, or if a person did not make the requested change."""
    took_s: Amount
    cause: str = ""
    """Why the command failed. Empty if it succeeded."""


def manual_step_text(command: str) -> str:
    """Returns the text that a person is shown if the command is a change by hand. Returns an empty text for a command
    that a shell runs."""
    return command.strip()[len(ASK) :].strip() if command.strip().startswith(ASK) else ""


def plot(commands: Sequence[Commands]) -> str:
    """Returns a key that identifies the changes by hand among these commands. Returns an empty key if there are none.
    Two configurations with equal keys need the same changes by hand, so no change is made between their trials.
    """
    return "\n".join(f"{one.prepare}\0{one.cleanup}" for one in commands if one.by_hand)


def variables(levels: Mapping[str, str]) -> dict[str, str]:
    """Returns the factor values as environment variables, such as `IRONBENCH_LEVEL_READ_AHEAD=4MB`."""
    return {f"IRONBENCH_LEVEL_{re.sub(r'[^A-Z0-9]+', '_', name.upper())}": level for name, level in levels.items()}
