"""The engine MariaDB: validates systems and starts servers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ironbench.engines import ideal as memory
from ironbench.engines import identity, own_files, server
from ironbench.engines.base import CaptureTraits, Engine, EngineCosts, ProxiedServer, SuggestedSetting, Traits
from ironbench.engines.durability import OFF, Hazard
from ironbench.engines.existing_server import validated_existing
from ironbench.engines.identity import Identity
from ironbench.engines.mariadb import dsn, existing_server, installation, logs, profile_groups, settings, snapshots
from ironbench.engines.mariadb import home as homes
from ironbench.engines.mariadb.administration import MariadbAdministration
from ironbench.engines.mariadb.data_import import MariadbDataImport
from ironbench.engines.mariadb.dialect import MariadbDialect
from ironbench.engines.mariadb.home import MariadbHome
from ironbench.engines.mariadb.installation import TITLE, MariadbInstallation
from ironbench.engines.mariadb.observers.threads import HOLDER, wait_class_of
from ironbench.engines.mariadb.server import launch
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.engines.mariadb.settings import CACHE
from ironbench.engines.own_server import OwnServer
from ironbench.engines.server_session import OwnedServer, version_of, with_free_connections
from ironbench.errors import InputError
from ironbench.host import data_dirs
from ironbench.host.copies import CopyResult
from ironbench.model.logged import LogReader
from ironbench.model.secrets import Secrets
from ironbench.model.system import Layout, System
from ironbench.units import size_of_1024

USER = "root"
"""User name for a server that ironbench started. This user has no password, but only ironbench can reach the socket."""


class MariadbEngine(Engine):
    name = "mariadb"
    profile_waits = profile_groups.WAITS
    profile_groups = profile_groups.GROUPS
    wait_class = staticmethod(wait_class_of)
    traits = Traits(
        knobs=(
            SuggestedSetting(
                "innodb_flush_log_at_trx_commit",
                ("1", "2"),
                "With 2, a power failure may lose the last commits.",
                on_server=True,
            ),
            SuggestedSetting("innodb_doublewrite", ("ON", "OFF"), "With OFF, a power failure may leave torn pages."),
            SuggestedSetting(
                "innodb_log_file_size",
                ("96M", "1G"),
                "With a larger redo log, InnoDB writes back dirty pages less often, but crash recovery takes longer.",
            ),
            SuggestedSetting(
                "innodb_io_capacity",
                ("200", "2000"),
                "I/Os per second for writing back dirty pages in the background.",
            ),
            SuggestedSetting(
                "sort_buffer_size", ("2M", "16M"), "Memory for each sort before it uses temp files.", on_server=True
            ),
            SuggestedSetting(
                "join_buffer_size", ("256K", "4M"), "Memory for each join that cannot use an index.", on_server=True
            ),
        ),
        doc="the MariaDB that is installed on the machine, the installation in `--set bin=/path`, or "
        "an existing MariaDB or MySQL server (`--dsn`)",
        abilities=frozenset(
            {
                *(
                    "scripts",
                    "transactions",
                    "data",
                    "queries",
                    "parallel statements",
                    "checkpoints",
                    "power cut",
                    "new connections",
                    "latency",
                    "counters",
                    "waits",
                ),
                *("copy", "population", "compressed tables", "maintenance", "triggers", "partitions", "replay"),
            }
        ),
        preference=-10,
        digests="performance_schema",
        captures=CaptureTraits(
            protocol="mysql",
            logs_all="long_query_time = 0",
            generates=r"^\W*(?:insert|replace)\b",
            parameter=r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|\?",
            quote="`",
            folds_names=False,
            shifts_time=False,
            usable_roles="select role_name from information_schema.applicable_roles",
            # A role adds its privileges to those of the user. MariaDB grants a new role to its creator, MySQL does not.
            create_role=("create role {}", "grant {} to current_user()"),
            reserved_roles="none|public",
        ),
        protocols=("prepared", "simple"),
        costs=EngineCosts(
            start_stop_s=3.0,
            empty_bytes=120_000_000,
            log_bytes=96 << 20,  # default of innodb_log_file_size
            mixed_read_bytes=65536,
            row_overhead_bytes=18,  # record header, transaction id, roll pointer (manual, "InnoDB Row Formats")
            page_bytes=15_200,  # of 16384: 1/16 of a page stays free when rows are inserted in key order
            queries_s=90.0,
            queries_read=10.0,
        ),
        dialect=MariadbDialect(),
        products=("MariaDB", "MySQL"),
        ideal_settings={"data": (CACHE,)},
        # https://mariadb.com/kb/en/innodb-system-variables/ and https://mariadb.com/kb/en/binlog-sync-binlog/
        hazards=(
            Hazard("innodb_flush_log_at_trx_commit", ("0",), "server-crash", "last-commits"),
            Hazard("innodb_flush_log_at_trx_commit", ("2",), "os-crash", "last-commits"),
            Hazard("innodb_doublewrite", OFF, "power-failure", "torn-pages"),
            Hazard("innodb_flush_method", ("nosync", "littlesync"), "power-failure", "whole-database"),
            Hazard("sync_binlog", ("0",), "power-failure", "binary-log", needs="log_bin"),
        ),
        schemes=dsn.SCHEMES,
        events=HOLDER,
    )
    administration = MariadbAdministration()
    data_import = MariadbDataImport()

    def proxied(self, text: str, accepts_tls: bool, on_socket: bool) -> ProxiedServer | None:
        address, secrets = dsn.parse(text)
        give = "give the proxy a certificate (--tls-cert, --tls-key), and enable TLS in the clients"
        if accepts_tls and (address.socket is not None or address.tls == "disable"):
            where = "names a Unix socket" if address.socket is not None else "contains tls=disable"
            cause = f"{where}, but a client uses TLS only if the proxy uses TLS to the server"
            raise InputError("--to", cause, "name host and port with tls=require, or remove --tls-cert and --tls-key")
        if accepts_tls and address.tls == "prefer" and not existing_server.is_local(address):
            cause = "does not verify the server, to which clients with TLS may send their passwords"
            raise InputError("--to", cause, "add tls=verify-full, or tls=require to accept any certificate")
        if not accepts_tls and address.tls not in ("disable", "prefer"):
            cause = f"contains tls={address.tls}, but the proxy uses TLS only for clients that use it"
            raise InputError("--to", cause, give)
        if not accepts_tls and on_socket and not existing_server.is_local(address):
            # `caching_sha2_password` does this, as the client does not know about the connection behind the proxy.
            cause = "clients send passwords over a Unix socket, which the proxy would pass on without TLS"
            raise InputError("--to", cause, f"let the proxy listen on 127.0.0.1, or {give}, with tls=verify-full")
        if not accepts_tls and address.socket is None and existing_server.requires_tls(address, secrets):
            cause = "the server accepts only connections with TLS (require_secure_transport)"
            raise InputError("--to", cause, f"{give}; or let the proxy connect to the server's Unix socket")
        server = address if accepts_tls else replace(address, tls="disable")
        return ProxiedServer({"mysql": server.connection(Secrets(None))})

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Validates everything that can be checked before a server is started. Raises InputError."""
        if system.dsn is not None:
            return validated_existing(system, dsn.parse)
        programs = installation.find(system.settings.get("bin"))
        system = replace(system, settings=settings.named(system.settings))
        memory.refuse(system, _NEVER_IDEAL)
        place_of_data = str(homes.of(system.layout, programs).place)
        system = memory.arranged(system, place_of_data, self.ideal_bytes(system), CACHE)
        system = replace(system, settings=self.for_devices(system) | system.settings)
        settings.validate(system, clients, programs)
        if programs.may_run:
            _identity(programs)
        home = homes.of(system.layout, programs)
        homes.validate(home, programs)
        places = str(home.place), _text(home.temp_place), _text(home.log_place)
        return replace(system, layout=Layout(*places, system.layout.devices)), Secrets()

    def in_use(self, system: System) -> InputError | None:
        home = homes.of(system.layout, installation.find(system.settings.get("bin")))
        return own_files.in_use(home.files, home.place)

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        """Returns the version of the server and a hash of the program file. For an existing server, returns only the
        version that it reports."""
        if system.dsn is not None:
            return version_of(MariadbSession(dsn.parse(system.dsn, {})[0], secrets))
        programs = installation.find(system.settings.get("bin"))
        program = hashlib.sha256(programs.server.read_bytes()).hexdigest()[:16]
        return {"version": programs.version, "program": program}

    def start(self, system: System, secrets: Secrets, clients: int) -> MariadbSession:
        """Starts the server of a validated system for `clients` connections, or connects to an existing server."""
        server.raise_file_limit()
        if system.dsn is not None:
            address, _ = dsn.parse(system.dsn, {})
            return with_free_connections(MariadbSession(address, secrets), existing_server.require_room, clients)
        programs = installation.find(system.settings.get("bin"))
        return _OwnMariadb(system, clients, programs, homes.of(system.layout, programs)).session()

    def log_reader(self, path: Path) -> LogReader | None:
        format = logs.recognised(path)
        return logs.MysqlLogs(format) if format else None

    def set_on_server(self, text: str, name: str, value: str) -> str:
        address, _ = dsn.parse(text, {})
        return existing_server.set_command(address, name, value)

    def server_of(self, text: str) -> str:
        address, _ = dsn.parse(text, {})
        return address.socket or f"{address.host}:{address.port}"

    def database_of(self, text: str) -> str:
        address, _ = dsn.parse(text, {})
        return f"{self.server_of(text)}/{address.database}"

    def for_devices(self, system: System) -> dict[str, str]:
        return settings.for_devices(system)

    def ideal_bytes(self, system: System) -> dict[str, int]:
        return {part: memory.TEMP_BYTES for part in ("temp",) if part in memory.in_memory(system)}

    def cache_bytes(self, settings: Mapping[str, str], clients: int) -> int | None:
        text = settings.get(CACHE)
        return size_of_1024(CACHE, text, bare=1) if text else None

    def data_memory(self, settings: Mapping[str, str], clients: int) -> int | None:
        direct = settings.get("innodb_flush_method", "").startswith("O_DIRECT")
        return self.cache_bytes(settings, clients) if direct else None

    def basis(self, system: System) -> str:
        if system.dsn is not None:
            return ""
        programs = installation.find(system.settings.get("bin"))
        return own_files.basis([self.name, programs.version], settings.shaping(system.settings))

    def loading_system(self, system: System, folder: Path) -> System:
        return own_files.loading_system(system, settings.LOADING | settings.shaping(system.settings), folder)

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> CopyResult:
        home = homes.of(system.layout, installation.find(system.settings.get("bin")))
        with own_files.locked(home.place):
            return snapshots.take(home, folder, keep=keep)

    def restore(self, system: System, folder: Path) -> CopyResult:
        home = homes.of(system.layout, installation.find(system.settings.get("bin")))
        with own_files.locked(data_dirs.claim(str(home.place), "data")):
            return snapshots.put_back(home, folder)


_NEVER_IDEAL = {
    "log": "InnoDB cannot open data files without their redo log, so losing a log in memory would lose the data",
}


@dataclass(frozen=True, slots=True)
class _OwnMariadb(OwnServer[MariadbSession]):
    system: System
    clients: int
    installation: MariadbInstallation
    home: MariadbHome

    @property
    def place(self) -> Path:
        return self.home.place

    def connected(self, own: OwnedServer) -> MariadbSession:
        return MariadbSession(_address(own.running, homes.DATABASE), Secrets(), own)

    def directories(self) -> dict[str, str]:
        return {"data": str(self.home.files), "log": str(self.home.log), "temp": str(self.home.temp)}

    def running(self, lock: int) -> server.RunningServer:
        who = _identity(self.installation)
        home, programs = self.home, self.installation
        declared = settings.own(self.system.settings)
        shape = {name: declared[name] for name in settings.INSTALLING if name in declared}
        if in_memory := memory.directories(self.system):
            memory.claim(str(home.place))
        homes.prepare(home, programs, who, shape)
        system = memory.with_cache(self.system, home.files / homes.DATABASE, settings.DEFAULT_CACHE_BYTES)
        settings_for = partial(settings.effective, system, self.clients, home, installation=programs)
        running = server.start(launch(home, programs, who, settings_for, lock, system), remove=in_memory)
        try:
            _create_database(_address(running, ""))
        except BaseException:
            running.stop()
            raise
        return running

    def facts(self) -> dict[str, object]:
        cpus = self.system.server_cpus
        return {
            "installation": str(self.installation.server),
            "runs_as": _identity(self.installation).mechanism,
            "cpus": None if cpus is None else list(cpus),
        }


def _identity(programs: MariadbInstallation) -> Identity:
    return identity.choose(str(programs.server), TITLE)


def _address(running: server.RunningServer, database: str) -> dsn.MysqlAddress:
    socket = f"{running.socket_directory}/{settings.SOCKET}"
    return dsn.MysqlAddress(USER, database, socket=socket, tls="disable")


def _create_database(address: dsn.MysqlAddress) -> None:
    """Creates ironbench's database unless it exists."""
    session = MariadbSession(address, Secrets(), None)
    try:
        session.query(f"create database if not exists {homes.DATABASE}")
    finally:
        session.stop()


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


ENGINE = MariadbEngine()
