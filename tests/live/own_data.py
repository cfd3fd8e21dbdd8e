"""A small shop as the user's own data: its schema, dumps and a script."""

from __future__ import annotations

import subprocess
from pathlib import Path

from raw_server import RawServer, binary

from ironbench._core import Connection

SCHEMA = """
create table item (id integer primary key, name text not null, price numeric(10, 2) not null);
create table sale (id bigserial primary key, item integer not null references item, at timestamptz default now());
create view dear as select * from item where price > 500;
comment on table item is 'of the shop';
insert into item select n, 'it''s; item ' || n, n from generate_series(1, 1000) n;
insert into sale (item) select 1 + n % 1000 from generate_series(1, 5000) n;
"""
SCRIPT = "\\set i random(1, 1000)\nselect name from item where id = :i;\ninsert into sale (item) values (:i);\n"
SUMS = "select count(*), sum(hashtext(t::text)::bigint) from {} t"
FORMS = {"custom": "-Fc", "directory": "-Fd", "tar": "-Ft", "plain": "-Fp"}


def shop(server: RawServer, name: str = "shop", schema: str = SCHEMA) -> None:
    """Creates the database; its tables belong to a role that exists nowhere else."""
    boss = server.connect()
    if not boss.query("select from pg_roles where rolname = 'shopkeeper'"):
        boss.query("create role shopkeeper")
    boss.query(f"create database {name}")
    boss.close()
    inside = server.connect(database=name)
    inside.query(schema)
    inside.query("alter table item owner to shopkeeper; grant select on sale to shopkeeper")
    inside.close()


def dumped(server: RawServer, file: Path, form: str = "custom", database: str = "shop", *more: str) -> Path:
    programs = server.programs
    program = str(programs / "pg_dump") if programs else binary("pg_dump")
    words = [program, "-h", str(server.host), "-p", str(server.port), "-U", "postgres", FORMS[form], "-f", str(file)]
    subprocess.run([*words, *more, database], check=True, capture_output=True)
    return file


def sums(connection: Connection, tables: tuple[str, ...] = ("item", "sale")) -> list[tuple[str | None, ...]]:
    """Returns the number of rows and the checksum of each table."""
    return [connection.query(SUMS.format(table))[0] for table in tables]
