"""Little's law: numbers that contradict each other are wrong, whatever each of them says."""

from __future__ import annotations

from dataclasses import dataclass

from ironbench.model.record import Record
from ironbench.words import counted

TOLERANCE = 0.1
"""Share by which clients and throughput × time may differ: response means and throughput end at slightly different
moments, and clients wait a little between the answer and the next message."""


@dataclass(frozen=True, slots=True)
class Little:
    """Closed loop: clients = throughput × (response time + think time) (Little 1961, Operations Research 9(3)).

    The law is of long times. A window has two edges: a transaction under way at its end is in no response time, and one
    that began before it is there with all of its time. A client that waits for a lock for long, as SQLite's writers do,
    makes that a large part of the window, so both are put right.
    """

    clients: int
    expected: float
    """Throughput × (mean response time + think time), put right at the edges of the window."""

    @property
    def holds(self) -> bool:
        return abs(self.expected / self.clients - 1) <= TOLERANCE

    @property
    def sentence(self) -> str:
        found = f"throughput × response time gives {self.expected:.1f}"
        if self.holds:
            return f"Little's law holds: {found} of {counted(self.clients, 'client')}."
        return (
            f"Little's law does not hold: {found} clients at work, with {counted(self.clients, 'client')} driven. "
            "Time went where neither number sees it, for example in the client itself."
        )


def little(record: Record) -> Little | None:
    """None for an open loop, whose clients are not all busy, for work that ends by itself, whose window holds more than
    transactions (refresh functions, processes that begin and end), and where a number is missing."""
    load = record.cell.load
    throughput = record.metrics.get("throughput")
    response = record.metrics.get("response_time_mean_s")
    failed = record.metrics.get("failed", 0.0)
    endless = load.duration_s is not None or load.transactions is not None
    if load.rate is not None or not endless or load.clients < 1 or not throughput or not response or failed:
        return None
    edges_s = record.metrics.get("unfinished_s", 0.0) - record.metrics.get("carried_s", 0.0)
    at_edges = edges_s / record.elapsed_s if record.elapsed_s > 0 else 0.0
    return Little(load.clients, throughput * (response + load.think_time_s) + at_edges)
