"""What every engine is: its abilities and costs as data, its dialect, and how it is started and kept.

One folder per engine, whose name is the engine's name; nothing outside it knows that name. docs/engines.md explains a
new one step by step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ironbench.engines.administration import Administration
from ironbench.engines.data_import import DataImport
from ironbench.engines.dialect import Dialect
from ironbench.engines.durability import Hazard
from ironbench.errors import FailureError, InputError, written
from ironbench.host.copies import Copied
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session, WorkConnection
from ironbench.model.system import System

ABILITIES: Mapping[str, str] = {
    "scripts": "the drive loop runs pgbench scripts on it",
    "transactions": "it is made for many short transactions at once, and workloads of such have texts for it",
    "data": "it keeps tables, and a workload's rows can be loaded into them",
    "directory": "it keeps a tree of entries, reached by the operations of LDAP",
    "queries": "it answers statements of any length over connections of their own",
    "bare machine": "there is no database between a workload and the machine",
    "in client": "it is a library that works in the threads that call it",
    "copy": "it takes rows as a stream (COPY)",
    "population": "many connections can fill a table of it: row by row, in batches or by a stream",
    "triggers": "changes of rows can run statements of the workload (triggers)",
    "compressed tables": "it can keep a table compressed, page by page",
    "checkpoints": "it makes checkpoints when it is asked, and reports them",
    "power cut": "it starts again, within one run, on what a power cut left",
    "whole numbers": "it has no exact decimals: rows come with amounts as whole numbers",
    "parallel statements": "statements that do not depend on each other may run at the same time",
    "partitions": "tables have range partitions, and procedures and sequences are kept beside them",
    "new connections": "clients can end their connections between transactions and open new ones",
    "counters": "it counts its commits, I/O, log and checkpoints",
    "waits": "what its connections wait for can be sampled",
    "plan times": "its plans tell planning times and spills",
    "maintenance": "backups, restores, index builds and vacuums can be asked for while it is in use",
}
"""What a workload can ask of an engine, in words for `ironbench list` and refusals."""


@dataclass(frozen=True, slots=True)
class EngineCosts:
    """What plans and estimates of space need to know; seen on a small virtual machine."""

    start_stop_s: float = 0.1
    """Up and down once, with checks of data and machine between."""
    empty_bytes: int = 0
    """A database without tables."""
    log_bytes: int | None = None
    """What its log keeps at most, whatever is written; None: as much as was written."""
    mixed_read_bytes: int = 65536
    """Size of a random read that takes an emulated disk as long as the engine's mix of reads for queries does."""
    row_head_bytes: int = 0
    """Of a stored row, besides its values."""
    page_bytes: int = 0
    """Bytes for rows in a page that holds whole rows only; 0: rows may cross pages."""
    key_beside: bool = False
    """Whether a primary key is an index apart from the rows; else the rows lie in its order."""
    queries_s: float = 30.0
    """One stream of the 22 TPC-H-derived queries at scale factor 1 on two cores."""
    queries_read: float = 10.0
    """How many times such a stream reads its data where memory holds a third of them."""
    checkpoint_s: float = 0.0
    """From one checkpoint to the next unless it is set; 0: it has none of its own accord."""

    def log_of(self, written_bytes: int) -> int:
        """What the log holds after so much was written."""
        return written_bytes if self.log_bytes is None else min(written_bytes, self.log_bytes)


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting that is often worth a question."""

    name: str
    levels: tuple[str, ...]
    """The default first."""
    about: str
    """What it is about, as a sentence."""
    session: bool = False
    """Whether a connection may set it for itself."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What an engine is, as data."""

    doc: str
    """One line for `ironbench list engines`."""
    abilities: frozenset[str] = frozenset()
    """Of `ABILITIES`."""
    preference: int = 0
    """The highest among those that can run a workload is the default."""
    protocols: tuple[str, ...] = ("",)
    """How its statements can be sent; scripts are compiled for the first unless another is asked for."""
    costs: EngineCosts = field(default_factory=EngineCosts)
    dialect: Dialect = field(default_factory=Dialect)
    schemes: tuple[str, ...] = ()
    """Of DSNs that name its servers; `""`: a DSN may have none. (): it is no server."""
    packages: tuple[str, ...] = ()
    """Python packages that carry it: their versions are in every record."""
    events: Mapping[str, str] = field(default_factory=dict)
    """Wait event, as its observer names it → what a backend in it does, to be read after "the holder"."""
    texts: tuple[str, ...] = ()
    """Suffixes, beside its name, of the SQL texts that it takes: those of the same database reached otherwise."""
    products: tuple[str, ...] = ()
    """Names that drivers of others give this database when they are asked what it is."""
    knobs: tuple[Knob, ...] = ()
    """Settings that `ironbench lab new setting` suggests, the most telling first."""
    ideal_settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Ideal part → settings of which it decides the value."""
    writers: int | None = None
    """How many connections may write at the same time; None: as many as there are."""
    files_per_client: int = 1
    """Files that ironbench has open for each client: a socket, or the files of a library engine."""
    beside_version: tuple[str, ...] = ()
    """Settings whose defaults differ by version or build: a comparison of versions must name them."""
    build_features: Mapping[str, str] = field(default_factory=dict)
    """Optional feature of a build → the setting that offers it: a version without that setting cannot have it."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """Settings that a comparison of versions should have alike, and how."""
    derived_settings: tuple[str, ...] = ()
    """Settings that the server computes from others, or that the layout decides: nobody sets them."""
    hazards: tuple[Hazard, ...] = ()
    """Settings that can lose data."""

    @property
    def in_process(self) -> bool:
        """Whether statements are calls of a library in the client's process."""
        return self.protocols[0].endswith("library")


class Engine(ABC):
    """Where a database comes from and how it is started. The core knows how to talk to it."""

    name: str
    traits: Traits

    administration: Administration = Administration()
    """What is done to it, or asked of it, around a trial."""
    data_import: DataImport = DataImport()
    """How the user's own data get into it."""

    @property
    def variants(self) -> Mapping[str, Engine]:
        """Name, which begins with ours and a hyphen → this engine with the dialect of one database."""
        return {}

    def behind(self, dsn: str | None) -> Engine:
        """The engine that a DSN leads to: itself, or one of its variants, which may have to be asked for.
        InputError, FailureError."""
        return self

    @abstractmethod
    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """The system with absolute directories and without its password, and the password.

        Starts, makes and changes nothing. InputError for whatever cannot be used.
        """

    @abstractmethod
    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        """What tells this program from another version or build of it; starts nothing. InputError, FailureError."""

    @abstractmethod
    def start(self, system: System, secrets: Secrets, clients: int) -> Session:
        """A running engine that takes `clients` connections and a few more. InputError, FailureError."""

    def installations(self) -> tuple[tuple[str, str], ...]:
        """Versions of it on this machine and the `bin` that starts each, the oldest first; all of one origin, so that
        they differ in as little as possible besides the version."""
        return ()

    def in_use(self, system: System) -> InputError | None:
        """Why nothing can be started in the directories of a server of ours: one runs there. A run refuses by it."""
        return None

    def can(self, ability: str) -> bool:
        """Whether it has one of `ABILITIES`."""
        assert ability in ABILITIES, ability
        return ability in self.traits.abilities

    def protocol(self, preferred: str) -> str:
        """The protocol that scripts are compiled for: the preferred one where there is a choice."""
        return preferred if preferred in self.traits.protocols else self.traits.protocols[0]

    def basis(self, system: System) -> str:
        """What its files depend on besides the rows loaded: version, build, flags; "" where files are out of reach."""
        return ""

    def plain(self, system: System, folder: Path) -> System:
        """The system that loads data for a snapshot in `folder`: only what shapes the files is kept."""
        return system

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> Copied:
        """Copies the files of a stopped system into a new `folder`, complete or not at all. FailureError.

        Not `keep`: the files may be linked instead, for the caller removes the system's own at once.
        """
        return Copied()

    def restore(self, system: System, folder: Path) -> Copied:
        """Makes a stopped system's files those of a snapshot. InputError: no room. FailureError.

        What no snapshot made is never removed but renamed.
        """
        return Copied()

    def cache_bytes(self, settings: Mapping[str, str], clients: int) -> int | None:
        """Size of its own data cache by the settings of its facts, of all `clients` together; None: not known."""
        return None

    def data_memory(self, settings: Mapping[str, str], clients: int) -> int | None:
        """Memory that data can stay in, where it reads past the page cache; None: all that there is."""
        return None

    def ideal_bytes(self, system: System) -> dict[str, int]:
        """Ideal part → memory that it may need besides the engine's; a limit on all memory grows by as much."""
        return {}

    def preset(self, system: System, streams: int) -> dict[str, str]:
        """Settings that suit large queries in so many streams on this system; what the user sets wins."""
        return {}

    def for_devices(self, system: System) -> dict[str, str]:
        """Settings that suit the system's emulated devices; what the user sets wins. InputError."""
        return {}

    def with_session_setting(self, text: str, name: str, value: str) -> str:
        """The DSN `text` of connections that set this for themselves. InputError: its DSNs cannot say that."""
        raise InputError("--dsn", f"connections to {self.name} cannot set {name} by their DSN", "vary it by a command")

    def without_session_settings(self, text: str) -> str:
        """The DSN `text` as the address of its database alone."""
        return text

    def server_of(self, text: str) -> str:
        """Where the server of the DSN `text` listens: equal for DSNs that lead to one server by the same address."""
        return self.without_session_settings(text)

    def database_of(self, text: str) -> str:
        """Which database of which server the DSN `text` leads to, whoever asks and however the way is secured."""
        return self.without_session_settings(text)

    def missing(self, needs: Sequence[str]) -> list[str]:
        """Those abilities of `needs` that it does not have."""
        return [ability for ability in needs if not self.can(ability)]


class SessionDefaults:
    """What a session answers where the engine counts nothing, keeps nothing and has no process of its own."""

    engine: str

    def line(self, cpus: Sequence[int] = ()) -> WorkConnection:
        raise FailureError(f"engine {self.engine}", "there is no database to connect to")

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
        """There are no caches to empty."""

    def stop(self) -> None:
        """Nothing was started."""


def set_twice(field: str, setting: str) -> InputError:
    """For an engine setting that says what a field of ours says, too."""
    return InputError(field, f"{written('system.set', setting)} says the same thing another way", "keep one of the two")
