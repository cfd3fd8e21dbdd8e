"""pgbench's `tpcb-like`: updates an account, its teller and its branch, and inserts into the history."""

from __future__ import annotations

from ironbench.workloads.pgbench import PgbenchWorkload


class TpcbLike(PgbenchWorkload):
    name = "tpcb-like"
    doc = "pgbench's tpcb-like: account, teller and branch are changed, a line of history added. History grows."
    derived = "Derived from TPC-B by way of pgbench; not comparable with published TPC results."


WORKLOAD = TpcbLike()
