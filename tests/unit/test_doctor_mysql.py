"""`doctor --dsn mysql://…` queries MariaDB and MySQL each in its dialect, and no query takes long."""

from __future__ import annotations

from typing import cast

import pytest

from ironbench.engines.examination import ExaminedServer
from ironbench.engines.mariadb.probes import EXAMINATION, server
from ironbench.errors import FailureError
from ironbench.model.diagnosis import CheckResult, Severity
from ironbench.model.session import Row, Session


class Asked:
    """A session that records its statements, reports its version, and returns no rows for other queries."""

    def __init__(self, version: str, knows_limits: bool = True) -> None:
        self.version, self.knows_limits, self.statements = version, knows_limits, list[str]()

    def query(self, sql: str) -> list[Row]:
        self.statements.append(sql)
        if sql.startswith("set session") and not self.knows_limits:
            raise FailureError("statement", "Unknown system variable")
        return [(self.version, "shop", "'bench'@'%'")] if "version()" in sql else []

    def processes(self) -> list[int]:
        return []


@pytest.mark.parametrize(
    ("version", "limit", "place"),
    [
        ("10.11.6-MariaDB", "max_statement_time = 10", "information_schema"),
        ("8.4.3", "max_execution_time = 10000", "performance_schema"),
    ],
)
def test_a_server_is_asked_where_it_keeps_its_status_and_after_a_limit_of_time(
    version: str, limit: str, place: str
) -> None:
    session = Asked(version)
    EXAMINATION.examine(cast("Session", session))
    assert f"set session {limit}" in session.statements[:2]
    status = [sql for sql in session.statements if "global_status" in sql]
    assert len(status) == 3
    assert all(f"from {place}.global_status" in sql and "{" not in sql for sql in status)


@pytest.mark.parametrize(
    ("title", "sizes", "remedy"),
    [
        ("MariaDB", {"INNODB_LOG_FILE_SIZE": 96 << 20}, "innodb_log_file_size = 3433M in"),
        (
            "MySQL",
            {"innodb_log_file_size": 48 << 20, "innodb_log_files_in_group": 2},
            "innodb_log_file_size = 1716M in",
        ),
        (
            "MySQL",
            {
                "innodb_log_file_size": 4096 << 20,
                "innodb_log_files_in_group": 2,
                "Innodb_redo_log_capacity_resized": 96 << 20,
            },
            "SET GLOBAL innodb_redo_log_capacity = 3599761408,",
        ),
    ],
)
def test_the_room_for_the_log_is_that_of_all_its_files(title: str, sizes: dict[str, int], remedy: str) -> None:
    """A megabyte a second fills 96 MiB in 100 seconds; settings that MySQL 8.0.30 no longer uses are ignored."""
    rows = {"Innodb_os_log_written": 10**9, "Uptime": 1000, **sizes}
    asked = ExaminedServer(title, "", 0, "shop", "'bench'@'%'", frozenset(), {}, None)
    found = server.room([(name, str(value)) for name, value in rows.items()], asked)
    assert isinstance(found, CheckResult) and found.severity is Severity.WARNING
    assert found.seen.replace("\u202f", " ").startswith("the redo log size is 96.0 MiB, enough for 101 s at")
    assert found.remedy.startswith(remedy)


def test_a_server_without_such_a_limit_is_examined_all_the_same() -> None:
    session = Asked("5.5.62", knows_limits=False)
    assert EXAMINATION.examine(cast("Session", session)).diagnoses
