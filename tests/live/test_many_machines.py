"""Load from two machines, each a network namespace with a Ray node of its own, on one server: as the guide says."""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from raw_server import RawServer
from ray_machines import RayMachines, lacking
from user import User, eventually

from ironbench.plan.fields import SECTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "many-machines.md").read_text()
LACKING = lacking()
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("ray"), pytest.mark.timeout(600)]
SHORT = ("--duration", "1s", "--warmup", "0.2s", "--with", "scale=1")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def lines() -> list[list[str]]:
    return [shlex.split(line)[1:] for block in blocks("sh") for line in block.splitlines()]


def test_the_pages_commands_for_this_machine_lead_to_a_report(tmp_path: Path) -> None:
    user = User(tmp_path / "user")
    for words in (one for one in lines() if "--cluster" not in one):
        told = user(*words, *(SHORT if words[0] == "run" else ()))
        assert told.code in (0, 3), told.stderr
    assert user.records()[-1]["metrics"]["workers"] == 2
    assert "Who drove it" in (user.home / "workers.html").read_text()


def test_the_fields_that_the_page_names_are_those_of_a_lab_file() -> None:
    (text,) = blocks("toml")
    found = tomllib.loads(text)
    assert set(found["load"]) <= set(SECTIONS["load"]) and set(found["vary"]) <= set(SECTIONS["load"])


def test_a_cluster_that_is_not_there_is_refused_before_anything_starts(tmp_path: Path) -> None:
    user = User(tmp_path / "user")
    dsn = "postgresql://nobody@127.0.0.1:1/nothing"
    told = user(
        "run", "tpcb-like", "--dsn", dsn, "--clients", "2", "--workers", "2", "--cluster", "127.0.0.1:1", "--plan"
    )
    assert told.code == 2 and "127.0.0.1:1" in told.stderr and "ray start" in told.stderr, told.stderr


class Machines(RayMachines):
    """Two of them, a server that both reach, and somebody on the first."""

    def __init__(self, server: RawServer, user: User) -> None:
        super().__init__(2)
        self.user = user
        self._server = server
        self._listening = socket.socket()

    def __enter__(self) -> Machines:
        super().__enter__()
        self._listening.bind((self.here, 0))
        self._listening.listen(64)
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._forward, daemon=True).start()
        return self

    def dsn(self, database: str) -> str:
        return f"postgresql://postgres@{self.here}:{self.port}/{database}"

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        code = "from ironbench.start import main; main()"
        return subprocess.run(
            [*self.within(0), sys.executable, "-c", code, *words],
            env=self.environment | self.user.environment | self.token,
            cwd=self.user.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def _forward(self) -> None:
        """The server lets in this machine alone."""
        while True:
            try:
                theirs = self._listening.accept()[0]
            except OSError:
                return
            ours = socket.create_connection(("127.0.0.1", self._server.port))
            for one in (theirs, ours):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, sink in ((theirs, ours), (ours, theirs)):
                threading.Thread(target=_copied, args=(source, sink), daemon=True).start()


def _copied(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture(scope="module")
def machines(raw_server: RawServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    if LACKING:
        pytest.skip(LACKING)
    with Machines(raw_server, User(tmp_path_factory.mktemp("machines") / "user")) as found:
        yield found


def on(machines: Machines, words: Sequence[str], database: str) -> list[str]:
    """A command of the page, with the addresses that are here."""
    words = [machines.dsn(database) if one.startswith("postgresql://") else one for one in words]
    return [machines.address if one.endswith(":6379") else one for one in words]


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_two_machines_drive_one_server_as_the_page_says(machines: Machines, database: str) -> None:
    for words in (one for one in lines() if "--cluster" in one):
        told = machines.run([*on(machines, words, database), *SHORT])
        assert told.returncode in (0, 3), told.stderr
    record = machines.user.records()[-1]
    assert record["metrics"]["workers"] == 2
    rows = json.loads((machines.user.results / "trials" / record["id"] / "workers.json").read_text())
    assert [one["clients"] for one in rows] == [32, 32] and all(one["transactions"] for one in rows)
    assert all(check["passed"] for check in record["checks"])
    assert eventually(lambda: not machines.ended(0) and not machines.ended(1), 5.0), "a worker outlived its run"


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_three_workers_on_two_machines_are_refused_by_the_plan(machines: Machines, database: str) -> None:
    words = ["run", "tpcb-like", "--dsn", machines.dsn(database), "--clients", "6", "--workers", "3", "--plan"]
    told = machines.run([*words, "--cluster", machines.address])
    assert told.returncode == 2 and "the cluster has 2 machines" in told.stderr, told.stderr


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_a_lab_compares_one_worker_with_two_and_has_a_verdict(machines: Machines, database: str) -> None:
    (text,) = blocks("toml")
    text = text.replace("postgresql://bench@db.example:5432/bench", machines.dsn(database)).replace(
        "auto", machines.address
    )
    text = text.replace("clients = 64", 'clients = 4\nthink_time = "5ms"\nduration = "0.5s"\nwarmup = "0s"')
    head = 'question = "Is it the same load?"\n'
    work = '\n[workload]\nname = "select-only"\nwith = { scale = 1 }\n'
    method = '\n[measure]\nrepeats = 6\nmargin = 0.5\nquiet = "0s"\n'
    file = machines.user.home / "lab.toml"
    file.write_text(head + text + work + method)
    told = machines.run(["lab", "run", str(file), "--results", "lab"])
    assert told.returncode in (0, 3), told.stderr
    assert re.search(r"equivalent|faster|slower", told.stdout), told.stdout


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_starts_are_within_two_milliseconds_over_a_network_of_20_ms(machines: Machines, database: str) -> None:
    if not machines.delay(20):
        pytest.skip("the kernel has no netem")
    try:
        words = ["run", "select-only", "--dsn", machines.dsn(database), "--clients", "2", "--workers", "2", *SHORT]
        told = machines.run([*words, "--cluster", machines.address])
        assert told.returncode in (0, 3), told.stderr
        # Both share this kernel's clock: the spread is the true one, the workers knew theirs by round trips alone.
        assert machines.user.records()[-1]["metrics"]["start_spread_s"] < 0.002
    finally:
        machines.delay(0)


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_a_worker_without_a_way_to_the_server_is_named_before_the_first_trial(
    machines: Machines, database: str
) -> None:
    route = ["ip", "route", "add", "unreachable", f"{machines.here}/32"]
    subprocess.run([*machines.within(1), *route], check=True)
    try:
        before = len(machines.user.records())
        words = ["run", "select-only", "--dsn", machines.dsn(database), "--clients", "2", "--workers", "2", *SHORT]
        told = machines.run([*words, "--cluster", machines.address])
        assert told.returncode == 2 and "does not reach the server" in told.stderr, told.stderr
        assert len(machines.user.records()) == before
    finally:
        subprocess.run([*machines.within(1), *["ip", "route", "del", *route[3:]]], check=True)
