"""The `restore` workload: starts a second server from a backup, while a probe client measures the effect on the first
server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from ironbench import engines
from ironbench.engines.maintenance import BackupRequest
from ironbench.errors import InputError, written
from ironbench.host import data_dirs
from ironbench.model.session import Session
from ironbench.model.system import Choice, Layout, Load, System
from ironbench.model.work import Work
from ironbench.workloads import backup_folder
from ironbench.workloads.backup import TO, refuse_tablespaces
from ironbench.workloads.maintenance import Maintenance, OperationResult, ReadyOperation, table
from ironbench.workloads.operations import Operation, Steps

CONNECTIONS = 5
RESTORED = "ironbench-restored"


class RestoredServer:
    """The restored server, which replays the backup's WAL before it accepts queries."""

    def __init__(self, system: System, folder: Path, stack: ExitStack) -> None:
        self.system = system
        self._folder = folder
        self._stack = stack
        self.session: Session | None = None

    def run(self) -> None:
        engine = engines.get(self.system.engine)
        plain = replace(self.system, layout=Layout(str(self._folder)), memory_total_bytes=None)
        system, secrets = engine.validated(plain, CONNECTIONS)
        self.session = self._stack.enter_context(engines.running(system, secrets, CONNECTIONS))
        self.session.query("select 1")

    def cancel(self) -> None:
        """Does nothing: the server is stopped at the end of the trial."""


class Restore(Maintenance):
    name = "restore"
    doc = "Restores a backup into a second server, while a probe client runs queries on the first server."
    counts = ("restore", "restores")
    options = (*Maintenance.options, TO)

    def writes(self, options: Mapping[str, str]) -> bool:
        return False

    def estimate_bytes(self, engine: str, options: Mapping[str, str]) -> int:
        """Returns the size of the data, the backup, and the restored data."""
        return 3 * super().estimate_bytes(engine, options)

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        refuse_tablespaces(system, self.name)
        if system.dsn is not None:
            raise InputError(
                written("system.dsn"),
                "ironbench restores only servers that it started",
                f"remove {written('system.dsn')}",
            )
        engines.get(system.engine).administration.maintaining.require_backup(system, {})
        if choice.options["to"]:
            data_dirs.check(choice.options["to"], "backup")

    @contextmanager
    def prepared(self, work: Work) -> Iterator[ReadyOperation]:
        maintaining = engines.get(work.session.engine).administration.maintaining
        to, need = work.choice.options["to"], maintaining.backup_bytes(work.session)
        with (
            backup_folder.folder(work, to, 2 * need) as backup,
            backup_folder.folder(work, to, need, RESTORED) as restored,
            ExitStack() as stack,
        ):
            work.show(0.0, "a backup to restore")
            maintaining.backup(work.system, work.session, BackupRequest(backup, maintaining.restorable)).run()
            server = RestoredServer(work.system, restored, stack)
            programs = maintaining.unpack(work.system, backup, restored)
            steps = Steps(*(lambda one=one: one for one in programs), lambda: server, lambda: _replay(server, backup))
            yield ReadyOperation(steps, lambda: _done(work, backup, server, steps))


def _replay(server: RestoredServer, backup: Path) -> Operation | None:
    assert server.session is not None
    return engines.get(server.system.engine).administration.maintaining.replayed(server.system, server.session, backup)


def _done(work: Work, backup: Path, server: RestoredServer, steps: Steps) -> OperationResult:
    assert server.session is not None
    *copies_s, start_s, replay_s = steps.took_s
    return OperationResult(
        backup_folder.size(backup),
        {"restore_copy_s": sum(copies_s), "restore_recovery_s": start_s + replay_s},
        table(work.choice.options).checks(server.session),
        {"restore": engines.get(work.system.engine).administration.maintaining.tool(work.system)},
    )


WORKLOAD = Restore()
