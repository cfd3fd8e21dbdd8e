"""DuckDB: a library, in a child process that holds the database for as long as the session lasts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from ironbench.engines import ideal, single_file
from ironbench.engines.base import Costs, Engine, Traits
from ironbench.engines.duckdb import settings
from ironbench.engines.duckdb.child import Begin
from ironbench.engines.duckdb.dialect import DuckdbAdministration, DuckdbDialect
from ironbench.engines.duckdb.process import DuckdbProcess, package_folder
from ironbench.engines.duckdb.session import FILE, DuckdbSession
from ironbench.errors import FailureError, InputError
from ironbench.machine import control_groups
from ironbench.machine.copies import Copied
from ironbench.model.secrets import Secrets
from ironbench.model.system import Layout, System
from ironbench.process import place, register

_MOST_CLIENTS = 1000
_NEVER_IDEAL = {
    "log": "DuckDB keeps its log beside the data: a directory in memory would make both free",
    "temp": "DuckDB spills only what its memory limit does not hold: raise --memory instead",
    "data": "--memory is all that DuckDB holds in memory: name a directory in memory by --data",
    "client": "the client only hands statements to DuckDB's process and takes their answers",
}


class DuckdbEngine(Engine):
    name = "duckdb"
    traits = Traits(
        doc="DuckDB in a child process; memory limit by --memory, its settings by --set",
        abilities=frozenset({"data", "queries"}),
        preference=60,
        costs=Costs(
            start_stop_s=0.5,
            log_bytes=0,  # a load's row groups go past its log, straight into the file
            mixed_read_bytes=262144,  # it reads whole blocks
            queries_s=3.0,
            queries_read=5.0,
        ),
        dialect=DuckdbDialect(),
        packages=("duckdb",),
    )
    administration = DuckdbAdministration()

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """The system with its directories. InputError."""
        if system.dsn is not None:
            raise InputError("--dsn", "DuckDB is no server", "use --data DIR, or an --engine that is a server")
        if system.layout.log is not None:
            raise InputError("--log", "DuckDB keeps its log beside the data", "use --data alone")
        ideal.refuse(system, _NEVER_IDEAL)
        if not 1 <= clients <= _MOST_CLIENTS:
            raise InputError(f"{clients} clients", f"DuckDB serves 1 to {_MOST_CLIENTS}, each by a thread of its own")
        package_folder()
        settings.validate(system)
        temp = None if system.layout.temp is None else place.check(system.layout.temp, "temp")
        data = place.check(str(_data(system)), "data")
        return replace(system, layout=replace(system.layout, data=data, temp=temp)), Secrets()

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        version, source = _asked_in_memory("select library_version, source_id from pragma_version()")
        return {"version": version, "program": source}

    def start(self, system: System, secrets: Secrets, clients: int) -> DuckdbSession:
        """The file, made when it is not there, and a process that holds it. FailureError."""
        folder = place.claim(str(_data(system)), "data")
        temp = folder if system.layout.temp is None else place.claim(system.layout.temp, "temp")
        lock = place.lock(folder)
        groups: tuple[str, ...] = ()
        if system.memory_total_bytes is not None:
            groups = (str(control_groups.chosen()),)
        entry = register.new(self.name, str(folder), groups=groups)
        try:
            for group in groups:
                control_groups.make(Path(group), system.memory_total_bytes or 0)
            return DuckdbSession(system, folder, temp, lock, entry)
        except BaseException:
            register.end(entry)
            os.close(lock)
            raise

    def basis(self, system: System) -> str:
        (version,) = _asked_in_memory("select library_version from pragma_version()")
        shape = [f"{name}={value}" for name, value in sorted(settings.shaping(system.settings).items())]
        return " ".join(["duckdb", version, *shape])

    def plain(self, system: System, folder: Path) -> System:
        return System(self.name, system.label, settings.shaping(system.settings), Layout(str(folder)))

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> Copied:
        data = _data(system)
        lock = place.lock(data)
        try:
            return single_file.take(data / FILE, folder, keep=keep)
        finally:
            os.close(lock)

    def restore(self, system: System, folder: Path) -> Copied:
        data = place.claim(str(_data(system)), "data")
        lock = place.lock(data)
        try:
            return single_file.put_back(data / FILE, folder)
        finally:
            os.close(lock)


def _data(system: System) -> Path:
    return Path(system.layout.data or place.default("duckdb", "2"))


def _asked_in_memory(sql: str) -> list[str]:
    trial = DuckdbProcess(Begin(":memory:"))
    try:
        return [value or "" for value in trial.connect().query(sql)[0]]
    except FailureError as error:
        raise FailureError("DuckDB", error.cause) from error
    finally:
        trial.stop()


ENGINE = DuckdbEngine()
