"""Checks that there is enough disk space and memory for the data, before any data are written."""

from __future__ import annotations

from ironbench import engines, units
from ironbench.engines import ideal
from ironbench.errors import InputError, written
from ironbench.host import space
from ironbench.model.session import Session
from ironbench.workloads import Dataset

SLACK = 1.1
"""Extra space for sorting keys, for statistics, and for the file system itself."""


CHILD_BYTES = 450_000_000
"""Memory in bytes of a process that generates the rows of large data. The measured value consists of 300 MB of text,
and buffers."""


def enough_memory(dataset: Dataset, processes: int = 1, available_bytes: int | None = None) -> None:
    """Raises InputError if the processes that generate rows on this machine would need more than the available
    memory."""
    available = ideal.available_bytes() if available_bytes is None else available_bytes
    needed = processes * CHILD_BYTES
    if dataset.large and available < needed:
        raise InputError(
            f"data {dataset.key}",
            f"generating the rows takes about {units.memory(needed)}, but only {units.memory(available)} are available",
            "stop other programs, or load on a machine with more memory",
        )


def needs(session: Session, dataset: Dataset) -> dict[str, int]:
    """Returns, for each role, the maximum number of bytes that the load will write to the role's directory."""
    data = int(dataset.bytes * SLACK)
    return {"data": data, "log": engines.get(session.engine).traits.costs.log_of(data)}


def enough_space(session: Session, dataset: Dataset) -> None:
    """Checks that the directories have enough space for the load. Raises an InputError that contains the needed and the
    free space. Engines on other machines are not checked."""
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
                f"the data ({what}) need about {units.stored(size)}, but only {units.stored(free)} are free",
                f"choose a smaller {option} with {written('workload.with', f'{option}=N')}, "
                f"or a directory on a larger device with {written('layout.data')} D",
            )
