"""DuckDB's settings: those that ironbench sets and those that the user may set
(https://duckdb.org/docs/stable/configuration/overview)."""

from __future__ import annotations

import os

from ironbench import units
from ironbench.engines.base import set_twice
from ironbench.engines.duckdb.process import DuckdbProcess, OpenRequest
from ironbench.engines.server_settings import refuse_ours
from ironbench.errors import FailureError, InputError, nearest, written
from ironbench.host import control_groups, trust
from ironbench.model.system import System

OURS = {
    "access_mode": "ironbench needs read-write access",
    "temp_directory": "the layout sets the directory for temporary files",
    "enable_external_access": "ironbench loads rows from files",
}
"""For each setting that is reserved for ironbench, the reason."""
SHAPING = ("force_compression", "disabled_compression_methods", "default_block_size", "storage_compatibility_version")
"""Settings that affect the file format. Data that were loaded with different values of these settings are different
data."""
_SAME = {
    "memory_limit": "system.memory",
    "max_memory": "system.memory",
    "threads": "system.parallelism",
    "worker_threads": "system.parallelism",
}
LEAST_MEMORY_BYTES = 32 << 20
SHARE_OF_LIMIT = 0.8
"""Value of DuckDB's memory_limit as a fraction of the process's memory limit. By default, DuckDB also uses 80% of the
machine's memory."""


def shaping(settings: dict[str, str]) -> dict[str, str]:
    """Returns the settings that affect the file format."""
    return {name: settings[name] for name in SHAPING if name in settings}


def validate(system: System) -> None:
    """Raises InputError for a setting that DuckDB does not know or accept. Tries the settings in a child process."""
    for name, value in system.settings.items():
        refuse_ours(name, value, OURS.get(name))
        twice = {"system.memory": system.memory_bytes, "system.parallelism": system.parallelism}.get(
            _SAME.get(name, "")
        )
        if twice is not None:
            raise set_twice(written(_SAME[name]), name)
    if system.memory_bytes is not None and system.memory_bytes < LEAST_MEMORY_BYTES:
        least = units.stored(LEAST_MEMORY_BYTES)
        subject = written("system.memory", units.stored(system.memory_bytes))
        raise InputError(subject, f"DuckDB needs at least {least} of memory", "raise the limit")
    if system.parallelism is not None and not 1 <= system.parallelism <= 1024:
        subject = written("system.parallelism", system.parallelism)
        raise InputError(subject, "must be between 1 and 1024", "change the number")
    if system.memory_total_bytes is not None:
        control_groups.require(system.memory_total_bytes)
    if system.settings and trust.may_run(None):
        _try(system.settings)


def effective(system: System, temp_directory: str) -> dict[str, str]:
    """Returns the complete settings with which DuckDB runs."""
    settings = {
        "temp_directory": temp_directory,
        "threads": str(system.parallelism or len(system.server_cpus or os.sched_getaffinity(0))),
    }
    if system.memory_bytes is not None:
        settings["memory_limit"] = f"{system.memory_bytes}B"
    elif system.memory_total_bytes is not None:
        settings["memory_limit"] = f"{int(system.memory_total_bytes * SHARE_OF_LIMIT)}B"
    if "worker_threads" in system.settings:
        del settings["threads"]
    return settings | system.settings


def _try(settings: dict[str, str]) -> None:
    for name, value in settings.items():
        try:
            DuckdbProcess(OpenRequest(":memory:", {name: value})).stop()
        except FailureError as error:
            subject = written("system.set", f"{name}={value}")
            if "not recognized" not in error.cause:
                raise InputError(subject, error.cause.splitlines()[0], "change the value") from None
            raise InputError(subject, "DuckDB has no such setting", nearest(name, _setting_names())) from None


def _setting_names() -> list[str]:
    trial = DuckdbProcess(OpenRequest(":memory:"))
    try:
        return [row[0] or "" for row in trial.connect().query("select name from duckdb_settings()")]
    finally:
        trial.stop()
