"""The commands of the pages about captures work as written, one after another."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import launch
import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "how" / name for name in ("capture.md", "capture-without-logs.md", "replay.md")]
LOGS = ROOT / "tests" / "data" / "pglog"
DIRECTORY = "/var/lib/postgresql/18/main/log"
"""The directory of logs on the page."""


def test_the_page_captures_shows_and_plans_replays(tmp_path: Path) -> None:
    blocks = [
        block for page in PAGES for block in re.findall(r"^```.*?^```", page.read_text(), re.DOTALL | re.MULTILINE)
    ]
    lines = [line for block in blocks for line in re.findall(r"^ironbench (.*)$", block, re.MULTILINE)]
    # These need a server: tests/live/test_capture_replay.py, test_capture_digests.py and test_capture_digests_mysql.py
    lines.remove("capture --mark postgresql:///shop")
    lines.remove("capture --from postgresql:///shop --duration 10m -o invented.capture")
    lines.remove("capture --from mysql://root@db.example.com:3306/shop --duration 10m -o invented.capture")
    assert [line.split()[0] for line in lines] == ["capture", "show", "run", "run", "run", "lab", "run"]
    (tmp_path / "index.sql").write_text("create index on item (name);\n")
    shutil.copy(ROOT / "tests" / "data" / "dumps" / "clean.pg.sql", tmp_path / "shop.dump")
    for line in lines:
        words = shlex.split(line.replace(DIRECTORY, str(LOGS)), comments=True)
        done = launch.run([*words, *(("--plan",) if words[0] == "run" else ())], cwd=tmp_path)
        assert done.returncode == 0, f"{line}:\n{done.stderr}"
        if words[0] == "show":
            assert "Statements that cannot be replayed" in done.stdout
    assert (tmp_path / "shop.capture").exists()


MYSQL_LOG = """# Time: 261130  2:03:11
# User@Host: app[app] @ localhost []
# Thread_id: 31  Schema: shop  QC_hit: No
# Query_time: 0.250000  Lock_time: 0.000050  Rows_sent: 3  Rows_examined: 100
# Rows_affected: 0  Bytes_sent: 80
use shop;
SET timestamp=1796004191;
select * from item where price > 5;
"""
MYSQL_DUMP = """-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB, for debian-linux-gnu (x86_64)
CREATE TABLE `item` (`price` int);
-- Dump completed on 2026-11-30 20:00:00
"""


@pytest.mark.skipif(shutil.which("mariadbd") is None, reason="needs mariadbd")
def test_the_page_about_mysql_captures_shows_and_plans_replays(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how" / "capture-mysql.md").read_text()
    lines = re.findall(r"^ironbench (.*)$", page, re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["capture", "show", "run", "run"]
    (tmp_path / "shop.sql").write_text(MYSQL_DUMP)
    (tmp_path / "slow.log").write_text(MYSQL_LOG)
    for line in lines:
        words = shlex.split(line.replace("/var/log/mysql/mariadb-slow.log", "slow.log"))
        done = launch.run([*words, *(("--plan",) if words[0] == "run" else ())], cwd=tmp_path)
        assert done.returncode == 0, f"{line}:\n{done.stderr}"
