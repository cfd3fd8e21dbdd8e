"""A PostgreSQL server gets the same messages from ironbench as from pgbench."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from raw_server import RawServer
from recording_proxy import Message, RecordingProxy
from test_pgbench_differences import Programs

pytestmark = pytest.mark.live

SCRIPT = r"""
\set id random(1, 100)
\set delta random(-5000, 5000)
BEGIN;
UPDATE t SET v = v + :delta WHERE id = :id;
SELECT v FROM t WHERE id = :id;
SELECT v AS now FROM t WHERE id = :id AND true\gset
INSERT INTO log VALUES (:now, :id);
END;
"""
PIPELINED = r"""
\set id random(1, 100)
\startpipeline
BEGIN;
SELECT v FROM t WHERE id = :id;
END;
\endpipeline
"""
SHARED_CASES = {
    "jsonb-subscript.sql": "\\set i random(0, 2)\nSELECT '[10, 20, 30]'::jsonb -> :i;\n",
    "prepare-in-a-script.sql": "\\set id random(1, 10)\nPREPARE q AS SELECT :id;\nEXECUTE q;\nDEALLOCATE q;\n",
    "text-comparison.sql": "\\set a 9\n\\set b 10\nSELECT (:a < :b)::int, greatest(:a, :b);\n",
    "variable-in-a-name.sql": "\\set part random(1, 3)\nSELECT count(*) FROM acc_:part;\n",
    "variable-in-a-utility-statement.sql": (
        "\\set n random(64, 80)\nBEGIN;\nSET LOCAL work_mem = :n;\nSELECT 1;\nEND;\n"
    ),
    "lock.sql": "SELECT pg_advisory_lock(4712);\nSELECT pg_advisory_unlock(4712);\n",
}
"""Scripts that need the simple protocol, or whose answers depend on it."""


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with RawServer() as server:
        session = server.connect()
        session.query("CREATE TABLE t(id int PRIMARY KEY, v int NOT NULL)")
        session.query("INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i")
        session.query("CREATE TABLE log(v int, id int)")
        for part in range(1, 4):
            session.query(f"CREATE TABLE acc_{part}(id int)")
        session.close()
        yield server


class Recorded(Programs):
    """Both programs, run through a proxy that records their messages."""

    def __init__(self, server: RawServer, directory: Path, proxy: RecordingProxy) -> None:
        super().__init__(server, directory)
        self.proxy = proxy

    @property
    def place(self) -> tuple[str, int]:
        return self.proxy.host, self.proxy.port

    def messages(self, text: str, *words: str) -> tuple[list[Message], list[Message]]:
        """Returns pgbench's and ironbench's messages for ten transactions of one client."""
        file = self.file("script.sql", text)
        self.rows("UPDATE t SET v = 0 WHERE v <> 0")
        theirs = self.pgbench("-t10", "--random-seed=7", "-f", file, *(f"-M{word}" for word in words))
        assert theirs.code == 0, theirs.stderr
        (theirs_sent,) = self.proxy.sent()
        self.rows("UPDATE t SET v = 0 WHERE v <> 0")
        protocol = [word for one in words for word in ("--protocol", one)]
        ours = self.ironbench(file, "--transactions", "10", "--seed", "7", *protocol)
        assert ours.code == 0, ours.stderr
        # Other connections are ironbench's own queries about the server.
        driven = [sent for sent in self.proxy.sent() if _executed(sent) == _executed(theirs_sent)]
        assert len(driven) == 1, "no connection sent as many commands as pgbench's"
        return theirs_sent, driven[0]


@pytest.fixture
def recorded(server: RawServer, tmp_path: Path) -> Iterator[Recorded]:
    with RecordingProxy(f"{server.host}/.s.PGSQL.{server.port}", server.port) as proxy:
        yield Recorded(server, tmp_path, proxy)


@pytest.mark.parametrize("words", [[], ["simple"], ["extended"]])
def test_the_server_gets_byte_for_byte_what_pgbench_sends(recorded: Recorded, words: list[str]) -> None:
    theirs, ours = recorded.messages(SCRIPT, *words)
    assert ours == theirs


def test_a_prepared_statement_is_executed_by_the_messages_of_pgbench(recorded: Recorded) -> None:
    theirs, ours = recorded.messages(SCRIPT, "prepared")
    assert b"D" in {tag for tag, _ in ours}, "results that are discarded are described, too"
    assert _executions(ours) == _executions(theirs)


def test_a_pipeline_is_sent_by_the_messages_of_pgbench(recorded: Recorded) -> None:
    theirs, ours = recorded.messages(PIPELINED, "extended")
    assert ours == theirs


@pytest.mark.parametrize("name", SHARED_CASES)
def test_scripts_that_need_the_simple_protocol_run_without_an_option(recorded: Recorded, name: str) -> None:
    theirs, ours = recorded.messages(SHARED_CASES[name])
    assert ours == theirs


def test_numbers_are_compared_as_numbers_by_default(recorded: Recorded) -> None:
    text = "\\set a 9\n\\set b 10\nSELECT (:a < :b)::int AS less, greatest(:a, :b) AS most \\gset\n"
    file = recorded.file("numbers.sql", text + "\\set x debug(:less)\n\\set y debug(:most)\n")
    theirs = recorded.pgbench("-t1", "-f", file)
    assert [line.rpartition(" ")[2] for line in theirs.debug] == ["1", "10"]
    assert recorded.ironbench(file, "--transactions", "1").debug == theirs.debug


def _executed(messages: Sequence[Message]) -> int:
    return sum(tag in (b"Q", b"E") for tag, _ in messages)


def _executions(messages: Sequence[Message]) -> list[Message]:
    """Removes messages that prepare statements: pgbench waits for their answer, ironbench sends them with the first
    execution. Replaces each program's names of prepared statements by numbers in order of first use."""
    names: dict[bytes, int] = {}
    found: list[Message] = []
    parsing = False
    for tag, body in messages:
        if tag == b"P" or (tag == b"S" and parsing):
            parsing = tag == b"P"
            continue
        parsing = False
        if tag == b"B":
            named = re.match(rb"\0([^\0]+)\0", body)
            assert named is not None
            number = names.setdefault(named[1], len(names))
            body = b"%d" % number + body[named.end() :]
        found.append((tag, body))
    return found
