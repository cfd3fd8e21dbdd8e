"""`restore`: a base backup becomes a running server beside the one that a bystander uses."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from ironbench import engines
from ironbench.errors import InputError
from ironbench.model.session import Session
from ironbench.model.system import Choice, Layout, Load, System
from ironbench.model.work import Work
from ironbench.process import place
from ironbench.workloads import base_backup
from ironbench.workloads.backup import TO, refuse_tablespaces
from ironbench.workloads.maintenance import Done, Maintenance, Ready, table
from ironbench.workloads.operations import Program, Steps

CONNECTIONS = 5
RESTORED = "ironbench-restored"


class Server:
    """Starts the restored one: it replays the log of the backup before it answers."""

    def __init__(self, system: System, folder: Path, stack: ExitStack) -> None:
        self._system = system
        self._folder = folder
        self._stack = stack
        self.session: Session | None = None

    def run(self) -> None:
        engine = engines.get(self._system.engine)
        plain = replace(self._system, layout=Layout(str(self._folder)), memory_total_bytes=None)
        system, secrets = engine.validated(plain, CONNECTIONS)
        self.session = self._stack.enter_context(engines.running(system, secrets, CONNECTIONS))
        self.session.query("select 1")

    def cancel(self) -> None:
        """It ends with the trial."""


class Restore(Maintenance):
    name = "restore"
    doc = "A base backup becomes a second server that answers; a bystander of the first is watched meanwhile."
    unit = "restore"
    options = (*Maintenance.options, TO)

    def writes(self, options: Mapping[str, str]) -> bool:
        return False

    def estimate_bytes(self, engine: str, options: Mapping[str, str]) -> int:
        """The data, the backup, and what is made of it."""
        return 3 * super().estimate_bytes(engine, options)

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        refuse_tablespaces(system, self.name)
        base_backup.program(system, "pg_basebackup")
        if system.dsn is not None:
            raise InputError("--dsn", "ironbench restores only servers that it starts itself", "leave it out")
        if choice.options["to"]:
            place.check(choice.options["to"], "backup")

    @contextmanager
    def prepared(self, work: Work) -> Iterator[Ready]:
        to, need = work.choice.options["to"], base_backup.server_bytes(work)
        with (
            base_backup.folder(work, to, 2 * need) as backup,
            base_backup.folder(work, to, need, RESTORED) as restored,
            ExitStack() as stack,
        ):
            work.show(0.0, "a backup to restore")
            base_backup.command(work, "-F", "t", "-X", "stream", "-c", "fast", "-D", str(backup)).run()
            files = place.claim(str(restored), "data") / "cluster"
            (files / "pg_wal").mkdir(parents=True, mode=0o700)
            files.chmod(0o700)
            server = Server(work.system, restored, stack)
            steps = Steps(
                lambda: _extracted(backup / "base.tar", files),
                lambda: _extracted(backup / "pg_wal.tar", files / "pg_wal"),
                lambda: server,
            )
            yield Ready(steps, lambda: _done(work, backup, server, steps))


def _done(work: Work, backup: Path, server: Server, steps: Steps) -> Done:
    assert server.session is not None
    files, log, start = steps.took_s
    return Done(
        base_backup.size(backup),
        {"restore_copy_s": files + log, "restore_recovery_s": start},
        table(work.choice.options).checks(server.session),
    )


def _extracted(archive: Path, folder: Path) -> Program:
    # Not as their owner in the archive: that is a number of the server's own namespace where we are root.
    words = ["tar", "--extract", "--no-same-owner", "--file", str(archive), "--directory", str(folder)]
    return Program(words, dict(os.environ))


WORKLOAD = Restore()
