"""`index-build`: an index is made while a bystander looks on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ironbench.model.work import Work
from ironbench.workloads.base import Option, checked, one_row
from ironbench.workloads.maintenance import Done, Maintenance, Ready, table
from ironbench.workloads.operations import Statement
from ironbench.workloads.wide import TABLE

INDEX = "wide_row_amount"
_SQL = {"off": "create index {} on {} (amount, number)", "on": "create index concurrently {} on {} (amount, number)"}


class IndexBuild(Maintenance):
    name = "index-build"
    doc = "An index on two columns of a table of wide rows is built; a bystander is watched meanwhile."
    unit = "index build"
    options = (
        *Maintenance.options,
        Option("concurrently", "off", "on: writers may go on meanwhile, which takes longer", choices=tuple(_SQL)),
    )

    @contextmanager
    def prepared(self, work: Work) -> Iterator[Ready]:
        work.session.query(f"drop index if exists {INDEX}")
        work.session.query("checkpoint")
        sql = _SQL[work.choice.options["concurrently"]].format(INDEX, TABLE)
        yield Ready(Statement(work.session, sql), lambda: _done(work))


def _done(work: Work) -> Done:
    size, index_size, valid, entries = one_row(
        work.session,
        f"select pg_table_size('{TABLE}'), pg_relation_size('{INDEX}'), indisvalid::integer, reltuples::bigint "
        f"from pg_index join pg_class on pg_class.oid = indexrelid where indexrelid = '{INDEX}'::regclass",
    )
    rows = table(work.choice.options).rows
    return Done(
        size,
        {"maintenance_result_bytes": float(index_size)},
        (checked("the index is valid", 1, valid), checked("entries in the index", rows, entries)),
    )


WORKLOAD = IndexBuild()
