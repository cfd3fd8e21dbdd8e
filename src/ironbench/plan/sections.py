"""The sections of a lab file that a cell is made of."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from ironbench.ranges import RANGES

Time = str | int | float
Size = str | int
Setting = str | bool | int | float


def within(quantity: str) -> dict[str, float]:
    """The range of a quantity as msgspec and JSON Schema write it."""
    known = RANGES[quantity]
    return {"gt" if known.above else "ge": known.low, "le": known.high}


class SystemSection(Struct, forbid_unknown_fields=True):
    """The thing compared."""

    engine: Annotated[
        str, Meta(description="See `ironbench list engines`. Default: the preferred one that the workload runs on.")
    ] = ""
    dsn: Annotated[str, Meta(description="A server that is already running.")] = ""
    server: Annotated[
        str, Meta(description="Its machine, to be watched there: `ssh://user@host`. See docs/guide/remote-server.md.")
    ] = ""
    control: Annotated[
        Literal["", "ssh"],
        Meta(
            description="`ssh`: for trials, ironbench may change that machine: hold the server to `server_cpus`, and "
            'for `cache = "cold"` restart it and drop the page cache. It undoes what lasts.'
        ),
    ] = ""
    restart: Annotated[
        str, Meta(description="How the server restarts there: a systemd unit `NAME.service`, or a command.")
    ] = ""
    bin: Annotated[
        str, Meta(description="Directory of the engine's programs; `wheel:16` names those that came with ironbench.")
    ] = ""
    label: Annotated[str, Meta(description="Name of the system in tables and charts.")] = ""
    memory: Annotated[Size, Meta(description="The engine's own data cache, e.g. 1GB.")] = ""
    parallelism: Annotated[
        Annotated[int, Meta(**within("parallelism"))] | None,
        Meta(description="Processes or threads that one statement may use at most; 1: its own."),
    ] = None
    reference_score: Annotated[
        Annotated[float, Meta(**within("reference_score"))] | None,
        Meta(
            description="Score of its processors in a benchmark of others, higher is faster: charts of queries show "
            "the ratio that it lets expect."
        ),
    ] = None
    ideal: Annotated[
        str | list[str], Meta(description="Parts made as good as free: `log`, `data`, `temp`, `client`; `none`.")
    ] = ""
    set: Annotated[dict[str, Setting], Meta(description="Engine settings, in the engine's own words.")] = {}


class DeviceSection(Struct, forbid_unknown_fields=True):
    """An emulated device that `[layout]` names; roles that name the same one share it, each has a partition of its own.

    A device that needs nothing but its model is written `name = "expression"`.
    """

    model: Annotated[str, Meta(description="A device expression, e.g. `raid0(4, ssd-sata-2011)`. Required.")] = ""
    capacity: Annotated[
        Size,
        Meta(description="Default: twice the data and some more; for a log alone 2GiB, for spills 1GiB and the data."),
    ] = ""
    fs: Annotated[str, Meta(description="`ext4`, `xfs` or `btrfs`; `btrfs:compress=zstd`. Default ext4.")] = ""
    backing: Annotated[str, Meta(description="Directory that holds its bytes. Default: memory.")] = ""


class LayoutSection(Struct, forbid_unknown_fields=True):
    """Where the engine's bytes live: in directories (with a slash), or on emulated devices."""

    data: Annotated[str, Meta(description="Directory, name in [devices], or device expression for the data.")] = ""
    temp: Annotated[str, Meta(description="The same for spills.")] = ""
    log: Annotated[str, Meta(description="The same for the log (WAL).")] = ""


class LimitsSection(Struct, forbid_unknown_fields=True):
    """What the system may use of the machine."""

    memory_total: Annotated[
        Size, Meta(description="Limit enforced on engine plus page cache (a memory control group), e.g. 2GB.")
    ] = ""
    server_cpus: Annotated[str | int, Meta(description="CPUs of the engine, e.g. 0 or 0-3.")] = ""
    client_cpus: Annotated[str | int, Meta(description="CPUs of the driving threads.")] = ""


class DataSection(Struct, forbid_unknown_fields=True):
    """Your own data, from which every trial starts."""

    dump: Annotated[
        str,
        Meta(description="A dump of your database, from the lab file's directory: see `docs/guide/your-own-data.md`."),
    ] = ""
    setup: Annotated[
        list[str],
        Meta(description="Files of SQL, run in this order when the dump or template is there, or without one."),
    ] = []
    template: Annotated[
        str, Meta(description="Database on the server of `system.dsn` that each trial gets a copy of.")
    ] = ""
    check: Annotated[
        str, Meta(description="A query that must answer true after every trial; a trial that breaks it is voided.")
    ] = ""


class WorkloadSection(Struct, forbid_unknown_fields=True):
    """The work."""

    name: Annotated[str, Meta(description="See `ironbench list workloads`. Required.")] = ""
    files: Annotated[
        list[str], Meta(description="For `script`: FILE or FILE@WEIGHT, from the lab file's directory.")
    ] = []
    options: Annotated[dict[str, Setting], Meta(description="Options of the workload.")] = field(
        default_factory=dict, name="with"
    )
    define: Annotated[dict[str, Setting], Meta(description="Variables for the scripts.")] = {}


SEARCHES = "^(auto|ramp:|steps:|sine:|file:)"
"""How text begins that asks for a search, or declares a curve."""


class LoadSection(Struct, forbid_unknown_fields=True):
    """How hard a trial drives."""

    clients: Annotated[
        Annotated[int, Meta(**within("clients"))] | Annotated[str, Meta(pattern=SEARCHES)],
        Meta(
            description="Number of clients. `auto` or `auto:1-64`: search for the best number of each cell before the "
            "first block, and measure the cell at it. `ramp:1-64/60s`: a curve of how many are active, see "
            "`docs/guide/load-curves.md`."
        ),
    ] = 1
    threads: Annotated[
        int,
        Meta(
            description="Driving threads, shared by the clients; no more are started than there are clients.",
            **within("threads"),
        ),
    ] = 1
    workers: Annotated[
        int,
        Meta(
            description="Processes that share the clients, or the rate, and the load of large data, started by Ray; 0: "
            "ironbench itself drives and loads.",
            **within("workers"),
        ),
    ] = 0
    cluster: Annotated[
        str, Meta(description="Running Ray cluster with a machine for each worker: its address, or `auto`.")
    ] = ""
    fewer_workers: Annotated[
        bool,
        Meta(
            description="After a machine of the cluster was lost, go on with a worker on each that is left; blocks "
            "whose trials had unequal numbers are left out of comparisons. Default: such trials fail."
        ),
    ] = False
    rate: Annotated[
        float | str | None,
        Meta(
            description="Open loop: transactions started per second, all clients together; `70%`: of the throughput "
            "that the baseline has in a closed loop, measured first; `auto:100-5000`: of each cell the highest that "
            "keeps `limit`, searched for first; `ramp:100-5000/60s`, `steps:…`, `sine:…`, `file:…`: a curve."
        ),
    ] = None
    limit: Annotated[
        list[str],
        Meta(description="Limits of a search, METRIC=VALUE: a load that breaks one is too much for the cell."),
    ] = []
    arrivals: Annotated[Literal["poisson", "fixed"], Meta(description="Open loop: kind of intervals.")] = "poisson"
    duration: Annotated[Time, Meta(description="Measured time of each trial. Default 30s, or the workload's own.")] = ""
    transactions: Annotated[int | None, Meta(description="Transactions per client, instead of a duration.")] = None
    warmup: Annotated[
        Time,
        Meta(
            description="Driven before the measured time; `auto`: a pilot trial decides. "
            "Default 5s, or the workload's own."
        ),
    ] = ""
    think_time: Annotated[Time, Meta(description="Closed loop: pause of each client between transactions.")] = "0s"
    reconnect: Annotated[
        int,
        Meta(
            description="Transactions after which a client opens a new connection: 1 is pgbench's `-C`; 0: never.",
            **within("reconnect"),
        ),
    ] = 0
    max_tries: Annotated[
        Annotated[int, Meta(**within("max_tries"))] | None,
        Meta(
            description="Tries after serialization failures and deadlocks; 0: without limit. Default 1, or the "
            "workload's own."
        ),
    ] = None
    on_error: Annotated[
        Literal["stop", "continue"],
        Meta(
            description="`stop`: an error in the first second ends the trial, unless another try can succeed; "
            "`continue`: the transaction only counts as failed."
        ),
    ] = "stop"
    reconnect_on_loss: Annotated[
        bool,
        Meta(
            description="A client whose connection is lost opens a new one and continues. Without it the trial ends, "
            'or with `on_error = "continue"` only the client, as in pgbench.'
        ),
    ] = False
    report_per_statement: Annotated[bool, Meta(description="Time every SQL command of the scripts by itself.")] = False
    protocol: Annotated[
        Literal["", "prepared", "extended", "simple"],
        Meta(
            description="Send statements `prepared`, `extended` or `simple`, where the engine has the choice. "
            "Default `simple` for `script`, `select-only`, `tpcb-like` and `simple-update`, as in pgbench; else "
            "`prepared`."
        ),
    ] = ""
    cache: Annotated[
        Literal["", "cold", "warm", "hot"],
        Meta(description="State of the caches at the start of a trial; empty: as the trial before left them."),
    ] = ""
    io: Annotated[
        Literal["auto", "io_uring", "epoll"],
        Meta(description="How clients do I/O over a network: `auto`, `io_uring` or `epoll`."),
    ] = "auto"
    checkpoint: Annotated[Time, Meta(description="Interval of checkpoints during trials, e.g. 10s.")] = ""


_PREPARE = Meta(description="Run by `sh -c` in the lab file's directory; `ask: …` asks a person and waits for Enter.")


class PairSection(Struct, forbid_unknown_fields=True):
    """A command, and what undoes it."""

    prepare: Annotated[str, _PREPARE] = ""
    cleanup: Annotated[str, Meta(description="Undoes it, however the lab ends.")] = ""


class CommandsSection(Struct, forbid_unknown_fields=True):
    """Commands of your own, before and after each trial; those of a factor's level are added to these."""

    prepare: Annotated[str, Meta(description=f"Before each trial. {_PREPARE.description}")] = ""
    cleanup: Annotated[str, Meta(description="After each trial, however it ends: undoes `prepare`.")] = ""
    command_limit: Annotated[
        Time,
        Meta(description="Time limit of each command; beyond it, it is killed with all its processes. Default 2m."),
    ] = ""


class Sections(Struct, forbid_unknown_fields=True):
    """Everything that a level can change."""

    system: SystemSection = field(default_factory=SystemSection)
    devices: Annotated[dict[str, str | DeviceSection], Meta(description="Emulated devices by names of your own.")] = (
        field(default_factory=dict)
    )
    layout: LayoutSection = field(default_factory=LayoutSection)
    limits: LimitsSection = field(default_factory=LimitsSection)
    data: DataSection = field(default_factory=DataSection)
    workload: WorkloadSection = field(default_factory=WorkloadSection)
    load: LoadSection = field(default_factory=LoadSection)
    commands: CommandsSection = field(default_factory=CommandsSection)
