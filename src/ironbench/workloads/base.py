"""Base class of all workloads: options, scripts, the data they need, and checks of their results."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from ironbench import engines, ranges
from ironbench.errors import InputError, nearest, written
from ironbench.fields.sections import USUAL_DURATION_S, USUAL_WARMUP_S
from ironbench.model.described import LEADING
from ironbench.model.driven import Driven
from ironbench.model.inside import ScriptCommand
from ironbench.model.note import Note
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Outcome, Work
from ironbench.workloads.fixed_rows import FixedRows

SCRIPT_FIGURES = ("throughput", "failed", "response_time_mean_s", "response_time_p50_s", "response_time_p99_s")
"""Metrics that a record contains for each script, if the workload has several. The list is short, so that records stay
small."""
PGBENCH_PROTOCOL = "simple"
"""Default protocol of pgbench (`-M`; PostgreSQL 18 documentation, pgbench). With this protocol, the server receives
literals and not parameters. Types and plans can therefore differ from those of prepared statements."""


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """A pgbench script. Messages and records refer to it by `name`."""

    name: str
    text: str
    weight: int = 1


_SWITCHES = (frozenset({"on", "true", "yes"}), frozenset({"off", "false", "no"}))
"""Words with the same meaning. A boolean in a lab file is read as `on` or `off`; users of other programs write other
words."""


@dataclass(frozen=True, slots=True)
class ServerRequirement:
    """A requirement of a workload that an existing server must meet, checked before data are loaded."""

    note: Note
    """Describes the requirement for a dry run, which does not connect to the server."""
    check: Callable[[Session], None]
    """Raises InputError if the server does not meet the requirement."""


@dataclass(frozen=True, slots=True)
class Option:
    """A workload option that users set with `--with NAME=VALUE`."""

    name: str
    default: str
    doc: str
    choices: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    whole: bool = True
    """Whether the value must be a whole number. Used only with bounds."""
    incidental: bool = False
    """Whether the option has no effect on the measured work. Trials that differ only in such an option did the
    same work."""
    path: Literal["", "file", "directory", "directories"] = ""
    """Kind of path, if the value is a path. `directories` means a comma-separated list of directories. In a lab file,
    paths are relative to the directory of the lab file. Two trials do the same work if they use files with the same
    name, or directories with the same path."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Name in reports of each value in `choices`, such as `stored procedures` for `true`. If there are no names,
    reports show the option and its value."""

    def validated(self, text: str) -> str:
        """Returns the value in its normal form. Raises InputError that names the option, the value and the possible
        values."""
        subject = written("workload.with", f"{self.name}={text}")
        if self.choices:
            if text not in self.choices:
                for words in _SWITCHES:
                    for choice in words.intersection(self.choices):
                        if text.lower() in words:
                            return choice
                raise InputError(subject, f"{text!r} is unknown", nearest(text, list(self.choices)))
            return text
        if self.lowest is None or self.highest is None:
            return text
        try:
            value = int(text) if self.whole else float(text)
        except ValueError:
            kind = "a whole number" if self.whole else "a number"
            hint = f"write each option separately, with its own {written('workload.with')}" if "=" in text else ""
            raise InputError(subject, f"{text!r} is not {kind}", hint or self._range()) from None
        if not self.lowest <= value <= self.highest:  # in this form, the condition also rejects NaN
            raise InputError(subject, f"{text} is out of range", self._range())
        return f"{value:d}" if isinstance(value, int) else f"{value:g}"

    def _range(self) -> str:
        assert self.lowest is not None and self.highest is not None
        return f"use a value from {ranges.in_words(self.lowest)} to {ranges.in_words(self.highest)}"


Pieces = Callable[[str], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Dataset:
    """The tables on which a workload runs, and how they are loaded. Several workloads may share a dataset."""

    name: str
    """Name of the family of tables, such as `igen`. A database contains at most one dataset with each name."""
    key: str
    """Key of the rows. Datasets with the same key must have the same rows."""
    tables: tuple[str, ...]
    """Tables of the dataset, in an order in which they can be dropped."""
    schema: tuple[str, ...]
    """Statements that are executed one after another before the rows are loaded."""
    generator: Mapping[str, Any]
    """Plan of the row generator, as described in crates/ironbench-data/src/plan.rs."""
    keys: tuple[str, ...]
    """Statements that are executed after the rows are loaded, several at a time."""
    references: tuple[str, ...]
    """Statements that are executed last, one after another."""
    rows: int
    """Approximate number of rows, for the progress bar."""
    bytes: int
    """Approximate size including indexes, for the check of free space."""
    recognised: tuple[str, ...] = ()
    """Queries that recognise tables with exactly these rows, even if another program loaded them. If all queries return
    true, the tables are used."""
    prepared_by: str = ""
    """Command of another program that also loads these tables."""
    conditions: Callable[[Session, bool], Sequence[Check]] | None = None
    """Checks all rows. The function is called after loading, with true as the second argument. The function is called
    with false before a run uses tables that another program loaded and may have changed. Data that violate a condition
    are not used."""
    intact: str = ""
    """Query that returns true if the tables still satisfy the conditions which every trial preserves. Used for tables
    that ironbench loaded."""
    fixed: tuple[FixedRows, ...] = ()
    """Rows that no transaction of the workload changes. Before data are used again, these rows are compared with their
    state after loading."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Values that describe the dataset in messages, such as {"scale": "4"}."""
    entries: Pieces | None = None
    """For a directory: the entries as pieces of an LDIF, for a given base DN. A piece contains only whole entries. The
    first entry is the root of all others."""
    roots: Callable[[str], tuple[str, ...]] | None = None
    """For a directory: returns the topmost entries in the user's file, for a given base DN. These are the DNs whose
    parents are not in the file."""
    line_of: Callable[[str, str], str] | None = None
    """For a directory: finds a record in the user's files by its DN and operation (`add`, `modify`, …). Returns its
    file and line, or "" if there is no such record."""
    changes: Pieces | None = None
    """For a directory: further records as pieces of an LDIF, for a given base DN. These records are applied with LDAP
    operations after the `entries` were loaded."""
    stranger: Callable[[str], tuple[str, str] | None] | None = None
    """For a directory: finds the first record in the user's file that changes an entry which the file does not add.
    Returns its (file and line, DN) for a given base DN."""
    large: bool = False
    """Whether the dataset is large. If so, a separate process generates the rows, so that their memory is free before
    anything is measured. If loading was interrupted, it continues where it stopped."""


@dataclass(frozen=True, slots=True)
class ProgressRate:
    """A rate that the lines of `--progress` show in addition to transactions per second."""

    unit: str
    factor: float
    """The rate is the number of transactions per second times this factor."""
    first_script: bool = False
    """Whether only committed transactions of the first script are counted."""

    def of(self, transactions: int, first_committed: int, seconds: float) -> float:
        """Returns the rate of a period. `first_committed`: number of committed transactions of the first script."""
        return self.factor * (first_committed if self.first_script else transactions) / seconds


class Workload(ABC):
    """Base class of workloads. A workload either consists of scripts that the core executes, or drives itself
    (`drives`, `drive`).

    Members that a workload does not override have sensible defaults.
    """

    name: str
    doc: str
    options: tuple[Option, ...] = ()
    needs: tuple[str, ...] = ("scripts", "transactions")
    """Abilities that an engine must have (`engines.base.ABILITIES`)."""
    stable: bool = False
    """Whether the data keep their size and state however often the workload runs, apart from dead tuples. Only then may
    a trial start from the data that another trial left behind (`ironbench.trial.load.restore`). The value has no
    meaning for read-only workloads."""
    starts_from_copy: bool = False
    """Whether the data are restored before every trial (`ironbench.trial.load.restore`). This is needed if a trial is a
    single operation of unknown duration."""
    counts: tuple[str, str] = ("transaction", "transactions")
    """Name of the unit of work in reports, in the singular and the plural."""
    foreign: bool = False
    """Whether the scripts are the user's. If so, it is not known in advance whether they write."""
    rights: tuple[str, ...] = ()
    """Privileges that the role needs on an existing server, in addition to the privilege to create tables. Names from
    `engines.administration`."""
    scores: tuple[str, ...] = ("throughput",)
    """Metrics by which systems are ranked. Higher values are better. The first metric that was measured is used. Empty
    if no single number ranks systems."""
    script_figures: tuple[str, ...] = SCRIPT_FIGURES
    derived: str = ""
    """Sentence that is shown with every result if the workload resembles a published benchmark."""
    drives: bool = False
    """Whether the workload has no scripts and drives itself, as described in `ironbench.model.work`."""
    honours: frozenset[str] = frozenset({"duration_s"})
    """Fields of `Load`, besides the seed, that have an effect on a workload which drives itself."""
    looks_before: bool = False
    """Whether `before` is called although the workload has no dataset."""
    own_length: bool = False
    """Whether the workload determines the length of a trial. If so, a budget does not change the length."""
    warning_code: str = "script-caution"
    """Code of the note that contains the warnings about scripts."""
    usual_warmup_s: float = USUAL_WARMUP_S
    """Default warm-up in seconds."""
    usual_max_tries: int = 1
    """Default for the maximum number of tries of a transaction. A transaction is tried again after a serialization
    failure or a deadlock."""
    retries_duplicate_keys: bool = False
    """Whether a transaction is also tried again after a duplicate key. This applies only to errors that a concurrent
    transaction can cause (`Traits.duplicate_key`)."""
    usual_protocol: str = Load().protocol
    """Default protocol for sending statements."""

    @property
    def engines(self) -> list[str]:
        """Names of the engines that can run this workload, with the preferred one first."""
        return engines.able(self.needs)

    def validated(self, options: Mapping[str, str]) -> dict[str, str]:
        """Returns every option in normal form, including defaults. Raises InputError for unknown names and values."""
        known = {option.name: option for option in self.options}
        for name in options:
            if name not in known:
                hint = nearest(name, list(known)) if known else f"the workload `{self.name}` has no options"
                raise InputError(written("workload.with", name), f"is not an option of {self.name}", hint)
        return {name: option.validated(options.get(name, option.default)) for name, option in known.items()}

    def leading(self, options: Mapping[str, str]) -> tuple[str, ...]:
        """Returns the metrics that a comparison of two systems lists first, with the most informative first. Metrics
        that were not measured are skipped."""
        return LEADING

    def telling(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the options that describe the work in reports. If this method returns the same options for two
        choices, both do the same work."""
        return options

    def is_paced(self, options: Mapping[str, str]) -> bool:
        """Returns whether each operation has a scheduled start, as in a recorded log. If so, the throughput follows
        from the schedule. Such a throughput is not a peak, is not compared between systems, and does not follow the
        laws of closed loops."""
        return False

    def suited(self, load: Load, options: Mapping[str, str]) -> Load:
        """Returns the load with values that the work determines, such as the number of clients. Values that the user
        set are kept. Raises InputError."""
        return load

    def streams(self, options: Mapping[str, str]) -> tuple[int, str] | None:
        """Returns the maximum number of concurrent streams, and their name. Returns None if the work is done by the
        clients of the load."""
        return None

    def connections(self, clients: int, options: Mapping[str, str]) -> int:
        """Returns how many connections to the engine this many clients need. Some workloads need additional connections
        that wait for work of the clients."""
        return clients

    def rests(self, options: Mapping[str, str]) -> bool:
        """Returns whether the workload itself determines pauses of clients between transactions."""
        return False

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        """Returns the scripts in the engine's dialect, with their weights. Returns none if the workload drives
        itself."""
        return []

    def core_work(self, engine: str, options: Mapping[str, str]) -> Mapping[str, Any] | None:
        """Returns the plan of work that the core does in place of scripts (`Work` in
        crates/ironbench-python/src/drive.rs). Returns None if the workload has scripts."""
        return None

    def commands(self, options: Mapping[str, str]) -> Sequence[ScriptCommand]:
        """Returns typical commands if the work does not consist of scripts. The engine's plans of these commands are
        recorded."""
        return ()

    def jobs(self, session: Session, options: Mapping[str, str], load: Load) -> Mapping[str, Any] | None:
        """Returns the plan of the component that chooses the next script and sets its variables (`Chooser` in
        crates/ironbench-python/src/drive.rs). Returns None if scripts are chosen by weight."""
        return None

    def reconnect(self, options: Mapping[str, str]) -> int:
        """Returns the number of requests after which a client reconnects. Returns 0 if clients never reconnect. Only
        for workloads that need `directory`."""
        return 0

    def binds_back(self, options: Mapping[str, str]) -> bool:
        """Returns whether clients bind again as the DSN's user after they have bound as another user. Only for
        workloads that need `directory`."""
        return False

    def in_parts(self, engine: str, options: Mapping[str, str]) -> bool:
        """Returns whether several processes can share the clients. This is possible for all workloads that consist of
        scripts."""
        return not self.drives and self.core_work(engine, options) is None

    def drive(self, work: Work) -> Outcome:
        """Runs one trial, for a workload that `drives` itself. Raises FailureError or EngineDiedError."""
        raise NotImplementedError(f"workload {self.name} has scripts")

    def default_protocol(self, engine: str) -> str:
        """Returns `usual_protocol` if the engine supports it. Engines without protocols ignore the value."""
        usual = self.usual_protocol
        return usual if usual in engines.get(engine).traits.protocols else Load().protocol

    def usual_duration_s(self, options: Mapping[str, str]) -> float | None:
        """Returns the default duration of a trial in seconds. Returns None if a trial lasts until the work is done."""
        return USUAL_DURATION_S

    def resting_s(self, options: Mapping[str, str]) -> float:
        """Returns the seconds for which a trial waits between its measurements, in addition to its duration."""
        return 0.0

    def expected_read_bytes(
        self, engine: str, options: Mapping[str, str], memory_bytes: int | None, cold: bool
    ) -> float:
        """Estimates how many bytes a trial reads from the data device. Called only if this device may be slow. `cold`:
        whether caches are empty at the start. `memory_bytes`: limit for the memory of engine and page cache together,
        if there is one.
        """
        return 0.0

    def expected_s(self, engine: str, options: Mapping[str, str]) -> float | None:
        """Estimates the measured time in seconds of a trial that has no duration. Returns None if the time is unknown.
        Used for plans and budgets."""
        return None

    def units(self, options: Mapping[str, str]) -> int | None:
        """Returns the total number of transactions in the core's work. Returns None if the load determines the
        number."""
        return None

    def measures(self, options: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """Returns the metrics of this workload's own (catalogue/metrics.toml) that its trials will contain. The key is
        the name. The values are the metric's parts, such as `profile=…`, or "" for the whole. Returns nothing if the
        metrics are not known in advance. Called only for labs, before anything starts."""
        return {}

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        """Raises InputError if this workload does not support this system or load. Has no side effects."""
        if not self.drives:
            return
        # The user's default for `on_error` is "stop". The default of the field differs, because it is for old records.
        usual = Load(on_error="stop")
        for one in fields(Load):
            kept = one.name in self.honours or one.name in ("seed", "duration_s")
            # With a zero-latency client, ironbench sets `threads`, not the user.
            kept |= one.name == "threads" and "client" in system.ideal
            if not kept and getattr(load, one.name) != getattr(usual, one.name):
                names = {"rate_share": "rate", "warmup_auto": "warmup", "curve": load.curve.of if load.curve else ""}
                option = f"load.{names.get(one.name, one.name.removesuffix('_s'))}"
                subject = written(option, "auto" if one.name == "warmup_auto" else "")
                cause = f"has no effect on the workload `{self.name}`, which controls its own load"
                raise InputError(subject, cause, "remove it")

    def counts_after_cut(self, options: Mapping[str, str]) -> bool:
        """Returns whether the checks detect a commit that was lost in a power cut."""
        return True

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        """Returns variables for the scripts, like pgbench's -D."""
        return {}

    def is_stable(self, options: Mapping[str, str]) -> bool:
        """Returns `stable`. Workloads whose stability depends on the options override this method."""
        return self.stable

    def chooses_new_keys(self, options: Mapping[str, str]) -> bool:
        """Returns whether a trial determines at its start which keys it will insert. If so, two trials that run on the
        same data at the same time would insert the same keys."""
        return False

    def writes(self, options: Mapping[str, str]) -> bool:
        """Returns whether the workload may change data. Whether a trial actually wrote is measured
        (`records.judge.wrote`)."""
        return "bare machine" not in self.needs

    def counts_all(self, options: Mapping[str, str]) -> bool:
        """Returns whether the units of work (`counts`) include everything that a trial does. If not, no cost per unit
        is computed."""
        return True

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        """Returns the tables that the workload needs. Returns None if it needs none."""
        return None

    def content_key(self, engine: str, options: Mapping[str, str]) -> str:
        dataset = self.dataset(engine, options)
        return dataset.key if dataset else ""

    def preset(self, system: System, options: Mapping[str, str]) -> dict[str, str]:
        """Returns settings that suit this workload on this system. The user's settings take precedence."""
        return {}

    def estimate_bytes(self, engine: str, options: Mapping[str, str]) -> int:
        dataset = self.dataset(engine, options)
        return dataset.bytes if dataset else 0

    def needs_untouched(self, session: Session, options: Mapping[str, str]) -> bool:
        """Returns whether the next trial needs the data in their original state, but earlier trials have changed
        them."""
        return False

    def requirement(self, options: Mapping[str, str]) -> ServerRequirement | None:
        """Returns what the workload requires of an existing server, or None if it requires nothing."""
        return None

    def set_up(self, session: Session, options: Mapping[str, str], own_server: bool) -> None:
        """Creates objects that the scripts need in addition to the tables, such as stored procedures. Existing objects
        are kept. Called before each trial, before caches are warmed. `own_server`: whether ironbench started the
        server. Raises InputError or FailureError."""
        return

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        """Reads the state before a trial. `check` compares it with the state after the trial."""
        return None

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """Checks the data against the workload's rules after a trial."""
        return ()

    def measured(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> Mapping[str, float]:
        """Measures additional metrics right after a complete trial. The keys are names in the catalogue."""
        return {}

    def progress_rate(self, engine: str, options: Mapping[str, str]) -> ProgressRate | None:
        """Returns an additional rate for the lines of `--progress`."""
        return None

    def assessed(self, driven: Driven, seen: Sequence[Note]) -> tuple[Mapping[str, float], tuple[Note, ...]]:
        """Returns additional metrics, and additional notes for the reader. The keys of metrics are names in the
        catalogue. `seen`: notes that the trial already has."""
        return {}, ()

    def fits(self, system: System, choice: Choice) -> None:
        """Raises InputError if the system's directories do not suit the workload. Changes nothing.

        Called after the engine has validated the system and before emulated devices are mounted.
        """
        return

    def identified(self, choice: Choice, engine: str) -> Choice:
        """Returns the choice with option values as the engine interprets them. Adds digests of the files that options
        name, so that later changes of a file are noticed. Raises InputError if a file cannot be read."""
        return choice

    def compile(self, engine: str, choice: Choice, protocol: str) -> Mapping[str, Sequence[str]]:
        """Compiles all scripts before anything is started. Returns the SQL commands of each script. Raises InputError
        with file, line, column and a caret."""
        scripts, variables = self._compilable(engine, choice)
        if not scripts:  # the workload drives itself, or the core does its work
            return {}
        from ironbench import _core

        compiled = _core.compile_scripts(scripts, variables, protocol)
        return {name: commands for (name, _, _), commands in zip(scripts, compiled, strict=True)}

    def warnings(self, engine: str, choice: Choice, protocol: str) -> list[str]:
        """Returns warnings about probable mistakes in the scripts, as text. Raises InputError as `compile` does."""
        scripts, variables = self._compilable(engine, choice)
        if not scripts:
            return []
        from ironbench import _core

        return _core.script_cautions(scripts, variables, protocol)

    def forecast(self, load: Load, choice: Choice) -> tuple[Note, ...]:
        """Returns notes about a trial with this load that are known before the trial starts."""
        return ()

    def _compilable(self, engine: str, choice: Choice) -> tuple[list[tuple[str, str, int]], list[tuple[str, str]]]:
        variables = {**self.variables(choice.options), **choice.defines}
        scripts = [(script.name, script.text, script.weight) for script in self.scripts(engine, choice)]
        return scripts, list(variables.items())

    def where(self, system: System) -> str:
        """Returns a sentence about the database in which the workload runs. Returns "" if there is nothing that the
        user should know."""
        return ""


def checked(name: str, expected: object, actual: object, passed: bool | None = None) -> Check:
    """Returns a check of two values. The check passes if the values are equal. If `passed` is given, `passed` decides
    instead."""
    return Check(name, expected == actual if passed is None else passed, str(expected), str(actual))


def number(value: str | None) -> int:
    """Converts a count or sum from the engine's output to a number. NULL, which is the sum over no rows, becomes 0."""
    return int(value) if value is not None else 0


def one_row(session: Session, sql: str) -> Sequence[int]:
    """Returns the only row of a query as numbers."""
    return [number(value) for value in session.query(sql)[0]]
