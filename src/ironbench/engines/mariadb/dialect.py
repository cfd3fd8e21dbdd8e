"""SQL dialect of MariaDB and MySQL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ironbench.engines.dialect import Dialect, ExplainedPlan, listed
from ironbench.engines.mariadb.settings import OWN_HOST
from ironbench.model.session import Row

_STATUS = "(select cast(variable_value as unsigned) from information_schema.global_status where variable_name = '{}')"
# InnoDB has no statement for a checkpoint. These statements make InnoDB flush dirty pages until the checkpoint includes
# everything that was committed before. Then they restore the settings. They change no settings of an existing server.
_CHECKPOINT = f"""
begin not atomic
  declare wanted bigint unsigned;
  declare dirty double default @@global.innodb_max_dirty_pages_pct;
  declare dirty_low double default @@global.innodb_max_dirty_pages_pct_lwm;
  declare pace bigint unsigned default @@global.innodb_io_capacity;
  declare exit handler for sqlexception begin
    set global innodb_io_capacity = pace;
    set global innodb_max_dirty_pages_pct = dirty;
    set global innodb_max_dirty_pages_pct_lwm = dirty_low;
    resignal;
  end;
  if @@global.report_host = '{OWN_HOST}' then
    set wanted = {_STATUS.format("INNODB_LSN_CURRENT")};
    set global innodb_max_dirty_pages_pct_lwm = 0;
    set global innodb_max_dirty_pages_pct = 0;
    set global innodb_io_capacity = @@global.innodb_io_capacity_max;
    while {_STATUS.format("INNODB_LSN_LAST_CHECKPOINT")} + 64 < wanted do
      do sleep(0.01);
    end while;
    set global innodb_io_capacity = pace;
    set global innodb_max_dirty_pages_pct = dirty;
    set global innodb_max_dirty_pages_pct_lwm = dirty_low;
  end if;
end
"""
CHECKPOINT = " ".join(_CHECKPOINT.split())


TABLES = "('BASE TABLE', 'SEQUENCE')"
"""Types of tables. A sequence is a table for every statement except CREATE (manual, "SEQUENCE Overview")."""


class MariadbDialect(Dialect):
    true = ("1",)
    kinds: Mapping[str, str] = {"view": "view", "system view": "view"}
    identity = "auto_increment"

    def digest(self, text: str) -> str:
        return f"cast(conv(left(md5({text}), 7), 16, 10) as unsigned)"

    def epoch(self, moment: str) -> str:
        return f"timestampdiff(second, '1970-01-01', {moment})"

    def transaction(self, isolation: str) -> str:
        # The isolation level applies only to the next transaction (manual, "SET TRANSACTION").
        return f"set transaction isolation level {isolation};\nbegin"

    def present(self, tables: Sequence[str]) -> str:
        return (
            "select table_name from information_schema.tables where table_schema = database() "
            f"and table_type in {TABLES} and table_name in ({listed(tables)})"
        )

    def non_tables(self, tables: Sequence[str]) -> str:
        return (
            "select table_name, lower(table_type) from information_schema.tables where table_schema = database() "
            f"and table_type not in {TABLES} and table_name in ({listed(tables)}) order by table_name"
        )

    def size(self, tables: Sequence[str]) -> str:
        # The sizes in information_schema are those at the time of the last ANALYZE.
        return (
            f"analyze table {', '.join(tables)}; "
            "select coalesce(sum(data_length + index_length), 0) from information_schema.tables "
            f"where table_schema = database() and table_name in ({listed(tables)})"
        )

    def database_size(self) -> str:
        return (
            "select coalesce(sum(data_length + index_length), 0) from information_schema.tables "
            "where table_schema = database()"
        )

    def after_load(self, tables: Sequence[str]) -> Sequence[str]:
        return [f"analyze table {table}" for table in tables]

    def copy(self, table: str) -> str:
        return f"load data local infile '' into table {table} character set utf8mb4"

    def compressed(self, table: str) -> str:
        """Returns a statement that compresses pages to half their size. This is KEY_BLOCK_SIZE 8 with pages of 16 kB
        (manual, "InnoDB COMPRESSED Row Format")."""
        return f"alter table {table} row_format = compressed key_block_size = 8"

    def checkpoint(self) -> str:
        return CHECKPOINT

    def partitions(self, table: str) -> str:
        return (
            "select count(*) from information_schema.partitions where table_schema = database() "
            f"and table_name = '{table}' and partition_name is not null"
        )

    def explain(self, *, measured: bool) -> str:
        return "analyze format=json " if measured else "explain format=json "

    def explained(self, rows: Sequence[Row]) -> ExplainedPlan:
        return ExplainedPlan("".join(row[0] or "" for row in rows))

    def steps(self, plan: str) -> Iterator[str]:
        """Yields the access method of each table, sorts and temporary tables. Yields nothing for a truncated plan."""
        try:
            waiting: list[Any] = [json.loads(plan)]
        except ValueError:
            return
        while waiting:
            node = waiting.pop()
            if isinstance(node, list):
                waiting += node
            elif isinstance(node, dict):
                yield from _step(node)
                waiting += [value for value in node.values() if isinstance(value, (dict, list))]


_ACCESS = {
    "ALL": "full scan",
    "index": "full index scan",
    "range": "range scan",
    "ref": "index lookup",
    "eq_ref": "unique lookup",
    "const": "one row",
    "index_merge": "index merge",
}


def _step(node: Mapping[str, Any]) -> Iterator[str]:
    for word, name in (("filesort", "sort"), ("temporary_table", "temporary table"), ("block-nl-join", "block join")):
        if word in node:
            yield name
    if "table_name" in node:
        access = str(node.get("access_type", ""))
        yield f"{_ACCESS.get(access, access or 'table')} on {node['table_name']}"
