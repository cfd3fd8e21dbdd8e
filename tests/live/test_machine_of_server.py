"""The machine of a running server is known if its processes are visible, and never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from raw_server import RawServer
from user import User

pytestmark = [pytest.mark.live]


def test_a_server_whose_processes_are_seen_here_has_this_machine(tmp_path: Path) -> None:
    user = User(tmp_path / "user")
    with RawServer() as server:
        dsn = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
        words = ("run", "select-only", "--dsn", dsn, "--with", "scale=1", "--clients", "1")
        user.measured(*words, "--duration", "0.5s", "--warmup", "0.1s", "--no-observe")
    record = user.records()[-1]
    assert record["server_machine"] == record["machine"] != ""
