"""Typed face of the Rust core. Held to it by stubtest."""

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
    "Progress",
    "Relay",
    "Sampled",
    "Sampler",
    "SqlScanner",
    "SqliteConnection",
    "StoragePass",
    "StorageProgress",
    "ask_device",
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
    """Compiles pgbench scripts (name, text, weight) together, for what one sets the others of a client may read.

    Of each its SQL commands, with `$1`, `$2`, … for variables, as the extended protocol sends them. `variables`: as -D.
    InputError with file, line, column and caret.

    `protocol`: `simple`, `extended` or `prepared` (PostgreSQL), `mysql_simple`, `mysql_prepared`, `library` (SQLite)
    or `mysql_library` (MariaDB through ODBC) to refuse what it cannot run; empty: no check.
    """

def script_cautions(
    scripts: Sequence[tuple[str, str, int]], variables: Sequence[tuple[str, str]], protocol: str
) -> list[str]:
    """What may be a mistake in these scripts and is none for certain: variables that nobody defines, in words."""

def rehearse_script(name: str, text: str, variables: Sequence[tuple[str, str]], seed: int) -> list[str]:
    """Runs a script as client 0 without a server: its SQL commands with variables replaced, and what `debug()` prints.

    InputError as `compile_scripts`; FailureError when an expression fails.
    """

def split_weight(text: str) -> tuple[str, int]:
    """`FILE[@WEIGHT]` as file and weight, 1 when left out. InputError when the weight is none."""

@final
class Histogram:
    """A mergeable HDR histogram of nanoseconds, 3 significant digits."""

    def __new__(cls) -> Histogram: ...
    @staticmethod
    def from_bytes(data: bytes) -> Histogram: ...
    def to_bytes(self) -> bytes:
        """HdrHistogram V2, deflated."""
    def record(self, value_ns: int) -> None: ...
    def merge(self, other: Histogram) -> None: ...
    def quantile(self, q: float) -> float:
        """Seconds; NaN when empty."""
    def quantiles(self, q: Sequence[float]) -> list[float]: ...
    def buckets(self) -> list[tuple[float, float, int]]:
        """Non-empty buckets: lowest and highest equivalent value in seconds, count."""
    mean_s: float
    stdev_s: float
    min_s: float
    max_s: float
    count: int
    sum_s: float

def write_hlog(histograms: Mapping[str, Histogram], start_unix_s: float, interval_s: float) -> str:
    """HdrHistogram's standard interval log, one tagged line per histogram."""

def read_hlog(text: str) -> dict[str, Histogram]: ...

@final
class LiveDevice:
    """A modelled device as files of a FUSE file system, mounted in `directory`; `spec` is JSON.

    InputError, FailureError. Only for the process of a device: making one changes how its threads run.
    """

    def __new__(cls, spec: bytes, directory: str) -> LiveDevice: ...
    def calibrate(self, block_device: str, length: int) -> bytes:
        """Measures the way to the device through a loop device of one of its files: JSON. Overwrites `length` bytes."""

    def pace(self, block_devices: list[str]) -> None:
        """Answers come when the model says, as seen by these block devices, which were made of its files."""

    def hurry(self) -> None:
        """Answers come at once."""

    def counters(self) -> bytes:
        """Cumulative since the mount, as JSON."""

    def cut(self, how: str, seed: int) -> int:
        """The power goes: `lose`, `subset` or `torn`. Returns how many writes were at stake."""

    def end_trace(self) -> None:
        """Writes what is left of the trace and closes its file."""

    def revive(self) -> None:
        """The power is back."""

    def unmount(self) -> None: ...

@final
class Relay:
    """A relay that delays everything between clients and a server; `order` is JSON. InputError, FailureError."""

    def __new__(cls, order: bytes) -> Relay: ...
    @property
    def address(self) -> str:
        """Where it listens: `127.0.0.1:PORT`, or `@` and the name of an abstract Unix socket."""

    def measure(self) -> None:
        """Measures how much longer than declared a round trip takes. FailureError."""

    def counters(self) -> bytes:
        """Cumulative since the start, as JSON."""

@final
class Progress:
    """Shared with a running `drive`; its fields may be read from another thread."""

    def __new__(cls) -> Progress: ...
    def stop(self) -> None:
        """Ends the trial within a second; its result says `cut_short`."""
    def finish(self) -> None:
        """Closes the window of a trial that watches something, which is over now."""
    def begin_at(self, unix_ns: int) -> None:
        """Of a drive that is a part and waits (phase `ready`): all begin at this instant of CLOCK_REALTIME."""
    def by_turns(self) -> None:
        """Before the drive begins: it goes by turns, of a closed loop on a server, and ends with `finish`."""
    def begin_turn(self, start_up_s: float, slice_s: float, cpus: Sequence[int]) -> None:
        """While all clients rest: lets them work, and measures the slice after the start-up. Their threads move to
        `cpus`, which this process may use; none: they stay where they are."""
    def rested(self) -> tuple[int, int, float, float, float] | None:
        """Waits until all clients are connected, or have ended their turn, and rest. Releases the GIL.

        Transactions that began in the slice and ended well; those that failed; seconds that all clients spent on these
        and thinking after them; seconds from the start of the turn to that of its slice; seconds from the end of the
        slice until the last client rested. None: it is over, or Ctrl-C came.
        """
    def forget(self) -> None:
        """While all rest: the slice of the last turn is not measured, as if it were no part of the trial."""
    over: bool
    """Of a drive by turns: all of its clients have ended, so that `rested` has nothing to wait for."""
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
        """Takes over the state of a drive that runs in another process; `seconds`: those new since the last call."""
    def seconds(self, after: int) -> list[tuple[float, int, int, float, float]]:
        """Returns the one-second intervals of the window that are complete, starting with number `after`.

        Of each: width in seconds, transactions, failed, mean and standard deviation of the response time (NaN: none).
        """
    phase: str
    """`connect`, `ready` (a part that waits for the others), `warmup`, `run`, `drain` or `done`."""
    elapsed_s: float
    """Since the measured window began; negative during warm-up."""
    transactions: int
    errors: int

@final
class DriveResult:
    summary: bytes
    """JSON: everything that is one number or one text (see docs/adr on the boundary)."""
    timeline: dict[str, bytes]
    """Column → little-endian float64, one per 100 ms: `t_s`, `transactions`, `errors`, `retries`; with a source of jobs
    `unscheduled`, too: of the transactions, those of clients that wait for work."""
    seconds: dict[str, bytes]
    """The same per second, with `response_mean_s`, `response_p50_s`, `_p90_s`, `_p95_s`, `_p99_s`, `_max_s`."""
    histograms: dict[str, Histogram]
    """`response_time` and `service_time`, and `…{script=NAME}` of each."""
    samples: dict[str, list[tuple[float, bytes]]]
    """Source name → (seconds from the start of the window, raw bytes)."""
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> DriveResult: ...
    @staticmethod
    def merged(parts: Sequence[bytes]) -> DriveResult:
        """Of the bytes of drives that loaded one system together, without their samples. Releases the GIL."""

def drive(plan: bytes, progress: Progress | None = None) -> DriveResult:
    """Runs one trial by its plan (JSON, `trial/drive/run.py`). Releases the GIL; after Ctrl-C the result is kept."""

def template_entries(template: str, subject: str, parent: str, first: int, count: int) -> bytes:
    """The LDIF of `count` entries of a directory, whose RDN is their `uid`, from number `first` on.

    InputError with `subject` and the line of the template that cannot be used; with `count` 0, that alone.
    """

def operation_complaints(operations: list[str]) -> list[str]:
    """Of each operation of a directory, written as in scripts, what is wrong with it; empty: nothing."""

def job_variables(kind: str) -> list[str]:
    """Variables that scripts of a source of jobs may use without defining them; `kind` as in the plan's `jobs`."""

def drive_called(
    plan: bytes, connect: Callable[[int, list[tuple[str, str, bool]]], Any], progress: Progress | None = None
) -> DriveResult:
    """As `drive`, over connections that `connect` makes: see crates/ironbench-python/src/called.rs."""

@final
class Sampler:
    """The sampling threads, for trials that `drive` does not run: made, started, marked, stopped, each once."""

    def __new__(cls, sources: bytes, connection: bytes) -> Sampler:
        """JSON of the plan's `observers`, and of its `connection` or null. Connects. InputError."""
    def start(self) -> None:
        """The window begins now."""
    def mark(self) -> None:
        """The window ends now: reads every source once more. Returns at once."""
    def stop(self) -> Sampled: ...

@final
class Sampled:
    summary: bytes
    """JSON: those fields of a drive's summary that are about observers."""
    samples: dict[str, list[tuple[float, bytes]]]

@final
class Connection:
    """A blocking connection for everything outside the timed window."""

    def __new__(cls, connection: bytes, silence_s: float | None = None) -> Connection:
        """`connection`: JSON of the plan's `connection`. InputError (wrong password, …), FailureError.

        `silence_s`: after so long without a byte, the server is given up if it does not answer a new connection either.
        """
    def query(self, sql: str, limit_s: float | None = None) -> list[tuple[str | None, ...]]:
        """Rows of the last statement that returned rows. FailureError, with `sqlstate` when the server refused.

        `limit_s`: after so many seconds the server is given up, and with it the connection.
        """
    def measure(self, sql: str) -> tuple[int, float, float]:
        """Rows, and when the statement was submitted and the last of its answer taken, as `time.perf_counter`.

        No row is handed over, so that the size of an answer costs nothing before the next statement. FailureError.
        """
    def columns(self) -> list[str]:
        """Column names of the last query."""
    def copy_in(self, sql: str, data: bytes) -> int: ...
    def cancel(self) -> None:
        """From another thread: the running statement ends with SQLSTATE 57014."""
    def parameter(self, name: str) -> str | None:
        """A parameter status the server reported, e.g. `server_version`."""
    backend_pid: int
    tls: bool
    @property
    def commits(self) -> int:
        """Transactions that the server has committed for it, besides that of its start; 0 when it is closed."""
    def close(self) -> None: ...

@final
class MysqlConnection:
    """A blocking connection to MySQL or MariaDB for everything outside the timed window."""

    def __new__(cls, connection: bytes, silence_s: float | None = None) -> MysqlConnection:
        """`connection`: JSON of the plan's `connection`. InputError (wrong password, …), FailureError.

        `silence_s`: after so long without a byte, the server is given up if it does not answer a new connection either.
        """
    def query(self, sql: str, limit_s: float | None = None) -> list[tuple[str | None, ...]]:
        """As `Connection.query`; `number` of a refusal, too."""
    def execute(self, sql: bytes) -> int:
        """Runs a statement in any character set; how many rows it affected. FailureError as of `query`."""
    def measure(self, sql: str) -> tuple[int, float, float]:
        """Rows, and when the statement was submitted and the last of its answer taken, as `time.perf_counter`."""
    def columns(self) -> list[str]:
        """Column names of the last query."""
    def changes(self) -> int:
        """Rows that the last statement of the last `query` inserted, updated (changed or not) or deleted."""
    def copy_in(self, sql: str, data: bytes) -> int:
        """Rows of `LOAD DATA LOCAL INFILE '' INTO TABLE …` with `data` for its file. A warning is a FailureError."""
    def cancel(self) -> None:
        """From another thread: the running statement ends with error 1317, SQLSTATE 70100."""
    def parameter(self, name: str) -> str | None:
        """`server_version` as the server greets with it, such as `10.11.6-MariaDB`; None for all others."""
    connection_id: int
    tls: bool
    def close(self) -> None: ...

@final
class SqlScanner:
    """Splits a file of SQL into statements, as psql (`postgres`) or the client mariadb (`mariadb`) does."""

    def __new__(cls, dialect: str, merged: Sequence[str] = ...) -> SqlScanner:
        """`merged`: first words of statements that need not be told apart."""
    def feed(self, data: bytes, last: bool = False) -> list[tuple[str, int, int, bytes]]:
        """Kind, line, offset of the first word, and text of each piece that ends here: `sql`, `merged`, `client`,
        `rows`, `rows-end`, `open-text`, `open-rows`."""

@final
class LdapConnection:
    """A blocking connection to a directory server for everything outside the timed window."""

    def __new__(cls, connection: bytes, silence_s: float | None = None) -> LdapConnection:
        """`connection`: JSON of the plan's `connection`. InputError (wrong password, …), FailureError.

        `silence_s`: after so long without a byte, the server is given up if it does not answer a new connection either.
        """
    def query(self, sql: str, limit_s: float | None = None) -> list[tuple[str | None, ...]]:
        """Runs one operation; of a search the entries: DN, then the attributes asked for by name, values by lines.

        FailureError, with the result code as `number`. `limit_s` as of `Connection.query`."""
    def measure(self, sql: str, limit_s: float | None = None) -> tuple[int, float, float]:
        """Entries, and when the operation was submitted and the last of its answer taken, as `time.perf_counter`.

        `limit_s` as of `Connection.query`."""
    def columns(self) -> list[str]:
        """`dn` and the attributes of the last search."""
    def changes(self) -> int:
        """Entries that the last `query` changed or found."""
    def copy_in(self, sql: str, data: bytes) -> int:
        """Adds the entries of an LDIF, several at a time; `sql` is of no account."""
    tls: bool
    def close(self) -> None: ...

@final
class SqliteConnection:
    """A blocking session on a SQLite file, made if it is not there, for everything outside the timed window."""

    def __new__(cls, path: str, pragmas: Sequence[str] = ...) -> SqliteConnection:
        """`pragmas` run after opening. InputError (a pragma), FailureError (the file)."""
    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        """Runs one or more statements; the rows of the last, bytes as `\\x` and hexadecimal digits. FailureError."""
    def measure(self, sql: str) -> tuple[int, float, float]:
        """Rows, and when the statement was submitted and the last of its answer taken, as `time.perf_counter`.

        No row is handed over, so that the size of an answer costs nothing before the next statement. FailureError.
        """
    def columns(self) -> list[str]:
        """Column names of the last query."""
    def changes(self) -> int:
        """Rows that the last INSERT, UPDATE or DELETE changed."""
    def copy_in(self, sql: str, data: bytes) -> int:
        """Rows of COPY's text format, all or none, by `COPY t (…) FROM STDIN` or an INSERT with `?1, ?2, …`."""
    def close(self) -> None:
        """May be called twice."""

@final
class LoadProgress:
    """Shared with a running `load_rows`; may be read and stopped from another thread."""

    def __new__(cls) -> LoadProgress: ...
    rows: int
    bytes: int
    """Handed to the engine so far."""
    def stop(self) -> None:
        """Ends the load soon, with a FailureError; what was copied so far must not be used."""

def load_rows(plan: bytes, progress: LoadProgress) -> bytes:
    """Copies generated rows into tables that exist and are empty, over several connections at a time.

    `plan`: JSON by `crates/ironbench-data/src/plan.rs`. Returns JSON: `rows`, `bytes`, `elapsed_s`,
    `connections`. Releases the GIL. FailureError: the engine refused, a disk is full, the load was stopped.
    """

def cut_rows(generator: bytes, workers: int, done: bytes) -> list[tuple[str, int, int]]:
    """The pieces that `load_rows` would share among `workers`: table, first unit, the one past the last.

    `done`: JSON, a list of `{"table", "first", "past"}` that are left out.
    """

@final
class ArrowRows:
    """The rows of a piece as Arrow, with decimals and dates; each reading makes them anew. Only `tpch` rows."""

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
        """Bytes of the files that have been read."""

    @property
    def statements(self) -> int: ...
    def stop(self) -> None: ...
    def summary(self) -> bytes:
        """What was noticed, as JSON; complete when everything has been read."""

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
    """Calls `insert` with column names and at most so many rows, until a piece of `cut_rows` is handed over."""

def write_rows(generator: bytes, table: str, threads: int, path: str) -> int:
    """Writes one table's rows into a file in PostgreSQL's COPY text format; the number of rows."""

@final
class StorageProgress:
    """Shared with a running `storage_pass`; may be read and stopped from another thread."""

    def __new__(cls) -> StorageProgress: ...
    ios: int
    """Ended so far, to within 64 of each thread."""
    def stop(self) -> None:
        """Ends the pass within the time of the I/Os under way; its result says `stopped`."""

@final
class StoragePass:
    summary: bytes
    """JSON by `crates/ironbench-storage/src/record.rs`."""
    reads: Histogram
    writes: Histogram
    buckets: list[int]
    """I/Os that ended in each tenth of a second."""

def storage_pass(plan: bytes, progress: StorageProgress) -> StoragePass:
    """Reads and writes blocks of open files, which stay the caller's. Releases the GIL.

    `plan`: JSON by `crates/ironbench-storage/src/plan.rs`. FailureError: an I/O failed.
    """

def student_t_above(t: float, freedom: float) -> float:
    """P(T ≥ t); NaN unless the freedom is above 0."""

def student_t_quantile(p: float, freedom: float) -> float:
    """t with P(T ≤ t) = p; NaN unless 0 < p < 1 and the freedom is above 0."""

def wide_sums(wide: bytes) -> tuple[int, int, int]:
    """Rows, sum of their content and sum of their keys of the table that JSON describes (`workloads/wide_table.py`)."""

def normal_device(text: str, models: bytes) -> str:
    """A device expression, checked, in normal form. `models`: JSON, see `devices/models.py`.

    InputError with the column and the nearest name.
    """

def device_capacity(text: str, models: bytes, capacity: int | None = None) -> int:
    """Bytes that a device holds: at least `capacity`, or what its models hold. InputError as `normal_device`."""

def probe_device(text: str, models: bytes, capacity: int | None, load: bytes) -> tuple[float, float, Histogram]:
    """I/Os per second, bytes per second and latencies of a made-up load on a model, without waiting.

    `load`: JSON by `crates/ironbench-device/src/replay/probe.rs`. InputError as `normal_device`. Releases the GIL.
    """

def ask_device(
    text: str, models: bytes, capacity: int | None, load: bytes, places: bytes
) -> tuple[float, float, Histogram]:
    """As `probe_device`, of I/Os that begin at these places (little-endian u64), in their order.

    `load`: JSON by `crates/ironbench-device/src/replay/given.rs`. InputError as `normal_device`, or where one is not
    on the device, or there are too few. Releases the GIL.
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

    InputError as `normal_device`, or for a trace that cannot be or does not fit. Releases the GIL; Ctrl-C ends it.
    """

@final
class Kernels:
    """The threads of one trial of a processor or memory kernel: made, started, joined, each once."""

    def __new__(cls, plan: bytes) -> Kernels:
        """A plan (JSON, crates/ironbench-kernels/src/plan.rs). The threads prepare and warm up. InputError."""
    def ready(self, timeout_s: float) -> bool:
        """Waits so long for all threads to be ready."""
    def start(self, duration_s: float) -> None:
        """The window begins now."""
    def done(self, timeout_s: float) -> bool:
        """Waits so long for all threads to have done their work, which they then check."""
    def ended(self, timeout_s: float) -> bool:
        """Waits so long for all threads to end."""
    def stop(self) -> None:
        """Ends the work early; may be called by a signal handler."""
    def result(self) -> tuple[bytes, dict[str, Histogram]]:
        """Waits for the threads: a summary (JSON) and histograms, of whole units under the empty name. FailureError."""

def mandelbrot_png(width: int, height: int, limit: int, over: Callable[[], bool]) -> bytes | None:
    """A picture of the set as a PNG file; None once `over` says so."""
