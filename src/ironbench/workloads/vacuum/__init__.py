"""The `vacuum` workload: creates dead tuples and vacuums them, while a probe client measures the effect on other
clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ironbench import engines
from ironbench.engines.administration import CHECKPOINT, checkpoint
from ironbench.errors import InputError, written
from ironbench.model.record import Check
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Work
from ironbench.workloads.base import Option, checked
from ironbench.workloads.maintenance import Maintenance, OperationResult, ReadyOperation, table
from ironbench.workloads.operations import SqlOperation
from ironbench.workloads.wide_table import TABLE

_KINDS = ("plain", "freeze", "full")


class Vacuum(Maintenance):
    name = "vacuum"
    doc = "Creates dead tuples in a table of wide rows and vacuums them once, while a probe client runs queries."
    counts = ("vacuum", "vacuums")
    rights = (CHECKPOINT,)
    options = (
        *Maintenance.options,
        Option(
            "garbage",
            "20",
            "percentage of rows that ironbench updates before the vacuum; each update leaves a dead tuple",
            lowest=0,
            highest=100,
        ),
        Option(
            "kind", "plain", "kind of vacuum; full: VACUUM FULL, which rewrites and locks the table", choices=_KINDS
        ),
    )

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        known = engines.get(system.engine).administration.maintaining.vacuums
        if (kind := choice.options["kind"]) not in known:
            subject = written("workload.with", f"kind={kind}")
            hint = f"use {' or '.join(written('workload.with', f'kind={name}') for name in known)}"
            raise InputError(subject, f"{system.engine} does not support this kind of vacuum", hint)

    @contextmanager
    def prepared(self, work: Work) -> Iterator[ReadyOperation]:
        session, options = work.session, work.choice.options
        engine = engines.get(session.engine)
        maintaining = engine.administration.maintaining
        maintaining.make_dead_tuples(session, TABLE, int(options["garbage"]))
        checkpoint(session, engine.traits.dialect)
        yield ReadyOperation(
            SqlOperation(session, maintaining.vacuums[options["kind"]].format(TABLE)), lambda: _done(work)
        )


def _done(work: Work) -> OperationResult:
    maintaining = engines.get(work.session.engine).administration.maintaining
    state = maintaining.table_state(work.session, TABLE)
    check = checked("dead tuples left", 0, state.dead_tuples)
    # VACUUM FULL writes a new table but does not update statistics, so the number of pages is checked instead
    if work.choice.options["kind"] == "full":
        rows = table(work.choice.options)
        most = maintaining.packed_pages(rows.rows, rows.row_bytes)
        check = Check("pages of the new table", state.pages <= most, f"at most {most}", str(state.pages))
    return OperationResult(state.bytes, {"maintenance_result_bytes": float(state.bytes)}, (check,))


WORKLOAD = Vacuum()
