"""Files designed to crash or stall a reader. Inputs are so large that quadratic time would hardly end."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ironbench.catalogue import typed
from ironbench.engines.mariadb import dsn as mariadb
from ironbench.engines.mariadb import sql_text
from ironbench.engines.odbc import dsn
from ironbench.engines.postgres import dsn as postgres
from ironbench.engines.postgres.harmless import harmless
from ironbench.engines.postgres.psql_text import PostgresSqlText
from ironbench.engines.postgres.restore_programs import Psql
from ironbench.engines.slapd import dsn as slapd
from ironbench.errors import InputError
from ironbench.model.redact import redacted
from ironbench.workloads.access_log import reading
from ironbench.workloads.directory import ldif

BASE = "dc=example,dc=com"
SEARCH = (
    '5f0e1a2b conn=1 op=1 SRCH base="{}" scope=2 deref=0 filter="{}" attrs="cn sn"\n'
    "5f0e1a2c conn=1 op=1 RESULT err=0 x\n"
)


def one_search(folder: Path, base: str, filter: str) -> reading.LoggedOperation:
    (file := folder / "log").write_text(SEARCH.format(base, filter))
    (found,) = reading.read(str(file)).operations
    return found


@pytest.mark.parametrize(
    "line",
    [
        f"conn={'9' * 5000} op=1 SRCH",
        f"5f0e1a2b conn=1 op={'9' * 5000} BIND dn=",
        json.dumps({"MESSAGE": "conn=1 op=1 BIND", "__REALTIME_TIMESTAMP": "9" * 30}),
        json.dumps({"MESSAGE": "conn=1 op=1 BIND", "__REALTIME_TIMESTAMP": "²"}),
        '{"a": ' + "[" * 100_000,
    ],
)
def test_a_line_of_an_access_log_that_no_server_writes_is_refused_or_passed_over(tmp_path: Path, line: str) -> None:
    (file := tmp_path / "log").write_text(f"{line}\n")
    with pytest.raises(InputError):
        reading.read(str(file))


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(SEARCH.format("a", "b").encode() * 100))
    packed[20:30] = b"\xff" * 10
    (file := tmp_path / "log.gz").write_bytes(packed)
    with pytest.raises(InputError, match="gzip"):
        reading.read(str(file))


def test_quotes_within_a_logged_name_or_filter_belong_to_it(tmp_path: Path) -> None:
    found = one_search(tmp_path, 'cn="a",dc=b', '(cn="x" scope)')
    assert (found.dn, found.filter, found.attributes) == ('cn="a",dc=b', '(cn="x" scope)', ("cn", "sn"))


def test_a_line_of_many_quotes_is_read_once(tmp_path: Path) -> None:
    many = '"x' * 100_000
    assert one_search(tmp_path, many, many).filter == many
    (file := tmp_path / "fields").write_text(SEARCH.format('" scope=' * 100_000, '" attrs="' * 100_000))
    with pytest.raises(InputError):
        reading.read(str(file))


@pytest.mark.parametrize("url", ["http://[", "file://[", "file:///a%00b", "file:///dev/zero", "file:///"])
def test_the_url_of_a_value_that_names_no_file_is_refused(tmp_path: Path, url: str) -> None:
    (file := tmp_path / "own.ldif").write_text(f"dn: {BASE}\ncn:< {url}\n")
    with pytest.raises(InputError, match="line 2"):
        list(ldif.records(file))


def test_a_dn_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (file := tmp_path / "own.ldif").write_bytes(b"dn: cn=\xe9,dc=x\ncn: a\n")
    with pytest.raises(InputError, match="line 1"):
        list(ldif.records(file))


def test_quotes_and_comment_marks_in_names_begin_nothing(tmp_path: Path) -> None:
    (file := tmp_path / "file.sql").write_text("CREATE TABLE `it's /* a` (a int); UPDATE `other`.`b` SET `it's` = 1;\n")
    with pytest.raises(InputError, match="outside the trial's database"):
        sql_text.examined(file, "dump", own=False)


def test_a_statement_of_many_names_with_comment_marks_is_judged_once(tmp_path: Path) -> None:
    columns = ", ".join(f"`/*{n}'` int" for n in range(50_000))
    (file := tmp_path / "file.sql").write_text(f"CREATE TABLE t ({columns});\n")
    assert sql_text.examined(file, "dump", own=False) == sql_text.MysqlSqlText()


def test_a_failed_statement_of_many_lines_is_kept_in_part() -> None:
    session: Any = SimpleNamespace()
    client = Psql("x", session, lambda *_: None, text=PostgresSqlText())
    client._heard("psql:<stdin>:1: ERROR:  42P01: no")
    client._heard("psql:<stdin>:1: STATEMENT:  COMMENT ON TABLE a")
    for _ in range(300_000):
        client._heard("IS 'b'")
    client._judge()
    assert client.left_out == {"comment": 1}


def test_blanks_do_not_slow_down_or_hide_the_kind_of_a_statement() -> None:
    assert harmless("ALTER" + " " * 20_000 + "x", "42P01") == ""
    assert harmless("ALTER  TABLE\n\tONLY public.item   DROP  CONSTRAINT a", "42P01") == "drop"


def test_a_toml_key_of_many_parts_is_refused() -> None:
    with pytest.raises(InputError, match="parts"):
        typed.document("a" + ".b" * 100_000 + " = 1\n", "x.toml", "")
    assert typed.document('a.b."c.d".e = "' + "1." * 1000 + '"\n', "x.toml", "")


def test_verbs_without_end_are_judged_once_and_the_last_one_is_seen(tmp_path: Path) -> None:
    verbs = "DROP UPDATE DELETE CREATE INDEX " * 30_000
    (file := tmp_path / "file.sql").write_text(f"BEGIN NOT ATOMIC {verbs} DROP TABLE `other`.`t`;\n")
    with pytest.raises(InputError, match="outside the trial's database"):
        sql_text.examined(file, "dump", own=False)


def test_a_connection_string_of_many_braces_is_redacted_once() -> None:
    assert "secret" not in redacted("driver={x};pwd=secret;" + "{REPLACE;" * 100_000)


@pytest.mark.parametrize("path", ["x" * 5000, "a\0b"])
def test_a_path_that_no_file_can_have_names_none(path: str) -> None:
    assert dsn.parse(f"odbc:Driver=a;Database={path}")[0].value("database") == path
    for words in (f"host=h passfile={path}", f"host=h sslrootcert={path}", f"service=a servicefile={path}"):
        with suppress(InputError):
            postgres.parse(words, {"HOME": "/nonexistent"})


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:open-sesame-1@h/d?target_session_attrs=open-sesame-1",
        "host=h password=open-sesame-1 sslmode=open-sesame-1 channel_binding=open-sesame-1",
        "mysql://u:open-sesame-1@h/d?tls=open-sesame-1",
        "mysql://u:open?sesame-1@h/d",
        "ldap://cn=a,dc=b:x@h/dc=b?mechanism=open-sesame-1@h",
    ],
)
def test_no_message_about_a_dsn_quotes_its_password_or_a_piece_of_it(text: str) -> None:
    parse = {"mysql": mariadb.parse, "ldap": slapd.parse}.get(text.partition("://")[0], postgres.parse)
    with pytest.raises(InputError) as caught:
        parse(text, {"HOME": "/nonexistent"})
    assert "sesame" not in f"{caught.value} {caught.value.hint}"


def test_a_connection_string_of_many_blanks_is_refused() -> None:
    with pytest.raises(InputError):
        dsn.parse("odbc:Driver=a;" + " " * 50_000 + "b")
