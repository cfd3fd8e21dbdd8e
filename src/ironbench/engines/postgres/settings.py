"""The server's settings: those that ironbench chooses, and those that the user may."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path

from ironbench.engines import server_settings
from ironbench.engines.base import set_twice
from ironbench.engines.postgres.installation import PostgresInstallation
from ironbench.engines.postgres.resources import CACHE
from ironbench.errors import InputError, similar, written
from ironbench.host import scratch
from ironbench.host.programs import environment_without, output, run_program
from ironbench.model.system import System

_BACKEND_BYTES = 2 << 20
"""Least private memory of a server process that serves one client."""
DEFAULT_CACHE_BYTES = 128 << 20
"""shared_buffers where nobody sets them."""
BASE_BYTES = 32 << 20
"""About what a server takes without clients and shared buffers."""
MOST_PARALLEL = 1024
"""What max_parallel_workers_per_gather takes (PostgreSQL 18 documentation, 19.4.6)."""
OURS = {
    "config_file": "ironbench writes the file",
    "hba_file": "the server listens on a private socket only",
    "ident_file": "the server listens on a private socket only",
    "data_directory": "the layout says where the data are",
    "external_pid_file": "ironbench watches the server itself",
    "listen_addresses": "the server listens on a private socket only",
    "port": "the server listens on a private socket only",
    "unix_socket_directories": "the server listens on a private socket only",
    "unix_socket_group": "the server listens on a private socket only",
    "unix_socket_permissions": "the server listens on a private socket only",
    "logging_collector": "the server's messages go to one file that ironbench reads",
    "log_destination": "the server's messages go to one file that ironbench reads",
    "temp_tablespaces": "the layout says where spills go",
}
"""Settings that are ironbench's own business, and why."""


CHECKSUMS = "data_checksums"
"""Shapes the files instead of configuring the server: `cluster.set_checksums` enables or disables it. initdb enables it
from PostgreSQL 18 on, not before, so that two versions differ in more than the version unless it is set."""
_NOT_IN_THE_FILE = ("bin", CHECKSUMS)


def own(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that the server's file holds: without `bin`, which tells where its programs are."""
    return {name: value for name, value in settings.items() if name not in _NOT_IN_THE_FILE}


def checksums(settings: Mapping[str, str]) -> bool | None:
    """Whether pages are to have checksums; None: as the cluster is. InputError."""
    if (value := settings.get(CHECKSUMS)) is None:
        return None
    if value.lower() not in ("on", "off"):
        raise InputError(written("system.set", f"{CHECKSUMS}={value}"), "it is neither on nor off", "write on or off")
    return value.lower() == "on"


def named(settings: Mapping[str, str], installation: PostgresInstallation) -> dict[str, str]:
    """By the names of the server's own list: it takes them in any case (PostgreSQL 18 documentation, 19.1.1)."""
    if all(name == name.lower() for name in settings):
        return dict(settings)
    names = {name.lower(): name for name in (*known(installation), *OURS)}
    return {names.get(name.lower(), name): value for name, value in settings.items()}


SHAPING = (CHECKSUMS, "default_toast_compression", "default_table_access_method", "default_statistics_target")
"""Settings that shape what a load writes, the planner's statistics among it, so that data loaded under others are other
data."""


LOADING = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "8GB",
    "autovacuum": "off",
    "maintenance_work_mem": "256MB",
}
"""For a load whose files are synced as a whole after the server has stopped: a crash before that makes them void."""


MOST_WORKERS = 32
"""What io_workers takes (PostgreSQL 18 documentation, 19.4.6)."""
USUAL_WORKERS = 3


def for_devices(system: System, installation: PostgresInstallation) -> dict[str, str]:
    """How many reads at a time suit the emulated device of the data, where nobody set that: the server cannot know.

    With io_method=worker no more reads are under way than there are I/O workers, 3 by default.
    """
    device = system.layout.device_of("data")
    if device is None or not device.depth:
        return {}
    suited = {
        "effective_io_concurrency": str(device.depth),
        "io_workers": str(min(MOST_WORKERS, max(USUAL_WORKERS, device.depth))),
    }
    if not installation.may_run:
        return suited
    return {name: value for name, value in suited.items() if name in known(installation)}


def shaping(settings: Mapping[str, str]) -> dict[str, str]:
    """Those of the settings that shape what a load writes."""
    return {name: settings[name] for name in SHAPING if name in settings}


def validate(system: System, clients: int, installation: PostgresInstallation) -> None:
    """InputError for a setting the server does not know or take, and for more than this machine can carry."""
    declared = own(system.settings)
    checksums(system.settings)
    for name, value in declared.items():
        server_settings.refuse_ours(name, value, OURS.get(name))
    if system.memory_bytes is not None:
        needs = "PostgreSQL needs at least 128 kB of shared buffers"
        server_settings.require_memory(system.memory_bytes, declared, CACHE, 128 << 10, needs)
    _validate_clients(clients, declared)
    if system.parallelism is not None:
        _validate_parallelism(system.parallelism, declared)
    if system.memory_total_bytes is not None:
        cache = server_settings.cache_bytes(system.memory_bytes, declared, CACHE, DEFAULT_CACHE_BYTES)
        others, takers = clients * _BACKEND_BYTES + BASE_BYTES, f"shared buffers, {clients} server processes"
        server_settings.require_total(system.memory_total_bytes, cache, others, takers)
    if installation.may_run:
        for name, value in declared.items():
            _ask_the_server(name, value, installation)


def effective(system: System, clients: int, socket_directory: str, *, temp: bool) -> dict[str, str]:
    """Every setting that differs from the server's own default, in the order in which they win."""
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": socket_directory,
        "unix_socket_permissions": "0700",
        "port": str(PORT),
        "cluster_name": "ironbench",
        "max_connections": str(max(100, clients + server_settings.HEADROOM)),
        # Needed to observe I/O times; PostgreSQL has them off by default.
        "track_io_timing": "on",
        "track_wal_io_timing": "on",
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_timezone": "UTC",
        "lc_messages": "C",
    }
    if temp:
        settings["temp_tablespaces"] = TEMP_TABLESPACE
    if system.memory_bytes is not None:
        settings[CACHE] = f"{system.memory_bytes // 1024}kB"
    if system.parallelism is not None:
        settings |= _parallel(system.parallelism)
    return settings | own(system.settings)


def _parallel(most: int) -> dict[str, str]:
    """`most` processes work on one statement: its own and the workers (PostgreSQL 18 documentation, 19.4.6)."""
    workers = most - 1
    return {
        "max_parallel_workers_per_gather": str(workers),
        "max_parallel_maintenance_workers": str(workers),
        "max_parallel_workers": str(max(8, workers)),
        "max_worker_processes": str(max(8, workers) + 8),
    }


PORT = 5432
"""Only a name here: the socket's directory is private to one server, so that ports never clash."""
TEMP_TABLESPACE = "ironbench_temp"


def as_file(settings: Mapping[str, str]) -> str:
    """postgresql.conf. https://www.postgresql.org/docs/18/config-setting.html"""
    lines = ["# Written by ironbench at every start of the server; changes are lost."]
    for name, value in settings.items():
        quoted = value.replace("\\", "\\\\").replace("'", "''")
        lines.append(f"{name} = '{quoted}'")
    return "\n".join(lines) + "\n"


@functools.cache
def known(installation: PostgresInstallation) -> dict[str, str]:
    """Names of the documented settings → the server's default, by the server's own list; empty if it may not run."""
    if not installation.may_run:
        return {}
    rows = (
        line.split("\t")
        for line in output([installation.program("postgres"), "--describe-config"], "PostgreSQL").splitlines()
    )
    return {row[0]: row[4] for row in rows if len(row) > 4}


def _ask_the_server(name: str, value: str, installation: PostgresInstallation) -> None:
    """`postgres -C` reads the settings as a starting server does, prints one, and starts nothing."""
    subject = written("system.set", f"{name}={value}")
    server_settings.require_one_line(subject, value)
    with scratch.folder() as folder:
        empty = folder / "empty.conf"
        empty.touch()
        # With -C as the first word, root may ask too (main.c).
        command = [installation.program("postgres"), "-C", name, "-D", str(folder)]
        command += ["-c", f"config_file={empty}", "-c", f"{name}={value}"]
        done = run_program(command, environment=environment_without("PG"))  # in English
    if done.returncode == 0:
        return
    words = {kind: _message(done.stderr, kind) for kind in ("FATAL", "ERROR", "DETAIL", "HINT")}
    cause = words["FATAL"] or words["ERROR"] or f"PostgreSQL does not take it: {done.stderr.strip()}"
    if "unrecognized configuration parameter" in cause:
        raise InputError(
            subject,
            f"PostgreSQL {installation.version} has no setting of that name",
            meant(name, installation) or "`postgres --describe-config` lists all of them",
        )
    raise InputError(subject, " ".join(filter(None, (cause, words["DETAIL"]))), words["HINT"])


def meant(name: str, installation: PostgresInstallation) -> str:
    """A question for a name that is none of a setting's, but like one; else ""."""
    names = sorted(known(installation))
    return "" if name.lower() in map(str.lower, names) else similar(name.lower(), names)


def _message(text: str, kind: str) -> str:
    marker = f"{kind}:  "
    return next((line.split(marker, 1)[1].strip() for line in text.splitlines() if marker in line), "")


def _validate_parallelism(most: int, declared: Mapping[str, str]) -> None:
    subject = written("system.parallelism", most)
    if not 1 <= most <= MOST_PARALLEL:
        raise InputError(subject, f"it is not between 1 and {MOST_PARALLEL}", "choose a number of that range")
    for name in _parallel(most):
        if name in declared:
            raise set_twice(subject, name)


def _validate_clients(clients: int, declared: Mapping[str, str]) -> None:
    server_settings.require_clients(clients)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = min(_most_processes() - 1000, total // _BACKEND_BYTES)
    if clients > most:
        raise InputError(
            f"{clients} clients",
            f"PostgreSQL serves each with a process of its own, and this machine carries at most {most} of them",
            f"use fewer clients, or a connection pooler in front of your own server ({written('system.dsn')})",
        )
    server_settings.require_connections(clients, declared)


def _most_processes() -> int:
    limits = []
    for name in ("pid_max", "threads-max"):
        try:
            limits.append(int(Path("/proc/sys/kernel", name).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits, default=32768)
