"""Whatever arrives, the answer is an answer: no traceback, no hang, no memory without end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = {"parcels": 10_000}
"""How many cases of each target; a thousand take a minute."""
MOST_BYTES = 1 << 30


@pytest.mark.long
@pytest.mark.parametrize("target", CASES)
@pytest.mark.timeout(3600)
def test_nothing_that_arrives_ends_in_a_traceback(target: str) -> None:
    command = [sys.executable, str(HERE / "worker.py"), target, "0", str(CASES[target])]
    environ = os.environ | {"PYTHONPATH": f"{HERE.parents[1] / 'src'}:{HERE.parent}"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, f"case {done.stderr.splitlines()[-1:]} ended the process: {done.stderr[-3000:]}"
    found = json.loads(done.stdout)
    assert found["faults"] == []
    assert found["most_bytes"] < MOST_BYTES
    assert 0.2 < found["refused"] / CASES[target] < 0.9, "a fuzz whose cases all end at the door tests the door alone"


def test_a_fault_is_found(tmp_path: Path) -> None:
    """Of a target that raises, one that hangs and one that ends the process."""
    source = """
import os, time
class Target:
    def __init__(self, scratch): pass
    def __call__(self, dice):
        {}
"""
    for body, said in (("1 / 0", "ZeroDivisionError"), ("while True: pass", "Hang")):
        (tmp_path / "target.py").write_text(source.format(body))
        done = _run(tmp_path, 1)
        assert said in json.loads(done.stdout)["faults"][0]["fault"]
    (tmp_path / "target.py").write_text(source.format("os.abort()"))
    assert _run(tmp_path, 1).returncode < 0


def _run(place: Path, count: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "worker.py"), "target", "0", str(count)]
    environ = os.environ | {"PYTHONPATH": f"{HERE.parents[1] / 'src'}:{place}"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
