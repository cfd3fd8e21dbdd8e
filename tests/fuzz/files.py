"""Mutated files of users and messages of servers, and their readers."""

from __future__ import annotations

import gzip
import io
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fuzz.splice import spliced

from ironbench.errors import FailureError, InputError, IronbenchError

DATA = Path(__file__).parents[1] / "data"
SECRET = "S3cr3tW0rd"
S_PER_MB = 1.0
S_PER_UNIT = 10e-6


@dataclass(frozen=True, slots=True)
class FileTarget:
    """Reads mutated files from `path`. The number of an input determines its content, on every machine."""

    name: str
    corpus: tuple[bytes, ...]
    words: tuple[bytes, ...]
    reader: Callable[[Path], object]
    path: Path
    passes: int = 1
    """How many times each input is read."""
    unit: re.Pattern[bytes] | None = None
    """Pattern of the end of a statement or line. Each statement takes some time, however short it is."""
    floor_s: float = 0.05

    def allowed_s(self, data: str | bytes) -> float:
        """Returns the CPU seconds that an input may take."""
        units = len(self.unit.findall(data)) if self.unit and isinstance(data, bytes) else 0
        if data[:2] == b"\x1f\x8b":
            return 1.0  # its content is unknown
        return max(self.floor_s, self.passes * (len(data) / 1e6 * S_PER_MB + units * S_PER_UNIT))

    def input(self, number: int) -> bytes:
        return spliced(self.corpus, self.words, random.Random(f"{self.name}/{number}"))

    def read(self, data: str | bytes) -> None:
        self.path.write_bytes(data.encode() if isinstance(data, str) else data)
        self.reader(self.path)


_STATEMENT = re.compile(rb"[;\n]|\\[gG\\]|\$\$|//")
_LINE = re.compile(rb"\n")


def file_targets(scratch: Path) -> dict[str, FileTarget]:
    """Returns the targets by name. `scratch`: location of each input while it is read."""
    found = (
        FileTarget("dump-postgres", _dumps("pg"), _SQL + _OF_POSTGRES, _postgres, scratch / "a.sql", 2, _STATEMENT),
        FileTarget("dump-mariadb", _dumps("maria"), _SQL + _OF_MARIADB, _mariadb, scratch / "b.sql", 2, _STATEMENT),
        FileTarget("ldif", _ldif(), _OF_LDIF, _read_ldif, scratch / "c.ldif", 5),
        FileTarget("access-log", _logs(), _OF_LOGS, _access_log, scratch / "d.log", 1, _LINE),
        FileTarget("server-error", _MESSAGES, _SQL + _OF_MESSAGES, _server_error, scratch / "e.log", 8, _LINE),
        FileTarget("curve", _CURVES, _OF_CURVES, _curve, scratch / "f.csv", 1, _LINE),
        FileTarget("foreign", _files("foreign", "*"), _OF_FOREIGN, _foreign, scratch / "g.txt", 4, _LINE),
    )
    return {target.name: target for target in found}


def _dumps(dialect: str) -> tuple[bytes, ...]:
    return _files("dumps", f"*.{dialect}.sql") + _files("real", f"*.{dialect}.sql")


def _ldif() -> tuple[bytes, ...]:
    return _files("ldif", "*.ldif") + _files("real", "*.ldif")


def _files(folder: str, pattern: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted((DATA / folder).glob(pattern)))


def _logs() -> tuple[bytes, ...]:
    """Returns excerpts as servers write them, and as journals and containers store them."""
    found = []
    for path in sorted((DATA / "access_logs").glob("*.log")):
        lines = path.read_bytes().splitlines(keepends=True)[:60]
        found += [b"".join(lines), b"".join(b"ldap-1  | " + line for line in lines[:20])]
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        file.write(found[0])
    return (*found, packed.getvalue(), *_JOURNALS)


def _postgres(path: Path) -> None:
    from ironbench.engines.postgres import psql_text

    text = psql_text.examined(path, "dump x")
    for _ in psql_text.fed(path, text.database):
        pass


def _mariadb(path: Path) -> None:
    from ironbench.engines.mariadb import sql_text

    own = path.stat().st_size % 2 == 0
    found = sql_text.examined(path, "dump x", own=own)
    for _ in sql_text.statements(path, "x", found, own=own):
        pass


def _read_ldif(path: Path) -> None:
    from ironbench.workloads.directory import entries, ldif

    base = "dc=example,dc=com"
    data = entries.dataset({"entries": "1", "template": "", "ldif": str(path)})
    assert data.entries is not None and data.roots is not None and data.line_of is not None
    written = b"".join([*data.entries(base), *(data.changes(base) if data.changes else ())])
    for dn in data.roots(base)[:3]:
        assert data.changes or data.line_of(dn, "add")
    # The output is read again; otherwise slapadd would receive invalid LDIF.
    (again := path.with_suffix(".again")).write_bytes(written)
    for _ in ldif.records(again):
        pass


def _access_log(path: Path) -> None:
    from ironbench import workloads

    options = {"log": str(path), "suffix": "dc=example,dc=com", "changes": "made-up", "binds": "password"}
    workloads.get("access-log").validated(options)


def _curve(path: Path) -> None:
    from ironbench.plan import curves

    curves.read("load.rate", f"file:{path}", None)


def _foreign(path: Path) -> None:
    """Reads the input as the output of each known program, until one accepts it."""
    from ironbench.records import foreign

    refused: list[InputError] = []
    for program in foreign.PROGRAMS:
        try:
            foreign.read(program, path, "")
        except InputError as error:
            refused.append(error)
    if len(refused) == len(foreign.PROGRAMS):
        raise refused[0]


def _server_error(path: Path) -> None:
    """Reads a server's error message in every way: worded, judged and redacted."""
    from ironbench.engines.postgres.psql_text import PostgresSqlText
    from ironbench.engines.postgres.restore_programs import PgRestore, Psql
    from ironbench.model.redact import redacted, redacted_sql, redacted_toml
    from ironbench.trial.load.entries import _explained

    text = path.read_bytes().decode(errors="replace")
    for redact in (redacted, redacted_sql, redacted_toml):
        redact(text)
    FailureError(text, text, text)
    session: Any = SimpleNamespace()
    for client in (Psql("x", session, _unseen, text=PostgresSqlText()), PgRestore("x", session, _unseen)):
        for line in text.split("\n"):
            try:
                client._heard(line)
            except IronbenchError as error:
                assert not _AS_PASSWORD.search(f"{error} {error.hint}"), "a password is quoted"
    dataset: Any = SimpleNamespace(line_of=lambda dn, _kind: dn, name="ou=directory")
    _explained(session, dataset, FailureError("slapadd", text), own_server=True)


def _unseen(_fraction: float, _note: str) -> None:
    pass


_AS_PASSWORD = re.compile(rf"\bpassword '{SECRET}'(?!')|\w://[^\s:/@]*:{SECRET}@", re.IGNORECASE)
"""Pattern of a password in a position for passwords. Elsewhere, a password cannot be distinguished from other words."""


def _split(text: str) -> tuple[bytes, ...]:
    return (*(word.encode() for word in text.split(" ")), b" ", b"\n")


_SQL = _split(
    "CREATE TABLE VIEW FUNCTION PROCEDURE TRIGGER DATABASE SCHEMA INDEX ALTER DROP INSERT INTO VALUES UPDATE DELETE "
    "FROM SET USE BEGIN END; COMMIT; CASE REFERENCES GRANT OWNER TO ADD CONSTRAINT REPLACE ( ) , ; ' '' \" ` /* */ /*! "
    "-- # . CALL RENAME TRUNCATE JOIN WHERE ON KEY IF NOT EXISTS OR public. a.b `a`.`b` password IDENTIFIED BY"
)
_OF_POSTGRES = (
    *_split("COPY stdin; \\. $$ $tag$ $1 E' \\c \\connect \\if \\endif \\i \\; \\\\ \\set \\restrict \\gexec"),
    *(b"COPY t (a, b) FROM stdin;\n", b"\n\\.\n", b"-- Name: a; Type: TABLE; Schema: public; Owner: x\n"),
    *(b"-- PostgreSQL database dump\n", b"-- PostgreSQL database dump complete\n", b"\\connect shop\n", b"1\t2\n"),
    *(b"-- Dumped from database version 17.2\n", b"standard_conforming_strings = off;", b"CREATE EXTENSION"),
    b"-- PostgreSQL database cluster dump\n",
)
_OF_MARIADB = (
    *_split(
        "DELIMITER $$ ;; // /*!50003 /*M!999999\\- USE SOURCE DEFINER=`a`@`%` \\G \\g @OLD_SQL_MODE @@GLOBAL. LOAD"
    ),
    *(b"\nDELIMITER ;;\n", b"\nDELIMITER ;\n", b"-- Dump completed on 2024-01-01\n", b"USE `shop`;\n", b"(1,'a'),"),
    *(b"-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB\n", b"-- Server version\t8.0.39\n", b"utf8mb4_0900_ai_ci"),
    b"CREATE DATABASE `shop`;\n",
)
_OF_LDIF = (
    *(b"\n\n", b"\n ", b"\r\n", b":: ", b": ", b":< ", b"dn: ", b"dn:: ", b"# ", b"version: 1\n", b"changetype: add\n"),
    *(b"changetype: modify\n", b"-\n", b"objectClass: person\n", b"cn: a\n", b"search: 2\n", b"result: 0 Success\n"),
    *(b"ref: ldap://h/dc=x\n", b"YQ==", b"file:///etc/hostname", b"ou=a,dc=example,dc=com", b"\\,", b"\\2C", b"+"),
    *(b"entryUUID: 1\n", b"control: 1.2.3\n", b"jpegPhoto:: /9j/\n", b";binary", b",", b"=", b"include: x\n"),
    *(b"member;range=0-1499: cn=a\n", b"http://[", b"//", b"file://[::1"),
)
_OF_LOGS = (
    *(b'conn=1000 op=1 SRCH base="ou=a" scope=2 deref=0 filter="(uid=a)"\n', b"conn=", b" op=", b'SRCH base="'),
    *(b' scope=2 filter="', b'" attrs="', b" RESULT err=0 tag=101 nentries=1 etime=0.1\n", b'BIND dn="" method=128\n'),
    *(b'MODRDN dn="a" newrdn="b"', b' newsuperior="', b'"', b'ADD dn="', b"MOD attr=", b'CMP dn="', b" err="),
    *(b"[14/Jan/2019:09:55:55.495932 -0500] ", b"5f0e1a2b.1d4e5f60 ", b"2024-02-29T12:00:00Z ", b"Feb 29 00:00:00 h "),
    *(b"1700000000.123456 ", b'{"MESSAGE": "', b'{"log": "', b"{", b"[", b'"__REALTIME_TIMESTAMP": "', b'"}'),
    *(b"ldap-1  | ", b" starting\n", b"\x1f\x8b", b'{"local_time": 1}\n', b"\n", b"EXT oid=", b"ABANDON msg=3\n"),
)
_JOURNALS = (
    b'{"MESSAGE": "conn=1 op=1 SRCH base=\\"\\" scope=2 deref=0 filter=\\"(uid=a)\\"", '
    b'"__REALTIME_TIMESTAMP": "17000000"}\n'
    b'{"MESSAGE": "conn=1 op=1 SEARCH RESULT tag=101 err=0 nentries=1 text=", "__REALTIME_TIMESTAMP": "17000001"}\n',
    b'{"log": "5f0e1a2b conn=1 op=1 SRCH base=\\"\\" scope=2 deref=0 filter=\\"(uid=a)\\"\\n", "stream": "stderr"}\n',
    b'Feb 28 23:59:59 host slapd[9]: conn=1 op=0 BIND dn="cn=a" method=128\n'
    b"Feb 28 23:59:59 host slapd[9]: conn=1 op=0 RESULT tag=97 err=0 text=\n",
)
_OF_MESSAGES = (
    *(b"psql:<stdin>:7: ERROR:  42P01: ", b"psql:<stdin>:7: STATEMENT:  ", b"psql: error: ", b"pg_restore: error: "),
    *(b"Command was: ", b"LINE 1: ", b"NOTICE:  00000: ", b"\n", f"password '{SECRET}'".encode(), b"PGPASSWORD="),
    *(f"postgresql://u:{SECRET}@h/d".encode(), b"://", b"@", b"driver={a};pwd=", b"password=", b"IDENTIFIED BY '"),
    *(b'slapadd: dn="cn=a" (line=3)', b" (line=", b"add cn=a: ", b'\\"', b"'''", b'"""', b"TOKEN=", b"$$"),
)
_MESSAGES = (
    b'psql:<stdin>:7: ERROR:  42P01: relation "x" does not exist\nLINE 1: select * from x\n                      ^\n'
    b"LOCATION:  parserOpenTable, parse_relation.c:1449\npsql:<stdin>:7: STATEMENT:  select * from x;\n"
    b"psql:<stdin>:9: NOTICE:  00000: table exists, skipping\n",
    b'pg_restore: error: could not execute query: ERROR:  role "a" does not exist\n'
    b"Command was: ALTER TABLE public.t OWNER TO a;\n\n\npg_restore: finished item 3 TABLE t\n",
    b"psql:<stdin>:3: ERROR:  42601: syntax error\npsql:<stdin>:3: STATEMENT:  CREATE ROLE a "
    b"PASSWORD '%b';\n" % SECRET.encode(),
    f"connection to postgresql://u:{SECRET}@h:5432/d failed: PGPASSWORD={SECRET} psql\n".encode(),
    f"driver={{x}};pwd={SECRET};a=b\n".encode(),
    b'slapadd: could not add entry dn="cn=b,dc=example,dc=com" (line=3): object class violation\n'
    b"add cn=a,dc=x: exists\n",
    f"[system]\ndsn = \"postgresql://u:{SECRET}@h/d\" # '\npassword = '{SECRET}'\n".encode(),
    b"Fehler:  42P07: Relation existiert bereits\n\xe9\xff CREATE USER 'a'@'%' IDENTIFIED BY 'x' ; SELECT 1\n",
)
_OF_FOREIGN = (
    *(b"[Summary] NEW_ORDER - Takes(s): 5.0, Count: 7, TPM: 84.0, Sum(ms): 9.9\n", b"tpmC: 1.0\n", b"_ERR", b"\n"),
    *(b"TEST RESULT : System achieved 1 NOPM from 2 x TPM\n", b">>>>> PROC: NEWORD\n", b"P50: 1ms\n", b'"avg_ms": "'),
    *(b"4 Active Virtual Users configured\n", b"[ 1s ] thds: 4 tps: 1.00 qps: 2.00 ", b"lat (ms,95%): 1.00 err/s: 0\n"),
    *(b"transactions: 5 (1.00 per sec.)\n", b"avg: 1.0\n", b"sysbench 1.0\n", b"pgbench (17)\n", b"tps = 1 (without\n"),
    *(b"0 1 100 0 1795984107 1\n", b"1795984111 1 2 3 4 5\n", b"failed", b"nan", b"inf", b"999999999999999", b"e9"),
    *(b"progress: 1.0 s, 1.0 tps, lat 1.0 ms stddev 1.0\n", b"[", b"{", b"]", b"}", b'"', b"\r\n", b"\xff\xfe", b"0"),
)
_CURVES = (
    b"time,rate\n0s,100\n10s,200\n20s,50\n",
    b"0 100\n1.5s 1e3\n# comment\n60s 10\n",
    b"\xef\xbb\xbf0s;1\r\n5m;2\r\n",
)
_OF_CURVES = (
    b",",
    b"\n",
    b";",
    b"\t",
    b" ",
    b"time",
    b"rate",
    b"0,0\n",
    b"1e3",
    b"inf",
    b"nan",
    b"-5",
    b"#",
    b"\r\n",
    b"10s",
)
