"""Trials of a workload that drives itself, through the same pipeline as all others."""

from __future__ import annotations

from pathlib import Path

import launch
import pytest
from user import records

pytestmark = pytest.mark.live


def test_its_trials_are_observed_recorded_and_repeated(place: Path, tmp_path: Path) -> None:
    words = [
        "run",
        "storage",
        "--data",
        str(place),
        "--duration",
        "1s",
        "--with",
        "size=16MiB",
        "--repeats",
        "2",
        "--results",
        str(tmp_path),
    ]
    done = launch.run(words)
    assert done.returncode in (0, 3), done.stderr  # 3: flagged, on a busy machine
    found = records(tmp_path)
    assert len(found) == 2
    for record in found:
        assert record["system"]["engine"] == "none"
        assert record["metrics"]["transactions"] > 0
        assert record["budget"]["server"] > 0, "its own CPU time is the system's"
        assert record["budget"]["client"] == 0
    assert (tmp_path / "trials" / found[0]["id"] / "observed.parquet").exists()
    assert list(place.iterdir()) == []


@pytest.mark.long
def test_the_process_that_answers_queries_is_the_server_in_the_budget(place: Path, tmp_path: Path) -> None:
    """DuckDB's process in the window differs from the one before it."""
    words = ["run", "tpch", "--engine", "duckdb", "--data", str(place / "d"), "--results", str(tmp_path)]
    options = ["--with", "sf=0.01", "--with", "check=no", "--with", "test=power"]
    done = launch.run([*words, *options])
    assert done.returncode in (0, 3), done.stderr
    (record,) = records(tmp_path)
    assert record["metrics"]["engine_cpu_s"] > 0
    assert record["budget"]["server"] > record["budget"]["kernel"]
