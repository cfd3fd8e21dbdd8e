"""Is there room for the data? Asked before anything is written."""

from __future__ import annotations

from ironbench import engines, units
from ironbench.engines import ideal
from ironbench.errors import InputError, written
from ironbench.host import space
from ironbench.model.session import Session
from ironbench.workloads import Dataset

SLACK = 1.1
"""Sorting for keys, statistics, and the file system's own needs."""


CHILD_BYTES = 450_000_000
"""What the process that makes the rows of large data takes, measured: 300 MB of text, and what is on its way."""


def enough_memory(dataset: Dataset, processes: int = 1, available_bytes: int | None = None) -> None:
    """InputError when the processes that make the rows here would not fit into the memory that is available."""
    available = ideal.available_bytes() if available_bytes is None else available_bytes
    needed = processes * CHILD_BYTES
    if dataset.large and available < needed:
        raise InputError(
            f"data {dataset.key}",
            f"making the rows takes about {units.memory(needed)}, and {units.memory(available)} are available",
            "end other programs, or load on a machine with more memory",
        )


def needs(session: Session, dataset: Dataset) -> dict[str, int]:
    """Role → bytes that the load will write there at most."""
    data = int(dataset.bytes * SLACK)
    return {"data": data, "log": engines.get(session.engine).traits.costs.log_of(data)}


def enough_space(session: Session, dataset: Dataset) -> None:
    """InputError names what is needed and what is free. Engines elsewhere cannot be asked and are let pass."""
    directories = session.directories()
    needed: dict[str, int] = {}
    for role, size in needs(session, dataset).items():
        directory = directories.get(role) or directories.get("data")
        if directory:
            needed[directory] = needed.get(directory, 0) + size
    for directory, size in needed.items():
        free = space.free_bytes(directory)
        if free < size:
            what = " ".join(f"{name}={value}" for name, value in dataset.facts.items())
            option = next(iter(dataset.facts), "scale")
            raise InputError(
                directory,
                f"the data ({what}) need about {units.stored(size)} and {units.stored(free)} are free",
                f"choose a smaller {option} by {written('workload.with', f'{option}=N')}, "
                f"or a directory on a larger device by {written('layout.data')} D",
            )
