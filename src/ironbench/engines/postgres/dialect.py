"""SQL dialect of PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ironbench.engines.dialect import Dialect, ExplainedPlan, listed
from ironbench.model.session import Row

_PAGE_BYTES = 8192
"""PostgreSQL's default block size (`block_size`)."""


CHECKPOINT = "set local statement_timeout = 0; checkpoint"
"""Statements for a checkpoint. A checkpoint may take longer than the statement timeout that a lab sets for its
clients."""


class PostgresDialect(Dialect):
    # The keys are values of pg_class.relkind (PostgreSQL 18 documentation, 52.11).
    kinds: Mapping[str, str] = {
        **{"v": "view", "m": "materialized view", "S": "sequence", "i": "index", "I": "index"},
        **{"f": "foreign table", "c": "composite type"},
    }
    json = "jsonb"
    begin = ""
    """No statement is needed: statements that are sent together form one transaction, which an error aborts (PostgreSQL
    18 documentation, 54.2.2.1)."""

    def json_value(self, document: str, name: str) -> str:
        return f"{document} ->> {name}::text"

    def with_json_value(self, document: str, name: str, value: str) -> str:
        return f"jsonb_set({document}, array[{name}::text], to_jsonb({value}::text))"

    def digest(self, text: str) -> str:
        return f"('x' || left(md5({text}), 7))::bit(28)::integer"

    def epoch(self, moment: str) -> str:
        return f"extract(epoch from {moment})::bigint"

    def transaction(self, isolation: str) -> str:
        return f"begin isolation level {isolation}"

    def present(self, tables: Sequence[str]) -> str:
        return (
            f"select relname from pg_class where relname in ({listed(tables)}) and relkind in ('r', 'p') "
            "and pg_table_is_visible(oid)"
        )

    def non_tables(self, tables: Sequence[str]) -> str:
        return (
            f"select relname, relkind from pg_class where relname in ({listed(tables)}) and relkind not in ('r', 'p') "
            "and pg_table_is_visible(oid) order by relname"
        )

    def size(self, tables: Sequence[str]) -> str:
        return "select " + " + ".join(f"pg_total_relation_size('{table}')" for table in tables)

    def database_size(self) -> str:
        return "select pg_database_size(current_database())"

    def after_load(self, tables: Sequence[str]) -> Sequence[str]:
        # FREEZE marks rows as visible to all transactions. Otherwise, the first reader of each page would do this and
        # cause writes.
        return [f"vacuum (freeze, analyze) {table}" for table in tables]

    def checkpoint(self) -> str:
        return CHECKPOINT

    def emptied(self, table: str) -> Sequence[str]:
        return [f"truncate {table} restart identity"]

    def partitions(self, table: str) -> str:
        return f"select count(*) from pg_inherits where inhparent = '{table}'::regclass"

    def explain(self, *, measured: bool) -> str:
        return (
            "EXPLAIN (ANALYZE, BUFFERS, SETTINGS, FORMAT JSON) "
            if measured
            else "EXPLAIN (SETTINGS, SUMMARY, FORMAT JSON) "
        )

    def explained(self, rows: Sequence[Row]) -> ExplainedPlan:
        text = "".join(row[0] or "" for row in rows)
        plan: dict[str, Any] = json.loads(text)[0]
        planning_ms, written = plan.get("Planning Time"), plan["Plan"].get("Temp Written Blocks")
        return ExplainedPlan(
            text,
            None if planning_ms is None else planning_ms / 1000,
            None if written is None else float(written * _PAGE_BYTES),
        )

    def steps(self, plan: str) -> Iterator[str]:
        """Yields the node types of a plan. Yields nothing for a plan that was truncated."""
        try:
            waiting: list[Mapping[str, Any]] = [json.loads(plan)[0]["Plan"]]
        except (ValueError, LookupError, TypeError):
            return
        while waiting:
            node = waiting.pop()
            name = str(node.get("Node Type", ""))
            join = node.get("Join Type", "Inner")
            words = name if join == "Inner" else f"{name} ({join})"
            parallel = "parallel " if node.get("Parallel Aware") else ""
            relation = f" on {node['Relation Name']}" if "Relation Name" in node else ""
            yield f"{parallel}{words}{relation}"
            waiting += node.get("Plans", [])
