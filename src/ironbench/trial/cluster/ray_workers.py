"""Starts the workers of a control process, either on a private Ray cluster on this machine or on a running cluster."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Iterable
from typing import Any

from ironbench.errors import FailureError, InputError
from ironbench.model.workers import MOST_CONNECTIONS
from ironbench.trial.cluster.worker import Worker
from ironbench.words import counted

LOST_S = 5.0
"""Seconds without an answer after which a worker counts as lost."""
_AT_ONCE = MOST_CONNECTIONS + 8
"""Maximum number of calls that a worker executes at the same time. These are pieces that it copies, and requests for
its status."""
_PATIENCE_S = 5.0
_JOINED = "start it with `ray start` on each machine, including this one: see docs/how/many-machines.md"
CLUSTER_S = 20.0
"""Maximum seconds until a running cluster, or the actors on it, respond."""
_STORE_BYTES = 80 << 20
"""Minimum size of Ray's object store in bytes. Results are far smaller."""
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # only the kernel handles out of memory
    "RAY_enable_metrics_collection": "0",
    "RAY_DEDUP_LOGS": "0",
}


class RayWorkers:
    """Creates the workers, which drive trials or load data, and keeps them for later trials."""

    def __init__(self) -> None:
        self.workers: list[Any] = []
        self.hosts: list[dict[str, Any]] = []
        """Host, process and CPUs of each worker."""
        self._waiting: list[Any] = []
        """Workers that are not needed at present. These workers are kept because starting a worker takes seconds of CPU
        time."""
        self._group: Any = None
        self._address = ""

    def begin(self, asked: dict[str, Any]) -> None:
        """Starts a private cluster, or joins the requested cluster. Raises InputError."""
        os.environ |= _SETTINGS | {"PYTHONPATH": os.pathsep.join(asked["packages"])}
        self._address = asked["address"]
        # Without this, gRPC would use the proxies for connections within the cluster.
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            os.environ.pop(name, None)
            os.environ.pop(name.upper(), None)
        if self._address:
            _require_answer(self._address, asked["written"])
            self._join(asked)
            return
        # With this setting, Ray uses only the loopback device. There is no other setting for this
        # (ray/_private/services.py, get_node_ip_address).
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # The token excludes other users of this machine. Without a token in the environment, Ray writes one to ~/.ray.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        import ray

        ray.init(
            num_cpus=0,
            object_store_memory=_STORE_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=asked["folder"],
            _node_ip_address="127.0.0.1",
        )

    def _join(self, asked: dict[str, Any]) -> None:
        """Joins a running cluster. Raises InputError if there is no cluster, or if it has a different version."""
        import ray

        travels = {"py_modules": asked["travels"], "env_vars": _SETTINGS}
        try:
            ray.init(
                address=self._address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                namespace=f"ironbench-{os.getpid()}",
                runtime_env=travels,
            )
        except ConnectionError as error:
            cause = " ".join(str(error).split()) or "no answer"
            raise InputError(asked["written"], f"is not a running Ray cluster: {cause}", _JOINED) from None
        except ray.exceptions.AuthenticationError:
            hint = "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/.ray/auth_token to the cluster's token"
            raise InputError(asked["written"], "this Ray cluster requires a token", hint) from None
        except RuntimeError as error:
            cause = " ".join(str(error).split())[-300:]
            same = "install the same versions of Ray and Python on every machine"
            raise InputError(asked["written"], cause, same if "ersion" in cause else _JOINED) from None

    def machines(self) -> int:
        """Returns the number of machines of the cluster that have a CPU for a worker."""
        import ray

        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        return sum(1 for node in nodes if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)

    def start(self, count: int, fewer: bool) -> list[dict[str, Any]]:
        """Starts or reuses `count` workers, each on a separate machine of a cluster. Returns their descriptions. Raises
        FailureError.

        `fewer`: whether to use fewer machines if there are not enough.
        """
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        if fewer:
            count = max(1, min(count, self.machines()))
        existing = [*self.workers, *self._waiting]
        gone = [number for number, worker in enumerate(existing) if self._answers(worker) is None]
        if self._address and (gone or count > len(existing)):
            self._stop(existing)
            existing, gone = [], []
            count = self._place(count, fewer)
        self._stop(existing[number] for number in gone)
        kept = [worker for number, worker in enumerate(existing) if number not in gone]
        self.workers, self._waiting = kept[:count], kept[count:]
        kind = ray.remote(Worker)
        while len(self.workers) < count:
            number = len(self.workers)
            where: dict[str, Any] = {"num_cpus": 0}
            if self._group is not None:
                where = {"num_cpus": 1, "scheduling_strategy": PlacementGroupSchedulingStrategy(self._group, number)}
            self.workers.append(kind.options(max_concurrency=_AT_ONCE, max_restarts=0, **where).remote())
        try:
            self.hosts = list(ray.get([worker.hello.remote() for worker in self.workers], timeout=4 * CLUSTER_S))
            seen = ray.get([worker.machine.remote() for worker in self.workers], timeout=CLUSTER_S)
        except ray.exceptions.RayError as error:
            raise FailureError("workers", f"could not be started: {first_line(error)}") from None
        return [{**one, "machine": machine} for one, machine in zip(self.hosts, seen, strict=True)]

    def stop_all(self) -> None:
        self._stop([*self.workers, *self._waiting])
        self.workers, self._waiting = [], []

    def name(self, number: int) -> str:
        return f"worker {number + 1} on {self.hosts[number]['host']} (process {self.hosts[number]['pid']})"

    def _place(self, count: int, fewer: bool) -> int:
        """Reserves a CPU on each of `count` machines or, with `fewer`, on as many machines as possible. Returns the
        number of machines. Raises FailureError."""
        from ray.util.placement_group import placement_group, remove_placement_group

        for asked in range(count, 0, -1):
            if self._group is not None:
                remove_placement_group(self._group)
            self._group = placement_group([{"CPU": 1}] * asked, strategy="STRICT_SPREAD")
            # Ray still lists a machine for some time after the machine was lost, so the reservation may time out.
            if self._group.wait(CLUSTER_S):
                return asked
            if not fewer:
                break
        cause = f"fewer than {counted(count, 'machine')} have a free CPU"
        raise FailureError(
            "Ray cluster", cause, "stop other programs on the cluster, add machines, or use fewer workers"
        )

    def _answers(self, worker: Any) -> int | None:
        import ray

        try:
            return int(ray.get(worker.now.remote(), timeout=LOST_S))
        except ray.exceptions.RayError:
            return None

    def _stop(self, workers: Iterable[Any]) -> None:
        import ray

        for worker in workers:
            ray.kill(worker)


def _require_answer(address: str, subject: str) -> None:
    """Raises InputError if there is no server at the address; Ray itself would retry for half a minute."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise InputError(
            subject, "is not the address of a Ray cluster", "write HOST:PORT, as shown by `ray start --head`, or `auto`"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S).close()
    except (OSError, ValueError) as error:
        cause = f"no answer: {getattr(error, 'strerror', None) or error}"
        raise InputError(subject, cause, _JOINED) from None


def first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
