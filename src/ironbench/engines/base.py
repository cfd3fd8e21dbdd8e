"""Interface of an engine: abilities and costs as data, dialect, how the engine is started, and how its data are stored.

An engine is a folder with the engine's name; nothing outside the folder knows that name. docs/contributing/engines.md
describes step by step how to add an engine.
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
"""For each ability that a workload can require of an engine, the description for `ironbench list` and error
messages."""


@dataclass(frozen=True, slots=True)
class EngineCosts:
    """Figures for time and disk space estimates of a plan, measured on a small virtual machine."""

    start_stop_s: float = 0.1
    """Seconds to start and stop the engine once, including the checks of data and machine."""
    empty_bytes: int = 0
    """Size of a database without tables."""
    log_bytes: int | None = None
    """Maximum size of the WAL; None if the WAL grows with everything that is written."""
    mixed_read_bytes: int = 65536
    """Size of a random read that takes as long on an emulated disk as an average read by the engine's analytical
    queries."""
    row_overhead_bytes: int = 0
    """Bytes that a stored row takes in addition to its values."""
    page_bytes: int = 0
    """Usable bytes of a page, if rows cannot span pages; 0 if rows can span pages."""
    separate_primary_key: bool = False
    """Whether the primary key is a separate index. If not, rows are stored in primary key order."""
    queries_s: float = 30.0
    """Duration in seconds of one stream of the 22 TPC-H-derived queries at scale factor 1 on two cores."""
    queries_read: float = 10.0
    """Number of times that one stream of these queries reads all data if a third of the data fits in memory."""
    checkpoint_s: float = 0.0
    """Default interval between checkpoints in seconds; 0 if the engine makes none by itself."""

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


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of an engine, as data."""

    doc: str
    """Description of the engine in one line, for `ironbench list engines`."""
    abilities: frozenset[str] = frozenset()
    """Abilities of the engine: a subset of `ABILITIES`."""
    preference: int = 0
    """Preference as a default engine. Among the engines that can run a workload, the one with the highest value is the
    default."""
    protocols: tuple[str, ...] = ("",)
    """Protocols for sending statements. Scripts are compiled for the first protocol by default."""
    costs: EngineCosts = field(default_factory=EngineCosts)
    dialect: Dialect = field(default_factory=Dialect)
    schemes: tuple[str, ...] = ()
    """Schemes of the DSNs of the engine's servers. `""` means that a DSN may have no scheme; () means that the engine
    is not a server."""
    digests: str = ""
    """Name of the statistics from which `administration.digests` makes a capture."""
    packages: tuple[str, ...] = ()
    """Python packages that contain the engine; their versions are stored in every record."""
    events: Mapping[str, str] = field(default_factory=dict)
    """For each wait event as named by the observer, what the holder of a lock is doing during this event, as a phrase
    that continues "the holder". Case is ignored."""
    texts: tuple[str, ...] = ()
    """Additional suffixes of SQL files that the engine can use, because these files were written for the same database.
    """
    products: tuple[str, ...] = ()
    """Names that third-party ODBC drivers report for this database."""
    knobs: tuple[SuggestedSetting, ...] = ()
    """Settings that `ironbench lab new setting` suggests, with the most informative ones first."""
    ideal_settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each zero-latency part, the settings whose values it determines."""
    writers: int | None = None
    """Maximum number of connections that can write at the same time; None if there is no limit."""
    files_per_client: int = 1
    """Number of files that ironbench opens for each client: a socket, or the files of a library engine."""
    beside_version: tuple[str, ...] = ()
    """Settings whose defaults differ by version or build. A comparison of versions must set them."""
    build_features: Mapping[str, str] = field(default_factory=dict)
    """For each optional feature of a build, the setting that requires the feature. If a version lacks the setting, it
    cannot have the feature."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """For each setting, the value that all versions in a comparison should use."""
    duplicate_key: tuple[str, ...] = ()
    """Error classes of an INSERT that fails with a duplicate key although its transaction has just deleted the key,
    because another transaction has inserted the key in the meantime; () if this cannot happen."""
    derived_settings: tuple[str, ...] = ()
    """Settings that the user cannot set, because the server derives them from other settings or the layout determines
    them."""
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
    """The activity for each regular expression, which must match the whole name of a function in a profile. The first
    expression that matches any function of a stack determines the stack's activity. Waits with the activity
    `model.profile.WAITING_FOR_WORK` are not part of a transaction."""

    @property
    def variants(self) -> Mapping[str, Engine]:
        """For each variant name (engine name, hyphen, database), this engine with the dialect of that database."""
        return {}

    def engine_for(self, dsn: str | None) -> Engine:
        """Returns the engine for a DSN: this engine or one of its variants. May ask the server to identify itself.
        Raises InputError and FailureError."""
        return self

    @abstractmethod
    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Returns the system with absolute directories and without its password, and the secrets.

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
        """Returns a reader for the statements in a log of this engine. Returns None if the file is not such a log, or
        if the core reads the engine's logs."""
        return None

    def proxied(self, text: str) -> dict[str, Any] | None:
        """Returns the server of a DSN as a proxy's order names it (crates/ironbench-proxy/src/proxy.rs), without a
        password. Returns None if the core has no proxy for this engine. Raises InputError."""
        return None

    def installations(self) -> tuple[tuple[str, str], ...]:
        """Returns the installed versions and the `bin` setting that selects each, the oldest first. All of them come
        from one source, so that they differ in little besides the version."""
        return ()

    def build_features(self, system: System) -> Mapping[str, bool] | None:
        """Returns, for each optional feature that the version can have, whether the system's program was built with it.
        Starts nothing. Returns None if the features are unknown, and {} if the engine has no optional features that
        matter."""
        return {}

    def in_use(self, system: System) -> InputError | None:
        """Returns the error for a server that is already running in the system's directories; None if no server is
        running there."""
        return None

    def can(self, ability: str) -> bool:
        """Returns whether the engine has an ability of `ABILITIES`."""
        assert ability in ABILITIES, ability
        return ability in self.traits.abilities

    def protocol(self, preferred: str) -> str:
        """Returns the protocol that scripts are compiled for: `preferred` if the engine supports it, otherwise the
        engine's first protocol."""
        return preferred if preferred in self.traits.protocols else self.traits.protocols[0]

    def basis(self, system: System) -> str:
        """Returns the properties that the data files depend on besides the loaded rows: version, build, flags. Returns
        "" if the files cannot be accessed."""
        return ""

    def loading_system(self, system: System, folder: Path) -> System:
        """Returns the system that loads the data for a snapshot in `folder`. It has only the settings that affect the
        files."""
        return system

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> CopyResult:
        """Copies the files of a stopped system into a new `folder`, completely or not at all. Raises FailureError.

        Without `keep`, files may be hard-linked, because the caller removes the system's own files at once.
        """
        return CopyResult()

    def restore(self, system: System, folder: Path) -> CopyResult:
        """Replaces the files of a stopped system with a snapshot. Raises InputError if there is not enough space, and
        FailureError.

        Files that were not restored from a snapshot are renamed, never removed.
        """
        return CopyResult()

    def cache_bytes(self, settings: Mapping[str, str], clients: int) -> int | None:
        """Returns the size of the engine's own data cache according to its settings, summed over `clients`; None if
        unknown."""
        return None

    def data_memory(self, settings: Mapping[str, str], clients: int) -> int | None:
        """Returns the memory that can cache data, for engines that bypass the page cache; None if all memory can."""
        return None

    def ideal_bytes(self, system: System) -> dict[str, int]:
        """Returns the maximum size in bytes of the files of each zero-latency part that is placed in a directory in
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

    def without_session_settings(self, text: str) -> str:
        """Returns the DSN `text` without settings of the connection."""
        return text

    def server_of(self, text: str) -> str:
        """Returns the address of the server in the DSN `text`. DSNs that name the same server by the same address give
        equal results."""
        return self.without_session_settings(text)

    def database_of(self, text: str) -> str:
        """Returns server and database of the DSN `text`, without the user and the parameters of TLS."""
        return self.without_session_settings(text)

    def missing(self, needs: Sequence[str]) -> list[str]:
        """Returns the abilities in `needs` that the engine lacks."""
        return [ability for ability in needs if not self.can(ability)]


class SessionDefaults:
    """Session methods for engines without counters, files and separate processes."""

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
