"""A lab whose server is watched over ssh, and MariaDB behind ssh: pinned to CPUs, observed where it runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from raw_mysql import PASSWORD, RawMysql
from raw_server import RawServer, free_port
from ssh_server import LACKING, SshServer
from user import visitor

pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.skipif(bool(LACKING), reason=LACKING),
]
LAB = """
question = "Do two clients bring more than one?"

[workload]
name = "select-only"
with = {{ scale = 1 }}

[system]
dsn = "{dsn}"
server = "{server}"

[load]
duration = "4s"
warmup = "0s"

[vary]
clients = [1, 2]

[measure]
repeats = 1
quiet = "0s"
rates = "none"
"""


def test_each_trial_of_a_lab_has_what_was_seen_on_the_servers_machine(
    place: Path, raw_server: RawServer, database: str
) -> None:
    with SshServer(free_port()) as ssh:
        user = visitor(place / "user", ssh.home)
        dsn = f"postgresql://postgres@127.0.0.1:{raw_server.port}/{database}"
        (user.home / "clients.toml").write_text(LAB.format(dsn=dsn, server=ssh.address))
        user.measured("lab", "run", "clients.toml")
    records = [json.loads(path.read_text()) for path in user.home.glob("**/trials/*/record.json")]
    assert len(records) == 2
    for record in records:
        assert record["server_machine"] and "server watched" in record["conditions"]
        assert record["metrics"]["engine_cpu_cores"] > 0


def test_mariadb_is_seen_and_held_to_cpus_over_ssh_and_gets_them_back(place: Path, raw_mysql: RawMysql) -> None:
    one = min(os.sched_getaffinity(0))
    raw_mysql.query("CREATE DATABASE IF NOT EXISTS behind_ssh")
    raw_mysql.query("GRANT ALL ON behind_ssh.* TO password_user")
    before = os.sched_getaffinity(raw_mysql.process.pid)
    dsn = f"mysql://password_user:{PASSWORD}@127.0.0.1:{raw_mysql.port}/behind_ssh?tls=disable"
    with SshServer(free_port()) as ssh:
        user = visitor(place / "user", ssh.home)
        words = ("--dsn", dsn, "--server", ssh.address, "--control", "ssh", "--server-cpus", str(one))
        told = user.measured("run", "select-only", "--with", "scale=1", "--duration", "4s", "--warmup", "0s", *words)
    record = user.records()[-1]
    assert record["metrics"]["engine_cpu_cores"] > 0 and record["server_machine"]
    assert [one["status"] for one in record["commands"]] == [0, 0]
    assert [check["passed"] for check in record["checks"] if check["name"] == "server CPUs"] == [True]
    threads = Path(f"/proc/{raw_mysql.process.pid}/task").iterdir()
    assert {frozenset(os.sched_getaffinity(int(thread.name))) for thread in threads} == {frozenset(before)}
    assert PASSWORD not in json.dumps(record) + told.stderr + told.stdout
