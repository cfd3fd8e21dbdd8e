"""The sections that lab files and `ironbench run` share: a system, its data and its load."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from ironbench.fields.row import row, table
from ironbench.model.curve import WORDS as CURVES
from ironbench.ranges import DAY_S, MOST_BYTES, YEAR_S, Range

Time = str | int | float
Size = str | int
Setting = str | bool | int | float
SEARCHES = f"^(auto|{'|'.join(CURVES)})"
"""Pattern of texts that request a search or declare a curve."""
Tags = Annotated[
    dict[str, Setting],
    row("Tags for every record, e.g. `commit=1f3c2a9`; `ironbench history --by` orders records by a tag."),
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
            "Machine on which the `dsn` server runs, which ironbench samples over ssh: see docs/how/remote-server.md.",
            metavar="ssh://USER@HOST",
        ),
    ] = ""
    control: Annotated[
        Literal["", "ssh"],
        row(
            "`ssh`: allow ironbench to change the machine of `server` for trials: to pin the server to "
            "`server_cpus`, and to restart the server and drop the page cache for a cold `cache`. Lasting changes "
            "are undone.",
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
            "Directory of the engine's programs; `wheel:16` means the programs shipped with ironbench.",
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
            "Benchmark score of the system's CPUs; higher is faster. Charts of queries show the ratio that the scores "
            "predict.",
            Range(0.0, 1e12, above=True, example="31.5"),
        ),
    ] = None
    ideal: Annotated[
        str | list[str],
        row(
            "Parts of the system to replace by zero-latency versions: `log`, `data`, `temp`, `client`; or `none`.",
            metavar="PARTS",
        ),
    ] = ""
    set: Annotated[dict[str, Setting], row("Engine settings, with the engine's own names and values.")] = {}


class DeviceSection(FieldSection):
    """An emulated device for roles in `[layout]`. Roles with the same device share it; each has its own partition.

    A device that needs only a model is written `name = "expression"`.
    """

    model: Annotated[str, row("A device expression, e.g. `raid0(4, ssd-sata-2011)`. Required.", run=False)] = ""
    capacity: Annotated[
        Size,
        row(
            "Size of each emulated device.",
            CAPACITY,
            usual="a little more than twice the data size; WAL only: 2GiB; temporary files only: data size plus 1GiB",
        ),
    ] = ""
    fs: Annotated[str, row("File system of emulated devices: `ext4`, `xfs` or `btrfs`; `btrfs:compress=zstd`.",
                           usual="ext4")] = ""  # fmt: skip
    backing: Annotated[
        str, row("What stores the bytes of emulated devices: a directory, or `ram`.", usual="ram", metavar="DIR|ram")
    ] = ""


class LayoutSection(FieldSection):
    """Where the engine's files are stored: in directories (with a slash), or on emulated devices."""

    data: Annotated[
        str,
        row(
            "Where the data are stored: a directory, or an emulated device (a device expression; in a lab file also a "
            "name in [devices]).",
            metavar="DIR|DEVICE",
            names="devices",
        ),
    ] = ""
    temp: Annotated[
        str, row("Where temporary files are stored; same values as `data`.", metavar="DIR|DEVICE", names="devices")
    ] = ""
    log: Annotated[
        str, row("Where the WAL or redo log is stored; same values as `data`.", metavar="DIR|DEVICE", names="devices")
    ] = ""


class LimitsSection(FieldSection):
    """The parts of the machine that the system may use."""

    memory_total: Annotated[
        Size,
        row(
            "Limit on the memory of the engine, including the page cache of its files, e.g. 2GB. A control group "
            "enforces it.",
            Range(1, MOST_BYTES, "bytes", example="2GB"),
        ),
    ] = ""
    server_cpus: Annotated[str | int, row("CPUs for the engine, e.g. 0 or 0-3.", metavar="CPUS")] = ""
    client_cpus: Annotated[str | int, row("CPUs for the load generator's threads.", metavar="CPUS")] = ""
    latency: Annotated[
        Time,
        row(
            "Round-trip time to add between the clients and the server, e.g. 0.2ms; 0: none. See "
            "docs/how/network-latency.md.",
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
        row("SQL files to run after the dump or template is restored, or to create your data.", metavar="FILE"),
    ] = []
    template: Annotated[
        str, row("Database on the `dsn` server; every trial starts from a copy of it.", metavar="DB")
    ] = ""
    check: Annotated[
        str, row("Query that must return true after every trial; otherwise the trial is invalid.", metavar="SQL")
    ] = ""


class WorkloadSection(FieldSection):
    """The workload and its options."""

    name: Annotated[str, row("See `ironbench list workloads`. Required.", run=False)] = ""
    files: Annotated[list[str], row("For `script`: FILE or FILE@WEIGHT, one or more.", run=False)] = []
    options: Annotated[dict[str, Setting], row("Workload options.")] = field(default_factory=dict, name="with")
    define: Annotated[dict[str, Setting], row("Variables for the scripts.", metavar="VAR=VALUE", option=("-D",))] = {}


class LoadSection(FieldSection):
    """The load during a trial."""

    clients: Annotated[
        int | Annotated[str, Meta(pattern=SEARCHES)],
        row(
            "Number of clients. `auto` or `auto:1-128` searches for the best number; `ramp:1-64/60s` varies the number "
            "of active clients, see docs/how/load-curves.md. On the command line, `1,2,4,8` is a sweep.",
            Range(1, 10_000, whole=True, example="8"),
            texts=SEARCHES,
            instead="auto:1-64 or ramp:1-64/60s",
        ),
    ] = 1
    threads: Annotated[
        int,
        row(
            "Threads of the load generator, among which the clients are divided; never more than one per client.",
            Range(1, 1024, whole=True, example="2"),
        ),
    ] = 1
    workers: Annotated[
        int,
        row(
            "Number of worker processes that Ray starts. The clients, the rate and the loading of large data are "
            "divided among them. 0: no workers; ironbench itself generates the load.",
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
            "If a machine of the cluster is lost, continue with the remaining machines. Blocks whose trials had "
            "different numbers of workers are excluded from comparisons. Without this option, such trials fail.",
            option=("--fewer-workers/--no-fewer-workers",),
        ),
    ] = False
    rate: Annotated[
        float | str | None,
        row(
            "Open loop: transactions started per second, all clients together. `auto:100-5000` searches for the "
            "highest rate that meets `limit`; `ramp:100-5000/60s`, `steps:100,500/20s`, `sine:100-500/60s` and "
            "`file:FILE` are curves. In a lab file, `70%` is a percentage of the baseline's closed-loop peak, which is "
            "measured first.",
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
        Literal["poisson", "fixed"], row("Open loop: `poisson` or `fixed` intervals between starts.", metavar="KIND")
    ] = "poisson"
    duration: Annotated[
        Time,
        row(
            "Measured time of each trial, e.g. 30s.",
            Range(0.001, YEAR_S, "s", example="30s", note="a trial must measure for some time"),
            usual="30s, or the workload's own default",
        ),
    ] = ""
    transactions: Annotated[
        int | None,
        row("Transactions per client, instead of a duration.", Range(1, 10**15, whole=True, example="1000")),
    ] = None
    warmup: Annotated[
        Time,
        row(
            "Warm-up: load before the measured time; `auto`: a pilot trial determines its length.",
            Range(0.0, YEAR_S, "s", example="5s"),
            usual="5s, or the workload's own default",
            texts="^auto$",
            instead="or auto",
        ),
    ] = ""
    think_time: Annotated[
        Time,
        row(
            "Closed loop: pause of each client between transactions, e.g. 10ms.",
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
            "Maximum number of tries for a transaction that fails because of serialization or a deadlock; 0: no limit.",
            Range(0, 2**31 - 1, whole=True, example="3", note="1 never retries, 0 retries without limit"),
            usual="1, or the workload's own default",
        ),
    ] = None
    on_error: Annotated[
        Literal["stop", "continue"],
        row(
            "`stop`: an error in the first second ends the trial, unless another try can succeed. `continue`: the "
            "transaction counts as failed, and the trial continues.",
            metavar="HOW",
        ),
    ] = "stop"
    reconnect_on_loss: Annotated[
        bool,
        row(
            "A client that loses its connection opens a new one and continues. Without this option, the trial "
            "ends; with `on_error` `continue`, only that client ends, as in pgbench."
        ),
    ] = False
    report_per_statement: Annotated[
        bool, row("Report the time of each SQL command in the scripts.", option=("--report-per-statement", "-r"))
    ] = False
    protocol: Annotated[
        Literal["", "prepared", "extended", "simple"],
        row(
            "How to send statements: `prepared`, `extended` or `simple`, if the engine offers a choice.",
            usual="simple for script, select-only, tpcb-like and simple-update, as in pgbench; else prepared",
        ),
    ] = ""
    cache: Annotated[
        Literal["", "cold", "warm", "hot"],
        row(
            "State of the caches at the start of each trial: `cold`, `warm` or `hot`.",
            usual="as left by the previous trial",
            metavar="STATE",
        ),
    ] = ""
    io: Annotated[
        Literal["auto", "io_uring", "epoll"], row("How clients do I/O over a network: `auto`, `io_uring` or `epoll`.")
    ] = "auto"
    checkpoint: Annotated[
        Time,
        row(
            "Checkpoint interval, e.g. 10s.",
            Range(0.0, DAY_S, "s", above=True, example="10s"),
            usual="three checkpoints per trial that writes, on a server that ironbench starts; otherwise the "
            "server's setting",
        ),
    ] = ""


class CommandsSection(FieldSection):
    """Your own commands, which run before and after each trial. Commands of a factor's value run in addition."""

    prepare: Annotated[
        str,
        row(
            "Command to run with `sh -c` before the engine starts. In a lab, it runs before each trial, in the lab "
            "file's directory. `ask: …` prompts a person and waits for Enter.",
            metavar="COMMAND",
        ),
    ] = ""
    cleanup: Annotated[
        str, row("Command that undoes `prepare`, run however the run or trial ends.", metavar="COMMAND")
    ] = ""
    command_limit: Annotated[
        Time,
        row(
            "Time limit for each command; a command that exceeds it is killed with all its processes.",
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
"""Section → its fields; [devices] has names chosen by the user."""
SHORT: dict[str, tuple[str, str]] = {name: (section, name) for section, names in SECTIONS.items() for name in names}
"""Field name → path; the names of fields are unique among sections."""
