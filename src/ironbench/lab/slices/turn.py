"""What a turn of a system measured, and whose fault a failure is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ironbench.errors import IronbenchError, UnwrittenError

if TYPE_CHECKING:
    pass

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
