"""What a workload is: options, scripts, the data it needs, and the rules its results are held against."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from ironbench import engines, ranges
from ironbench.errors import InputError, nearest, written
from ironbench.model.described import LEADING
from ironbench.model.driven import Driven
from ironbench.model.note import Note
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Outcome, Work
from ironbench.workloads.fixed_rows import FixedRows

SCRIPT_FIGURES = ("throughput", "failed", "response_time_mean_s", "response_time_p50_s", "response_time_p99_s")
"""What a record keeps of each of several scripts: few, to keep it small."""
PGBENCH_PROTOCOL = "simple"
"""pgbench's default (`-M`, PostgreSQL 18 documentation, pgbench). The server then sees literals where prepared
statements have parameters, so types and plans can differ."""


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """A pgbench script; `name` is what messages and records call it."""

    name: str
    text: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Option:
    """Something a user may choose with --with NAME=VALUE."""

    name: str
    default: str
    doc: str
    choices: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    whole: bool = True
    """A number without fraction; only with bounds."""
    incidental: bool = False
    """Whether it leaves the measured work as it is: trials that differ in it alone did the same work."""
    path: Literal["", "file", "directory", "directories"] = ""
    """`directories` are joined by `,`. A relative one in a lab file starts at the lab file's directory. Where one
    lies is part of the work."""

    def validated(self, text: str) -> str:
        """The value in its normal form. InputError names option, value and what is possible."""
        subject = written("workload.with", f"{self.name}={text}")
        if self.choices:
            if text not in self.choices:
                raise InputError(subject, f"{text!r} is unknown", nearest(text, list(self.choices)))
            return text
        if self.lowest is None or self.highest is None:
            return text
        try:
            value = int(text) if self.whole else float(text)
        except ValueError:
            kind = "a whole number" if self.whole else "a number"
            raise InputError(subject, f"{text!r} is not {kind}", self._range()) from None
        if not self.lowest <= value <= self.highest:  # NaN is refused here, too
            raise InputError(subject, f"{text} is out of range", self._range())
        return f"{value:d}" if isinstance(value, int) else f"{value:g}"

    def _range(self) -> str:
        assert self.lowest is not None and self.highest is not None
        return f"{ranges.in_words(self.lowest)} to {ranges.in_words(self.highest)} is possible"


Pieces = Callable[[str], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Dataset:
    """The tables a workload runs on, and how they come to be. Several workloads may share one."""

    name: str
    """Of the family of tables, e.g. `igen`; at most one of a name is in a database."""
    key: str
    """Same key, same rows. Changes when the rows would."""
    tables: tuple[str, ...]
    """All of ours, in an order in which they can be dropped."""
    schema: tuple[str, ...]
    """Statements run one after the other before the rows come."""
    generator: Mapping[str, Any]
    """Whose rows (crates/ironbench-data/src/plan.rs)."""
    keys: tuple[str, ...]
    """Statements run after the rows are in, several at a time."""
    references: tuple[str, ...]
    """Statements run last, one after the other."""
    rows: int
    """About how many, for the progress bar."""
    bytes: int
    """About how large with indexes, for the check of free space."""
    recognised: str = ""
    """A query that is true when the tables, whoever loaded them, hold just these rows."""
    intact: str = ""
    """A query that is true as long as tables that ironbench loaded satisfy what holds after any trial."""
    fixed: tuple[FixedRows, ...] = ()
    """Rows that no transaction of the workload changes; compared with their state after the load before reuse."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What a message calls it, e.g. {"scale": "4"}."""
    entries: Pieces | None = None
    """Of a directory: base DN → pieces of an LDIF of whole entries, of which the first holds all others."""
    roots: Callable[[str], tuple[str, ...]] | None = None
    """Of a directory: base DN → DNs of entries of the user's file whose parents are not in it."""
    line_of: Callable[[str, str], str] | None = None
    """Of a directory: DN and operation (`add`, `modify`, …) → file and line of that record; "": there is none."""
    changes: Pieces | None = None
    """Of a directory: base DN → pieces of an LDIF that LDAP operations carry out after `entries`."""
    stranger: Callable[[str], tuple[str, str] | None] | None = None
    """Of a directory: base DN → file and line, and DN, of the first change of an entry that the file does not add."""
    large: bool = False
    """Whether a process of its own makes the rows, whose memory is gone before anything is measured; and whether a load
    that was interrupted goes on where it stopped."""


class Workload(ABC):
    """Named work: made of scripts, which the core's loop drives, or driving itself (`drives`, `drive`).

    What a workload does not say has a sensible default.
    """

    name: str
    doc: str
    options: tuple[Option, ...] = ()
    needs: tuple[str, ...] = ("scripts", "transactions")
    """What an engine must be able to do (`engines.base.ABILITIES`)."""
    stable: bool = False
    """Whether its data keep size and state however often it runs, garbage aside: only then may a trial start from what
    another one left (`ironbench.trial.load.restore`). Without meaning where nothing is written."""
    starts_from_copy: bool = False
    """Duration unknown, as of one operation: always restore before the trial (`ironbench.trial.load.restore`)."""
    counts: tuple[str, str] = ("transaction", "transactions")
    """What people call the unit of its work, one and many: the word for it in reports."""
    foreign: bool = False
    """Whether its scripts are the user's, so that nobody knows beforehand whether they write."""
    rights: tuple[str, ...] = ()
    """What its role must be allowed on a server that was running already, besides making its tables: names of
    `engines.administration`."""
    scores: tuple[str, ...] = ("throughput",)
    """Metrics that systems are ranked by, more is better: the first of them that was measured. None: no one number
    tells which is best."""
    script_figures: tuple[str, ...] = SCRIPT_FIGURES
    derived: str = ""
    """A sentence that must be shown with every result, when the workload resembles a published benchmark."""
    drives: bool = False
    """Whether it has no scripts and drives itself: `ironbench.model.work` says how."""
    honours: frozenset[str] = frozenset({"duration_s"})
    """Of a workload that drives itself: the fields of `Load`, besides the seed, that mean something to it."""
    paced: bool = False
    """Whether each operation begins at a given time, as in a recorded log. Its throughput then follows from those
    times: it is no peak, has no ratio between systems and obeys no law of closed loops."""
    own_length: bool = False
    """Whether a trial has a length of its own, which a budget leaves as it is."""
    caution: str = "script-caution"
    """Code of the warnings that `cautions` gives."""
    usual_warmup_s: float = 5.0
    """Where nobody says how long it warms up."""
    usual_max_tries: int = 1
    """Tries after serialization failures and deadlocks, where nobody says how many."""
    usual_protocol: str = Load().protocol
    """How statements are sent if the user sets no protocol."""

    @property
    def engines(self) -> list[str]:
        """Names of the engines that it runs on, the preferred one first."""
        return engines.able(self.needs)

    def validated(self, options: Mapping[str, str]) -> dict[str, str]:
        """Every option in normal form, defaults filled in. InputError for unknown names and values."""
        known = {option.name: option for option in self.options}
        for name in options:
            if name not in known:
                hint = nearest(name, list(known)) if known else f"workload {self.name} has no options"
                raise InputError(written("workload.with", name), f"is not an option of {self.name}", hint)
        return {name: option.validated(options.get(name, option.default)) for name, option in known.items()}

    def leading(self, options: Mapping[str, str]) -> tuple[str, ...]:
        """Metrics that a comparison of two systems begins with, the most telling first; those that were measured."""
        return LEADING

    def telling(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """The options by which its work is named in reports: equal for equal work alone."""
        return options

    def streams(self, options: Mapping[str, str]) -> tuple[int, str] | None:
        """How many streams work at once at most, and which; None where the clients of a load work."""
        return None

    def connections(self, clients: int) -> int:
        """How many work on the engine at a load of so many clients; more, where some wait for work of others."""
        return clients

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        """The scripts in the engine's dialect, with their weights; none where the workload drives itself."""
        return []

    def core_work(self, engine: str, options: Mapping[str, str]) -> Mapping[str, Any] | None:
        """What the core does in place of scripts (`Work` in crates/ironbench-python/src/drive.rs); None: scripts."""
        return None

    def jobs(self, session: Session, options: Mapping[str, str], load: Load) -> Mapping[str, Any] | None:
        """Who chooses among its scripts and sets their variables, in place of weights (`Chooser` in
        crates/ironbench-python/src/drive.rs); None: weights choose."""
        return None

    def reconnect(self, options: Mapping[str, str]) -> int:
        """Requests after which a client opens a new connection; 0: never. Of workloads that need `directory` alone."""
        return 0

    def binds_back(self, options: Mapping[str, str]) -> bool:
        """Whether clients of a directory that have bound as somebody bind as the DSN's user before they go on."""
        return False

    def in_parts(self, engine: str, options: Mapping[str, str]) -> bool:
        """Whether several processes can share its clients: what is made of scripts, whoever chooses among them."""
        return not self.drives and self.core_work(engine, options) is None

    def drive(self, work: Work) -> Outcome:
        """Does one trial itself, where it `drives`. FailureError, EngineDiedError."""
        raise NotImplementedError(f"workload {self.name} has scripts")

    def default_protocol(self, engine: str) -> str:
        """`usual_protocol` on engines that have it; other engines ignore the protocol."""
        usual = self.usual_protocol
        return usual if usual in engines.get(engine).traits.protocols else Load().protocol

    def usual_duration_s(self, options: Mapping[str, str]) -> float | None:
        """How long a trial measures when nobody says; None: until its work is done."""
        return 30.0

    def resting_s(self, options: Mapping[str, str]) -> float:
        """How long a trial rests between what it measures, on top of its duration."""
        return 0.0

    def expected_read_bytes(
        self, engine: str, options: Mapping[str, str], memory_bytes: int | None, cold: bool
    ) -> float:
        """About how much a trial reads from its data's device; only asked where that may be slow. `cold`: at first
        nothing is cached; `memory_bytes`: of engine and page cache, where that is limited."""
        return 0.0

    def expected_s(self, engine: str, options: Mapping[str, str]) -> float | None:
        """About how long a trial without a duration measures, for plans and budgets; None: nobody knows."""
        return None

    def units(self, options: Mapping[str, str]) -> int | None:
        """Transactions that work of the core's takes, all clients together; None: the load says."""
        return None

    def measures(self, options: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """Which of the metrics that are its alone (catalogue/metrics.toml) its trials will have: name → parts, e.g.
        `profile=…`, "" for the whole. Empty: it does not say. Only labs ask, before anything starts."""
        return {}

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        """InputError for what this workload cannot do with this system and load. Starts nothing, changes nothing."""
        if not self.drives:
            return
        usual = Load(on_error="stop")  # what options and fields mean when nobody says; records without it continued
        for one in fields(Load):
            kept = one.name in self.honours or one.name in ("seed", "duration_s")
            kept |= one.name == "threads" and "client" in system.ideal  # which chooses them
            if not kept and getattr(load, one.name) != getattr(usual, one.name):
                names = {"rate_share": "rate", "warmup_auto": "warmup", "curve": load.curve.of if load.curve else ""}
                option = f"load.{names.get(one.name, one.name.removesuffix('_s'))}"
                subject = written(option, "auto" if one.name == "warmup_auto" else "")
                cause = f"means nothing to workload {self.name}, which drives itself"
                raise InputError(subject, cause, "leave it out")

    def counts_after_cut(self, options: Mapping[str, str]) -> bool:
        """Whether its checks miss a commit that a power cut has taken."""
        return True

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        """What the scripts need, as pgbench's -D."""
        return {}

    def writes(self, options: Mapping[str, str]) -> bool:
        """Whether it may change data: what a trial wrote is measured (`record.judge.wrote`)."""
        return "bare machine" not in self.needs

    def counts_all(self, options: Mapping[str, str]) -> bool:
        """Whether its units (`counts`) are all that a trial does; else nothing is known per unit."""
        return True

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        """The tables it needs; None when it brings none."""
        return None

    def content_key(self, engine: str, options: Mapping[str, str]) -> str:
        dataset = self.dataset(engine, options)
        return dataset.key if dataset else ""

    def preset(self, system: System, options: Mapping[str, str]) -> dict[str, str]:
        """Settings that suit this workload on this system; what the user sets wins."""
        return {}

    def estimate_bytes(self, engine: str, options: Mapping[str, str]) -> int:
        dataset = self.dataset(engine, options)
        return dataset.bytes if dataset else 0

    def needs_untouched(self, session: Session, options: Mapping[str, str]) -> bool:
        """Whether the next trial needs the data as they were loaded, and trials before it have changed them."""
        return False

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        """What `check` needs to know of the state before the trial."""
        return None

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """Holds the data against the workload's rules after a trial."""
        return ()

    def measured(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> Mapping[str, float]:
        """Figures of its own right after a trial that came to its end, by catalogue name."""
        return {}

    def assessed(self, driven: Driven, seen: Sequence[Note]) -> tuple[Mapping[str, float], tuple[Note, ...]]:
        """Figures of its own, by catalogue name, and what a reader must know besides what was `seen`."""
        return {}, ()

    def fits(self, system: System, choice: Choice) -> None:
        """InputError where the system's directories are not such as it needs. Changes nothing.

        Asked when the engine has validated the system; emulated devices are not mounted yet.
        """
        return

    def identified(self, choice: Choice, engine: str) -> Choice:
        """With what the engine makes of its options, and with digests of what it names and does not hold: a file may
        change. InputError: it cannot be read."""
        return choice

    def compile(self, engine: str, choice: Choice, protocol: str) -> Mapping[str, Sequence[str]]:
        """Compiles all scripts before anything is started; the SQL commands of each. InputError with file, line, column
        and caret."""
        scripts, variables = self._compilable(engine, choice)
        if not scripts:  # it drives itself, or the core does its work
            return {}
        from ironbench import _core

        compiled = _core.compile_scripts(scripts, variables, protocol)
        return {name: commands for (name, _, _), commands in zip(scripts, compiled, strict=True)}

    def cautions(self, engine: str, choice: Choice, protocol: str) -> list[str]:
        """What may be a mistake in the scripts, in words. InputError as `compile`."""
        scripts, variables = self._compilable(engine, choice)
        if not scripts:
            return []
        from ironbench import _core

        return _core.script_cautions(scripts, variables, protocol)

    def _compilable(self, engine: str, choice: Choice) -> tuple[list[tuple[str, str, int]], list[tuple[str, str]]]:
        variables = {**self.variables(choice.options), **choice.defines}
        scripts = [(script.name, script.text, script.weight) for script in self.scripts(engine, choice)]
        return scripts, list(variables.items())

    def where(self, system: System) -> str:
        """A sentence on the database that it runs in, where the user should know; else empty."""
        return ""


def checked(name: str, expected: object, actual: object, passed: bool | None = None) -> Check:
    """A check that passes when both are the same, unless `passed` says otherwise."""
    return Check(name, expected == actual if passed is None else passed, str(expected), str(actual))


def number(value: str | None) -> int:
    """A count or sum as the engine printed it; NULL (the sum of no rows) is 0."""
    return int(value) if value is not None else 0


def one_row(session: Session, sql: str) -> Sequence[int]:
    """The only row of a query, as numbers."""
    return [number(value) for value in session.query(sql)[0]]
