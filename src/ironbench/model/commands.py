"""Commands of a user's own that change what ironbench cannot, and undo it: a governor, a kernel parameter, a driver."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from ironbench.model.constraints import Amount, Positive, one_of

ASK = "ask:"
"""How a command begins that a person carries out: the rest is what that person is asked for."""
CONTROL = "control"
"""What a command is of that ironbench runs by itself on the server's machine, with the user's consent."""
LIMIT_S = 120.0
"""Time limit of a command where nobody says."""


@dataclass(frozen=True, slots=True)
class Commands:
    """What is done before something is measured, and what undoes it; either may be empty."""

    prepare: str = ""
    cleanup: str = ""
    limit_s: Positive = LIMIT_S
    """Each is killed with all its processes when it takes longer."""
    of: str = ""
    """`governor=performance`; `lab`, `block`, `trial` or `run` where no level asks for it."""

    def __bool__(self) -> bool:
        return bool(self.prepare or self.cleanup)

    @property
    def both(self) -> tuple[str, ...]:
        """Those that are not empty."""
        return tuple(text for text in (self.prepare, self.cleanup) if text)

    @property
    def by_hand(self) -> bool:
        """Whether a person is asked for one of them."""
        return any(asked(text) for text in self.both)


NO_COMMANDS = Commands()


@dataclass(frozen=True, slots=True)
class CommandRun:
    """One command that ended."""

    when: Annotated[str, one_of("prepare", "cleanup")]
    """`prepare` or `cleanup`."""
    of: str
    """As in `Commands`."""
    command: str
    """Its beginning, on one line."""
    status: int | None
    """Exit status; negative: the signal that ended it; None: its limit, or nobody was there."""
    took_s: Amount
    cause: str = ""
    """Why it failed; empty when it did not."""


def asked(command: str) -> str:
    """What a person is asked for; empty where a shell runs it."""
    return command.strip()[len(ASK) :].strip() if command.strip().startswith(ASK) else ""


def plot(commands: Sequence[Commands]) -> str:
    """What is equal for cells that a person need not change anything between; empty: nobody is asked."""
    return "\n".join(f"{one.prepare}\0{one.cleanup}" for one in commands if one.by_hand)


def variables(levels: Mapping[str, str]) -> dict[str, str]:
    """Levels as variables of an environment: `IRONBENCH_LEVEL_READ_AHEAD=4MB`."""
    return {f"IRONBENCH_LEVEL_{re.sub(r'[^A-Z0-9]+', '_', name.upper())}": level for name, level in levels.items()}
