"""A server that bypasses the page cache caches no more than its own cache size, whatever memory there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from factories import require_installed
from user import User

pytestmark = pytest.mark.live


@pytest.mark.parametrize(("memory", "fits"), [("8MiB", False), pytest.param("64MiB", True, marks=pytest.mark.long)])
def test_data_that_its_own_cache_cannot_hold_are_not_said_to_be_warm(tmp_path: Path, memory: str, fits: bool) -> None:
    require_installed("mariadb")
    words = ("--engine", "mariadb", "--memory", memory, "--cache", "warm", "--duration", "1s", "--warmup", "0s")
    user = User(tmp_path)
    user.measured("run", "select-only", *words, "--clients", "2", "--no-observe", "--data", str(tmp_path / "d"))
    [record] = user.records()
    larger = "the data are larger than the memory that can cache them" in record["conditions"]["cache verified"]
    assert larger is not fits, json.dumps(record["conditions"])


@pytest.mark.long
@pytest.mark.parametrize(("memory", "fits"), [("8MiB", False), ("128MiB", True)])
def test_data_of_the_user_that_its_own_cache_cannot_hold_are_not_said_to_be_warm(
    tmp_path: Path, memory: str, fits: bool
) -> None:
    require_installed("mariadb")
    user = User(tmp_path)
    (user.home / "large.sql").write_text(
        "create table large (id integer primary key, filler varchar(1000));\n"
        "insert into large select seq, repeat('x', 1000) from seq_1_to_30000;\n"
    )
    (user.home / "one.sql").write_text("\\set id random(1, 30000)\nselect filler from large where id = :id;\n")
    words = ("--engine", "mariadb", "--memory", memory, "--cache", "warm", "--duration", "1s", "--warmup", "0s")
    user.measured("run", "script", "one.sql", "--setup", "large.sql", *words, "--clients", "2", "--no-observe")
    [record] = user.records()
    larger = "the data are larger than the memory that can cache them" in record["conditions"]["cache verified"]
    assert larger is not fits, json.dumps(record["conditions"])
    assert not any(warning["code"] == "cache-not-warm" for warning in record["warnings"])
