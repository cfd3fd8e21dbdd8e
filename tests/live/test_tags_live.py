"""Tags of a run and of a lab are in every record, without passwords."""

from __future__ import annotations

from pathlib import Path

import pytest
from user import SHORT, User

pytestmark = pytest.mark.live

LAB = """question = "Do two clients do more?"
tag = { version = "1" }
[system]
engine = "null"
[workload]
name = "igen-oltp"
[load]
duration = "0.2s"
warmup = "0s"
[vary]
clients = [1, 2]
[measure]
repeats = 1
quiet = "0s"
"""


def test_every_record_of_a_run_and_of_a_lab_has_its_tags_and_no_password(place: Path) -> None:
    user = User(place)
    url = "dsn=postgresql://u:sesame@h/d"
    user("run", "igen-oltp", "--engine", "null", *SHORT, "--tag", "commit=1f3c2a9", "--tag", url)
    rows = user("list", "records", "--json").document["records"]
    assert [row["tags"]["commit"] for row in rows] == ["1f3c2a9"]
    (place / "lab.toml").write_text(LAB)
    user("lab", "run", "lab.toml", "--results", "made", "--tag", "commit=2", "--tag", url)
    rows = user("list", "records", "--results", "made", "--json").document["records"]
    assert [(row["tags"]["commit"], row["tags"]["version"]) for row in rows] == [("2", "1")] * 2
    files = [path for path in place.rglob("*") if path.is_file()]
    assert not [path for path in files if b"sesame" in path.read_bytes()]
