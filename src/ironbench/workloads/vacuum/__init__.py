"""`vacuum`: garbage is made, and taken away while a bystander looks on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ironbench import engines
from ironbench.engines.administration import CHECKPOINT
from ironbench.model.work import Work
from ironbench.workloads.base import Option, checked
from ironbench.workloads.maintenance import Done, Maintenance, Ready, table
from ironbench.workloads.operations import Statement
from ironbench.workloads.wide import TABLE

_KINDS = ("plain", "freeze", "full")


class Vacuum(Maintenance):
    name = "vacuum"
    doc = "Garbage is made in a table of wide rows, and one vacuum takes it away; a bystander is watched meanwhile."
    counts = ("vacuum", "vacuums")
    rights = (CHECKPOINT,)
    options = (
        *Maintenance.options,
        Option(
            "garbage",
            "20",
            "percent of the rows that are changed before, each leaving a dead one",
            lowest=0,
            highest=100,
        ),
        Option("kind", "plain", "plain, freeze, or full, which writes the table anew and locks it", choices=_KINDS),
    )

    @contextmanager
    def prepared(self, work: Work) -> Iterator[Ready]:
        session, options = work.session, work.choice.options
        engine = engines.get(session.engine)
        maintaining = engine.administration.maintaining
        maintaining.keep_garbage(session, TABLE)
        session.query(f"update {TABLE} set amount = amount where number % 100 < {options['garbage']}")
        maintaining.settle_counts(session)  # else the dead rows might be counted after the vacuum
        session.query(engine.traits.dialect.checkpoint())
        yield Ready(Statement(session, maintaining.vacuums[options["kind"]].format(TABLE)), lambda: _done(work))


def _done(work: Work) -> Done:
    state = engines.get(work.session.engine).administration.maintaining.table_state(work.session, TABLE)
    check = checked("dead rows left", 0, state.dead_rows)
    if work.choice.options["kind"] == "full":  # it writes a new table and leaves the old one's count as it was
        check = checked("pages of the new table", table(work.choice.options).pages, state.pages)
    return Done(state.bytes, {"maintenance_result_bytes": float(state.bytes)}, (check,))


WORKLOAD = Vacuum()
