"""How ironbench starts a PostgreSQL server (`engines.server`): settings, readiness, signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ironbench.engines.identity import Identity
from ironbench.engines.postgres import settings as server_settings
from ironbench.engines.postgres.cluster import Cluster, environment
from ironbench.engines.postgres.installation import PostgresInstallation, complaint
from ironbench.engines.server import ServerLaunch, ServerProgram
from ironbench.model.system import System


def _complaint(text: str) -> str:
    # Every backend writes this message after its server was killed. It does not explain why the server died.
    return complaint("\n".join(line for line in text.splitlines() if "unexpected postmaster exit" not in line))


MAKE = ServerProgram(
    "postgres",
    "PostgreSQL",
    f".s.PGSQL.{server_settings.PORT}",
    _complaint,
    # SIGINT requests a fast shutdown, SIGQUIT an immediate shutdown (PostgreSQL 18 documentation, 18.5).
    stop=signal.SIGINT,
    kill=signal.SIGQUIT,
    shared="PostgreSQL.",
    # PG_DYNSHMEM_CONTROL_MAGIC (dsm_control_header in src/backend/storage/ipc/dsm.c)
    shared_mark=0x9A503D32,
)


def launch(
    cluster: Cluster,
    installation: PostgresInstallation,
    identity: Identity,
    settings_for: Callable[[str], Mapping[str, str]],
    lock: int,
    system: System,
) -> ServerLaunch:
    """Describes how to start a server with a prepared cluster. `settings_for`: function that returns the settings for a
    socket directory."""
    return ServerLaunch(
        make=MAKE,
        place=cluster.place,
        messages=cluster.messages,
        command=(installation.program("postgres"), "-D", str(cluster.files)),
        environment=environment(),
        identity=identity,
        configure=lambda sockets: _write_settings(cluster, identity, settings_for(sockets)),
        ready=partial(_says_ready, cluster.files / "postmaster.pid"),
        lock=lock,
        cpus=system.server_cpus,
        limit_bytes=system.memory_total_bytes,
        cached=(cluster.files, Path(os.path.realpath(cluster.files / "pg_wal"))),
    )


def _write_settings(cluster: Cluster, identity: Identity, settings: Mapping[str, str]) -> None:
    written = (cluster.files / "postgresql.conf", cluster.files / "postgresql.auto.conf")
    written[0].write_text(server_settings.as_file(settings))
    written[1].write_text("")  # removes settings that ALTER SYSTEM made in an earlier run
    identity.give(*written)


def _says_ready(pid_file: Path, pid: int | None) -> bool:
    """Returns whether the server accepts connections. Line 8 of postmaster.pid is `ready` then. pg_ctl checks this in
    the same way."""
    try:
        lines = pid_file.read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"
