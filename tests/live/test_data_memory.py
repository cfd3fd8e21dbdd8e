"""A server that reads past the page cache keeps no more than its own cache holds, whatever memory there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from factories import require_installed
from user import User

pytestmark = pytest.mark.live


@pytest.mark.parametrize(("memory", "fits"), [("8MiB", False), ("64MiB", True)])
def test_data_that_its_own_cache_cannot_hold_are_not_said_to_be_warm(tmp_path: Path, memory: str, fits: bool) -> None:
    require_installed("mariadb")
    words = ("--engine", "mariadb", "--memory", memory, "--cache", "warm", "--duration", "1s", "--warmup", "0s")
    user = User(tmp_path)
    told = user("run", "select-only", *words, "--clients", "2", "--no-observe", "--data", str(tmp_path / "d"))
    assert told.code in (0, 3), told.stderr
    [record] = user.records()
    larger = "the data are larger than the memory for them" in record["conditions"]["cache verified"]
    assert larger is not fits, json.dumps(record["conditions"])
