"""A server watched over ssh, where this machine is the other one: what is seen there must be what is seen here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_server import RawServer
from ssh_server import LACKING, SshServer
from user import User

pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(LACKING), reason=LACKING)]
RUN = ("run", "select-only", "--with", "scale=1", "--duration", "4s", "--warmup", "1s", "--clients", "2", "--json")


@pytest.fixture(scope="module")
def ssh() -> Iterator[SshServer]:
    with SshServer() as server:
        yield server


@pytest.fixture
def user(tmp_path: Path, ssh: SshServer) -> User:
    user = User(tmp_path / "user")
    user.environment["HOME"] = str(ssh.home)
    user.environment.pop("SSH_AUTH_SOCK", None)
    return user


def test_a_trial_on_a_watched_machine_has_its_cpu_its_processes_and_its_devices(
    user: User, ssh: SshServer, raw_server: RawServer, database: str
) -> None:
    dsn = f"postgresql://postgres@127.0.0.1:{raw_server.port}/{database}"
    told = user(*RUN, "--dsn", dsn, "--server", ssh.address)
    assert told.code in (0, 3), told.stderr
    record = user.records()[-1]
    metrics = record["metrics"]
    assert metrics["engine_cpu_cores"] > 0
    assert 0 < metrics["cpu_user_share"] <= 1
    assert metrics["memory_available_bytes"] > 0
    assert 0 <= metrics["watch_cpu_cores"] < 0.05  # in ticks of 10 ms
    assert 0 < metrics["watch_clock_error_s"] < 0.5
    assert abs(sum(record["budget"].values()) - 1) < 0.01
    assert record["budget"]["server"] > 0
    assert record["budget"]["client"] > 0, "the machine is ours, too"
    assert record["server_machine"] == record["machine"] or record["server_machine"]
    assert "its clock is known to" in record["conditions"]["server watched"]
    assert not [warning for warning in record["warnings"] if warning["code"] in ("link-lost", "server-unseen")]
