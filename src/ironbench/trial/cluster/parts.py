"""Splits a drive plan into plans for several workers, which together do the same work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any

import msgspec

from ironbench.errors import InputError, written
from ironbench.model.system import Load
from ironbench.words import counted


def require(load: Load) -> None:
    """Raises InputError if a worker would have nothing to do, or if the load cannot be shared."""
    if load.curve is not None:
        field = f"load.{load.curve.of}"
        hint = f"remove {written('load.workers')}, or set {written(field)} to one number"
        raise InputError(written(field), "follows a curve, but workers need a constant load", hint)
    if load.workers > load.clients:
        cause = f"{counted(load.workers, 'worker')} cannot share {counted(load.clients, 'client')}"
        raise InputError(written("load.workers"), cause, f"use at least as many {written('load.clients')}")


Server = tuple[tuple[str, str | int | None], ...]
"""Address of a server as `host`, `port` and `socket` with their values. Empty if there is no server."""


def server(target: Mapping[str, Any]) -> Server:
    """Returns the server of a drive plan's engine."""
    known = target.get("connection")
    return () if known is None else tuple((name, known.get(name)) for name in ("host", "port", "socket"))


def require_common(known: Mapping[str, Any], away: Sequence[str]) -> None:
    """Raises InputError if the server's address is valid only on this machine. On the other machines, the same address
    would mean another server or no server. `away`: names of the other machines."""
    path, host = known.get("socket"), str(known.get("host") or "/")
    if not away or not (path or host.startswith("/") or _is_loopback(host)):
        return
    hint = f"set {written('system.dsn')} to an address that every machine can reach"
    if _is_loopback(host) and not path:
        cause = f"{host} means the local machine on every machine, but {away[0]} is a different machine"
        raise InputError(written("system.dsn"), cause, hint)
    cause = f"the server listens on a socket file of this machine, but {away[0]} is a different machine"
    raise InputError(written("load.cluster"), cause, hint)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def clients(count: int, workers: int) -> list[int]:
    """Returns the number of clients of each worker, distributed evenly."""
    return [count * (number + 1) // workers - count * number // workers for number in range(workers)]


def cut(plan: bytes, workers: int) -> list[bytes]:
    """Returns the plans of the workers. Each plan has its fraction of the clients and of the rate, and no observers."""
    whole: dict[str, Any] = msgspec.json.decode(plan)
    shares = clients(whole["clients"], workers)
    parts, first = [], 0
    for number, share in enumerate(shares):
        schedule = dict(whole["schedule"])
        if "rate" in schedule:
            schedule["rate"] *= share / whole["clients"]
        part = {
            **whole,
            "clients": share,
            # All parts must have the same number of threads, because the number of a thread selects its part of the
            # schedule.
            "threads": min(whole["threads"], *shares),
            "schedule": schedule,
            "observers": [],
            "part": {"number": number, "of": workers, "first_client": first, "all_clients": whole["clients"]},
        }
        parts.append(msgspec.json.encode(part))
        first += share
    return parts
