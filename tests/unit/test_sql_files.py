"""Contents of SQL files, judged by statement, before a server is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.engines.mariadb import sql_text
from ironbench.engines.postgres import psql_text
from ironbench.engines.postgres.harmless import harmless, made
from ironbench.errors import InputError

CASES = Path(__file__).parents[1] / "data" / "dumps"
DUMP = "-- PostgreSQL database dump\n-- Dumped from database version 15.1\n{}\n-- PostgreSQL database dump complete\n"
EXPORT = "CREATE DATABASE IF NOT EXISTS `shop` /*!40100 DEFAULT CHARACTER SET latin1 */;\nUSE `shop`;\n{}\n"


def of_postgres(folder: Path, text: str) -> psql_text.PostgresSqlText:
    (file := folder / "file.sql").write_text(text)
    return psql_text.examined(file, "dump")


def of_mariadb(folder: Path, text: str, *, own: bool = False) -> sql_text.MysqlSqlText:
    (file := folder / "file.sql").write_text(text)
    return sql_text.examined(file, "dump", own=own)


def sent(folder: Path, text: str) -> list[str]:
    known = of_mariadb(folder, text)
    found = sql_text.statements(folder / "file.sql", "dump", known, own=False)
    return [one.text.decode() for one in found if not one.left_out]


@pytest.mark.parametrize("name", ["cut-before-constraints.pg", "cut-within-copy.pg", "cut-between-statements.maria"])
def test_a_dump_that_was_cut_is_refused(name: str) -> None:
    file = CASES / f"{name}.sql"
    with pytest.raises(InputError):
        psql_text.examined(file, "dump") if name.endswith("pg") else sql_text.examined(file, "dump", own=False)


@pytest.mark.parametrize("text", ["select 'abc", "select 1; /* open", "select $$ open", "COPY t FROM stdin;\n1\n"])
def test_a_file_that_ends_inside_a_literal_comment_or_copy_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        of_postgres(tmp_path, text)


def test_settings_that_a_client_saves_are_restored_at_the_end_of_a_whole_file(tmp_path: Path) -> None:
    saves, restores = "SET @OLD_SQL_MODE=@@SQL_MODE;\nCREATE TABLE t (a int);\n", "SET SQL_MODE=@OLD_SQL_MODE;\n"
    assert of_mariadb(tmp_path, saves + restores).has_end_mark
    assert not of_mariadb(tmp_path, "CREATE TABLE t (a int);\n").has_end_mark, "it looks whole wherever it is cut"
    with pytest.raises(InputError):
        of_mariadb(tmp_path, saves)


@pytest.mark.parametrize(
    "text",
    [
        "COPY note FROM stdin;\n1\tdrop user drafts; \\connect x\nALTER SYSTEM\n\\.\n",
        "/*\n Drop database if it exists\n*/ select 1;",
        "select 'a;\ncreate role b;', $x$\n\\connect d\n$x$;",
        "create function f() returns void language plpgsql as $$ begin\n execute format('\ndrop role %I', 1); end $$;",
    ],
)
def test_words_in_rows_literals_comments_and_functions_are_no_statements(tmp_path: Path, text: str) -> None:
    of_postgres(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "select 1; create role b;",
        "create table t (a int); drop database d;",
        "/* c */ drop tablespace d;",
        "select 1 \\gexec\n",
        "\\! rm x\n",
        "create table t (a int);\n\\c d\n",
        "select 1 \\g file\n",
        "-- c\n\\i f\n",
    ],
)
def test_statements_and_commands_that_reach_beyond_the_database_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="outside the trial's database"):
        of_postgres(tmp_path, text)


def test_a_dump_made_with_create_is_loaded_without_what_concerns_the_server(tmp_path: Path) -> None:
    (file := tmp_path / "file.sql").write_text(
        DUMP.format("\\restrict x\nCREATE DATABASE shop;\n\\connect shop\nCREATE TABLE t (a int);\n\\unrestrict x")
    )
    known = psql_text.examined(file, "dump")
    text = b"".join(psql_text.fed(file, known.database))
    assert (
        known.database == "shop" and b"CREATE TABLE t" in text and text.count(b"\n") == file.read_bytes().count(b"\n")
    )
    assert not [word for word in (b"\\connect", b"CREATE DATABASE", b"restrict") if word in text]


def test_a_file_that_makes_its_database_first_is_loaded_into_that_of_the_trials(tmp_path: Path) -> None:
    begin = 'drop database if exists "shop";\ncreate database "shop";\n\\connect "shop";\n'
    (file := tmp_path / "file.sql").write_text(begin + "create table t (a int);\nselect 1 as n \\gset\n")
    known = psql_text.examined(file, "dump")
    text = b"".join(psql_text.fed(file, known.database))
    assert b"create table t" in text and b"\\gset" in text and b"shop" not in text


def test_a_quote_in_a_quoted_name_is_part_of_it(tmp_path: Path) -> None:
    name = '"a b"."c ""d""; e"'
    found = of_postgres(tmp_path, f"CREATE TABLE {name} (a int);\nCOPY {name} (a) FROM stdin;\n1\n\\.\n")
    assert (found.made, found.rows) == ({'c "d"; e'}, {name: 1})


def test_a_dump_of_several_databases_is_refused_unless_only_one_has_contents(tmp_path: Path) -> None:
    empty, full = "\\connect postgres\nSET a = 1;\n", "\\connect {0}\nCREATE TABLE {0} (a int);\n"
    assert of_postgres(tmp_path, DUMP.format(empty + full.format("shop"))).made == {"shop"}
    with pytest.raises(InputError, match="2 databases"):
        of_postgres(tmp_path, DUMP.format(full.format("one") + full.format("two")))


def test_the_table_of_contents_of_a_plain_dump_is_its_comments_and_its_rows(tmp_path: Path) -> None:
    entry = "--\n-- Name: {}; Type: {}; Schema: public; Owner: x\n--\n\n{}\n"
    text = DUMP.format(
        entry.format("t", "TABLE", "CREATE TABLE public.t (a int);")
        + entry.format("t t_pkey", "CONSTRAINT", "ALTER TABLE ONLY public.t ADD CONSTRAINT t_pkey PRIMARY KEY (a);")
        + "COPY public.t (a) FROM stdin;\n1\n-- Name: x; Type: TABLE; Schema: public; Owner: x\n\\.\n"
    )
    found = of_postgres(tmp_path, text)
    assert (found.entries, found.rows) == ({"TABLE": 1, "CONSTRAINT": 1}, {"public.t": 2})


@pytest.mark.parametrize(
    ("statement", "code", "kind"),
    [
        ("ALTER TABLE public.item OWNER TO shop;", "42704", "owner"),
        ('ALTER TABLE public."a ; b" OWNER TO shop;', "42704", "owner"),
        ("CREATE SCHEMA public;", "42P06", "schema"),
        ("CREATE SCHEMA shop;", "42501", ""),
        ("CREATE POLICY a ON item FOR SELECT TO b USING (true);", "42704", "policy"),
        ("CREATE POLICY a ON item FOR SELECT USING (no());", "42883", ""),
        ("SET SESSION AUTHORIZATION shop;", "22023", "role"),
        ("SET transaction_timeout = 0;", "42704", "setting"),
        ("SET search_path = no;", "42704", ""),
        ("CREATE PROCEDURAL LANGUAGE plpgsql;", "42710", "language"),
        ("ALTER TABLE ONLY public.item DROP CONSTRAINT item_pkey;", "42P01", "drop"),
        ("CREATE UNIQUE INDEX a ON item (b);", "23505", ""),
        ("CREATE TABLE grants (a int);", "42P07", ""),
    ],
)
def test_whether_a_failure_is_harmless_depends_on_statement_and_sqlstate(statement: str, code: str, kind: str) -> None:
    assert harmless(statement, code) == kind


def test_in_a_file_of_ones_own_a_drop_may_only_fail_for_what_the_file_makes() -> None:
    assert made('CREATE UNIQUE INDEX IF NOT EXISTS "By Name" ON item (name);') == "By Name"
    assert harmless("DROP TABLE public.item;", "42P01", {"item"}) == "drop"
    assert harmless("DROP INDEX misspelled;", "42704", {"item"}) == ""


def test_an_export_that_names_its_database_goes_to_the_database_of_the_trials(tmp_path: Path) -> None:
    rest = (
        "CREATE TABLE `shop`.`item` (id int);\nCREATE VIEW v AS SELECT 'shop.item', i.id FROM shop.item i; -- shop.x\n"
    )
    assert sent(tmp_path, EXPORT.format(rest)) == [
        "ALTER DATABASE DEFAULT CHARACTER SET latin1",
        "CREATE TABLE `item` (id int)",
        "CREATE VIEW v AS SELECT 'shop.item', i.id FROM item i",
    ]
    with pytest.raises(InputError, match="2 databases"):
        of_mariadb(tmp_path, EXPORT.format("CREATE TABLE a (id int);\nUSE other;\nCREATE TABLE b (id int);"))
    with pytest.raises(InputError, match="outside the trial's database"):
        of_mariadb(tmp_path, EXPORT.format("CREATE TABLE a (id int);\nDROP TABLE other.b;"))


def test_rows_of_an_insert_are_not_read_as_statements() -> None:
    known = sql_text.examined(CASES / "prose-that-looks-like-sql.maria.sql", "dump", own=False)
    assert known.database == ""


def test_a_dump_of_mysql_8_names_its_version_and_the_collations_that_are_lacking(tmp_path: Path) -> None:
    text = (
        "-- MySQL dump 10.13  Distrib 8.0.39, for Linux (x86_64)\n-- Server version\t8.0.39\n"
        "CREATE TABLE t (a text) COLLATE=utf8mb4_0900_ai_ci;\n-- Dump completed on 2024-05-01\n"
    )
    found = of_mariadb(tmp_path, text)
    assert (found.origin, found.collations) == ("MySQL 8.0.39", {"utf8mb4_0900_ai_ci"})


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x1f\x8b\x08", "gzip"),
        ("select 1;".encode("utf-16"), "UTF-16"),
        ("select 1;".encode("utf-16-le"), "UTF-16"),
        (b"PAR1" + bytes(400), "Parquet"),
        (b"\1\2" + bytes(400), "binary"),
    ],
)
def test_compressed_files_and_utf_16_are_named_as_such(tmp_path: Path, data: bytes, word: str) -> None:
    (file := tmp_path / "file.sql").write_bytes(data)
    with pytest.raises(InputError, match=word):
        psql_text.examined(file, "dump")
    with pytest.raises(InputError, match=word):
        sql_text.examined(file, "dump", own=False)


def test_rows_of_a_table_with_many_columns_are_counted_for_that_table(tmp_path: Path) -> None:
    columns = ", ".join(f"a_long_name_of_a_column_{n}" for n in range(60))
    copy = f'COPY public."a (b)" ({columns}) FROM stdin;\n1\n2\n\\.\n'
    assert of_postgres(tmp_path, DUMP.format(copy)).rows == {'public."a (b)"': 2}


@pytest.mark.parametrize(
    "statement",
    [
        "CHANGE MASTER TO MASTER_LOG_FILE='a', MASTER_LOG_POS=4",
        "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='a'",
        "STOP ALL SLAVES",
        "SET GLOBAL gtid_slave_pos='0-1-2'",
        "SET @@SESSION.SQL_LOG_BIN= 0",
    ],
)
def test_what_a_dump_says_about_replication_is_not_sent(tmp_path: Path, statement: str) -> None:
    assert sent(tmp_path, f"{statement};\nCREATE TABLE t (a int);\n") == ["CREATE TABLE t (a int)"]
    if "SESSION" not in statement:  # affects no other session
        with pytest.raises(InputError):
            of_mariadb(tmp_path, f"{statement};\n", own=True)
