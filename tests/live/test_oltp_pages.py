"""The commands on the pages of the OLTP workloads run as shown, with less data and a shorter time."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from factories import require_installed
from raw_server import RawServer
from user import User

pytestmark = [pytest.mark.live, pytest.mark.long]

PAGES = Path(__file__).parents[2] / "docs" / "workloads"
COMMANDS = [
    line
    for name in ("tpcc", "sysbench", "ycsb")
    for line in re.findall(r"^ironbench (run .*?)(?:  .*)?$", (PAGES / f"{name}.md").read_text(), re.MULTILINE)
]
SMALLER = {
    "warehouses=10": "warehouses=2",
    "records=1000000": "records=10000",
    "table-size=100000": "table-size=1000",
    "8,16,32": "2,4",
    "1,4,16": "1,4",
    "5m": "25s",
    "60s": "1s",
}
"""Words of the commands, with the smaller values that the test uses. With pacing, terminals need up to 21 s for their
first transaction."""


def test_the_pages_show_commands_of_each_workload() -> None:
    shown = [shlex.split(line)[1] for line in COMMANDS]
    assert set(shown) == {"tpcc", "sysbench", "ycsb"} and len(shown) >= 11


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_a_page_runs_and_its_checks_pass(
    user: User, raw_server: RawServer, database: str, line: str
) -> None:
    if "mariadb" in line:
        require_installed("mariadb")
    words = [SMALLER.get(word, word) for word in shlex.split(line)]
    if "--dsn" in words:
        words[words.index("--dsn") + 1] = (
            f"host={raw_server.host} port={raw_server.port} user=postgres dbname={database}"
        )
    words += [*(() if "--duration" in words else ("--duration", "1s")), "--no-observe"]
    words += [] if "--warmup" in words else ["--warmup", "0s"]
    with user.begun(*words) as run:
        told, _ = run.end(within_s=180.0)
    assert told.code in (0, 3), told
    records = user.records()
    assert records and all(record["checks"] and all(one["passed"] for one in record["checks"]) for record in records)
    assert all(record["metrics"]["transactions"] > 0 for record in records)
