"""What `make demo` promises to a new user."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ironbench.cli.lab import plan as planned
from ironbench.trial.drive import checkpoints

ROOT = Path(__file__).parents[2]
SUSPECT = 3


def test_half_of_the_demo_s_six_minutes_is_measured_and_one_verdict_comes_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert planned(str(ROOT / "labs" / "demo.toml"), None, json=True) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["comparisons"] == [["clients=8 log=in memory", "clients=8 log=on disk"]]
    loads = {cell["name"]: cell["load"] for cell in plan["cells"]}
    driven_s = [loads[trial["cell"]]["duration_s"] + loads[trial["cell"]]["warmup_s"] for trial in plan["trials"]]
    # On an idle machine, starting, restoring and checking such a small database take the same time again.
    assert sum(driven_s) <= 210


def test_trials_of_the_demo_cover_two_checkpoints_that_are_seconds_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """More frequent checkpoints fill the WAL with full-page images: the demo is about WAL."""
    assert planned(str(ROOT / "labs" / "demo.toml"), None, json=True) == 0
    for cell in json.loads(capsys.readouterr().out)["cells"]:
        load = cell["load"]
        assert 3 <= load["checkpoint_s"] <= load["duration_s"] / checkpoints.LEAST


@pytest.mark.live
@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(1200)
def test_the_demo_ends_in_an_answer_with_curves_and_leaves_no_data(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "demo.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = done.stdout.split("\n\n")[1].replace("\n", " ")
    assert "With zero-latency WAL" in answer and "6 paired repeats" in answer
    page = (tmp_path / "report.html").read_text()
    assert "Scalability" in page
    assert not (tmp_path / "data").exists()
