"""Base class of the workloads that repeat pgbench's built-in scripts on the tables of `pgbench -i`.

Tables and scripts: PostgreSQL 18 documentation, pgbench, "What Is the 'Transaction' Actually Performed in pgbench?".
Either pgbench or ironbench may load the tables, and both can use them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbench import engines
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice
from ironbench.workloads import sql_files
from ironbench.workloads.base import PGBENCH_PROTOCOL, Dataset, Option, ScriptSource, Workload, checked, one_row
from ironbench.workloads.commit_check import Commits, commits_check
from ironbench.workloads.fixed_rows import FixedRows

FOLDER = Path(__file__).parent
TABLES_FOLDER = FOLDER / "pgbench_tables"
VERSION = 1
"""Version of the data, increased whenever the same options would produce other rows or another schema."""
ACCOUNTS, TELLERS = 100_000, 10
"""Number of accounts and of tellers per unit of scale. Each unit also has one branch."""
WIDE_KEYS_FROM = 20_000
"""Scale from which account numbers exceed 2^31, so that `pgbench -i` stores them as bigint."""
TABLES = ("pgbench_history", "pgbench_accounts", "pgbench_tellers", "pgbench_branches")
FIXED = (
    FixedRows("pgbench_branches", ("cast(bid as decimal(19))",)),
    FixedRows("pgbench_tellers", ("cast(tid as decimal(19))", "cast(bid as decimal(19))")),
    FixedRows("pgbench_accounts", ("cast(aid as decimal(19))", "cast(bid as decimal(19))"), key="aid"),
)
"""Rows that do not change. Only their balances, and the filler columns of tellers and branches, change. On some
servers, integer sums would overflow without the casts."""


@dataclass(frozen=True, slots=True)
class BalanceSums:
    """Sums of all balances, and of all amounts in the history."""

    accounts: int
    tellers: int
    branches: int
    history: int
    entries: int
    commits: Commits


class PgbenchWorkload(Workload):
    """A workload with one of pgbench's three built-in scripts: `<name>.sql` in the folder of the workload."""

    usual_protocol = PGBENCH_PROTOCOL
    options = (
        Option("scale", "1", "scale factor; each unit is 100,000 accounts (up to 16 MB)", lowest=1, highest=100_000),
        Option(
            "fillfactor",
            "100",
            "fill factor of table pages in percent, if the engine supports fill factors",
            lowest=10,
            highest=100,
        ),
    )
    sums: tuple[str, ...] = ("accounts", "tellers", "branches", "history")
    """Tables whose balances the script changes. The script changes all these balances by the same amount."""

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        return [sql_files.script(FOLDER / self.name.replace("-", "_"), self.name, engine)]

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        return {"scale": options["scale"]}

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        if not engines.get(engine).can("data"):
            return None
        scale, fillfactor = int(options["scale"]), options["fillfactor"]
        aid = "bigint" if scale >= WIDE_KEYS_FROM else "integer"
        schema = sql_files.statements(TABLES_FOLDER, "schema", engine)
        return Dataset(
            name="pgbench",
            key=f"pgbench version={VERSION} scale={scale} fillfactor={fillfactor}",
            tables=TABLES,
            schema=tuple(statement.replace(":fillfactor", fillfactor).replace(":aid", aid) for statement in schema),
            generator={"rows": "pgbench", "scale": scale},
            keys=sql_files.statements(TABLES_FOLDER, "keys", engine),
            references=(),
            rows=scale * (ACCOUNTS + TELLERS + 1),
            bytes=scale * sql_files.size(TABLES_FOLDER, "schema", engine) * 100 // int(fillfactor),
            recognised=(_recognised(engine, scale, fillfactor),),
            prepared_by="pgbench -i",
            intact=_recognised(engine, scale, fillfactor),
            fixed=FIXED,
            facts=dict(options),
        )

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        """Vacuums the two small tables that bloat under load, as pgbench does when it starts."""
        if not self.writes(options) or not engines.get(session.engine).can("data"):
            return Commits.read(session)
        for statement in sql_files.statements(TABLES_FOLDER, "before", session.engine):
            session.query(statement)
        return state(session)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """Checks that all tables' balances grew by the same amount, and that each transaction left one row in the
        history."""
        if not engines.get(session.engine).can("data"):
            return ()
        if not self.writes(options):
            return commits_check(session, before, summary)
        commits = commits_check(session, before.commits, summary)
        now = state(session)
        grown = {name: getattr(now, name) - getattr(before, name) for name in (*self.sums, "entries")}
        ours, unsure = int(summary["commits"]), int(summary.get("server_commits_uncertain", 0))
        added = checked("history rows = commits", ours, grown["entries"], ours <= grown["entries"] <= ours + unsure)
        first, *others = self.sums
        same = (checked(f"growth of balances: {name} = {first}", grown[first], grown[name]) for name in others)
        return (*same, added, *commits)


def _recognised(engine: str, scale: int, fillfactor: str) -> str:
    """Returns a query that recognises the tables of `pgbench -i -s SCALE`. The query reads only the lowest and highest
    keys, because counting would read all rows."""
    values = {"scale": scale, "tellers": TELLERS * scale, "accounts": ACCOUNTS * scale, "fillfactor": fillfactor}
    query = "".join(sql_files.statements(TABLES_FOLDER, "recognised", engine))
    for name, value in values.items():
        query = query.replace(f":{name}", str(value))
    return query


def state(session: Session) -> BalanceSums:
    commits = Commits.read(session)
    sums = one_row(
        session,
        "select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers), "
        "(select sum(bbalance) from pgbench_branches), (select sum(delta) from pgbench_history), "
        "(select count(*) from pgbench_history)",
    )
    accounts, tellers, branches, history, entries = sums
    return BalanceSums(accounts, tellers, branches, history, entries, commits)
