"""What disturbed the trials of a lab, and whether it met its cells alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ironbench.model.record import Record

WORDS = {
    "not-quiet": "the machine was not quiet before",
    "cpu-taken": "other programs or virtual machines took CPU time during",
    "steal": "other virtual machines took CPU time during",
    "clock-step": "the clock was set during",
}
"""Warning of a trial (`steal`: in older records) → what happened, to be followed by which trials."""
UNEQUAL = 1 / 3
"""Difference between the shares of two cells' trials from which a difference between the cells may be its doing."""
_LEAST = 2


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One kind of it, over all cells."""

    code: str
    trials: int
    of: int
    most: tuple[str, int, int] | None = None
    """Cell, disturbed trials and all of them: the one met most, where it met cells unequally;"""
    least: tuple[str, int, int] | None = None
    """and the one met least."""

    @property
    def sentence(self) -> str:
        everyone = self.trials == self.of
        which = f"{self.trials} of {self.of} trials"
        if everyone:
            which = f"all {self.of} trials" if self.of > 1 else "the only trial"
        words = WORDS[self.code]
        said = f"{words[0].upper()}{words[1:]} {which}"
        if self.most is None or self.least is None:
            return f"{said}."
        sides = [f"{name} ({count} of {of})" for name, count, of in (self.most, self.least)]
        return f"{said}, and more often at {sides[0]} than at {sides[1]}: part of a difference may be its doing."


def disturbances(cells: Iterable[tuple[str, Sequence[Record]]]) -> tuple[Disturbance, ...]:
    """Of each kind that met a trial. `cells`: names with the trials that may be compared."""
    known = [(name, records) for name, records in cells if records]
    found = []
    for code in WORDS:
        counts = [(name, sum(_has(record, code) for record in records), len(records)) for name, records in known]
        trials, of = sum(count for _, count, _ in counts), sum(all for _, _, all in counts)
        if trials:
            most, least = (end(counts, key=lambda one: one[1] / one[2]) for end in (max, min))
            apart = most[1] / most[2] - least[1] / least[2]
            unequal = apart >= UNEQUAL and most[1] >= _LEAST
            found.append(Disturbance(code, trials, of, *((most, least) if unequal else (None, None))))
    return tuple(found)


def _has(record: Record, code: str) -> bool:
    return any(warning.code == code for warning in record.warnings)
