"""PostgreSQL's settings: those that ironbench sets and those that the user may set."""

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
"""Minimum private memory of a backend in bytes."""
DEFAULT_CACHE_BYTES = 128 << 20
"""Default value of shared_buffers in bytes."""
BASE_BYTES = 32 << 20
"""Approximate memory of a server in bytes, not counting clients and shared buffers."""
MOST_PARALLEL = 1024
"""Maximum of max_parallel_workers_per_gather (PostgreSQL 18 documentation, 19.4.6)."""
OURS = {
    "config_file": "ironbench writes postgresql.conf itself",
    "hba_file": "the server listens on a private socket only",
    "ident_file": "the server listens on a private socket only",
    "data_directory": "the layout sets the data directory",
    "external_pid_file": "ironbench monitors the server itself",
    "listen_addresses": "the server listens on a private socket only",
    "port": "the server listens on a private socket only",
    "unix_socket_directories": "the server listens on a private socket only",
    "unix_socket_group": "the server listens on a private socket only",
    "unix_socket_permissions": "the server listens on a private socket only",
    "logging_collector": "ironbench reads the server's messages from its own file",
    "log_destination": "ironbench reads the server's messages from its own file",
    "temp_tablespaces": "the layout sets the directory for temporary files",
}
"""For each setting that is reserved for ironbench, the reason."""


CHECKSUMS = "data_checksums"
"""Name of the setting for page checksums. The setting affects the files and not the running server, and
`cluster.set_checksums` applies it. initdb enables checksums by default since PostgreSQL 18, so a comparison of versions
should set it."""
_NOT_IN_THE_FILE = ("bin", CHECKSUMS)


def own(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings for the configuration file. `bin` is omitted, because it selects the server's programs. The
    setting for checksums is omitted, because it affects the files."""
    return {name: value for name, value in settings.items() if name not in _NOT_IN_THE_FILE}


def checksums(settings: Mapping[str, str]) -> bool | None:
    """Returns whether pages should have checksums. Returns None if the files should stay as they are. Raises
    InputError."""
    if (value := settings.get(CHECKSUMS)) is None:
        return None
    if value.lower() not in ("on", "off"):
        raise InputError(
            written("system.set", f"{CHECKSUMS}={value}"), "is neither `on` nor `off`", "write `on` or `off`"
        )
    return value.lower() == "on"


def named(settings: Mapping[str, str], installation: PostgresInstallation) -> dict[str, str]:
    """Returns the settings in the spelling of the server's own list. Names are case-insensitive (PostgreSQL 18
    documentation, 19.1.1)."""
    if all(name == name.lower() for name in settings):
        return dict(settings)
    names = {name.lower(): name for name in (*setting_defaults(installation), *OURS)}
    return {names.get(name.lower(), name): value for name, value in settings.items()}


SHAPING = (CHECKSUMS, "default_toast_compression", "default_table_access_method", "default_statistics_target")
"""Settings that affect what loading writes, including planner statistics. Data that were loaded with different values
of these settings are different data."""


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
"""Settings for loading. These settings disable durability: the files are synced after the server has stopped. If the
server crashes before, the files are discarded."""


MOST_WORKERS = 32
"""Maximum of io_workers (PostgreSQL 18 documentation, 19.4.6)."""
USUAL_WORKERS = 3


def for_devices(system: System, installation: PostgresInstallation) -> dict[str, str]:
    """Returns the number of concurrent reads for the emulated device of the data. The server cannot detect the device's
    properties. With io_method=worker, the number of reads in flight is limited to the number of I/O workers, which is 3
    by default."""
    device = system.layout.device_of("data")
    if device is None or not device.depth:
        return {}
    suited = {
        "effective_io_concurrency": str(device.depth),
        "io_workers": str(min(MOST_WORKERS, max(USUAL_WORKERS, device.depth))),
    }
    if not installation.may_run:
        return suited
    return {name: value for name, value in suited.items() if name in setting_defaults(installation)}


def shaping(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings that affect what loading writes."""
    return {name: settings[name] for name in SHAPING if name in settings}


def validate(system: System, clients: int, installation: PostgresInstallation) -> None:
    """Raises InputError for a setting that the server does not know or accept, and for values beyond this machine's
    limits."""
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
    """Returns the settings that differ from the server's defaults. The user's settings take precedence."""
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": socket_directory,
        "unix_socket_permissions": "0700",
        "port": str(PORT),
        "cluster_name": "ironbench",
        "max_connections": str(max(100, clients + server_settings.HEADROOM)),
        # These settings are off by default and are needed to observe I/O times.
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
    """Returns settings for at most `most` processes per statement. The backend is one of these processes, and its
    workers are the others (PostgreSQL 18 documentation, 19.4.6)."""
    workers = most - 1
    return {
        "max_parallel_workers_per_gather": str(workers),
        "max_parallel_maintenance_workers": str(workers),
        "max_parallel_workers": str(max(8, workers)),
        "max_worker_processes": str(max(8, workers) + 8),
    }


PORT = 5432
"""Port number, which is only part of the name of the socket. The socket's directory is private to one server, so ports
never clash."""
TEMP_TABLESPACE = "ironbench_temp"


def as_file(settings: Mapping[str, str]) -> str:
    """Returns the contents of postgresql.conf (https://www.postgresql.org/docs/18/config-setting.html)."""
    lines = ["# Written by ironbench at every start of the server; changes are lost."]
    for name, value in settings.items():
        quoted = value.replace("\\", "\\\\").replace("'", "''")
        lines.append(f"{name} = '{quoted}'")
    return "\n".join(lines) + "\n"


@functools.cache
def setting_defaults(installation: PostgresInstallation) -> dict[str, str]:
    """Returns the default of each documented setting, from the server's own list. Returns an empty mapping if the
    server's programs may not run."""
    if not installation.may_run:
        return {}
    rows = (
        line.split("\t")
        for line in output([installation.program("postgres"), "--describe-config"], "PostgreSQL").splitlines()
    )
    return {row[0]: row[4] for row in rows if len(row) > 4}


def _ask_the_server(name: str, value: str, installation: PostgresInstallation) -> None:
    """Lets the server check a setting. `postgres -C` parses the settings as at startup and prints one, but does not
    start the server."""
    subject = written("system.set", f"{name}={value}")
    server_settings.require_one_line(subject, value)
    with scratch.folder() as folder:
        empty = folder / "empty.conf"
        empty.touch()
        # Root may run the program if -C is the first argument (main.c).
        command = [installation.program("postgres"), "-C", name, "-D", str(folder)]
        command += ["-c", f"config_file={empty}", "-c", f"{name}={value}"]
        done = run_program(command, environment=environment_without("PG"))  # messages in English
    if done.returncode == 0:
        return
    words = {kind: _message(done.stderr, kind) for kind in ("FATAL", "ERROR", "DETAIL", "HINT")}
    cause = words["FATAL"] or words["ERROR"] or f"PostgreSQL rejects this setting: {done.stderr.strip()}"
    if "unrecognized configuration parameter" in cause:
        raise InputError(
            subject,
            f"PostgreSQL {installation.version} has no such setting",
            similar_setting_hint(name, installation) or "`postgres --describe-config` lists all settings",
        )
    raise InputError(subject, " ".join(filter(None, (cause, words["DETAIL"]))), words["HINT"])


def similar_setting_hint(name: str, installation: PostgresInstallation) -> str:
    """Returns a hint for a name that is not a setting but resembles one. Returns "" for a known setting."""
    names = sorted(setting_defaults(installation))
    return "" if name.lower() in map(str.lower, names) else similar(name.lower(), names)


def _message(text: str, kind: str) -> str:
    marker = f"{kind}:  "
    return next((line.split(marker, 1)[1].strip() for line in text.splitlines() if marker in line), "")


def _validate_parallelism(most: int, declared: Mapping[str, str]) -> None:
    subject = written("system.parallelism", most)
    if not 1 <= most <= MOST_PARALLEL:
        raise InputError(subject, f"must be between 1 and {MOST_PARALLEL}", "change the number")
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
            f"PostgreSQL uses one process per client, and this machine supports at most {most}",
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
