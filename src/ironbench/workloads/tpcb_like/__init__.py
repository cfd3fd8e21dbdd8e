"""The workload `tpcb-like` of pgbench. A transaction updates an account, a teller and a branch, and inserts into the
history."""

from __future__ import annotations

from ironbench.workloads.pgbench import PgbenchWorkload


class TpcbLike(PgbenchWorkload):
    name = "tpcb-like"
    doc = (
        "pgbench's tpcb-like test: updates an account, a teller and a branch, and inserts a row "
        "into the history table. The history table grows."
    )
    derived = "Derived from TPC-B via pgbench: not comparable with published TPC results."


WORKLOAD = TpcbLike()
