"""Types of the Rust core, for type checkers. The tool stubtest checks that they agree with the core."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

__all__ = [
    "BUILD_PROFILE",
    "VERSION",
    "ArrowRows",
    "Connection",
    "DriveResult",
    "Histogram",
    "Kernels",
    "LdapConnection",
    "LiveDevice",
    "LoadProgress",
    "LogRows",
    "MysqlConnection",
    "Profile",
    "Profiler",
    "Progress",
    "Relay",
    "Sampled",
    "Sampler",
    "SqlScanner",
    "SqliteConnection",
    "StoragePass",
    "StorageProgress",
    "ask_device",
    "available",
    "compile_scripts",
    "cut_rows",
    "device_capacity",
    "drive",
    "drive_called",
    "hand_rows",
    "job_variables",
    "load_rows",
    "mandelbrot_png",
    "normal_device",
    "operation_complaints",
    "probe_device",
    "read_hlog",
    "rehearse_script",
    "replay_trace",
    "script_cautions",
    "split_weight",
    "storage_pass",
    "student_t_above",
    "student_t_quantile",
    "template_entries",
    "wide_sums",
    "write_hlog",
    "write_rows",
    "write_tape",
]

VERSION: str
BUILD_PROFILE: str

def compile_scripts(
    scripts: Sequence[tuple[str, str, int]], variables: Sequence[tuple[str, str]], protocol: str
) -> list[list[str]]:
    """Compiles pgbench scripts (name, text, weight) together, because a script may read variables that another one
    sets.

    Returns the SQL commands of each script, with `$1`, `$2`, … for variables, as the extended protocol sends them.
    `variables`: the variables of `-D`. Raises InputError with file, line, column and caret.

    `protocol`: `simple`, `extended` or `prepared` (PostgreSQL), `mysql_simple`, `mysql_prepared`, `library` (SQLite) or
    `mysql_library` (MariaDB through ODBC). Scripts that the protocol cannot run are rejected. If it is empty, any
    script is accepted.
    """

def script_cautions(
    scripts: Sequence[tuple[str, str, int]], variables: Sequence[tuple[str, str]], protocol: str
) -> list[str]:
    """Returns possible mistakes in the scripts, in words. They are variables without a definition, and not certainly
    mistakes."""

def rehearse_script(name: str, text: str, variables: Sequence[tuple[str, str]], seed: int) -> list[str]:
    """Runs a script as client 0 without a server. Returns its SQL commands with variables replaced, and the output of
    `debug()`.

    Raises InputError as `compile_scripts` does, and FailureError if an expression fails.
    """

def split_weight(text: str) -> tuple[str, int]:
    """Splits `FILE[@WEIGHT]` into file and weight. The weight is 1 by default. Raises InputError if it is invalid."""

@final
class Histogram:
    """A mergeable HDR histogram of nanoseconds, with 3 significant digits."""

    def __new__(cls) -> Histogram: ...
    @staticmethod
    def from_bytes(data: bytes) -> Histogram: ...
    def to_bytes(self) -> bytes:
        """Encodes the histogram in HdrHistogram's V2 format, deflated."""
    def record(self, value_ns: int) -> None: ...
    def merge(self, other: Histogram) -> None: ...
    def quantile(self, q: float) -> float:
        """Returns the quantile `q` in seconds, or NaN if the histogram is empty."""
    def quantiles(self, q: Sequence[float]) -> list[float]: ...
    def buckets(self) -> list[tuple[float, float, int]]:
        """Returns the non-empty buckets, each as lowest and highest equivalent value in seconds, and the count."""
    mean_s: float
    stdev_s: float
    min_s: float
    max_s: float
    count: int
    sum_s: float

def write_hlog(histograms: Mapping[str, Histogram], start_unix_s: float, interval_s: float) -> str:
    """Returns HdrHistogram's standard interval log, with one tagged line per histogram."""

def read_hlog(text: str) -> dict[str, Histogram]: ...

@final
class LiveDevice:
    """An emulated device, whose files are in a FUSE file system mounted in `directory`. The device is described by
    `spec` (JSON).

    Raises InputError and FailureError. Must be created only in the process of a device, because it changes how the
    threads of the process run.
    """

    def __new__(cls, spec: bytes, directory: str) -> LiveDevice: ...
    def calibrate(self, block_device: str, length: int) -> bytes:
        """Measures the I/O path overhead through a loop device of one of the files. Returns JSON. Overwrites `length`
        bytes."""

    def pace(self, block_devices: list[str]) -> None:
        """Makes answers leave when the model says so, as seen by these block devices, which were created from the
        files."""

    def hurry(self) -> None:
        """Makes answers leave immediately."""

    def counters(self) -> bytes:
        """Returns cumulative counters since the mount, as JSON."""

    def cut(self, how: str, seed: int) -> int:
        """Cuts the power, with `lose`, `subset` or `torn` for unflushed writes. Returns the number of unflushed
        writes."""

    def end_trace(self) -> None:
        """Writes the remaining rows of the trace and closes its file."""

    def revive(self) -> None:
        """Restores the power."""

    def unmount(self) -> None: ...

@final
class Relay:
    """A relay that delays everything between clients and a server. It is described by `order` (JSON). Raises InputError
    and FailureError."""

    def __new__(cls, order: bytes) -> Relay: ...
    @property
    def address(self) -> str:
        """Returns where the relay listens: `127.0.0.1:PORT`, or `@` and the name of an abstract Unix socket."""

    def measure(self) -> None:
        """Measures by how much a round trip exceeds the declared time. Raises FailureError."""

    def counters(self) -> bytes:
        """Returns cumulative counters since the start, as JSON."""

@final
class Progress:
    """Progress of a running `drive`, which other threads may read."""

    def __new__(cls) -> Progress: ...
    def stop(self) -> None:
        """Stops the trial within a second. Its result is then marked `cut_short`."""
    def finish(self) -> None:
        """Closes the window of a trial that only observes other work, when that work has ended."""
    def begin_at(self, unix_ns: int) -> None:
        """Sets the common start of all parts on CLOCK_REALTIME, for a drive that is a part and waits (phase
        `ready`)."""
    def by_turns(self) -> None:
        """Requests that the drive runs in turns, before it starts. It must be a closed loop on a server, and ends with
        `finish`."""
    def begin_turn(self, start_up_s: float, slice_s: float, cpus: Sequence[int]) -> None:
        """Makes all clients, which rest now, work for the start-up and then for the measured slice. Their threads move
        to `cpus`, which this process must be allowed to use; empty to leave the threads where they are."""
    def rested(self) -> tuple[int, int, float, float, float] | None:
        """Waits until all clients are connected, or have ended their turn, and rest. Releases the GIL.

        Returns the numbers of transactions that started in the slice and succeeded or failed, and three times in
        seconds. The first is the time that all clients spent on these transactions and on the think time after them.
        The second is the time from the start of the turn to the start of its slice. The third is the time from the end
        of the slice until the last client rested. Returns None if the drive is over, or after Ctrl-C.
        """
    def forget(self) -> None:
        """Discards the measurements of the last turn, while all clients rest."""
    over: bool
    """Whether all clients of a drive in turns have ended, so that `rested` has nothing to wait for."""
    stopping: bool
    """Whether `stop` was called."""
    def show(
        self,
        phase: str,
        elapsed_s: float,
        transactions: int,
        errors: int,
        seconds: Sequence[tuple[float, int, int, float, float]],
    ) -> None:
        """Shows the state of a drive that runs in another process. `seconds`: the seconds that are new since the last
        call."""
    def seconds(self, after: int) -> list[tuple[float, int, int, float, float]]:
        """Returns the one-second intervals of the window that are complete, from number `after` on.

        Each consists of its width in seconds, the numbers of successful and failed transactions, and the mean and
        standard deviation of the response time (NaN if there is none).
        """
    phase: str
    """Phase of the drive: `connect`, `ready` (a part that waits for the others), `warmup`, `run`, `drain` or `done`."""
    elapsed_s: float
    """Seconds since the start of the measured window; negative during the warm-up."""
    transactions: int
    errors: int

@final
class DriveResult:
    summary: bytes
    """Summary as JSON, with everything that is a single number or text (see docs/adr on the boundary)."""
    timeline: dict[str, bytes]
    """For each column, its values as little-endian float64, one per 100 ms. The columns are `t_s`, `transactions`,
    `errors` and `retries`. With a source of jobs, `unscheduled` contains the transactions of clients that wait for
    jobs."""
    seconds: dict[str, bytes]
    """The same columns per second, and `response_mean_s`, `response_p50_s`, `_p90_s`, `_p95_s`, `_p99_s`, `_max_s`."""
    histograms: dict[str, Histogram]
    """The histograms `response_time` and `service_time`, and `…{script=NAME}` of each."""
    samples: dict[str, list[tuple[float, bytes]]]
    """For each source, its samples: seconds since the start of the window, and raw bytes."""
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> DriveResult: ...
    @staticmethod
    def merged(parts: Sequence[bytes]) -> DriveResult:
        """Merges the results of drives that loaded one system together, from their bytes. The samples are left out.
        Releases the GIL."""

def drive(plan: bytes, progress: Progress | None = None) -> DriveResult:
    """Runs one trial from its plan (JSON, `trial/drive/run.py`). Releases the GIL. After Ctrl-C the result is kept."""

def template_entries(template: str, subject: str, parent: str, first: int, count: int) -> bytes:
    """Returns the LDIF of `count` entries of a directory from number `first` on, whose RDN is their `uid`.

    Raises InputError with `subject` and the line of the template that cannot be used. If `count` is 0, only checks the
    template.
    """

def operation_complaints(operations: list[str]) -> list[str]:
    """Returns what is wrong with each operation of a directory, written as in scripts; empty for a valid operation."""

def job_variables(kind: str) -> list[str]:
    """Returns the variables that scripts may use without defining them, for a kind of source of jobs as in the plan's
    `jobs`."""

def drive_called(
    plan: bytes, connect: Callable[[int, list[tuple[str, str, bool]]], Any], progress: Progress | None = None
) -> DriveResult:
    """Runs one trial as `drive` does, over connections that `connect` opens. See
    crates/ironbench-python/src/called.rs."""

@final
class Sampler:
    """The sampling threads, for trials that `drive` does not run. They are created, started, marked and stopped once
    each."""

    def __new__(cls, sources: bytes, connection: bytes) -> Sampler:
        """Connects. `sources`: JSON of the plan's `observers`. `connection`: JSON of the plan's `connection`, or null.
        Raises InputError."""
    def start(self) -> None:
        """Starts sampling. The window starts now."""
    def mark(self) -> None:
        """Marks the end of the window, which is now: reads every source once more. Returns immediately."""
    def stop(self) -> Sampled: ...

@final
class Sampled:
    summary: bytes
    """JSON of those fields of a drive's summary that describe the observers."""
    samples: dict[str, list[tuple[float, bytes]]]

def available(kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Returns what is missing for a profile of these kinds ("cpu", "wait"), as codes with a detail. Empty: nothing.

    - "no-perf-events": the kernel or a container's filter refuses performance events; detail: the error
    - "paranoid": the user may not sample; detail: the value of sysctl kernel.perf_event_paranoid
    - "no-tracefs": tracefs is not mounted; detail: its mount point
    - "no-tracepoints": the kernel lacks a tracepoint of the scheduler; detail: its name
    - "only-own": only processes of the same user can be sampled (with a value above 1, only their time in user space);
      detail: the value of sysctl kernel.perf_event_paranoid. A Profiler works nevertheless

    Raises InputError for an unknown kind.
    """

@final
class Profiler:
    """Samples stacks of the engine, of this process and of their children, in a thread of its own. It is started and
    stopped once. Deleting it closes all events."""

    def __new__(cls, kinds: Sequence[str], hz: int, engine_roots: Sequence[int]) -> Profiler:
        """`kinds`: "cpu", "wait". `hz`: samples per second of CPU time, 1 to 999. `engine_roots`: process ids of the
        engine; all processes below them also belong to it. Raises InputError."""
    def start(self) -> None:
        """Raises FailureError if something is missing (see `available`)."""
    def stop(self, windows: Sequence[tuple[int, int]]) -> Profile:
        """Ends sampling and looks up the functions' names. `windows`: start and end in ns of CLOCK_MONOTONIC
        (`time.perf_counter_ns`) of the times that count, to about 1 ms; empty: all. Raises InputError."""

@final
class Profile:
    """Samples by stack. The lists have equal lengths; the stacks with the most seconds come first."""

    kind: list[str]
    """"cpu" or "wait"."""
    role: list[str]
    """"engine" or "client"."""
    thread: list[str]
    """The thread's name (`comm`)."""
    reason: list[str]
    """Empty for "cpu". "blocked": until the thread was woken. "cpu-queue": for a CPU, although it could run."""
    stack: list[str]
    """Frames from the root to the leaf, joined by ";". Frames of the kernel end with "_[k]". Frames without symbol are
    "[unknown]", or the name of their file in brackets. "[truncated]": the stack was too deep."""
    waker: list[str]
    """The stack that woke the thread, or empty."""
    samples: list[int]
    seconds: list[float]
    """CPU time (samples divided by the rate), or off-CPU time."""
    lost: int
    """Records that the kernel dropped because a ring buffer was full."""
    truncated: int
    """Stacks that the kernel cut at sysctl kernel.perf_event_max_stack (127) frames."""
    others: int
    """CPU samples of processes that are neither the engine's nor the client's."""
    sampler_cpu_s: float
    """CPU time of the sampling thread."""
    unresolved_share: float
    """Share of the frames, weighted by samples, without a function's name."""

@final
class Connection:
    """A blocking connection to PostgreSQL, for everything outside the measured window."""

    def __new__(cls, connection: bytes, silence_s: float | None = None) -> Connection:
        """Connects. `connection`: JSON of the plan's `connection`. Raises InputError (for example, for a wrong
        password) and FailureError.

        `silence_s`: time without a byte after which the server is probed. If it does not answer a new connection
        either, statements fail.
        """
    def query(self, sql: str, limit_s: float | None = None) -> list[tuple[str | None, ...]]:
        """Returns the rows of the last statement that returned rows. Raises FailureError, with `sqlstate` if the server
        rejected a statement.

        `limit_s`: seconds after which the statement fails and the connection is closed.
        """
    def measure(self, sql: str) -> tuple[int, float, float]:
        """Returns the number of rows, and the instants of submission and of the last byte of the reply, as
        `time.perf_counter`.

        No row is returned, so that the size of a reply does not affect the start of the next statement. Raises
        FailureError.
        """
    def columns(self) -> list[str]:
        """Returns the column names of the last query."""
    def copy_in(self, sql: str, data: bytes) -> int: ...
    def cancel(self) -> None:
        """Cancels the running statement from another thread. The statement ends with SQLSTATE 57014."""
    def parameter(self, name: str) -> str | None:
        """Returns a parameter that the server reported, e.g. `server_version`."""
    backend_pid: int
    tls: bool
    @property
    def commits(self) -> int:
        """Number of transactions that the server has committed for this connection, without the one at its start; 0 if
        the connection is closed."""
    def close(self) -> None: ...

@final
class MysqlConnection:
    """A blocking connection to MySQL or MariaDB, for everything outside the measured window."""

    def __new__(cls, connection: bytes, silence_s: float | None = None) -> MysqlConnection:
        """Connects. `connection`: JSON of the plan's `connection`. Raises InputError (for example, for a wrong
        password) and FailureError.

        `silence_s`: time without a byte after which the server is probed. If it does not answer a new connection
        either, statements fail.
        """
    def query(self, sql: str, limit_s: float | None = None) -> list[tuple[str | None, ...]]:
        """Runs statements as `Connection.query` does. The FailureError of a rejected statement also has the server's
        `number`."""
    def execute(self, sql: bytes) -> int:
        """Runs a statement in any character set. Returns the number of affected rows. Raises FailureError as `query`
        does."""
    def measure(self, sql: str) -> tuple[int, float, float]:
        """Returns the number of rows, and the instants of submission and of the last byte of the reply, as
        `time.perf_counter`."""
    def columns(self) -> list[str]:
        """Returns the column names of the last query."""
    def changes(self) -> int:
        """Returns the number of rows that the last statement of the last `query` inserted, updated (changed or not) or
        deleted."""
    def copy_in(self, sql: str, data: bytes) -> int:
        """Runs `LOAD DATA LOCAL INFILE '' INTO TABLE …` with `data` as its file, and returns the number of rows. A
        warning is raised as FailureError."""
    def cancel(self) -> None:
        """Cancels the running statement from another thread. The statement ends with error 1317, SQLSTATE 70100."""
    def parameter(self, name: str) -> str | None:
        """Returns `server_version` from the server's greeting, such as `10.11.6-MariaDB`; None for other names."""
    connection_id: int
    tls: bool
    def close(self) -> None: ...

@final
class SqlScanner:
    """Splits a file of SQL into statements, as psql (`postgres`) or the client mariadb (`mariadb`) does."""

    def __new__(cls, dialect: str, merged: Sequence[str] = ...) -> SqlScanner:
        """Creates the scanner. `merged`: first words of statements that may be returned as one piece."""
    def feed(self, data: bytes, last: bool = False) -> list[tuple[str, int, int, bytes]]:
        """Returns kind, line, offset of the first word, and text of each piece that ends in `data`. The kinds are
        `sql`, `merged`, `client`, `rows`, `rows-end`, `open-text` and `open-rows`."""

@final
class LdapConnection:
    """A blocking connection to a directory server, for everything outside the measured window."""

    def __new__(cls, connection: bytes, silence_s: float | None = None) -> LdapConnection:
        """Connects. `connection`: JSON of the plan's `connection`. Raises InputError (for example, for a wrong
        password) and FailureError.

        `silence_s`: time without a byte after which the server is probed. If it does not answer a new connection
        either, operations fail.
        """
    def query(self, sql: str, limit_s: float | None = None) -> list[tuple[str | None, ...]]:
        """Runs one operation. Returns the entries of a search: the DN, then the attributes requested by name, with one
        value per line.

        Raises FailureError, with the result code as `number`. `limit_s` is explained at `Connection.query`.
        """
    def measure(self, sql: str, limit_s: float | None = None) -> tuple[int, float, float]:
        """Returns the number of entries, and the instants of submission and of the last byte of the reply, as
        `time.perf_counter`.

        `limit_s` is explained at `Connection.query`.
        """
    def columns(self) -> list[str]:
        """Returns `dn` and the attributes of the last search."""
    def changes(self) -> int:
        """Returns the number of entries that the last `query` changed or found."""
    def copy_in(self, sql: str, data: bytes) -> int:
        """Adds the entries of an LDIF, several at a time. Ignores `sql`."""
    tls: bool
    def close(self) -> None: ...

@final
class SqliteConnection:
    """A blocking session on an SQLite file, for everything outside the measured window. The file is created if
    necessary."""

    def __new__(cls, path: str, pragmas: Sequence[str] = ...) -> SqliteConnection:
        """Opens the file and runs `pragmas`. Raises InputError for a pragma, and FailureError for the file."""
    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        """Runs one or more statements. Returns the rows of the last one, with bytes as `\\x` and hexadecimal digits.
        Raises FailureError."""
    def measure(self, sql: str) -> tuple[int, float, float]:
        """Returns the number of rows, and the instants before the statement and after its last row, as
        `time.perf_counter`.

        No row is returned, so that the size of a reply does not affect the start of the next statement. Raises
        FailureError.
        """
    def columns(self) -> list[str]:
        """Returns the column names of the last query."""
    def changes(self) -> int:
        """Returns the number of rows that the last INSERT, UPDATE or DELETE changed."""
    def copy_in(self, sql: str, data: bytes) -> int:
        """Inserts rows in COPY's text format, all or none, with `COPY t (…) FROM STDIN` or an INSERT with `?1, ?2, …`.
        Returns the number of rows."""
    def close(self) -> None:
        """Closes the file. May be called twice."""

@final
class LoadProgress:
    """Progress of a running `load_rows`, which another thread may read and stop."""

    def __new__(cls) -> LoadProgress: ...
    rows: int
    bytes: int
    """Bytes sent to the engine so far."""
    def stop(self) -> None:
        """Ends the load soon, with a FailureError. The rows copied so far must not be used."""

def load_rows(plan: bytes, progress: LoadProgress) -> bytes:
    """Copies generated rows into existing, empty tables, over several connections at a time.

    `plan`: JSON as in `crates/ironbench-data/src/plan.rs`. Returns JSON with `rows`, `bytes`, `elapsed_s` and
    `connections`. Releases the GIL. Raises FailureError if the engine rejected rows, a disk is full, or the load was
    stopped.
    """

def cut_rows(generator: bytes, workers: int, done: bytes) -> list[tuple[str, int, int]]:
    """Returns the pieces that `load_rows` would share among `workers`, each as table, first unit, and the unit after
    the last.

    `done`: JSON, a list of `{"table", "first", "past"}` that are left out.
    """

@final
class ArrowRows:
    """The rows of a piece as Arrow, with decimals and dates. Each reading generates them again. Only `tpch` has such
    rows."""

    def __new__(cls, generator: bytes, table: str, first: int, past: int, progress: LoadProgress) -> ArrowRows: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class LogRows:
    """The statements in log files as Arrow. All streams continue at the same place, so that they are read once."""

    def __new__(cls, logs: bytes) -> LogRows:
        """Opens the files. `logs`: JSON of `Logs` in crates/ironbench-capture/src/rows.rs. Raises InputError for files
        that cannot be read or have no known format."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    @property
    def bytes_read(self) -> int:
        """Number of bytes of the files that have been read."""

    @property
    def statements(self) -> int: ...
    def stop(self) -> None: ...
    def summary(self) -> bytes:
        """Returns what was noticed, as JSON. It is complete when everything has been read."""

def write_tape(rows: object, path: str) -> list[tuple[int, int]]:
    """Writes the tape of a replay from an object with `__arrow_c_stream__`, whose columns are described in
    crates/ironbench-capture/src/tape.rs. Returns start and end of each client's part."""

def hand_rows(
    generator: bytes,
    table: str,
    units: tuple[int, int],
    most: int,
    insert: Callable[[list[str], list[tuple[Any, ...]]], object],
    progress: LoadProgress,
) -> None:
    """Calls `insert` with column names and at most `most` rows, until all rows of a piece of `cut_rows` have been
    passed."""

def write_rows(generator: bytes, table: str, threads: int, path: str) -> int:
    """Writes one table's rows into a file in PostgreSQL's COPY text format. Returns the number of rows."""

@final
class StorageProgress:
    """Progress of a running `storage_pass`, which another thread may read and stop."""

    def __new__(cls) -> StorageProgress: ...
    ios: int
    """Number of I/Os that have ended so far. Each thread reports only every 64 I/Os."""
    def stop(self) -> None:
        """Ends the pass as soon as the I/Os in flight have ended. Its result is then marked `stopped`."""

@final
class StoragePass:
    summary: bytes
    """Summary as JSON, as in `crates/ironbench-storage/src/record.rs`."""
    reads: Histogram
    writes: Histogram
    buckets: list[int]
    """Number of I/Os that ended in each 100 ms."""

def storage_pass(plan: bytes, progress: StorageProgress) -> StoragePass:
    """Reads and writes blocks of open files. The caller keeps the ownership of the files. Releases the GIL.

    `plan`: JSON as in `crates/ironbench-storage/src/plan.rs`. Raises FailureError if an I/O failed.
    """

def student_t_above(t: float, freedom: float) -> float:
    """Returns P(T ≥ t), or NaN unless `freedom` is above 0."""

def student_t_quantile(p: float, freedom: float) -> float:
    """Returns t with P(T ≤ t) = p, or NaN unless 0 < p < 1 and `freedom` is above 0."""

def wide_sums(wide: bytes) -> tuple[int, int, int]:
    """Returns the number of rows, the checksum of their content and the checksum of their keys, for the table that
    `wide` (JSON) describes (`workloads/wide_table.py`)."""

def normal_device(text: str, models: bytes) -> str:
    """Checks a device expression and returns it in normal form. `models`: JSON as in `devices/models.py`.

    Raises InputError with the column and the nearest name.
    """

def device_capacity(text: str, models: bytes, capacity: int | None = None) -> int:
    """Returns the capacity of a device in bytes, which is at least `capacity`, or that of its models. Raises InputError
    as `normal_device` does."""

def probe_device(text: str, models: bytes, capacity: int | None, load: bytes) -> tuple[float, float, Histogram]:
    """Returns I/Os per second, bytes per second and latencies of a synthetic load on a model, without waiting.

    `load`: JSON as in `crates/ironbench-device/src/replay/probe.rs`. Raises InputError as `normal_device` does.
    Releases the GIL.
    """

def ask_device(
    text: str, models: bytes, capacity: int | None, load: bytes, places: bytes
) -> tuple[float, float, Histogram]:
    """Returns the same as `probe_device` for I/Os that start at the offsets `places` (little-endian u64), in their
    order.

    `load`: JSON as in `crates/ironbench-device/src/replay/given.rs`. Raises InputError as `normal_device` does, and if
    an offset is not on the device or there are too few. Releases the GIL.
    """

def replay_trace(
    text: str,
    models: bytes,
    capacity: int | None,
    columns: tuple[bytes, bytes, bytes, bytes, bytes],
) -> tuple[bytes, dict[str, Histogram]]:
    """Replays a recorded trace on a model at the recorded arrival times, without waiting.

    `columns`: `time_ns`, `op` (0 read, 1 write, 2 flush), `offset`, `length`, `completed_ns` as little-endian u64, u8,
    u64, u32, u64, ordered by time. Returns totals as JSON, and latency histograms `read`, `write`, `flush`,
    `recorded_read`, …

    Raises InputError as `normal_device` does, and for a trace that is impossible or does not fit the device. Releases
    the GIL. Ctrl-C ends the replay.
    """

@final
class Kernels:
    """The threads of one trial of a processor or memory kernel. They are created, started and joined once each."""

    def __new__(cls, plan: bytes) -> Kernels:
        """Starts the threads of a plan (JSON, crates/ironbench-kernels/src/plan.rs), which prepare and warm up. Raises
        InputError."""
    def ready(self, timeout_s: float) -> bool:
        """Waits, for at most `timeout_s`, until all threads are ready. Returns whether they are."""
    def start(self, duration_s: float) -> None:
        """Starts the window now."""
    def done(self, timeout_s: float) -> bool:
        """Waits, for at most `timeout_s`, until all threads have done their work, which they then check. Returns
        whether they have."""
    def ended(self, timeout_s: float) -> bool:
        """Waits, for at most `timeout_s`, until all threads have ended. Returns whether they have."""
    def stop(self) -> None:
        """Ends the work early. May be called by a signal handler."""
    def result(self) -> tuple[bytes, dict[str, Histogram]]:
        """Waits for the threads. Returns a summary (JSON), and the histograms of whole units (under the empty name) and
        of their parts. Raises FailureError."""

def mandelbrot_png(width: int, height: int, limit: int, over: Callable[[], bool]) -> bytes | None:
    """Computes a picture of the Mandelbrot set as a PNG file. Returns None if `over` returned true."""
