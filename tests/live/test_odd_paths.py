"""A data directory may have any name that the server's configuration can express."""

from __future__ import annotations

from pathlib import Path

import launch
import pytest
from user import SHORT

pytestmark = pytest.mark.live

WORK = {
    "postgres": ["select-only", "--with", "scale=1"],
    "mariadb": ["select-only", "--with", "scale=1"],
    "sqlite": ["select-only", "--with", "scale=1"],
    "slapd": ["directory", "--with", "entries=50"],
}


@pytest.mark.parametrize("engine", list(WORK))
def test_quotes_backslashes_and_hashes_in_a_path_are_escaped(engine: str, tmp_path: Path) -> None:
    data = tmp_path / """q"u'o #te\\s"""
    words = ["run", *WORK[engine], "--engine", engine, "--data", data, "--results", tmp_path / "results", *SHORT]
    done = launch.run(words, cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    assert any(data.iterdir())


def test_a_path_with_a_line_break_is_refused_before_the_start(tmp_path: Path) -> None:
    done = launch.run(["run", "select-only", "--data", f"{tmp_path}/a\nb"], cwd=tmp_path)
    assert done.returncode == 2
    assert "control character" in done.stderr
