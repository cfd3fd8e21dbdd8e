"""`backup`: a base backup of the running server while a bystander looks on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ironbench.errors import InputError
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Work
from ironbench.process import place
from ironbench.workloads import base_backup
from ironbench.workloads.base import Option
from ironbench.workloads.maintenance import Done, Maintenance, Ready

TO = Option("to", "", "directory for the backup; empty: beside the data")
_FORMAT = {"plain": ("-F", "p", "-X", "stream"), "tar": ("-F", "t", "-X", "stream"), "discard": ("-X", "fetch")}


class Backup(Maintenance):
    name = "backup"
    doc = "A base backup of the whole server by pg_basebackup; a bystander is watched meanwhile."
    unit = "backup"
    options = (
        *Maintenance.options,
        TO,
        Option(
            "format",
            "plain",
            "plain files, tar, or discard: read by the server, written nowhere",
            choices=tuple(_FORMAT),
        ),
        Option("checkpoint", "fast", "how the checkpoint before it is written", choices=("fast", "spread")),
        Option(
            "rate", "0", "most MB/s (10^6 bytes) that the server sends; 0: as much as it can", lowest=0, highest=1000
        ),
    )

    def writes(self, options: Mapping[str, str]) -> bool:
        return False

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        refuse_tablespaces(system, self.name)
        base_backup.program(system, "pg_basebackup")
        if choice.options["to"]:
            place.check(choice.options["to"], "backup")
        elif system.dsn is not None and choice.options["format"] != "discard":
            raise InputError(
                "--with to",
                "is missing: nobody knows where a running server's data are",
                "name a directory, or --with format=discard",
            )

    @contextmanager
    def prepared(self, work: Work) -> Iterator[Ready]:
        options, need = work.choice.options, base_backup.server_bytes(work)
        discarded = options["format"] == "discard"
        with base_backup.folder(work, options["to"], 0 if discarded else need) as folder:
            words = [
                *_FORMAT[options["format"]],
                "-c",
                options["checkpoint"],
                "--no-sync" if discarded else "--progress",
            ]
            if int(options["rate"]):
                words += ["--max-rate", str(int(options["rate"]) * 1000_000 // 1024)]
            words += ["--target", "blackhole"] if discarded else ["-D", str(folder)]
            yield Ready(base_backup.command(work, *words), lambda: _done(work, folder))


def _done(work: Work, folder: Path) -> Done:
    if not folder.exists():
        return Done(base_backup.server_bytes(work))
    return Done(base_backup.size(folder), checks=(base_backup.verified(work.system, folder),))


def refuse_tablespaces(system: System, name: str) -> None:
    if system.layout.temp is not None:
        raise InputError(
            "--temp", f"workload {name} copies one directory, and spills would be a second", "leave it out"
        )


WORKLOAD = Backup()
