"""The `backup` workload: a backup of the running server while a probe client measures the effect on other clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ironbench import engines
from ironbench.engines.administration import REPLICATION, SIZES
from ironbench.engines.maintenance import BackupRequest as Request
from ironbench.errors import InputError, written
from ironbench.host import data_dirs
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Work
from ironbench.workloads import backup_folder
from ironbench.workloads.base import Option
from ironbench.workloads.maintenance import Maintenance, OperationResult, ReadyOperation

TO = Option("to", "", "directory for the backup; empty: a directory next to the data directory", path="directory")
_FORMATS = ("plain", "tar", "discard")


class Backup(Maintenance):
    name = "backup"
    doc = "Backs up the whole server with the database's backup program, while a probe client runs queries."
    counts = ("backup", "backups")
    rights = (REPLICATION, SIZES)
    options = (
        *Maintenance.options,
        TO,
        Option(
            "format",
            "plain",
            "format of the backup; plain: plain files; tar: tar files; discard: the server sends the "
            "data, but the backup is not stored",
            choices=_FORMATS,
        ),
        Option(
            "checkpoint",
            "fast",
            "mode of the checkpoint before the backup; fast: write at full speed",
            choices=("fast", "spread"),
        ),
        Option("rate", "0", "maximum rate in MB/s (10^6 bytes); 0: unlimited", lowest=0, highest=1000),
    )

    def writes(self, options: Mapping[str, str]) -> bool:
        return False

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        refuse_tablespaces(system, self.name)
        engines.get(system.engine).administration.maintaining.require_backup(system, choice.options)
        if choice.options["to"]:
            data_dirs.check(choice.options["to"], "backup")
        elif system.dsn is not None and choice.options["format"] != "discard":
            raise InputError(
                written("workload.with", "to"),
                "is required: ironbench does not know the data directory of an existing server",
                f"give the path of a directory, or use {written('workload.with', 'format=discard')}",
            )

    @contextmanager
    def prepared(self, work: Work) -> Iterator[ReadyOperation]:
        options, maintaining = work.choice.options, engines.get(work.session.engine).administration.maintaining
        need, discarded = maintaining.backup_bytes(work.session), options["format"] == "discard"
        with backup_folder.folder(work, options["to"], 0 if discarded else need) as folder:
            most_bytes_per_s = int(options["rate"]) * 1_000_000
            backup = Request(folder, options["format"], options["checkpoint"], most_bytes_per_s)
            program = maintaining.backup(work.system, work.session, backup)
            yield ReadyOperation(program, lambda: _done(work, folder))


def _done(work: Work, folder: Path) -> OperationResult:
    maintaining = engines.get(work.session.engine).administration.maintaining
    tool = {"backup": maintaining.tool(work.system)}
    if not folder.exists():
        return OperationResult(maintaining.backup_bytes(work.session), facts=tool)
    return OperationResult(backup_folder.size(folder), checks=(maintaining.verified(work.system, folder),), facts=tool)


def refuse_tablespaces(system: System, name: str) -> None:
    if system.layout.temp is not None:
        raise InputError(
            written("layout.temp"),
            f"the workload `{name}` copies only one directory, but the temp files would be in a second directory",
            f"remove {written('layout.temp')}",
        )


WORKLOAD = Backup()
