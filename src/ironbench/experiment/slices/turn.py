"""Turns of systems of a block: of one of them alone, or of several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ironbench.errors import IronbenchError, UnwrittenError
from ironbench.experiment.slices.slice_plan import AT_WORK_S, EARLY_S, LATE_S, START_UP_S
from ironbench.stats.slices import Started

if TYPE_CHECKING:
    from ironbench.experiment.slices.side import Side

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Slice:
    """What one turn measured."""

    at_s: float
    """When its turn began, since the first of the block."""
    length_s: float
    transactions: int
    """Transactions that began in it and ended well, whenever they ended."""
    failed: int
    busy_s: float
    """Time that all clients spent on these and the failed ones, and thinking after them."""
    start_up_s: float
    """From the start of the turn to that of the slice."""
    drain_s: float
    """From its end until the last client had finished its transaction."""
    paid_s: float
    """Then, writing back what it had left dirty in the page cache."""
    taken: float = 0.0
    """Share of all cores' time that others took meanwhile."""
    dropped: bool = False
    """With its rotation, for others had disturbed it; it is in no metric."""
    second_half: bool = False
    """Of a duet: on the second half of the cores."""

    def rate(self, clients: int) -> float:
        """Transactions per second of so many clients."""
        return self.transactions * clients / self.busy_s if self.busy_s > 0 else 0.0


class OfOneError(Exception):
    """What failed concerns one system of the block: `cell`."""

    def __init__(self, cell: str, error: IronbenchError) -> None:
        super().__init__(cell, error)
        self.cell, self.error = cell, error


@contextmanager
def attribute_errors_to(cell: str) -> Iterator[None]:
    """Inside, one system is acted upon, and what fails is its own. OfOneError, UnwrittenError."""
    try:
        yield
    except UnwrittenError:
        raise
    except IronbenchError as error:
        raise OfOneError(cell, error) from error


def take(sides: Sequence[Side], start_up_s: float, slice_s: float) -> None:
    """A turn of these systems, all at once; at its end they are frozen. OverError, OfOneError, KeyboardInterrupt."""
    _of_each(sides, lambda side: side.wake())
    _of_each(sides, lambda side: side.begin(start_up_s, slice_s))
    _of_each(sides, lambda side: side.end(slice_s))


def tried(sides: Sequence[Side], spans: Sequence[tuple[float, float]]) -> Mapping[str, Sequence[tuple[int, float]]]:
    """What the clients of these systems, all at once, do in slices that are forgotten: transactions, and the seconds
    that each client spent on them, by cell.

    `spans`: start-up and slice of each; clients rest between them, and are not frozen. Errors as of `take`.
    """
    found: dict[str, list[tuple[int, float]]] = {side.cell: [] for side in sides}
    _of_each(sides, lambda side: side.wake())
    for start_up_s, slice_s in spans:
        for side in sides:
            with attribute_errors_to(side.cell):
                side.begin_unmeasured(start_up_s, slice_s)
        for side in sides:
            with attribute_errors_to(side.cell):
                found[side.cell].append(side.end_unmeasured(slice_s))
    _of_each(sides, lambda side: side.pay_and_rest())
    return found


def started(sides: Sequence[Side]) -> Mapping[str, Started]:
    """What their clients do right after the start-up of a turn, and once they are at work, by cell; in two turns that
    are forgotten. Errors as of `take`."""
    # Clients rest between the two: the later slice would lose their first transactions, had it no start-up.
    found = tried(sides, ((START_UP_S, EARLY_S), (AT_WORK_S, LATE_S)))
    return {cell: Started(early, late, early_s, late_s) for cell, ((early, early_s), (late, late_s)) in found.items()}


def _of_each(sides: Sequence[Side], do: Callable[[Side], object]) -> None:
    for side in sides:
        with attribute_errors_to(side.cell):
            do(side)


def order(sides: Sequence[T], random: Any, fixed: bool) -> Sequence[T]:
    """Of one rotation: every system has one turn."""
    return sides if fixed else random.sample(list(sides), len(sides))
