"""What was done before a trial, so that it says what it seems to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ironbench.model.record import Warning


@dataclass(frozen=True, slots=True)
class Prepared:
    """Conditions that were brought about and verified, and what a reader must know of them."""

    conditions: Mapping[str, str] = field(default_factory=dict)
    """As in `Record.conditions`."""
    warnings: tuple[Warning, ...] = ()

    def also(self, conditions: Mapping[str, str], warnings: Sequence[Warning] = ()) -> Prepared:
        """This and what the next step did."""
        return Prepared({**self.conditions, **conditions}, (*self.warnings, *warnings))


NOTHING = Prepared()
