"""A process between clients and a server that delays all data in both directions, like a network.

The relay is a child process (`ironbench.host.child`), so its CPU time is neither the client's nor the server's. The
parent's first message contains the order for the core (`crates/ironbench-core/src/relay`). The relay answers with
`address` and `counters`. The relay ends when the process that started it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import select
from collections.abc import Collection
from typing import Any

from ironbench.errors import FailureError
from ironbench.host.child import Channel, Child

_COUNTERS_MS = 50
"""Default interval in milliseconds at which the counters are published. An observer may request more exact values."""
_MEASURED_S = 0.02
"""Maximum round-trip time in seconds for which the relay measures its own delay. With longer round trips, its own delay
is negligible."""
_MOST_THREADS = 4
_CPUS_PER_THREAD = 4


class LatencyRelay:
    """A running relay."""

    def __init__(self, round_trip_s: float, unix: bool, cpus: Collection[int] = ()) -> None:
        """Starts a relay that adds `round_trip_s`, half of it in each direction. Raises FailureError.

        `unix`: whether the relay listens on a Unix socket, as its server does, instead of a port of loopback. `cpus`:
        CPUs of the relay's threads; empty: any.
        """
        token = secrets.token_hex(16)
        order = {
            "round_trip_s": round_trip_s,
            "socket": f"ironbench-relay-{secrets.token_hex(8)}" if unix else None,
            "token": token,
            "threads": _threads(len(cpus or os.sched_getaffinity(0))),
            "cpus": sorted(cpus),
        }
        self._child = Child(__name__, "latency relay")
        try:
            answer = self._child.ask({"order": order, "owner": os.getpid()})
            if not answer:
                raise self._child.died("before it was ready", FailureError)
        except BaseException:
            self._child.stop()
            raise
        self.address = {"address": answer["address"], "token": token}
        """The `relay` section of a connection in a drive plan."""
        self.counters: str = answer["counters"]
        """Path of the file with the relay's counters as JSON (`Counters` in the core)."""

    @property
    def pid(self) -> int:
        return self._child.pid

    def death(self) -> FailureError | None:
        """Returns the error to raise if the relay has died. Returns None while it runs."""
        return None if self._child.alive() else self._child.died("during the trial", FailureError)

    def stop(self) -> None:
        self._child.stop()


def _threads(cpus: int) -> int:
    return max(1, min(_MOST_THREADS, cpus // _CPUS_PER_THREAD))


def main(parent: Channel) -> None:
    """Entry point of the relay process. Relays until the parent closes the connection or dies."""
    from ironbench import _core

    frame = parent.receive()
    if frame is None:
        return
    order: dict[str, Any] = frame[0]
    # A connection needs two descriptors.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    poller = select.poll()
    poller.register(parent.socket, select.POLLIN | select.POLLHUP)
    # The owner's process is watched in addition to the socket, because a forked copy of the owner may keep the socket
    # open after the owner has died. If this is not possible, only the socket is watched.
    with contextlib.suppress(OSError):
        poller.register(os.pidfd_open(order["owner"]), select.POLLIN)
    relay = _core.Relay(json.dumps(order["order"]).encode())
    if order["order"]["round_trip_s"] <= _MEASURED_S:
        relay.measure()
    counters = os.memfd_create("counters")
    os.pwrite(counters, relay.counters(), 0)
    parent.tell({"address": relay.address, "counters": f"/proc/{os.getpid()}/fd/{counters}"})
    while not poller.poll(_COUNTERS_MS):
        # The file is not truncated: the numbers only grow, so the new text is never shorter than the old one.
        os.pwrite(counters, relay.counters(), 0)
