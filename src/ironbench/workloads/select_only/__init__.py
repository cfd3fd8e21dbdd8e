"""The workload `select-only` of pgbench, which reads one account by its key."""

from __future__ import annotations

from collections.abc import Mapping

from ironbench.workloads.pgbench import PgbenchWorkload


class SelectOnly(PgbenchWorkload):
    name = "select-only"
    doc = "pgbench's select-only test: reads one account by its key. Uses the tables that `pgbench -i` creates."

    def writes(self, options: Mapping[str, str]) -> bool:
        return False


WORKLOAD = SelectOnly()
