"""Workers on this machine in a private Ray cluster: their results, and that none of their processes remain."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patience import eventually
from raw_server import RawServer
from user import Begun, User

from ironbench.host import processes

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("ray"), pytest.mark.timeout(120)]
NULL = ("run", "select-only", "--engine", "null", "--clients", "4", "--workers", "2", "--think-time", "5ms")


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path / "user")


@pytest.mark.long
def test_two_workers_share_clients_and_server_and_make_one_record(
    user: User, raw_server: RawServer, database: str
) -> None:
    dsn = f"postgresql://postgres@127.0.0.1:{raw_server.port}/{database}"
    words = ("--with", "scale=1", "--clients", "5", "--rate", "100", "--duration", "3s", "--warmup", "0.5s")
    user.measured("run", "tpcb-like", "--dsn", dsn, *words, "--workers", "2")
    record = user.records()[-1]
    assert record["metrics"]["workers"] == 2
    assert record["metrics"]["start_spread_s"] < 0.05  # bench/cluster.py requires a millisecond
    assert record["metrics"]["throughput"] == pytest.approx(100, rel=0.2)
    assert all(check["passed"] for check in record["checks"]), "commits of both workers are those of the server"
    assert "2 workers on one machine" in record["conditions"]["workers"]
    assert record["metrics"]["engine_cpu_cores"] > 0, "the server is observed from here"
    assert (user.results / "trials" / record["id"] / "workers.json").exists()
    shown = user("report", "-o", "report.md")
    assert shown.code == 0, shown.stderr
    assert "## Workers" in (user.home / "report.md").read_text()


def begun_below(begun: Begun) -> list[processes.ProcessId]:
    """Returns all processes that a trial with workers has started, as soon as the trial measures."""
    assert eventually(lambda: len(processes.below(begun.process.pid)) >= 8, 60.0), "Ray's processes and two workers"
    time.sleep(1.0)
    return processes.below(begun.process.pid)


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGKILL])
def test_nothing_of_ray_stays_two_seconds_after_our_end(user: User, number: signal.Signals) -> None:
    with user.begun(*NULL, "--duration", "60s", "--warmup", "0s") as begun:
        begun.wait_for("starting 2 workers")
        started = begun_below(begun)
        os.kill(begun.process.pid, number)
        deadline = time.monotonic() + 2.0
        while any(one.alive() for one in started) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not [processes.command(one.pid) for one in started if one.alive()]


def test_ray_is_imported_by_nobody_who_did_not_ask_for_workers(user: User) -> None:
    code = (
        "import atexit, sys; from ironbench.start import main; atexit.register(lambda: print('ray' in sys.modules)); "
    )
    words = ["run", "select-only", "--engine", "null", "--duration", "0.2s", "--warmup", "0s", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", f"{code}sys.argv[1:] = {words}; main()"],
        env=user.environment,
        cwd=user.home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "False", done.stderr


LAB = """question = "Is it the same load?"

[system]
engine = "null"

[workload]
name = "select-only"

[load]
clients = 2
think_time = "5ms"
duration = "6s"
warmup = "0s"

[vary]
workers = [1, 2]

[measure]
repeats = 3
margin = 0.5
quiet = "0s"
"""


def workers_of(begun: Begun) -> list[processes.ProcessId]:
    return [one for one in processes.below(begun.process.pid) if processes.command(one.pid) == "ray::Worker"]


@pytest.mark.long
def test_a_trial_whose_worker_is_lost_is_voided_and_the_lab_tries_it_again(user: User) -> None:
    (user.home / "lab.toml").write_text(LAB)
    with user.begun("lab", "run", "lab.toml", "--results", "lab") as begun:
        begun.wait_for("starting")
        assert eventually(lambda: bool(workers_of(begun)), 60.0)
        time.sleep(5.0)  # it starts within 2 to 4 s
        assert workers_of(begun)[0].signal(signal.SIGKILL)
        told = begun.measured(within_s=150.0)
    records = [json.loads(path.read_text()) for path in (user.home / "lab").glob("trials/*/record.json")]
    voided = [record for record in records if record["status"] == "voided"]
    assert len(voided) == 1 and "was lost" in str(voided[0]["causes"]), told.stderr
    again = [record for record in records if record["cell"]["name"] == voided[0]["cell"]["name"]]
    assert sum(record["block"] == voided[0]["block"] and record["status"] != "voided" for record in again) == 1
    assert len(records) == 7
