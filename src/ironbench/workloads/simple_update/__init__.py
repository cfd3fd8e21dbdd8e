"""The workload `simple-update` of pgbench. A transaction updates an account and inserts into the history. The
transaction does not update tellers and branches, so there is no contention on their rows."""

from __future__ import annotations

from ironbench.workloads.pgbench import PgbenchWorkload


class SimpleUpdate(PgbenchWorkload):
    name = "simple-update"
    doc = (
        "pgbench's simple-update test: updates an account, reads the account, and inserts a row "
        "into the history table. The history table grows."
    )
    sums = ("accounts", "history")


WORKLOAD = SimpleUpdate()
