"""The `ycsb` workload: YCSB's core workloads A to F. Design: docs/workloads/ycsb.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ironbench import engines
from ironbench.errors import InputError
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload
from ironbench.workloads.ycsb import checks, operations, records
from ironbench.workloads.ycsb.operations import CORE, INSERT, READ_MODIFY_WRITE, SCAN, UPDATE

USUAL = "usual"
"""Value of `distribution` that selects the distribution of the core workload."""


class Ycsb(Workload):
    name = "ycsb"
    doc = "YCSB's core workloads A to F: reads, updates, inserts and scans of records by their key."
    counts = ("operation", "operations")
    options = (
        Option(
            "mix",
            "a",
            "YCSB core workload; a: 50% reads, 50% updates; b: 95% reads, 5% updates; c: only reads; "
            "d: 95% reads of recent records, 5% inserts; e: 95% scans, 5% inserts; f: 50% reads, 50% "
            "read-modify-writes",
            choices=tuple(CORE),
        ),
        *records.OPTIONS,
        Option(
            "distribution",
            USUAL,
            "distribution of accesses among records; zipfian: a few records, anywhere in the table, "
            "get most accesses; latest: the records inserted last get most accesses; uniform: all "
            "records get equally many accesses; usual: latest for mix=d, otherwise zipfian",
            choices=(USUAL, "zipfian", "latest", "uniform"),
        ),
        Option(
            "max_scan",
            "100",
            "maximum number of records that a scan returns; the number is random, from 1 to this maximum",
            lowest=1,
            highest=100_000,
        ),
        Option(
            "read_all_fields",
            "yes",
            "yes: reads and scans return all fields of a record; no: they return one random field",
            choices=("yes", "no"),
        ),
        Option(
            "write_all_fields",
            "no",
            "yes: an update writes all fields of a record; no: an update writes one random field",
            choices=("yes", "no"),
        ),
    )

    def telling(self, options: Mapping[str, str]) -> Mapping[str, str]:
        unused = {
            name
            for name, operations_with in (("max_scan", {SCAN}), ("write_all_fields", {UPDATE, READ_MODIFY_WRITE}))
            if operations_with.isdisjoint(CORE[options["mix"]].operations)
        }
        return {name: value for name, value in options.items() if name not in unused}

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        return operations.scripts(engine, choice.options)

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        return operations.variables(options)

    def is_stable(self, options: Mapping[str, str]) -> bool:
        return not _inserts(options)

    def chooses_new_keys(self, options: Mapping[str, str]) -> bool:
        return _inserts(options)

    def writes(self, options: Mapping[str, str]) -> bool:
        return options["mix"] != "c"

    def counts_after_cut(self, options: Mapping[str, str]) -> bool:
        return _inserts(options)

    def identified(self, choice: Choice, engine: str) -> Choice:
        return replace(choice, options={**choice.options, "distribution": _distribution(choice.options)})

    def jobs(self, session: Session, options: Mapping[str, str], load: Load) -> Mapping[str, Any] | None:
        has_data = engines.get(session.engine).can("data")
        first = records.first_unused(session, options) if _inserts(options) and has_data else int(options["records"])
        return {
            "kind": "ycsb",
            "data": records.generator(options),
            "distribution": _distribution(options),
            "first_insert": first,
            "max_scan": int(options["max_scan"]),
            "write_all_fields": options["write_all_fields"] == "yes",
            "quoted": engines.get(session.engine).protocol(load.protocol) == "simple",
        }

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        return records.dataset(engine, options) if engines.get(engine).can("data") else None

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        if engines.get(system.engine).can("data") and not records.has_schema(system.engine):
            others = ", ".join(engine for engine in self.engines if records.has_schema(engine))
            raise InputError(f"workload {self.name}", f"has no SQL for {system.engine}", f"use one of {others}")

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        return checks.read_state(session, options)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        return checks.check(session, options, before, summary)


def _inserts(options: Mapping[str, str]) -> bool:
    return INSERT in CORE[options["mix"]].operations


def _distribution(options: Mapping[str, str]) -> str:
    asked = options["distribution"]
    return CORE[options["mix"]].distribution if asked == USUAL else asked


WORKLOAD = Ycsb()
