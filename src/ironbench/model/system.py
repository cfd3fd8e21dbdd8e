"""The system under test, and the load on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
from ironbench.model.search import ChosenLoad, Search


@dataclass(frozen=True, slots=True)
class Partition:
    """The part of an emulated device that stores the files of one role."""

    role: Name
    bytes: Natural
    directory: str
    """Mount point of the partition's file system."""


@dataclass(frozen=True, slots=True)
class Device:
    """An emulated device. The device exists only while a system that uses it is measured, and all partitions share one
    queue."""

    model: str
    """The device expression, in normal form."""
    partitions: tuple[Partition, ...]
    """Partitions in the order of their offsets on the device."""
    file_system: Name = "ext4"
    """`ext4`, `xfs` or `btrfs`, optionally with a mount option after a colon: `btrfs:compress=zstd`."""
    backing: str = "ram"
    """Directory that stores the device's contents, or `ram`."""
    depth: Count = 1
    """The device becomes faster with more concurrent reads, up to this queue depth."""
    rotates: bool = False
    """Whether the device contains a rotating disk."""


ZERO_LATENCY = "free"
"""Expression of the device that completes every request immediately."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Directories of an engine's files, one for each role, as absolute paths. A directory is None if the engine chooses
    it."""

    data: str | None = None
    temp: str | None = None
    log: str | None = None
    devices: tuple[Device, ...] = ()
    """Emulated devices to mount. The directory of a role may be on one of these devices."""

    @property
    def emulated(self) -> frozenset[str]:
        """Directories that exist only while the devices are mounted."""
        return frozenset(partition.directory for device in self.devices for partition in device.partitions)

    def device_of(self, role: str) -> Device | None:
        """Returns the emulated device that stores a role. Returns None if no emulated device does."""
        return next((one for one in self.devices if any(part.role == role for part in one.partitions)), None)

    def without(self, roles: Collection[str]) -> Layout:
        """Returns a layout in which the engine chooses the directories of these roles, so that none of them is on an
        emulated device."""
        kept = [
            replace(one, partitions=tuple(part for part in one.partitions if part.role not in roles))
            for one in self.devices
        ]
        return replace(self.at(dict.fromkeys(roles)), devices=tuple(one for one in kept if one.partitions))

    def at(self, directories: Mapping[str, str | None]) -> Layout:
        """Returns the layout with the given roles moved to the given directories."""
        places = {role: directories.get(role, getattr(self, role)) for role in ("data", "temp", "log")}
        return Layout(places["data"], places["temp"], places["log"], self.devices)


@dataclass(frozen=True, slots=True)
class System:
    """The system under test: engine, settings, layout and limits."""

    engine: Name
    label: Name
    settings: dict[str, str] = field(default_factory=dict)
    """Settings from `--set`, under the engine's own names."""
    layout: Layout = Layout()
    memory_bytes: Natural | None = None
    """Size of the engine's buffer cache (PostgreSQL: shared_buffers)."""
    server_cpus: Cpus | None = None
    client_cpus: Cpus | None = None
    memory_total_bytes: Natural | None = None
    """Memory limit for the engine and the page cache of its files, which a control group enforces."""
    latency_s: Positive | None = None
    """Round-trip time that a relay adds between clients and server, half of it in each direction. The value is None if
    there is no relay."""
    parallelism: Natural | None = None
    """Maximum number of processes or threads for one statement. 1 if statements do not run in parallel."""
    ideal: tuple[Name, ...] = ()
    """Parts that have zero latency in this system, so that a comparison shows what they cost: `log`, `data`, `temp` or
    `client`."""
    dsn: str | None = None
    """DSN of an existing server, without the password (see `Secrets`)."""
    server: str | None = None
    """The machine of the existing server as `ssh://…`. The value is None if it is this machine, or if it is not
    observed."""
    control: bool = False
    """Whether ironbench may make changes on the server's machine over SSH for trials."""
    restart: str = ""
    """How to restart the server on its machine: a systemd unit, `NAME.service`, or a command."""
    reference_score: Positive | None = None
    """CPU benchmark score of the machine, for example from SPEC. A higher score is better. Charts of query times show
    the ratio that the scores of two systems predict."""
    commands: tuple[Commands, ...] = ()
    """The user's commands that set the system up. The commands run in order before the system is measured, and are
    undone in reverse order afterwards."""

    def on_zero_latency_device(self, role: str) -> bool:
        """Returns whether the files of a role are on an emulated zero-latency device. Either the user chose this
        device, or ironbench uses it to give a part zero latency (as an alternative to a directory in memory)."""
        device = self.layout.device_of(role)
        return device is not None and device.model == ZERO_LATENCY

    @property
    def zero_latency_parts(self) -> tuple[str, ...]:
        """The parts in `ideal`, and WAL and temporary files if the user put them on a zero-latency device.

        Data files on such a device do not make `data` a zero-latency part. For zero-latency data, the engine caches all
        data instead.
        """
        placed = (role for role in ("log", "temp") if self.on_zero_latency_device(role))
        return tuple(dict.fromkeys((*self.ideal, *placed)))


@dataclass(frozen=True, slots=True)
class Load:
    """The load on the system during a trial."""

    clients: ClientCount = 1
    threads: Natural = 1
    """Threads of the client, or of each worker if there are workers."""
    rate: Positive | None = None
    """Target rate in transactions per second for an open loop, or None for a closed loop."""
    rate_share: Positive | None = None
    """The rate as a fraction of the baseline's peak throughput. A lab measures the peak first. Until then, `rate` is
    None."""
    curve: Curve | None = None
    """How the rate or the number of clients changes during the trial. For a curve of the rate, `rate` is the mean of
    the curve. For a curve of clients, `clients` is its maximum."""
    arrivals: Annotated[str, one_of("poisson", "fixed")] = "poisson"
    """Distribution of arrivals: `poisson` or `fixed`; used only in an open loop."""
    think_time_s: Amount = 0.0
    reconnect: Natural = 0
    """Number of transactions after which a client closes its connection and opens a new one. 0 if clients never
    reconnect."""
    duration_s: Positive | None = 30.0
    transactions: Count | None = None
    """Number of transactions per client, used instead of a duration."""
    warmup_s: Amount = 0.0
    warmup_auto: bool = False
    """Whether a pilot trial determines the warm-up. In records, `warmup_s` is then the result."""
    max_tries: Natural = 1
    on_error: Annotated[str, one_of("continue", "stop")] = "continue"
    """What happens after an error. `stop`: the trial ends if the error occurs in the first second and a retry cannot
    fix it. `continue`: errors are only counted.

    Records without this field used `continue`.
    """
    reconnect_on_loss: bool = False
    """Whether a client that loses its connection opens a new one. The trial then continues, regardless of
    `on_error`."""
    report_per_statement: bool = False
    """Whether every SQL command of the scripts is timed separately."""
    protocol: Name = "prepared"
    seed: Natural = 0
    io: Annotated[str, one_of("auto", "io_uring", "epoll")] = "auto"
    """I/O interface of the client: `auto`, `io_uring` or `epoll`."""
    cache: Label = ""
    """State of the caches at the start of a trial: `cold`, `warm` or `hot`. Empty if the caches stay as the previous
    trial left them."""
    checkpoint_s: Positive | None = None
    """Interval of checkpoints in seconds during the trial, or None if the engine's configuration determines it."""
    workers: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Number of worker processes among which the clients and the rate are divided. 0 if ironbench itself generates the
    load."""
    cluster: Label = ""
    """Ray cluster on which the workers run, one per machine. Empty if they run on this machine."""
    fewer_workers: bool = False
    """Whether trials continue with the remaining workers after a machine was lost."""

    @property
    def shape(self) -> Load:
        """The load without the fields that a sweep varies or derives. These are clients, threads, seed, and a warm-up
        that a pilot chose."""
        warmup_s = 0.0 if self.warmup_auto else self.warmup_s
        # The last four fields do not affect what is measured.
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
    """Returns how many connections a server must be configured to accept for this load. A client that reconnects may
    need two connections, because the server may not have closed the previous one yet. For an existing server (`--dsn`),
    only one per client is required.
    """
    reconnects = bool(load.reconnect) or load.reconnect_on_loss
    return 2 * clients if reconnects and system.dsn is None else clients


@dataclass(frozen=True, slots=True)
class Choice:
    """A workload and its options."""

    workload: Name
    options: dict[str, str] = field(default_factory=dict)
    """Every option of the workload as normalised text, including default values."""
    defines: dict[str, str] = field(default_factory=dict)
    """Variables for the scripts (`-D`)."""
    scripts: tuple[str, ...] = ()
    """Files (`path` or `path@weight`) of the `script` workload."""
    digests: tuple[str, ...] = ()
    """Digest of each script when the trials were planned. Empty in records before schema 2."""
    data: OwnData | None = None
    """The user's own data, from which trials start, or None if trials use the workload's data or existing data."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A configuration: a combination of values of the varied factors."""

    name: Name
    """Name that is unique in its series, such as `clients=8`."""
    load: Load
    levels: dict[str, str] = field(default_factory=dict)
    """In a lab: for each factor, the name of its value in this configuration."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A configuration of a lab with everything that its trials need."""

    cell: Cell
    system: System
    choice: Choice
    skipped: str = ""
    """Why the configuration cannot be measured on this machine. Empty if it can."""
    of: Label = ""
    """For a fixed-rate configuration: name of the configuration that it repeats at a percentage of the baseline's peak.
    """
    search: Search | None = None
    """The search that chooses the configuration's load before the first block. Until then, the load is the highest of
    the range."""
    best: ChosenLoad | None = None
    """Result of the search, or None before the search or without a search."""

    @property
    def origin(self) -> str:
        """Name of the configuration whose data, secrets and warm-up this configuration shares. This is the
        configuration itself, unless it has a fixed rate."""
        return self.of or self.cell.name


@dataclass(frozen=True, slots=True)
class Trial:
    """A planned measurement: a configuration in a block, with a purpose."""

    cell: Cell
    block: BlockNumber
    """0-based number of the repeat."""
    purpose: Purpose = Purpose.SWEEP
    stage: StageNumber = 1
    """1-based number of the stage. A stage is declared before it starts, and block numbers continue across stages."""
    attempt: StageNumber = 1
    """1-based number of the attempt, which is 2 if the trial was repeated after a failure."""
