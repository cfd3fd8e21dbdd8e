"""What is compared: a system, and the load put on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import Meta

from ironbench.model.commands import Commands
from ironbench.model.constraints import (
    Amount,
    BlockNumber,
    ClientCount,
    Count,
    Cpus,
    Label,
    Name,
    Natural,
    Positive,
    StageNumber,
    one_of,
)
from ironbench.model.curve import Curve
from ironbench.model.own_data import OwnData
from ironbench.model.purpose import Purpose
from ironbench.model.search import Best, Search


@dataclass(frozen=True, slots=True)
class Partition:
    """Part of an emulated device that holds one role."""

    role: Name
    bytes: Natural
    directory: str
    """Where its file system is mounted."""


@dataclass(frozen=True, slots=True)
class Device:
    """An emulated device: it exists while a system on it is measured. Its partitions share its queue."""

    model: str
    """The device expression in its normal form."""
    partitions: tuple[Partition, ...]
    """In the order in which they lie on it."""
    file_system: Name = "ext4"
    """`ext4`, `xfs` or `btrfs`, with an option of its mount after a colon: `btrfs:compress=zstd`."""
    backing: str = "ram"
    """Directory that holds its bytes, or `ram`."""
    depth: Count = 1
    """So many reads at a time it gains from."""
    rotates: bool = False
    """Whether a rotating disk is in it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where an engine's bytes live: absolute directories; None leaves the role where the engine puts it."""

    data: str | None = None
    temp: str | None = None
    log: str | None = None
    devices: tuple[Device, ...] = ()
    """Emulated devices that are mounted for the roles whose directories are theirs."""

    @property
    def emulated(self) -> frozenset[str]:
        """Directories that are there only while the devices are mounted."""
        return frozenset(partition.directory for device in self.devices for partition in device.partitions)

    def device_of(self, role: str) -> Device | None:
        """The emulated device that holds a role; None: it is on no such device."""
        return next((one for one in self.devices if any(part.role == role for part in one.partitions)), None)

    def at(self, directories: Mapping[str, str | None]) -> Layout:
        """The layout with these roles in these directories."""
        places = {role: directories.get(role, getattr(self, role)) for role in ("data", "temp", "log")}
        return Layout(places["data"], places["temp"], places["log"], self.devices)


@dataclass(frozen=True, slots=True)
class System:
    """The thing compared: engine, settings, layout and limits."""

    engine: Name
    label: Name
    settings: dict[str, str] = field(default_factory=dict)
    """What the user set with --set, in the engine's own words."""
    layout: Layout = Layout()
    memory_bytes: Natural | None = None
    """The engine's own data cache (PostgreSQL: shared_buffers)."""
    server_cpus: Cpus | None = None
    client_cpus: Cpus | None = None
    memory_total_bytes: Natural | None = None
    """An enforced limit on the engine and the page cache of its files (a memory control group)."""
    parallelism: Natural | None = None
    """Most processes or threads of one statement; 1: not parallel."""
    ideal: tuple[Name, ...] = ()
    """Parts made as good as free, to measure what they cost: `log`, `data`, `temp`, `client`."""
    dsn: str | None = None
    """A running server, its password removed (see `Secrets`)."""
    server: str | None = None
    """The machine of that server, `ssh://…`; None: this one, or one that nobody watches."""
    control: bool = False
    """Whether ironbench may change that machine for trials, over ssh."""
    restart: str = ""
    """How the server restarts there: a systemd unit, `NAME.service`, or a command."""
    reference_score: Positive | None = None
    """CPU benchmark score (e.g. SPEC), higher is faster; charts of queries show the ratio it predicts."""
    commands: tuple[Commands, ...] = ()
    """The user's own, that make it what it is: done first to last before it is measured, undone last to first after."""


@dataclass(frozen=True, slots=True)
class Load:
    """How hard a trial drives the system."""

    clients: ClientCount = 1
    threads: Natural = 1
    """Of each worker, where there are any."""
    rate: Positive | None = None
    """Transactions started per second in an open loop; None is a closed loop."""
    rate_share: Positive | None = None
    """The rate as a share of the baseline's peak, which a lab measures first; `rate` is None until then."""
    curve: Curve | None = None
    """How the rate or the clients change during the trial: then `rate` is the mean, `clients` the most."""
    arrivals: Annotated[str, one_of("poisson", "fixed")] = "poisson"
    """`poisson` or `fixed`; only an open loop has arrivals."""
    think_time_s: Amount = 0.0
    reconnect: Natural = 0
    """Transactions after which a client ends its connection and opens a new one; 0: never."""
    duration_s: Positive | None = 30.0
    transactions: Count | None = None
    """Transactions per client, instead of a duration."""
    warmup_s: Amount = 0.0
    warmup_auto: bool = False
    """A pilot trial decides the warm-up; what it decided is `warmup_s` in records."""
    max_tries: Natural = 1
    on_error: Annotated[str, one_of("continue", "stop")] = "continue"
    """`stop`: an error of the first second that no further try mends ends the trial; `continue`: it only counts.

    Records without this field continued.
    """
    reconnect_on_loss: bool = False
    """A client that loses its connection opens a new one, and the trial continues whatever `on_error` says."""
    report_per_statement: bool = False
    """Every SQL command of the scripts is timed by itself."""
    protocol: Name = "prepared"
    seed: Natural = 0
    io: Annotated[str, one_of("auto", "io_uring", "epoll")] = "auto"
    """How the client does its I/O: `auto`, `io_uring` or `epoll`."""
    cache: Label = ""
    """State of the caches at the start of a trial: `cold`, `warm` or `hot`; empty: as the trial before left them."""
    checkpoint_s: Positive | None = None
    """Interval of checkpoints during the trial; None leaves them to the engine's settings."""
    workers: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Processes that share the clients, or the rate; 0: ironbench itself drives all."""
    cluster: Label = ""
    """Ray cluster that they run on, one on each machine; empty: on this machine."""
    fewer_workers: bool = False
    """After a machine was lost, trials are driven by the workers of those that are left."""

    @property
    def shape(self) -> Load:
        """Without what a sweep varies or what follows from it: clients, threads, seed, a warm-up by pilot."""
        warmup_s = 0.0 if self.warmup_auto else self.warmup_s
        # The last four do not bear on what was measured.
        return replace(
            self,
            clients=0,
            threads=0,
            seed=0,
            warmup_s=warmup_s,
            on_error="continue",
            reconnect_on_loss=False,
            report_per_statement=False,
            fewer_workers=False,
        )


def connections(system: System, load: Load, clients: int) -> int:
    """How many a server of ours must take for so many clients: where a client opens a new connection, the server may
    not have ended its last one yet. A server that was running already is asked for one a client."""
    reconnects = bool(load.reconnect) or load.reconnect_on_loss
    return 2 * clients if reconnects and system.dsn is None else clients


@dataclass(frozen=True, slots=True)
class Choice:
    """A workload and the options chosen for it."""

    workload: Name
    options: dict[str, str] = field(default_factory=dict)
    """Every option of the workload, defaults filled in, as normal text."""
    defines: dict[str, str] = field(default_factory=dict)
    """-D variables for the scripts."""
    scripts: tuple[str, ...] = ()
    """Files (`path` or `path@weight`) of the `script` workload."""
    digests: tuple[str, ...] = ()
    """Of the contents of each, when the trials were planned; empty in records before schema 2."""
    data: OwnData | None = None
    """The user's own data that trials start from; None: the workload's, or those that are there."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of the varied factors."""

    name: Name
    """Unique in its series, e.g. `clients=8`."""
    load: Load
    levels: dict[str, str] = field(default_factory=dict)
    """In a lab: factor → name of its level in this cell."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A cell of a lab with everything that its trials need."""

    cell: Cell
    system: System
    choice: Choice
    skipped: str = ""
    """Why this cell cannot be measured here; empty when it can."""
    of: Label = ""
    """Of a rated cell: the name of the cell that it is, driven at a share of the baseline's peak."""
    search: Search | None = None
    """Chooses the load of the cell before the first block; until then its load is the highest of the range."""
    best: Best | None = None
    """What the search chose; None until it has, and where there is none."""

    @property
    def origin(self) -> str:
        """The cell whose data, secrets and warm-up this one shares: its own unless it is rated."""
        return self.of or self.cell.name


@dataclass(frozen=True, slots=True)
class Trial:
    """One planned measurement: a cell in a block, with a purpose."""

    cell: Cell
    block: BlockNumber
    """0-based repeat."""
    purpose: Purpose = Purpose.SWEEP
    stage: StageNumber = 1
    """1-based; a later stage is declared before it starts, with blocks that go on counting."""
    attempt: StageNumber = 1
    """2: a failed trial was tried once more."""
