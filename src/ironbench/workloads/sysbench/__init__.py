"""The OLTP tests of sysbench 1.0 on sysbench's tables, under sysbench's names. Statements: `events.py`;
docs/workloads/sysbench.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironbench import engines
from ironbench.errors import InputError, written
from ironbench.model.driven import Driven
from ironbench.model.note import Note
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load
from ironbench.workloads.base import Dataset, Option, ProgressRate, ScriptSource, Workload
from ironbench.workloads.sysbench import checks, events, tables

_OF_THE_LOAD = {
    "db_ps_mode": "load.protocol",
    "events": "load.transactions",
    "rand_seed": "measure.seed",
    "rate": "load.rate",
    "threads": "load.clients",
    "time": "load.duration",
    "warmup_time": "load.warmup",
}
"""Options of sysbench, with ironbench's fields that have the same meaning."""


class Sysbench(Workload):
    name = "sysbench"
    doc = "sysbench's OLTP tests, such as oltp_read_write, with sysbench's tables, statements and random numbers."
    needs = ("scripts", "transactions", "data")
    counts = ("event", "events")
    stable = True
    usual_max_tries = 0
    retries_duplicate_keys = True
    options = (
        Option("test", "oltp_read_write", "name of the test, as in sysbench", choices=tuple(events.TESTS)),
        *tables.OPTIONS,
        *events.OPTIONS,
    )

    def validated(self, options: Mapping[str, str]) -> dict[str, str]:
        """Validates the options. Also accepts names with dashes, as sysbench does."""
        options = {name.replace("-", "_"): value for name, value in options.items()}
        for name in options:
            if name in _OF_THE_LOAD:
                field = written(_OF_THE_LOAD[name])
                raise InputError(written("workload.with", name), "is not an option of the workload", f"use {field}")
        valid = super().validated(options)
        events.require_possible(valid)
        return valid

    def telling(self, options: Mapping[str, str]) -> Mapping[str, str]:
        return {name: value for name, value in options.items() if events.uses(options, name)}

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        return [ScriptSource(choice.options["test"], events.event(engine, choice.options).script)]

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        return dict.fromkeys(events.event("", options).inputs, "0")

    def progress_rate(self, engine: str, options: Mapping[str, str]) -> ProgressRate | None:
        return ProgressRate("qps", events.event(engine, options).queries)

    def jobs(self, session: Session, options: Mapping[str, str], load: Load) -> Mapping[str, Any] | None:
        return self.inputs(options, engines.get(session.engine).protocol(load.protocol))

    def inputs(self, options: Mapping[str, str], protocol: str) -> Mapping[str, Any]:
        """Returns the description of the random inputs (crates/ironbench-data/src/inputs.rs)."""
        return events.drawn(events.event("", options).inputs, quoted=protocol == "simple")

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        return tables.dataset(engine, options)

    def writes(self, options: Mapping[str, str]) -> bool:
        return options["test"] not in events.READS_ONLY

    def is_stable(self, options: Mapping[str, str]) -> bool:
        return options["test"] not in (checks.INSERTS, tables.DELETES)

    def needs_untouched(self, session: Session, options: Mapping[str, str]) -> bool:
        """Returns whether an earlier trial of `oltp_delete` has removed rows."""
        return options["test"] == tables.DELETES and not tables.complete(session, options)

    def counts_after_cut(self, options: Mapping[str, str]) -> bool:
        return options["test"] == checks.INSERTS or checks.increments(options) > 0

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        return checks.read_state(session, options)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        return checks.check(session, options, before, summary)

    def measured(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> Mapping[str, float]:
        event, done = events.event(session.engine, options), float(summary["transactions"])
        return {
            "read_queries": event.reads * done,
            "write_queries": event.writes * done,
            "other_queries": event.others * done,
            "queries": event.queries * done,
            "queries_per_s": event.queries * done / float(summary["elapsed_s"]),
        }

    def assessed(self, driven: Driven, seen: Sequence[Note]) -> tuple[Mapping[str, float], tuple[Note, ...]]:
        times = driven.histograms.get("response_time")
        return ({"response_time_min_s": times.min_s} if times is not None and times.count else {}), ()


WORKLOAD = Sysbench()
