"""The commands of the pages about captures work as written, one after another."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import launch

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
    # These need a server: tests/live/test_capture_replay.py and tests/live/test_capture_digests.py
    lines.remove("capture --mark postgresql:///shop")
    lines.remove("capture --from postgresql:///shop --duration 10m -o invented.capture")
    assert [line.split()[0] for line in lines] == ["capture", "show", "run", "run", "run", "run"]
    shutil.copy(ROOT / "tests" / "data" / "dumps" / "clean.pg.sql", tmp_path / "shop.dump")
    for line in lines:
        words = shlex.split(line.replace(DIRECTORY, str(LOGS)), comments=True)
        done = launch.run([*words, *(("--plan",) if words[0] == "run" else ())], cwd=tmp_path)
        assert done.returncode == 0, f"{line}:\n{done.stderr}"
        if words[0] == "show":
            assert "Statements that cannot be replayed" in done.stdout
    assert (tmp_path / "shop.capture").exists()
