"""The `index-build` workload: builds an index while a probe client measures the effect on other clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ironbench import engines
from ironbench.engines.administration import CHECKPOINT, checkpoint
from ironbench.model.work import Work
from ironbench.workloads.base import Option, checked
from ironbench.workloads.maintenance import Maintenance, OperationResult, ReadyOperation, table
from ironbench.workloads.operations import SqlOperation
from ironbench.workloads.wide_table import TABLE

INDEX = "wide_row_amount"


class IndexBuild(Maintenance):
    name = "index-build"
    doc = "Builds an index on two columns of a table of wide rows, while a probe client runs queries."
    counts = ("index build", "index builds")
    rights = (CHECKPOINT,)
    options = (
        *Maintenance.options,
        Option(
            "concurrently",
            "off",
            "on: build the index without blocking writers (CREATE INDEX CONCURRENTLY), which takes longer",
            choices=("off", "on"),
        ),
    )

    @contextmanager
    def prepared(self, work: Work) -> Iterator[ReadyOperation]:
        engine = engines.get(work.session.engine)
        maintaining = engine.administration.maintaining
        work.session.query(maintaining.index_removal.format(INDEX, TABLE))
        checkpoint(work.session, engine.traits.dialect)
        sql = maintaining.index_builds[work.choice.options["concurrently"]].format(INDEX, TABLE)
        yield ReadyOperation(SqlOperation(work.session, sql), lambda: _done(work))


def _done(work: Work) -> OperationResult:
    state = engines.get(work.session.engine).administration.maintaining.index_state(work.session, TABLE, INDEX)
    rows = table(work.choice.options).rows
    return OperationResult(
        state.table_bytes,
        {"maintenance_result_bytes": float(state.bytes)},
        (checked("the index is valid", True, state.valid), checked("entries in the index", rows, state.entries)),
    )


WORKLOAD = IndexBuild()
