"""A lab with a gate, from the command line: one document on stdout, and the exit code of the gate."""

from __future__ import annotations

from pathlib import Path

import pytest
from user import User

pytestmark = pytest.mark.live

LAB = """question = "Is the change slower?"
[system]
engine = "null"
[workload]
name = "igen-oltp"
[load]
clients = 2
duration = "0.2s"
warmup = "0s"
[vary]
think_time = ["9ms", "10ms"]
[measure]
repeats = 1
quiet = "0s"
"""


def test_a_lab_with_a_gate_prints_the_gates_document_alone(place: Path) -> None:
    user = User(place)
    (place / "change.toml").write_text(LAB)
    told = user("lab", "run", "change.toml", "--results", "made", "--gate", "--json")
    assert told.code == 4, told.stderr
    assert (told.document["outcome"], told.document["closed"]) == ("cannot tell", True)
    assert "needs at least 6 complete blocks" in told.document["checks"][0]["why"]
