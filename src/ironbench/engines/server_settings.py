"""Checks of settings and limits that are common to all servers that ironbench starts."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ironbench import units
from ironbench.engines.base import set_twice
from ironbench.errors import InputError, written
from ironbench.host import control_groups
from ironbench.words import counted

HEADROOM = 20
"""Number of connections besides those of the clients. These connections are used by observers, checks, the server's
internal queries, and the user's own client."""


def refuse_ours(name: str, value: str, cause: str | None) -> None:
    """Raises InputError for a setting that is reserved for ironbench. `cause`: why it is reserved, or None if it is
    not."""
    if cause is not None:
        raise InputError(written("system.set", f"{name}={value}"), f"reserved: {cause}", "remove it")


def require_one_line(subject: str, value: str) -> None:
    if "\n" in value or "\0" in value:
        raise InputError(subject, "contains a line break", "write the value on one line")


def require_memory(memory_bytes: int, declared: Mapping[str, str], cache: str, least_bytes: int, needs: str) -> None:
    """Raises InputError if the cache size is set twice, is too small, or exceeds this machine's memory.

    `cache`: name of the engine's own setting for the cache size. `needs`: cause in the error for a size that is too
    small.
    """
    subject = written("system.memory", units.memory(memory_bytes))
    if cache in declared:
        raise set_twice(subject, cache)
    if memory_bytes < least_bytes:
        raise InputError(subject, needs, "raise it")
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if memory_bytes > total:
        raise InputError(subject, f"this machine has only {units.memory(total)} of memory", "lower it")


def require_total(total: int, cache_bytes: int | None, others_bytes: int, takers: str) -> None:
    """Raises InputError if a limit on total memory cannot be enforced on this machine or is too low for the server.

    `cache_bytes`: None if the user set the cache size in the server's own units. The size is then not checked here. If
    the cache does not fit, the server fails.
    """
    control_groups.require(total)
    if cache_bytes is not None and total < cache_bytes + others_bytes:
        raise InputError(
            written("limits.memory_total", units.memory(total)),
            f"{takers} and the server itself need about {units.memory(cache_bytes + others_bytes)}",
            f"raise the limit, or reduce the engine's cache with {written('system.memory')}",
        )


def cache_bytes(given: int | None, declared: Mapping[str, str], cache: str, usual: int) -> int | None:
    """Returns the size of a server's cache. Returns None if only the setting `cache` contains the size, in the server's
    own units."""
    if given is None and cache in declared:
        return None
    return usual if given is None else given


def require_clients(clients: int) -> None:
    if clients < 1:
        raise InputError(f"{clients} clients", "at least one client is required", "use more clients")


def require_connections(clients: int, declared: Mapping[str, str]) -> None:
    """Raises InputError if `max_connections` is set and too low for the clients and ironbench's own connections."""
    connections = declared.get("max_connections", "")
    if connections.isdigit() and int(connections) < clients + HEADROOM:
        raise InputError(
            written("system.set", f"max_connections={connections}"),
            f"{counted(clients, 'client')} and ironbench's own connections need at least {clients + HEADROOM}",
            "remove it: the default follows the number of clients",
        )
