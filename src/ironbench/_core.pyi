"""Types of the Rust core, for type checkers. The tool stubtest checks that this file agrees with the core."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

__all__ = [
    "BUILD_PROFILE",
    "VERSION",
    "ArrowRows",
    "CapturedRows",
    "Connection",
    "DriveResult",
    "Histogram",
    "Kernels",
    "LdapConnection",
    "LiveDevice",
    "LoadProgress",
    "LogRows",
    "LoggedRows",
    "MysqlConnection",
    "Profile",
    "Profiler",
    "Progress",
    "Proxy",
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
    "masked_statement",
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
    """Compiles pgbench scripts (name, text, weight) together, because a script may read variables that another script
    sets. Returns the SQL commands of each script, with `$1`, `$2`, … in place of variables, as in the extended
    protocol. `variables`: variables from `-D`. Raises InputError with file, line, column and caret.

    `protocol`: `simple`, `extended` or `prepared` (PostgreSQL), `mysql_simple`, `mysql_prepared`, `library` (SQLite) or
    `mysql_library` (MariaDB through ODBC). Scripts that the protocol cannot run are rejected. If it is empty, any
    script is accepted.
    """

def script_cautions(
    scripts: Sequence[tuple[str, str, int]], variables: Sequence[tuple[str, str]], protocol: str
) -> list[str]:
    """Returns warnings about possible mistakes in the scripts: variables without a definition."""

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
    """Returns the histograms in HdrHistogram's standard format of interval logs, with one tagged line per histogram."""

def read_hlog(text: str) -> dict[str, Histogram]: ...

@final
class LiveDevice:
    """An emulated device. Its files are in a FUSE file system that is mounted in `directory`, and `spec` (JSON)
    describes the device. Raises InputError and FailureError. Must be created only in a process that runs nothing but
    the device, because it changes how the threads of the process run.
    """

    def __new__(cls, spec: bytes, directory: str) -> LiveDevice: ...
    def calibrate(self, block_device: str, length: int) -> bytes:
        """Measures the overhead of the I/O path through a loop device on one of the files. Returns JSON. Overwrites
        `length` bytes."""

    def pace(self, block_devices: list[str]) -> None:
        """Switches model timing on: requests complete at the time that the model computes, as seen by these block
        devices, which were created from the files."""

    def hurry(self) -> None:
        """Switches model timing off: requests complete immediately."""

    def counters(self) -> bytes:
        """Returns cumulative counters since the mount, as JSON."""

    def cut(self, how: str, seed: int) -> int:
        """Simulates a power cut. `how`: what happens to unflushed writes: `lose`, `subset` or `torn`. Returns the
        number of unflushed writes."""

    def end_trace(self) -> None:
        """Writes the remaining rows of the trace and closes its file."""

    def revive(self) -> None:
        """Ends the power cut."""

    def unmount(self) -> None: ...

@final
class Relay:
    """A relay that delays all messages between clients and a server. `order` (JSON) describes the relay. Raises
    InputError and FailureError."""

    def __new__(cls, order: bytes) -> Relay: ...
    @property
    def address(self) -> str:
        """Returns where the relay listens: `127.0.0.1:PORT`, or `@` and the name of an abstract Unix socket."""

    def measure(self) -> None:
        """Measures by how much a round trip through the relay exceeds the declared time. Raises FailureError."""

    def counters(self) -> bytes:
        """Returns cumulative counters since the start, as JSON."""

@final
class Progress:
    """Progress of a running `drive`, which other threads may read."""

    def __new__(cls) -> Progress: ...
    def stop(self) -> None:
        """Stops the trial within a second. Its result is then marked `cut_short`."""
    def finish(self) -> None:
        """Ends the measured window of a trial that only observes other work. Called when that work has ended."""
    def begin_at(self, unix_ns: int) -> None:
        """Sets the start time on CLOCK_REALTIME that all parts of a divided load have in common. Called while this part
        waits (phase `ready`)."""
    def by_turns(self) -> None:
        """Requests, before the drive starts, that the clients work only in turns. The drive must be a closed loop on a
        server. It ends after `finish`."""
    def begin_turn(self, start_up_s: float, slice_s: float, cpus: Sequence[int]) -> None:
        """Starts a turn: all clients, which are paused, work for the start-up and then for the measured slice. Their
        threads are pinned to `cpus`, which this process must be allowed to use; if it is empty, the pinning is not
        changed."""
    def rested(self) -> tuple[int, int, float, float, float] | None:
        """Waits until all clients are connected or have ended their turn, and are paused. Releases the GIL.

        Returns the numbers of transactions that started in the slice and succeeded or failed, and three times in
        seconds. The first is the time that all clients spent on these transactions and on the think time after them.
        The second is the time from the start of the turn to the start of its slice. The third is the time from the end
        of the slice until the last client was paused. Returns None if the drive is over, or after Ctrl-C.
        """
    def forget(self) -> None:
        """Discards the measurements of the last turn. Called while all clients are paused."""
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
        seconds: Sequence[tuple[float, int, int, float, float, int]],
    ) -> None:
        """Stores the progress of a drive that runs in another process. `seconds`: the one-second intervals that were
        completed since the last call."""
    def seconds(self, after: int) -> list[tuple[float, int, int, float, float, int]]:
        """Returns the one-second intervals of the window that are complete, from number `after` on.

        Each consists of its width in seconds, the numbers of successful and failed transactions, the mean and standard
        deviation of the response time (NaN if there is none), and the number of committed transactions of the first
        script. Transactions that were rolled back on purpose are not committed.
        """
    phase: str
    """Phase of the drive: `connect`, `ready` (a part of a divided load that waits for the other parts), `warmup`,
    `run`, `drain` or `done`."""
    elapsed_s: float
    """Seconds since the start of the measured window; negative during the warm-up."""
    transactions: int
    errors: int

@final
class DriveResult:
    summary: bytes
    """Summary as JSON. It contains all results that are single numbers or texts (see the record on the boundary in
    docs/adr)."""
    timeline: dict[str, bytes]
    """The values of each column as little-endian float64, one value per 100 ms. The columns are `t_s`, `transactions`,
    `errors` and `retries`. If there is a source of jobs, `unscheduled` contains the transactions of clients that wait
    for jobs."""
    seconds: dict[str, bytes]
    """The same columns with one value per second, and also `response_mean_s`, `response_p50_s`, `_p90_s`, `_p95_s`,
    `_p99_s` and `_max_s`."""
    histograms: dict[str, Histogram]
    """The histograms `response_time` and `service_time`, each also per script as `…{script=NAME}`."""
    samples: dict[str, list[tuple[float, bytes]]]
    """The samples of each source: seconds since the start of the window, and raw bytes."""
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> DriveResult: ...
    @staticmethod
    def merged(parts: Sequence[bytes]) -> DriveResult:
        """Merges the results of drives that generated parts of one load. `parts`: the results as bytes. Samples are
        left out. Releases the GIL."""

def drive(plan: bytes, progress: Progress | None = None) -> DriveResult:
    """Runs one trial from its plan (JSON, `trial/drive/run.py`). Releases the GIL. After Ctrl-C the result is kept."""

def template_entries(template: str, subject: str, parent: str, first: int, count: int) -> bytes:
    """Returns an LDIF text with `count` directory entries, whose RDN is their `uid`. The entries are numbered from
    `first`. Raises InputError with `subject` and the invalid line of the template. If `count` is 0, the template is
    only checked.
    """

def operation_complaints(operations: list[str]) -> list[str]:
    """Returns the mistake in each of these directory operations, which are written as in scripts; empty for a valid
    operation."""

def job_variables(kind: str) -> list[str]:
    """Returns the variables that scripts may use without defining them. `kind`: kind of the source of jobs, as in the
    plan's `jobs`."""

def drive_called(
    plan: bytes, connect: Callable[[int, list[tuple[str, str, bool]]], Any], progress: Progress | None = None
) -> DriveResult:
    """Runs one trial like `drive`, but over connections that `connect` opens. See
    crates/ironbench-python/src/driver.rs."""

@final
class Sampler:
    """The sampling threads for trials that `drive` does not run. The methods `start`, `mark` and `stop` are called once
    each, in this order."""

    def __new__(cls, sources: bytes, connection: bytes) -> Sampler:
        """Connects. `sources`: JSON of the plan's `observers`. `connection`: JSON of the plan's `connection`, or null.
        Raises InputError."""
    def start(self) -> None:
        """Starts sampling. The window starts now."""
    def mark(self) -> None:
        """Ends the window now and reads every source once more. Returns immediately."""
    def stop(self) -> Sampled: ...

@final
class Sampled:
    summary: bytes
    """The fields of a drive's summary that describe the observers, as JSON."""
    samples: dict[str, list[tuple[float, bytes]]]

def available(kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Returns what is missing for a profile of these kinds ("cpu", "wait"), as codes with a detail; empty if nothing is
    missing.

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
    """Samples stacks of the engine, of this process and of their children, in a separate thread. It can be started and
    stopped once. Deleting the object closes all performance events."""

    def __new__(cls, kinds: Sequence[str], hz: int, engine_roots: Sequence[int]) -> Profiler:
        """`kinds`: "cpu", "wait". `hz`: samples per second of CPU time, 1 to 999. `engine_roots`: process ids of the
        engine; all of their descendants also belong to the engine. Raises InputError."""
    def start(self) -> None:
        """Starts sampling. Raises FailureError if something is missing (see `available`)."""
    def stop(self, windows: Sequence[tuple[int, int]]) -> Profile:
        """Ends sampling and looks up the names of functions. `windows`: start and end of each period whose samples are
        kept, in ns of CLOCK_MONOTONIC (`time.perf_counter_ns`), with a precision of about 1 ms; if empty, all samples
        are kept. Raises InputError."""

@final
class Profile:
    """Samples by stack. The lists have equal lengths. The stacks with the most seconds are first."""

    kind: list[str]
    """"cpu" or "wait"."""
    role: list[str]
    """"engine" or "client"."""
    thread: list[str]
    """Name of the thread (`comm`)."""
    reason: list[str]
    """Reason for the wait. "blocked": the thread waited until it was woken. "cpu-queue": the thread was ready to run
    and waited for a CPU. Empty for the kind "cpu"."""
    stack: list[str]
    """Frames from the root to the leaf, joined by ";". Names of kernel functions end with "_[k]". Frames without a
    symbol are "[unknown]", or the name of their file in brackets. "[truncated]" means that the stack was too deep."""
    waker: list[str]
    """Stack of the thread that ended the wait; empty if unknown."""
    samples: list[int]
    seconds: list[float]
    """CPU time (number of samples divided by the sampling rate), or off-CPU time, in seconds."""
    lost: int
    """Number of records that the kernel dropped because a ring buffer was full."""
    truncated: int
    """Number of stacks that the kernel cut off at sysctl kernel.perf_event_max_stack (127) frames."""
    others: int
    """Number of CPU samples of processes that belong neither to the engine nor to the client."""
    sampler_cpu_s: float
    """CPU time of the sampling thread."""
    unresolved_share: float
    """Fraction of the frames, weighted by samples, that have no function name."""

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
        """Number of transactions that the server has committed for this connection, without the transaction when it was
        opened; 0 if the connection is closed."""
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
    """Splits a file of SQL into statements, in the same way as psql (dialect `postgres`) or the client mariadb (dialect
    `mariadb`)."""

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
        """Adds the entries of an LDIF file, several at a time. `sql` is ignored."""
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
        """Inserts rows in COPY's text format, all or none, by a statement `COPY t (…) FROM STDIN` or an INSERT with
        `?1, ?2, …`. Returns the number of rows."""
    def close(self) -> None:
        """Closes the file. May be called twice."""

@final
class LoadProgress:
    """Progress of a running `load_rows`. Another thread may read it and stop the load."""

    def __new__(cls) -> LoadProgress: ...
    rows: int
    bytes: int
    """Bytes sent to the engine so far."""
    def stop(self) -> None:
        """Makes `load_rows` end soon with a FailureError. The rows that were copied must not be used."""

def load_rows(plan: bytes, progress: LoadProgress) -> bytes:
    """Copies generated rows into existing, empty tables, over several connections at a time.

    `plan`: JSON as in `crates/ironbench-data/src/plan.rs`. Returns JSON with `rows`, `bytes`, `elapsed_s` and
    `connections`. Releases the GIL. Raises FailureError if the engine rejected rows, a disk is full, or the load was
    stopped.
    """

def cut_rows(generator: bytes, workers: int, done: bytes) -> list[tuple[str, int, int]]:
    """Returns the pieces into which the rows are divided for loading by several workers, each as table, first unit, and
    the unit after the last. `done`: pieces to leave out, as a JSON list of `{"table", "first", "past"}`.
    """

@final
class ArrowRows:
    """The rows of a piece as an Arrow stream, with decimals and dates. The rows are generated again each time that they
    are read. Only the generator `tpch` has such rows."""

    def __new__(cls, generator: bytes, table: str, first: int, past: int, progress: LoadProgress) -> ArrowRows: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class LogRows:
    """The statements in log files as Arrow streams. The streams share one position, so each statement is read only
    once."""

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
        """Returns facts and faults that were found in the files, as JSON. The result is complete after all files were
        read."""

@final
class LoggedRows:
    """Statements that an engine has read from its logs. They are analysed and assigned to transactions."""

    def __new__(cls, mask: bool) -> LoggedRows:
        """`mask`: whether the rows contain no literals."""

    def add(
        self,
        session: int,
        at_us: int,
        text: bytes,
        names: tuple[str, str],
        prepared: str | None,
        values: Sequence[bytes | None],
        types: str,
        duration_us: int | None,
        rows: int | None,
    ) -> bool:
        """Adds a statement. Returns whether the rows should be taken. `names`: user and database."""

    def take(self) -> CapturedRows | None:
        """Returns the statements that were added since the last call. Returns None if there are none."""

@final
class Proxy:
    """A proxy between an application and its server, which observes statements. It runs until `stop`."""

    def __new__(cls, order: bytes) -> Proxy:
        """Starts the proxy. `order`: JSON of `Order` in crates/ironbench-proxy/src/proxy.rs. Raises InputError."""

    @property
    def address(self) -> str:
        """Where the proxy listens: `127.0.0.1:PORT`, or the path of its socket."""

    @property
    def is_running(self) -> bool:
        """Whether no thread of the proxy has failed."""

    def take(self, seconds: float) -> tuple[CapturedRows | None, bool]:
        """Waits at most `seconds` for statements. Returns them, and whether more may follow."""

    def lose(self, rows: CapturedRows) -> list[int]:
        """Notes that statements could not be stored. Returns the transactions whose earlier statements are stored."""

    def stop(self) -> None:
        """Closes all connections. Raises FailureError if a thread has failed."""

    def counters(self) -> bytes:
        """Returns the counters as JSON of `Counters` in crates/ironbench-proxy/src/proxy.rs."""

@final
class CapturedRows:
    """Statements of a capture as Arrow, with the columns of `LogRows`."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def masked_statement(text: str) -> str:
    """Returns a statement of PostgreSQL with masked literals and without comments. Raises FailureError if the system
    has no random numbers for the key of the mask."""

def write_tape(rows: object, path: str) -> list[tuple[int, int]]:
    """Writes the tape, which is the file for a replay. `rows`: an object with `__arrow_c_stream__`; its columns are
    described in crates/ironbench-capture/src/tape.rs. Returns start and end of each client's part in the file."""

def hand_rows(
    generator: bytes,
    table: str,
    units: tuple[int, int],
    max_rows: int,
    insert: Callable[[list[str], list[tuple[Any, ...]]], object],
    progress: LoadProgress,
) -> None:
    """Calls `insert` with column names and at most `max_rows` rows, until all rows of a piece of `cut_rows` have been
    passed."""

def write_rows(generator: bytes, table: str, threads: int, path: str) -> int:
    """Writes one table's rows into a file in PostgreSQL's COPY text format. Returns the number of rows."""

@final
class StorageProgress:
    """Progress of a running `storage_pass`. Another thread may read it and stop the pass."""

    def __new__(cls) -> StorageProgress: ...
    ios: int
    """Number of I/Os that have ended. Each thread updates it only once per 64 I/Os."""
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
    """Reads and writes blocks of open files. The caller must close the files. Releases the GIL.

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
    """Returns the capacity of a device in bytes: at least `capacity`, or if that is None, the capacity of its models.
    Raises InputError as `normal_device` does."""

def probe_device(text: str, models: bytes, capacity: int | None, load: bytes) -> tuple[float, float, Histogram]:
    """Computes I/Os per second, bytes per second and latencies of a synthetic load on a device model. Simulated time is
    used, so the call does not wait.

    `load`: JSON as in `crates/ironbench-device/src/replay/synthetic_load.rs`. Raises InputError as `normal_device`
    does. Releases the GIL.
    """

def ask_device(
    text: str, models: bytes, capacity: int | None, load: bytes, places: bytes
) -> tuple[float, float, Histogram]:
    """Like `probe_device`, but for I/Os at the offsets in `places` (little-endian u64), in this order.

    `load`: JSON as in `crates/ironbench-device/src/replay/listed_load.rs`. Raises InputError as `normal_device` does,
    if an offset is not on the device, or if there are too few offsets. Releases the GIL.
    """

def replay_trace(
    text: str,
    models: bytes,
    capacity: int | None,
    columns: tuple[bytes, bytes, bytes, bytes, bytes],
) -> tuple[bytes, dict[str, Histogram]]:
    """Replays a recorded trace on a device model at the recorded arrival times. Simulated time is used, so the call
    does not wait.

    `columns`: `time_ns`, `op` (0 read, 1 write, 2 flush), `offset`, `length`, `completed_ns` as little-endian u64, u8,
    u64, u32, u64, ordered by time. Returns totals as JSON, and latency histograms `read`, `write`, `flush`,
    `recorded_read`, …

    Raises InputError as `normal_device` does, and for a trace that is impossible or does not fit the device. Releases
    the GIL. Ctrl-C ends the replay.
    """

@final
class Kernels:
    """The threads of one trial of a CPU or memory benchmark kernel. They run once."""

    def __new__(cls, plan: bytes) -> Kernels:
        """Creates the threads of a plan (JSON, crates/ironbench-kernels/src/plan.rs). The threads prepare their work
        and warm up. Raises InputError."""
    def ready(self, timeout_s: float) -> bool:
        """Waits, for at most `timeout_s`, until all threads are ready. Returns whether they are."""
    def start(self, duration_s: float) -> None:
        """Starts the measured window now."""
    def done(self, timeout_s: float) -> bool:
        """Waits, for at most `timeout_s`, until all threads have done their work. Returns whether they have. The
        threads then check their results."""
    def ended(self, timeout_s: float) -> bool:
        """Waits, for at most `timeout_s`, until all threads have ended. Returns whether they have."""
    def stop(self) -> None:
        """Ends the work early. May be called by a signal handler."""
    def result(self) -> tuple[bytes, dict[str, Histogram]]:
        """Waits for the threads to end. Returns a summary (JSON), and histograms of whole units of work (under the
        empty name) and of their parts. Raises FailureError."""

def mandelbrot_png(width: int, height: int, limit: int, over: Callable[[], bool]) -> bytes | None:
    """Computes a picture of the Mandelbrot set in PNG format. Stops and returns None if `over` returns true."""
