"""`vacuum`: garbage is made, and taken away while a bystander looks on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ironbench.model.work import Work
from ironbench.workloads.base import Option, checked, one_row
from ironbench.workloads.maintenance import Done, Maintenance, Ready, table
from ironbench.workloads.operations import Statement
from ironbench.workloads.wide import TABLE

_SQL = {"plain": "vacuum {}", "freeze": "vacuum (freeze) {}", "full": "vacuum (full) {}"}


class Vacuum(Maintenance):
    name = "vacuum"
    doc = "Garbage is made in a table of wide rows, and one vacuum takes it away; a bystander is watched meanwhile."
    unit = "vacuum"
    options = (
        *Maintenance.options,
        Option(
            "garbage",
            "20",
            "percent of the rows that are changed before, each leaving a dead one",
            lowest=0,
            highest=100,
        ),
        Option(
            "kind", "plain", "plain, freeze, or full, which writes the table anew and locks it", choices=tuple(_SQL)
        ),
    )

    @contextmanager
    def prepared(self, work: Work) -> Iterator[Ready]:
        session, options = work.session, work.choice.options
        # Nobody else shall take it away first.
        session.query(f"alter table {TABLE} set (autovacuum_enabled = off)")
        session.query(f"update {TABLE} set amount = amount where number % 100 < {options['garbage']}")
        session.query("select pg_stat_force_next_flush()")  # else the dead rows might be counted after the vacuum
        session.query("checkpoint")
        yield Ready(Statement(session, _SQL[options["kind"]].format(TABLE)), lambda: _done(work))


def _done(work: Work) -> Done:
    size, pages, dead = one_row(
        work.session,
        f"select pg_total_relation_size('{TABLE}'), "
        f"pg_relation_size('{TABLE}') / current_setting('block_size')::integer, "
        f"n_dead_tup from pg_stat_user_tables where relname = '{TABLE}'",
    )
    check = checked("dead rows left", 0, dead)
    if work.choice.options["kind"] == "full":  # it writes a new table and leaves the old one's count as it was
        check = checked("pages of the new table", table(work.choice.options).pages, pages)
    return Done(size, {"maintenance_result_bytes": float(size)}, (check,))


WORKLOAD = Vacuum()
