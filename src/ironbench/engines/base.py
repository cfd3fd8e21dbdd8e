"""Interface of an engine: its abilities and costs as data, its SQL dialect, how it is started, and how its data are
stored.

Each engine is implemented in a folder with the engine's name. Code outside the folder does not use that name.
docs/contributing/engines.md describes step by step how to add an engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ironbench.engines.administration import Administration
from ironbench.engines.data_import import DataImport
from ironbench.engines.dialect import Dialect
from ironbench.engines.durability import Hazard
from ironbench.errors import FailureError, InputError, written
from ironbench.host.copies import CopyResult
from ironbench.model.logged import LogReader
from ironbench.model.observer import OTHER
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session, WorkConnection
from ironbench.model.system import System

ABILITIES: Mapping[str, str] = {
    "scripts": "can run pgbench scripts",
    "transactions": "can run many short transactions at the same time, and the OLTP workloads have SQL files "
    "for the engine",
    "data": "has tables into which a workload can load rows",
    "directory": "stores a tree of entries that clients access by LDAP",
    "queries": "can run long queries in several streams, with a separate connection for each stream",
    "bare machine": "has no database; the workload uses the machine directly",
    "in client": "is a library that runs in the client's threads",
    "copy": "can load rows from a stream (COPY)",
    "population": "can insert rows into one table from many connections: row by row, in batches or by COPY",
    "triggers": "can run a trigger of the workload when a row changes",
    "compressed tables": "supports compressed tables (ROW_FORMAT=COMPRESSED)",
    "checkpoints": "can run a checkpoint on request, and reports completed checkpoints",
    "power cut": "can be restarted after a simulated power failure during a run",
    "whole numbers": "has no exact decimal type, so workloads store amounts of money as integers",
    "parallel statements": "can run independent statements in parallel",
    "partitions": "has range partitions, procedures and sequences",
    "pipelines": "accepts statements from a client before the client has read the results of earlier statements",
    "new connections": "allows clients to reconnect between transactions",
    "latency": "accepts connections through sockets, so a relay can add network latency",
    "counters": "counts commits, I/O, WAL and checkpoints",
    "waits": "shows what each connection waits for, so ironbench can sample wait events",
    "plan times": "has query plans that contain planning times and sizes of temporary files",
    "replay": "can replay captured statements",
    "maintenance": "can run backups, restores, index builds and vacuums under load",
}
"""The abilities that a workload can require of an engine. The description of an ability is shown by `ironbench list`
and in error messages."""


@dataclass(frozen=True, slots=True)
class EngineCosts:
    """Costs of an engine, from which a plan estimates times and disk space. The values were measured on a small virtual
    machine."""

    start_stop_s: float = 0.1
    """Seconds to start and stop the engine once, including the checks of data and machine."""
    empty_bytes: int = 0
    """Size of a database without tables."""
    log_bytes: int | None = None
    """Maximum size of the WAL. If None, the WAL grows with everything that is written."""
    mixed_read_bytes: int = 65536
    """Size of the random reads with which a plan estimates how long analytical queries read from an emulated disk. The
    value is chosen so that such a read takes as long as an average read by the engine."""
    row_overhead_bytes: int = 0
    """Bytes that a stored row takes in addition to its values."""
    page_bytes: int = 0
    """Usable bytes of a page. The value is 0 if rows can span pages."""
    separate_primary_key: bool = False
    """Whether the primary key is a separate index. If not, rows are stored in primary key order."""
    queries_s: float = 30.0
    """Duration in seconds of one stream of the 22 TPC-H-derived queries. The duration was measured at scale factor 1 on
    two cores."""
    queries_read: float = 10.0
    """How often one stream of these queries reads the whole data if a third of the data fits in memory."""
    checkpoint_s: float = 0.0
    """Default interval between checkpoints in seconds. The value is 0 if the engine makes no checkpoints by itself."""

    def log_of(self, written_bytes: int) -> int:
        """Returns the size of the WAL after `written_bytes` were written."""
        return written_bytes if self.log_bytes is None else min(written_bytes, self.log_bytes)


@dataclass(frozen=True, slots=True)
class SuggestedSetting:
    """A setting that users often want to compare."""

    name: str
    levels: tuple[str, ...]
    """Values to compare, with the default value first."""
    about: str
    """Effect of the setting, as a sentence."""
    session: bool = False
    """Whether a connection can change the setting for itself."""
    on_server: bool = False
    """Whether a statement changes the setting of a running server, and changes it back completely
    (`Engine.set_on_server`)."""


@dataclass(frozen=True, slots=True)
class CaptureTraits:
    """Describes captures of an engine's statements."""

    protocol: str
    """Name of the protocol. A replay sends the statements of a capture only to engines with the same protocol. Captures
    of the engine whose logs the core reads do not name their protocol, so its name is ""."""
    generates: str
    """Regular expression that matches the template of a statement that returns a generated key."""
    logs_all: str
    """The setting with which the server logs every statement with its duration."""
    parameter: str
    """Regular expression that matches a placeholder in a statement. If the expression has a group, the group is the
    number of the parameter. Otherwise, placeholders are numbered in the order of the text. The expression also matches
    literals, so that no placeholder is found inside of them."""
    quote: str = '"'
    """Quotation mark of names."""
    folds_names: bool = True
    """Whether the server converts names without quotes to lower case."""
    pipelines: bool = False
    """Whether clients send prepared statements of an implicit transaction without waiting for replies."""
    shifts_time: bool = True
    """Whether times in statements can be shifted to the time of the capture."""
    usable_roles: str = ""
    """Query that returns the roles to which the user may change with SET ROLE. Empty if a replay does not provide
    roles."""
    create_role: tuple[str, ...] = ()
    """Statements that create a role with at least the privileges of the user. `{}` stands for the quoted name."""
    reserved_roles: str = ""
    """Regular expression that matches the names which `create_role` refuses."""


@dataclass(frozen=True, slots=True)
class ProxiedServer:
    """A server to which a proxy connects."""

    connection: Mapping[str, Any]
    """The server in the format of a proxy's order (crates/ironbench-proxy/src/proxy.rs), without a password."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of an engine, as data."""

    doc: str
    """Description of the engine in one line, for `ironbench list engines`."""
    abilities: frozenset[str] = frozenset()
    """Abilities of the engine: a subset of `ABILITIES`."""
    preference: int = 0
    """Rank as a default engine. Among the engines that can run a workload, the engine with the highest value is the
    default."""
    protocols: tuple[str, ...] = ("",)
    """Protocols for sending statements. Scripts are compiled for the first protocol by default."""
    costs: EngineCosts = field(default_factory=EngineCosts)
    dialect: Dialect = field(default_factory=Dialect)
    schemes: tuple[str, ...] = ()
    """Schemes of the DSNs of this engine. The scheme "" means that a DSN may also have no scheme. An empty tuple means
    that the engine is not a server."""
    digests: str = ""
    """Name of the server's statistics from which a capture is made (`administration.digests`)."""
    captures: CaptureTraits | None = None
    """Describes captures of the engine's statements. None if its statements cannot be captured."""
    packages: tuple[str, ...] = ()
    """Python packages that contain the engine. Every record contains their versions."""
    events: Mapping[str, str] = field(default_factory=dict)
    """Describes what the holder of a lock is doing during each wait event. The text continues a sentence that starts
    with "the holder". The observer names the events. Case is ignored."""
    texts: tuple[str, ...] = ()
    """Additional suffixes of SQL files that the engine can use, because they were written for the same database. For
    example, an ODBC engine can use the SQL files of the engine that accesses its database without ODBC."""
    products: tuple[str, ...] = ()
    """Names that third-party ODBC drivers report for this database."""
    knobs: tuple[SuggestedSetting, ...] = ()
    """Settings that `ironbench lab new setting` suggests, with the most informative ones first."""
    ideal_settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each part that can be made zero-latency, the settings that ironbench chooses for it."""
    writers: int | None = None
    """Maximum number of connections that can write at the same time, or None if there is no limit."""
    files_per_client: int = 1
    """Number of files that ironbench opens for each client. For a server, the file is a socket. A library engine opens
    its own files."""
    beside_version: tuple[str, ...] = ()
    """Settings whose defaults depend on the version or build. A comparison of versions must set them."""
    build_features: Mapping[str, str] = field(default_factory=dict)
    """For each optional feature of a build, the setting that uses it. A version without the setting cannot have the
    feature."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """For each setting, the value that all versions in a comparison should use."""
    duplicate_key: tuple[str, ...] = ()
    """Error classes of an INSERT that fails because another transaction inserted the same key first. This can happen
    even if the failed transaction deleted the key before its INSERT. The tuple is empty if the engine prevents this."""
    derived_settings: tuple[str, ...] = ()
    """Settings that the user cannot set. The server derives them from other settings, or the layout determines them."""
    hazards: tuple[Hazard, ...] = ()
    """Values of settings with which data can be lost."""

    @property
    def in_process(self) -> bool:
        """Whether statements are library calls in the client's process."""
        return self.protocols[0].endswith("library")


class Engine(ABC):
    """A database that ironbench can start or connect to. The core implements the wire protocol."""

    name: str
    traits: Traits

    administration: Administration = Administration()
    """Operations on the running engine before, during and after a trial."""
    data_import: DataImport = DataImport()
    """Functions that import the user's own data into the engine."""
    profile_groups: Mapping[str, str] = MappingProxyType({})
    """Maps regular expressions for functions in a profile to activities. An expression must match the whole name of a
    function. The first expression that matches any function of a stack determines the activity of the stack. Stacks
    with the activity `model.profile.WAITING_FOR_WORK` are not part of a transaction."""
    profile_waits: Mapping[str, str] = MappingProxyType({})
    """Maps activities of `profile_groups` to wait classes (`model.observer.WAIT_CLASSES`). A thread that waits for an
    event during this activity waits in this class."""

    def wait_class(self, event: str) -> str:
        """Returns the wait class (`model.observer.WAIT_CLASSES`) of a wait event in records."""
        return OTHER

    @property
    def variants(self) -> Mapping[str, Engine]:
        """Variants of this engine for different databases. A variant is named after the engine and the database, joined
        by a hyphen. The variant has the dialect of its database."""
        return {}

    def engine_for(self, dsn: str | None) -> Engine:
        """Returns the engine for a DSN: this engine or one of its variants. May ask the server to identify itself.
        Raises InputError and FailureError."""
        return self

    @abstractmethod
    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Validates a system. Returns the system with absolute directories and without its password, and separately its
        secrets.

        Starts, creates and changes nothing. Raises InputError if a value cannot be used.
        """

    @abstractmethod
    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        """Returns the version, the build and whatever else distinguishes this program from others. Starts nothing.
        Raises InputError and FailureError."""

    @abstractmethod
    def start(self, system: System, secrets: Secrets, clients: int) -> Session:
        """Starts the engine with room for `clients` connections and a few more. Raises InputError and FailureError."""

    def log_reader(self, path: Path) -> LogReader | None:
        """Returns a reader for the statements in a log of this engine. Returns None if the file is not such a log. Also
        returns None if the core itself reads the logs of this engine."""
        return None

    def proxied(self, text: str, accepts_tls: bool, on_socket: bool) -> ProxiedServer | None:
        """Returns the server of a DSN for a proxy. `accepts_tls`: whether clients can use TLS to the proxy.
        `on_socket`: whether the proxy listens on a Unix socket. Returns None if the core has no proxy for this engine.
        Raises InputError."""
        return None

    def installations(self) -> tuple[tuple[str, str], ...]:
        """Returns the installed versions, the oldest first, each with the `bin` setting that selects it. All versions
        come from one source, so that they differ in little besides the version."""
        return ()

    def build_features(self, system: System) -> Mapping[str, bool] | None:
        """Returns whether the system's program was built with each optional feature that its version can have. Starts
        nothing.

        Returns None if the features are unknown. Returns {} if the engine has no optional features that matter.
        """
        return {}

    def in_use(self, system: System) -> InputError | None:
        """Returns the error for a server that is already running in the system's directories. Returns None if no server
        is running there."""
        return None

    def can(self, ability: str) -> bool:
        """Returns whether the engine has an ability of `ABILITIES`."""
        assert ability in ABILITIES, ability
        return ability in self.traits.abilities

    def protocol(self, preferred: str) -> str:
        """Returns the protocol for which scripts are compiled. This is `preferred` if the engine supports this
        protocol, otherwise the engine's first protocol."""
        return preferred if preferred in self.traits.protocols else self.traits.protocols[0]

    def basis(self, system: System) -> str:
        """Returns the properties of the system that determine the data files, besides the loaded rows: version, build
        and flags. Returns "" if ironbench cannot access the files."""
        return ""

    def loading_system(self, system: System, folder: Path) -> System:
        """Returns a system in `folder` that loads the data for a snapshot. The returned system has only the settings of
        `system` that affect the files."""
        return system

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> CopyResult:
        """Copies the files of a stopped system into a new `folder`, completely or not at all. Raises FailureError.

        `keep`: whether the system keeps its own files. If it does not, files may be hard-linked.
        """
        return CopyResult()

    def restore(self, system: System, folder: Path) -> CopyResult:
        """Replaces the files of a stopped system with a snapshot. Raises FailureError, and InputError if there is not
        enough space.

        If the replaced files did not come from a snapshot, they are renamed and never removed.
        """
        return CopyResult()

    def cache_bytes(self, settings: Mapping[str, str], clients: int) -> int | None:
        """Returns the size of the engine's own data cache for all `clients` together, according to the settings.
        Returns None if the size is unknown."""
        return None

    def data_memory(self, settings: Mapping[str, str], clients: int) -> int | None:
        """Returns the size of the memory that can cache data, for an engine that bypasses the page cache. Returns None
        for other engines, because all memory can cache their data."""
        return None

    def ideal_bytes(self, system: System) -> dict[str, int]:
        """Returns the maximum size in bytes of the files of each zero-latency part, if the part is in a directory in
        memory."""
        return {}

    def preset(self, system: System, streams: int) -> dict[str, str]:
        """Returns settings that suit `streams` concurrent streams of large queries on this system. The user's settings
        take precedence."""
        return {}

    def for_devices(self, system: System) -> dict[str, str]:
        """Returns settings that suit the system's emulated devices. The user's settings take precedence. Raises
        InputError."""
        return {}

    def with_session_setting(self, text: str, name: str, value: str) -> str:
        """Returns the DSN `text` with a setting for the connection. Raises InputError if the engine's DSNs cannot
        contain settings."""
        hint = f"change {name} with a command instead ([commands] in the lab file)"
        raise InputError("--dsn", f"a DSN of {self.name} cannot set {name}", hint)

    def set_on_server(self, text: str, name: str, value: str) -> str:
        """Returns the shell command that changes a setting of the running server in the DSN `text`, without a password.
        Connections that are opened afterwards use the new value. Only for suggested settings with `on_server`."""
        raise NotImplementedError(f"{self.name}: no suggested setting is changed on a running server")

    def without_session_settings(self, text: str) -> str:
        """Returns the DSN `text` without settings of the connection."""
        return text

    def server_of(self, text: str) -> str:
        """Returns the address of the server in the DSN `text`. DSNs that name the same server in the same way give
        equal results."""
        return self.without_session_settings(text)

    def database_of(self, text: str) -> str:
        """Returns the server and the database of the DSN `text`. The user and the TLS parameters are removed."""
        return self.without_session_settings(text)

    def missing(self, needs: Sequence[str]) -> list[str]:
        """Returns the abilities in `needs` that the engine lacks."""
        return [ability for ability in needs if not self.can(ability)]


class SessionDefaults:
    """Default methods for sessions of engines that have no counters, files or separate processes."""

    engine: str

    def line(self, cpus: Sequence[int] = ()) -> WorkConnection:
        raise FailureError(f"engine {self.engine}", "has no database to connect to")

    def counters(self) -> dict[str, int]:
        return {}

    def processes(self) -> list[int]:
        return []

    def directories(self) -> dict[str, str]:
        return {}

    def within(self) -> tuple[str, ...]:
        return ()

    def alive(self) -> bool:
        return True

    def last_words(self) -> str:
        return ""

    def restart(self) -> None:
        """Does nothing: there are no caches to empty."""

    def stop(self) -> None:
        """Does nothing: no process was started."""


def set_twice(field: str, setting: str) -> InputError:
    """Returns the error for an engine setting that duplicates a field of ironbench."""
    return InputError(field, f"{written('system.set', setting)} sets the same value", "remove one of the two")
