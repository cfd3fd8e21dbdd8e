"""The sections that lab files and `ironbench run` have in common: the system, its data and its load."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from ironbench.fields.row import row, table
from ironbench.model.curve import WORDS as CURVES
from ironbench.ranges import DAY_S, MOST_BYTES, YEAR_S, Range

USUAL_DURATION_S = 30.0
"""Duration of a trial in seconds if neither the user nor the workload sets one."""
USUAL_WARMUP_S = 5.0
"""Warm-up in seconds if neither the user nor the workload sets one."""

Time = str | int | float
Size = str | int
Setting = str | bool | int | float
SEARCHES = f"^(auto|{'|'.join(CURVES)})"
"""Pattern of texts that request a search or declare a curve. Such a text replaces a number."""
Tags = Annotated[
    dict[str, Setting],
    row("Tags to store in every record, e.g. `commit=1f3c2a9`; `ironbench history --by` orders records by a tag."),
]
CAPACITY = Range(1, MOST_BYTES, "bytes", example="8GB")
MEMORY = Range(1, MOST_BYTES, "bytes", example="1GB")


class FieldSection(Struct, forbid_unknown_fields=True):
    """Fields that belong together."""


class SystemSection(FieldSection):
    """The system under test."""

    engine: Annotated[
        str,
        row(
            "Database engine: see `ironbench list engines`.",
            usual="the preferred engine for the workload",
            names="engines",
        ),
    ] = ""
    dsn: Annotated[str, row("Address of an existing server, as a URI or key=value pairs.", metavar="ADDRESS")] = ""
    server: Annotated[
        str,
        row(
            "Machine on which the `dsn` server runs. ironbench observes this machine over ssh: see "
            "docs/how/remote-server.md.",
            metavar="ssh://USER@HOST",
        ),
    ] = ""
    control: Annotated[
        Literal["", "ssh"],
        row(
            "`ssh`: allow ironbench to change the machine of `server` for a trial. ironbench then pins the server to "
            "`server_cpus` and, for a cold `cache`, restarts the server and drops the page cache. ironbench undoes "
            "lasting changes after the trial.",
            metavar="ssh",
        ),
    ] = ""
    restart: Annotated[
        str,
        row("How to restart the `dsn` server: a systemd unit `NAME.service`, or a command.", metavar="UNIT"),
    ] = ""
    bin: Annotated[
        str,
        row(
            "Directory of the engine's programs; `wheel:16`: the programs of version 16 that come with ironbench.",
            run=False,
        ),
    ] = ""
    label: Annotated[str, row("Name of the system in tables and charts.")] = ""
    memory: Annotated[Size, row("Size of the engine's own data cache, e.g. 1GB.", MEMORY)] = ""
    parallelism: Annotated[
        int | None,
        row(
            "Maximum number of processes or threads for one statement; 1: no parallelism.",
            Range(1, 1024, whole=True, example="2"),
        ),
    ] = None
    reference_score: Annotated[
        float | None,
        row(
            "Benchmark score of the system's CPUs; higher is faster. Charts of queries compare the measured speed "
            "ratio with the ratio of the scores.",
            Range(0.0, 1e12, above=True, example="31.5"),
        ),
    ] = None
    ideal: Annotated[
        str | list[str],
        row(
            "Parts of the system to replace with zero-latency versions: `log`, `data`, `temp`, `client`; or `none`.",
            metavar="PARTS",
        ),
    ] = ""
    set: Annotated[dict[str, Setting], row("Engine settings, with the engine's own names and values.")] = {}


class DeviceSection(FieldSection):
    """An emulated device. `[layout]` can place data, temporary files and WAL on one device, in separate partitions. A
    device that needs only a model can be written as `name = "expression"`.
    """

    model: Annotated[
        str, row("A device model or an expression, e.g. `raid0(4, ssd-sata-2011)`. Required.", run=False)
    ] = ""
    capacity: Annotated[
        Size,
        row(
            "Size of each emulated device.",
            CAPACITY,
            usual="a little more than twice the data size; 2GiB for a device with only WAL; the data size plus 1GiB "
            "for a device with only temporary files",
        ),
    ] = ""
    fs: Annotated[str, row("File system of emulated devices: `ext4`, `xfs`, `btrfs` or `btrfs:compress=zstd`.",
                           usual="ext4")] = ""  # fmt: skip
    backing: Annotated[
        str,
        row(
            "Where ironbench stores the contents of emulated devices: a directory, or `ram`.",
            usual="ram",
            metavar="DIR|ram",
        ),
    ] = ""


class LayoutSection(FieldSection):
    """Where the engine's files are stored: in a directory (a path with a slash), or on an emulated device."""

    data: Annotated[
        str,
        row(
            "Where the data are stored: a directory or an emulated device. An emulated device is a device model or an "
            "expression; in a lab file, it can also be a name from [devices].",
            metavar="DIR|DEVICE",
            names="devices",
        ),
    ] = ""
    temp: Annotated[
        str,
        row("Where temporary files are stored; same syntax as `data`.", metavar="DIR|DEVICE", names="devices"),
    ] = ""
    log: Annotated[
        str,
        row("Where the WAL or redo log is stored; same syntax as `data`.", metavar="DIR|DEVICE", names="devices"),
    ] = ""


class LimitsSection(FieldSection):
    """The parts of the machine that the system may use."""

    memory_total: Annotated[
        Size,
        row(
            "Limit on the engine's memory, including the page cache of its files, e.g. 2GB. A control group "
            "enforces the limit.",
            Range(1, MOST_BYTES, "bytes", example="2GB"),
        ),
    ] = ""
    server_cpus: Annotated[str | int, row("CPUs that the engine may use, e.g. 0 or 0-3.", metavar="CPUS")] = ""
    client_cpus: Annotated[str | int, row("CPUs that the load generator may use, e.g. 0 or 0-3.", metavar="CPUS")] = ""
    latency: Annotated[
        Time,
        row(
            "Network latency to add between the clients and the server, as a round-trip time, e.g. 0.2ms; 0: none. "
            "See docs/how/network-latency.md.",
            Range(0.0, 1.0, "s", example="0.2ms", note="round-trip time; half of it is added in each direction"),
        ),
    ] = ""


class DataSection(FieldSection):
    """Your own data, from which every trial starts."""

    dump: Annotated[
        str,
        row(
            "Dump of your own database (a file or directory), from which every trial starts: see "
            "docs/how/your-own-data.md.",
            metavar="FILE",
        ),
    ] = ""
    setup: Annotated[
        list[str],
        row(
            "SQL files to run after the dump or template is restored. Without a dump or template, these files create "
            "your data.",
            metavar="FILE",
        ),
    ] = []
    template: Annotated[
        str, row("Database on the `dsn` server; every trial starts from a copy of it.", metavar="DB")
    ] = ""
    check: Annotated[
        str, row("Query that must return true after every trial; otherwise the trial is invalid.", metavar="SQL")
    ] = ""


class WorkloadSection(FieldSection):
    """The workload and its options."""

    name: Annotated[
        str, row("Name of the workload; `ironbench list workloads` lists the names. Required.", run=False)
    ] = ""
    files: Annotated[
        list[str], row("For the workload `script`: script files, each as FILE or FILE@WEIGHT.", run=False)
    ] = []
    options: Annotated[dict[str, Setting], row("Options of the workload.")] = field(default_factory=dict, name="with")
    define: Annotated[dict[str, Setting], row("Variables for the scripts.", metavar="VAR=VALUE", option=("-D",))] = {}


class LoadSection(FieldSection):
    """The load during a trial."""

    clients: Annotated[
        int | Annotated[str, Meta(pattern=SEARCHES)],
        row(
            "Number of clients. `auto` or `auto:1-128` searches for the best number; `ramp:1-64/60s` varies the number "
            "of active clients during the trial, see docs/how/load-curves.md. On the command line, `1,2,4,8` measures "
            "each of these numbers.",
            Range(1, 10_000, whole=True, example="8"),
            texts=SEARCHES,
            instead="auto:1-64 or ramp:1-64/60s",
        ),
    ] = 1
    threads: Annotated[
        int,
        row(
            "Number of threads of the load generator. The clients are divided among the threads; there are never more "
            "threads than clients.",
            Range(1, 1024, whole=True, example="2"),
        ),
    ] = 1
    workers: Annotated[
        int,
        row(
            "Number of worker processes that Ray starts. The clients, the rate and the loading of large data are "
            "divided among the workers. 0: no workers; ironbench itself generates the load.",
            Range(0, 1000, whole=True, example="4"),
        ),
    ] = 0
    cluster: Annotated[
        str,
        row(
            "Address of a running Ray cluster, or `auto`. The cluster needs a machine for each worker.",
            metavar="ADDRESS|auto",
        ),
    ] = ""
    fewer_workers: Annotated[
        bool,
        row(
            "If a machine of the cluster is lost, continue with the remaining machines. A block whose trials had "
            "different numbers of workers is excluded from comparisons. Without this option, a trial fails if a "
            "machine is lost.",
            option=("--fewer-workers/--no-fewer-workers",),
        ),
    ] = False
    rate: Annotated[
        float | str | None,
        row(
            "Open loop: total number of transactions that all clients start per second. `auto:100-5000` searches for "
            "the highest rate that meets `limit`; `ramp:100-5000/60s`, `steps:100,500/20s`, `sine:100-500/60s` and "
            "`file:FILE` vary the rate during the trial. In a lab file, `70%` is 70% of the baseline's peak throughput "
            "in a closed loop, which ironbench measures first.",
            Range(0.001, 1e9, example="500", note="transactions per second; a closed loop has no rate"),
            texts=rf"{SEARCHES}|^.*%",
            instead="70%, auto:100-5000 or ramp:100-5000/60s",
        ),
    ] = None
    limit: Annotated[
        list[str],
        row("Limits that the result of a search must meet, e.g. response_time_p99_s=20ms.", metavar="METRIC=VALUE"),
    ] = []
    arrivals: Annotated[
        Literal["poisson", "fixed"],
        row(
            "Open loop: intervals between the starts of transactions, random (`poisson`) or equal (`fixed`).",
            metavar="KIND",
        ),
    ] = "poisson"
    duration: Annotated[
        Time,
        row(
            "Measured time of each trial, e.g. 30s.",
            Range(0.001, YEAR_S, "s", example="30s", note="a trial must measure for some time"),
            usual=f"{USUAL_DURATION_S:g}s, or the workload's own default",
        ),
    ] = ""
    transactions: Annotated[
        int | None,
        row(
            "Number of transactions that each client runs. Use either this option or a duration.",
            Range(1, 10**15, whole=True, example="1000"),
        ),
    ] = None
    warmup: Annotated[
        Time,
        row(
            "Length of the warm-up, that is, of the load before the measured time; `auto`: a pilot trial determines "
            "the length.",
            Range(0.0, YEAR_S, "s", example="5s"),
            usual=f"{USUAL_WARMUP_S:g}s, or the workload's own default",
            texts="^auto$",
            instead="or `auto`",
        ),
    ] = ""
    think_time: Annotated[
        Time,
        row(
            "Closed loop: time that each client pauses between transactions, e.g. 10ms.",
            Range(0.0, DAY_S, "s", example="10ms"),
        ),
    ] = "0s"
    reconnect: Annotated[
        int,
        row(
            "Number of transactions after which a client opens a new connection; 1: as with pgbench's `-C`; 0: never.",
            Range(0, 10**9, whole=True, example="1", note="transactions per connection; 0 keeps connections open"),
        ),
    ] = 0
    max_tries: Annotated[
        int | None,
        row(
            "Maximum number of tries for a transaction that fails with a serialization failure or a deadlock; 0: no "
            "limit.",
            Range(0, 2**31 - 1, whole=True, example="3", note="1 never retries, 0 retries without limit"),
            usual="1, or the workload's own default",
        ),
    ] = None
    on_error: Annotated[
        Literal["stop", "continue"],
        row(
            "Reaction to an error in the first second of the load; later errors are only counted. `stop`: the trial "
            "ends, unless the transaction can be tried "
            "again. `continue`: the transaction counts as failed, and the trial continues.",
            metavar="HOW",
        ),
    ] = "stop"
    reconnect_on_loss: Annotated[
        bool,
        row(
            "A client that loses its connection opens a new connection and continues. Without this "
            "option, a lost connection ends the trial. If `on_error` is `continue`, a lost connection"
            " ends only the client, as in pgbench."
        ),
    ] = False
    report_per_statement: Annotated[
        bool,
        row("Report the response time of each SQL command in the scripts.", option=("--report-per-statement", "-r")),
    ] = False
    protocol: Annotated[
        Literal["", "prepared", "extended", "simple"],
        row(
            "Query protocol for sending statements: `prepared`, `extended` or `simple`, if the engine supports more "
            "than one.",
            usual="simple for the workloads script, select-only, tpcb-like and simple-update, as in "
            "pgbench; prepared for other workloads",
        ),
    ] = ""
    cache: Annotated[
        Literal["", "cold", "warm", "hot"],
        row(
            "State of the caches at the start of each trial: `cold`, `warm` or `hot`.",
            usual="unchanged since the previous trial",
            metavar="STATE",
        ),
    ] = ""
    io: Annotated[
        Literal["auto", "io_uring", "epoll"],
        row("Linux interface that clients use for network I/O: `auto`, `io_uring` or `epoll`."),
    ] = "auto"
    checkpoint: Annotated[
        Time,
        row(
            "Time between checkpoints, e.g. 10s.",
            Range(0.0, DAY_S, "s", above=True, example="10s"),
            usual="a third of the trial if the trial writes and ironbench starts the server; otherwise the server's "
            "setting",
        ),
    ] = ""


class CommandsSection(FieldSection):
    """Your own commands, which run before and after each trial. If a factor's value also has commands, they run in
    addition to the commands of this section."""

    prepare: Annotated[
        str,
        row(
            "Command to run with `sh -c` before the engine starts. In a lab, the command runs before each trial, in "
            "the lab file's directory. `ask: …` prompts a person and waits for Enter.",
            metavar="COMMAND",
        ),
    ] = ""
    cleanup: Annotated[
        str,
        row(
            "Command that undoes `prepare`. The command always runs, however the run or trial ends.", metavar="COMMAND"
        ),
    ] = ""
    command_limit: Annotated[
        Time,
        row(
            "Time limit for each command. If a command exceeds the limit, ironbench kills the command with all its "
            "processes.",
            Range(0.0, DAY_S, "s", above=True, example="2m"),
            usual="2m",
        ),
    ] = ""


class Sections(FieldSection):
    """Everything that a factor's value can change."""

    system: SystemSection = field(default_factory=SystemSection)
    devices: Annotated[
        dict[str, str | DeviceSection], row("Emulated devices with names of your choice.", run=False)
    ] = field(default_factory=dict)
    layout: LayoutSection = field(default_factory=LayoutSection)
    limits: LimitsSection = field(default_factory=LimitsSection)
    data: DataSection = field(default_factory=DataSection)
    workload: WorkloadSection = field(default_factory=WorkloadSection)
    load: LoadSection = field(default_factory=LoadSection)
    commands: CommandsSection = field(default_factory=CommandsSection)


SECTIONS: dict[str, tuple[str, ...]] = {
    name: tuple(table(one.section)) for name, one in table(Sections).items() if one.section
}
"""Names of the fields of each section. [devices] is left out, because the user chooses its names."""
SHORT: dict[str, tuple[str, str]] = {name: (section, name) for section, names in SECTIONS.items() for name in names}
"""For each field name, the path of the field. No two sections have a field of the same name."""
