"""The user's own data on a server that ironbench may restart over ssh: cold trials in copies, and a server that does
not restart."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_data import SCRIPT, dumped, shop, sums
from restartable import Restartable
from ssh_server import LACKING, SshServer
from user import User, visitor

from ironbench import engines
from ironbench.engines import server_session
from ironbench.engines.postgres.engine import PostgresEngine
from ironbench.errors import FailureError
from ironbench.model.secrets import Secrets
from ironbench.model.session import RestartableSession
from ironbench.model.system import System

DISTRIBUTION = Path("/usr/lib/postgresql/15/bin")
DROPS = os.access("/proc/sys/vm/drop_caches", os.W_OK)
pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.skipif(bool(LACKING), reason=LACKING),
    pytest.mark.skipif(not DROPS, reason="page caches cannot be dropped here"),
    pytest.mark.skipif(not DISTRIBUTION.is_dir(), reason="PostgreSQL 15 of the distribution is not installed"),
]
LAB = """question = "More clients, from cold?"
[system]
dsn = "{dsn}"
server = "{server}"
control = "ssh"
restart = "{restart}"
[workload]
name = "script"
files = ["one.sql"]
[data]
{data}
check = "select count(*) between 5001 and 100000 from sale"
[load]
cache = "cold"
duration = "0.5s"
warmup = "0s"
[vary]
clients = [1, 2]
[measure]
repeats = 2
quiet = "0s"
rates = "none"
"""


@pytest.fixture
def server() -> Iterator[Restartable]:
    with Restartable(programs=DISTRIBUTION) as server:
        shop(server)
        yield server


@pytest.fixture
def user(place: Path, ssh: SshServer, server: Restartable) -> User:
    one = visitor(place / "user", ssh.home)
    (one.home / "one.sql").write_text(SCRIPT)
    dumped(server, one.home / "shop.dump")
    return one


def address(server: Restartable) -> str:
    return f"postgresql://postgres@127.0.0.1:{server.port}/postgres"


def databases(server: Restartable) -> set[str]:
    boss = server.connect()
    try:
        return {str(row[0]) for row in boss.query("select datname from pg_database")}
    finally:
        boss.close()


@pytest.mark.parametrize("data", ['dump = "shop.dump"', 'template = "shop"'])
def test_cold_trials_run_in_copies_of_own_data_on_a_server_that_was_restarted_for_each(
    user: User, ssh: SshServer, server: Restartable, data: str
) -> None:
    there, first = databases(server), server.first
    inside = server.connect(database="shop")
    before = sums(inside)
    inside.close()
    text = LAB.format(dsn=address(server), server=ssh.address, restart=server.restart, data=data)
    (user.home / "cold.toml").write_text(text)
    told = user.measured("lab", "run", "cold.toml", "--results", "cold")
    records = [json.loads(path.read_text()) for path in user.home.glob("cold/trials/*/record.json")]
    assert len(records) == 4 and {one["status"] for one in records} <= {"ok", "suspect"}, told.stderr
    for one in records:
        assert "the server was restarted" in one["conditions"]["cache"], one["conditions"]
        assert [check["passed"] for check in one["checks"]] == [True], "from the data as they were loaded"
        assert [command["status"] for command in one["commands"]] == [0, 0]
    assert server.first != first
    assert user("cleanup", "--dsn", address(server)).code == 0
    assert databases(server) == there
    inside = server.connect(database="shop")
    assert sums(inside) == before
    inside.close()


def test_a_server_that_stays_down_after_its_restart_ends_the_lab_in_its_own_words_and_cleanup_clears_it_later(
    user: User, ssh: SshServer, server: Restartable
) -> None:
    """The server stops and cannot start again, for example because of a mistake in its configuration."""
    there, data = databases(server), server.directory / "data"
    stop = server.restart.read_text().replace(" restart\n", " stop\n").replace("exec ", "")
    broken = server.directory / "broken.sh"
    broken.write_text(f"{stop}echo 'shared_buffers: invalid value' >&2; exit 1\n")
    broken.chmod(0o755)
    text = LAB.format(dsn=address(server), server=ssh.address, restart=broken, data='template = "shop"')
    (user.home / "cold.toml").write_text(text)
    with user.begun("lab", "run", "cold.toml", "--results", "cold") as begun:
        told, took_s = begun.end(within_s=85.0)
    assert told.code == 1 and "exit status 1" in told.stderr and "invalid value" in told.stderr, told.stderr
    assert "may not be running" in told.stderr and took_s < 80
    assert not [one for one in user.home.glob("cold/trials/*/record.json") if '"ok"' in one.read_text()]
    assert user.nothing_runs()
    assert not (data / "postmaster.pid").exists()
    server.start()
    assert user("cleanup", "--dsn", address(server)).code == 0
    assert databases(server) == there


def test_a_restart_that_succeeds_with_no_server_behind_it_is_not_waited_for_without_end(
    server: Restartable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_session, "DOWN_PATIENCE_S", 1.0)
    with engines.running(System("postgres", "test", dsn=address(server)), Secrets(), 1) as session:
        assert isinstance(session, RestartableSession)
        with pytest.raises(FailureError, match="no response within 1 s after the restart"):
            session.restarted(server.stop)
        assert not session.alive()
    server.start()


def test_a_plan_counts_the_restarts(user: User, ssh: SshServer, server: Restartable) -> None:
    text = LAB.format(dsn=address(server), server=ssh.address, restart=server.restart, data='template = "shop"')
    cold, warm = user.home / "cold.toml", user.home / "as-found.toml"
    cold.write_text(text.replace("repeats = 2", "repeats = 200"))
    as_found = cold.read_text()
    for line in ('cache = "cold"\n', f'restart = "{server.restart}"\n', 'control = "ssh"\n'):
        assert line in as_found
        as_found = as_found.replace(line, "")
    warm.write_text(as_found)
    took = [user("lab", "plan", file.name, "--json").document["estimate_s"] for file in (cold, warm)]
    assert took[0] - took[1] > 0.9 * 400 * PostgresEngine.traits.costs.start_stop_s
