"""A search with limits on server metrics: its CPU, the lag of its replica, the queue of its device."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import eventually
from raw_server import RawServer, as_user, binary
from user import User

pytestmark = [pytest.mark.live, pytest.mark.long]
SHORT = ("--duration", "2s", "--warmup", "0.2s", "--arrivals", "fixed")
NOT_MET = r"limit on (\S+) (?:\(.*?\) )?was (?:exceeded at every|not shown to be met)"


class Replica(RawServer):
    """A replica that replays the server's WAL."""

    def __init__(self, primary: RawServer) -> None:
        super().__init__("hot_standby=on")
        self._primary = primary

    def _initdb(self) -> None:
        command = [binary("pg_basebackup"), "-D", str(self.directory / "data"), "-R", "-X", "stream", "-c", "fast"]
        source = ["-h", self._primary.host, "-p", str(self._primary.port), "-U", "postgres", "--no-sync"]
        subprocess.run([*as_user(), *command, *source], check=True, capture_output=True)

    def _make_users(self) -> None:
        """Does nothing, because the users were copied with the data."""


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[RawServer, RawServer]]:
    """A server and its replica."""
    with RawServer() as server, Replica(server) as replica:
        session = server.connect()
        replays = "select count(*) from pg_stat_replication where replay_lsn is not null"
        assert eventually(lambda: session.query(replays) == [("1",)], 10.0)
        session.close()
        yield server, replica


@pytest.mark.parametrize("limit", ["engine_cpu_cores", "replication_lag_bytes", "replication_lag_s"])
def test_a_limit_on_what_the_server_shows_is_kept_or_named(
    servers: tuple[RawServer, RawServer], tmp_path: Path, limit: str
) -> None:
    primary, replica = servers
    user = User(tmp_path / "user")
    dsn = f"postgresql://postgres@127.0.0.1:{primary.port}/postgres"
    words = ("run", "tpcb-like", "--dsn", dsn, "--with", "scale=1", "--clients", "2", "--rate", "auto:40-80", *SHORT)
    generous = {"engine_cpu_cores": "64", "replication_lag_bytes": "1GB", "replication_lag_s": "60s"}
    told = user.measured(*words, "--limit", f"{limit}={generous[limit]}")
    seen = [record["metrics"][limit] for record in user.records()]
    assert limit == "replication_lag_bytes" or max(seen) > 0, "the server works, and its replica answers later"
    assert not re.search(NOT_MET, told.stderr), told.stderr
    least = {"engine_cpu_cores": "0.000001", "replication_lag_bytes": "1B", "replication_lag_s": "1us"}
    session = replica.connect()
    if limit == "replication_lag_bytes":  # time says nothing about a replica that hangs
        session.query("select pg_wal_replay_pause()")
    try:
        told = user(*words, "--limit", f"{limit}={least[limit]}")
    finally:
        session.query("select case when pg_is_wal_replay_paused() then pg_wal_replay_resume() end")
        session.close()
    assert limit in re.findall(NOT_MET, told.stderr), told.stderr


def test_a_limit_on_the_queue_of_a_device_is_kept_or_named(tmp_path: Path) -> None:
    """Uses the disk of the tests' own directory, if it is on one."""
    user = User(tmp_path / "user")
    words = ("run", "tpcb-like", "--with", "scale=1", "--clients", "2", "--rate", "auto:40-80", *SHORT)
    user.measured(*words, "--limit", "device_queue_depth{role=data}=1000")
    if "device_queue_depth{role=data}" not in user.records()[-1]["metrics"]:
        pytest.skip("the directory of the tests lies on no device that the kernel counts")
    told = user(*words, "--limit", "device_queue_depth{role=data}=0.0000001")
    assert "device_queue_depth{role=data}" in re.findall(NOT_MET, told.stderr), told.stderr
    shutil.rmtree(user.home)
