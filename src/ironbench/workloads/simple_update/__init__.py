"""pgbench's `simple-update`: updates an account and inserts into the history, without contention on tellers and
branches."""

from __future__ import annotations

from ironbench.workloads.pgbench import PgbenchWorkload


class SimpleUpdate(PgbenchWorkload):
    name = "simple-update"
    doc = "pgbench's simple-update: updates and reads an account and adds a history row. History grows."
    sums = ("accounts", "history")


WORKLOAD = SimpleUpdate()
