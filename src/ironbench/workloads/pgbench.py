"""What pgbench's own three have in common: its tables, as `pgbench -i` makes them.

Tables and scripts: PostgreSQL 18 documentation, pgbench, "What Is the 'Transaction' Actually Performed in pgbench?".
Either tool may load them and either may drive them afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice
from ironbench.workloads import base
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload, checked, one_row
from ironbench.workloads.commits import Commits, commits_check

FOLDER = Path(__file__).parent
VERSION = 1
"""Raised whenever the same options would give other rows or another schema."""
ACCOUNTS, TELLERS = 100_000, 10
"""Per unit of scale, as is one branch."""
BYTES = {"postgres": 16_000_000, "sqlite": 1_200_000, "null": 0}
"""Per unit of scale with keys, measured."""
WIDE_KEYS_FROM = 20_000
"""From this scale on `pgbench -i` makes account numbers bigint: 2^31 would not do."""
TABLES = ("pgbench_history", "pgbench_accounts", "pgbench_tellers", "pgbench_branches")


@dataclass(frozen=True, slots=True)
class State:
    """Sums of all balances, and of all amounts in the history."""

    accounts: int
    tellers: int
    branches: int
    history: int
    entries: int
    commits: Commits


class PgbenchWorkload(Workload):
    """One of the three: its script is `<name>.sql` in the folder of its package."""

    options = (
        Option("scale", "1", "size: 100 000 accounts, about 16 MB on PostgreSQL, per unit", lowest=1, highest=100_000),
        Option(
            "fillfactor", "100", "how full pages are after loading, in percent (PostgreSQL)", lowest=10, highest=100
        ),
    )
    sums: tuple[str, ...] = ("accounts", "tellers", "branches", "history")
    """Whose balances the script changes, all by the same amount."""

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        return [base.script(FOLDER / self.name.replace("-", "_"), self.name, engine)]

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        return {"scale": options["scale"]}

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        if engine == "null":
            return None
        scale, fillfactor = int(options["scale"]), options["fillfactor"]
        folder = FOLDER / "pgbench_tables"
        aid = "bigint" if scale >= WIDE_KEYS_FROM else "integer"
        schema = base.statements(folder, "schema", engine)
        return Dataset(
            name="pgbench",
            key=f"pgbench version={VERSION} scale={scale} fillfactor={fillfactor}",
            tables=TABLES,
            schema=tuple(statement.replace(":fillfactor", fillfactor).replace(":aid", aid) for statement in schema),
            generator={"rows": "pgbench", "scale": scale},
            keys=base.statements(folder, "keys", engine),
            references=(),
            rows=scale * (ACCOUNTS + TELLERS + 1),
            bytes=scale * BYTES[engine] * 100 // int(fillfactor),
            recognised=_recognised(scale, fillfactor) if engine == "postgres" else "",
            intact=_recognised(scale, fillfactor) if engine == "postgres" else "",
            facts=dict(options),
        )

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        """Vacuums the two small tables that bloat under load, as pgbench does when it starts."""
        if not self.writes(options) or session.engine == "null":
            return Commits.read(session)
        if session.engine == "postgres":
            for table in ("pgbench_branches", "pgbench_tellers"):
                session.query(f"vacuum {table}")
        return state(session)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """What every transaction added to one table it added to the others, and each left one line of history."""
        if session.engine == "null":
            return ()
        if not self.writes(options):
            return commits_check(session, before, summary)
        commits = commits_check(session, before.commits, summary)
        now = state(session)
        grown = {name: getattr(now, name) - getattr(before, name) for name in (*self.sums, "entries")}
        ours, unsure = int(summary["commits"]), int(summary.get("server_commits_uncertain", 0))
        added = checked("lines of history = commits", ours, grown["entries"], ours <= grown["entries"] <= ours + unsure)
        first, *others = self.sums
        same = (checked(f"growth of balances: {name} = {first}", grown[first], grown[name]) for name in others)
        return (*same, added, *commits)


def _recognised(scale: int, fillfactor: str) -> str:
    """Are these the tables of `pgbench -i -s SCALE`? Asks for the ends of the keys: counting would read every row."""
    return f"""
        select (select count(*) = {scale} and max(bid) = {scale} from pgbench_branches)
           and (select count(*) = {TELLERS * scale} and max(tid) = {TELLERS * scale} from pgbench_tellers)
           and (select min(aid) = 1 and max(aid) = {ACCOUNTS * scale} from pgbench_accounts)
           and 3 = (select count(*) from pg_index where indisprimary and indrelid in
                    ('pgbench_accounts'::regclass, 'pgbench_tellers'::regclass, 'pgbench_branches'::regclass))
           and '{fillfactor}' = (select coalesce((select option_value from pg_options_to_table(reloptions)
                                                  where option_name = 'fillfactor'), '100')
                                 from pg_class where oid = 'pgbench_accounts'::regclass)"""


def state(session: Session) -> State:
    commits = Commits.read(session)
    sums = one_row(
        session,
        "select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers), "
        "(select sum(bbalance) from pgbench_branches), (select sum(delta) from pgbench_history), "
        "(select count(*) from pgbench_history)",
    )
    accounts, tellers, branches, history, entries = sums
    return State(accounts, tellers, branches, history, entries, commits.after(1))
