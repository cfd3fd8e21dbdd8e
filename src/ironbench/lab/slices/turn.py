"""The measurement of one turn, and the attribution of errors to systems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ironbench.errors import IronbenchError, UnwrittenError


@dataclass(frozen=True, slots=True)
class Slice:
    """Measurement of one turn."""

    at_s: float
    """Start of the turn in seconds since the first turn of the block."""
    length_s: float
    transactions: int
    """Number of successful transactions that started in the slice, even if they ended after the slice."""
    failed: int
    busy_s: float
    """Time of the successful and the failed transactions, in seconds, summed over all clients. The think time after
    each transaction is included."""
    start_up_s: float
    """Seconds from the start of the turn to the start of the slice."""
    drain_s: float
    """Seconds from the end of the slice until the last client finished its transaction."""
    paid_s: float
    """Seconds for writing back dirty data from the page cache, after all clients have finished."""
    taken: float = 0.0
    """Fraction of all cores' CPU time that other programs used during the turn."""
    dropped: bool = False
    """Whether the rotation of this slice was dropped because of a disturbance. Metrics do not include dropped
    slices."""

    def rate(self, clients: int) -> float:
        """Returns the transactions per second for this number of clients."""
        return self.transactions * clients / self.busy_s if self.busy_s > 0 else 0.0


class OneSystemError(Exception):
    """A failure of a single system of the block. `cell` is the system's configuration."""

    def __init__(self, cell: str, error: IronbenchError) -> None:
        super().__init__(cell, error)
        self.cell, self.error = cell, error


@contextmanager
def attribute_errors_to(cell: str) -> Iterator[None]:
    """Attributes errors inside the context to one system, by raising OneSystemError. UnwrittenError is raised
    unchanged."""
    try:
        yield
    except UnwrittenError:
        raise
    except IronbenchError as error:
        raise OneSystemError(cell, error) from error
