"""Load from two machines, each a network namespace with its own Ray node, on one server, as the guide describes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from directory_server import BASE, started
from factories import require_installed
from patience import eventually
from raw_server import RawServer, free_port
from ray_machines import RayMachines, lacking
from user import User, blocks
from user import records as records_in

from ironbench.fields.sections import SECTIONS

PAGE = "how/many-machines"
LARGE = "how/large-data"
LACKING = lacking()
# Its network namespaces copy all mounts, which keeps other tests' loop devices in use.
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("devices"), pytest.mark.timeout(600)]
SHORT = ("--duration", "1s", "--warmup", "0.2s", "--with", "scale=1")


def lines() -> list[list[str]]:
    return [shlex.split(line)[1:] for block in blocks(PAGE, "sh") for line in block.splitlines()]


@pytest.mark.long
def test_the_pages_commands_for_this_machine_lead_to_a_report(tmp_path: Path) -> None:
    user = User(tmp_path / "user")
    for words in (one for one in lines() if "--cluster" not in one):
        user.measured(*words, *(SHORT if words[0] == "run" else ()))
    assert user.records()[-1]["metrics"]["workers"] == 2
    assert "<h2>Workers</h2>" in (user.home / "workers.html").read_text()


def test_the_fields_that_the_page_names_are_those_of_a_lab_file() -> None:
    for text in (*blocks(PAGE, "toml"), *blocks(LARGE, "toml")):
        found = tomllib.loads(text)
        assert set(found["load"]) <= set(SECTIONS["load"])
        assert set(found["vary"]) <= {*SECTIONS["load"], "workload"}


def test_a_cluster_that_is_not_there_is_refused_before_anything_starts(tmp_path: Path) -> None:
    user = User(tmp_path / "user")
    dsn = "postgresql://nobody@127.0.0.1:1/nothing"
    told = user(
        "run", "tpcb-like", "--dsn", dsn, "--clients", "2", "--workers", "2", "--cluster", "127.0.0.1:1", "--plan"
    )
    assert told.code == 2 and "127.0.0.1:1" in told.stderr and "ray start" in told.stderr, told.stderr


class Machines(RayMachines):
    """Two machines, servers that both can reach, and a user on the first."""

    def __init__(self, server: RawServer, user: User, ahead_s: int = 0) -> None:
        super().__init__(2, ahead_s)
        self.user = user
        self._server = server
        self._listening: list[socket.socket] = []

    def __enter__(self) -> Machines:
        super().__enter__()
        self.port = self.reachable(self._server.port)
        return self

    def __exit__(self, *end: Any) -> None:
        for one in self._listening:
            one.close()
        super().__exit__(*end)

    def dsn(self, database: str) -> str:
        return f"postgresql://postgres@{self.here}:{self.port}/{database}"

    def reachable(self, port: int) -> int:
        """Returns the port at which the machines reach a server that accepts only local connections."""
        listening = socket.socket()
        listening.bind((self.here, 0))
        listening.listen(64)
        self._listening.append(listening)
        threading.Thread(target=self._forward, args=(listening, port), daemon=True).start()
        return int(listening.getsockname()[1])

    def begun(self, words: Sequence[str], **environment: str) -> subprocess.Popen[str]:
        code = "from ironbench.start import main; main()"
        return subprocess.Popen(
            [*self.within(0), sys.executable, "-c", code, *words],
            env=self.environment | self.user.environment | self.token | environment,
            cwd=self.user.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, words: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
        begun = self.begun(words, **environment)
        try:
            out, err = begun.communicate(timeout=300)
        finally:
            begun.kill()
        return subprocess.CompletedProcess(list(words), begun.returncode, out, err)

    def _forward(self, listening: socket.socket, port: int) -> None:
        while True:
            try:
                theirs = listening.accept()[0]
            except OSError:
                return
            ours = socket.create_connection(("127.0.0.1", port))
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
    """Returns a command of the page, with the addresses in this test."""
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
    assert eventually(lambda: not machines.worker_processes(0) and not machines.worker_processes(1), 5.0), (
        "a worker outlived its run"
    )


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_three_workers_on_two_machines_are_refused_by_the_plan(machines: Machines, database: str) -> None:
    words = ["run", "tpcb-like", "--dsn", machines.dsn(database), "--clients", "6", "--workers", "3", "--plan"]
    told = machines.run([*words, "--cluster", machines.address])
    assert told.returncode == 2 and "the cluster has only 2 machines" in told.stderr, told.stderr


HEAD = 'question = "Is it the same load?"\n'
LOAD = 'clients = 4\nthink_time = "5ms"\nduration = "0.5s"\nwarmup = "0s"'
METHOD = '\n[measure]\nrepeats = 6\nmargin = 0.5\nquiet = "0s"\n'


def lab(machines: Machines, text: str, name: str, work: str = "") -> Path:
    """Returns a lab of the page, shortened, with the addresses in this test."""
    file = machines.user.home / f"{name}.toml"
    text = text.replace('"auto"', f'"{machines.address}"').replace("clients = 64", LOAD)
    file.write_text(HEAD + text + work + METHOD)
    return file


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_a_cluster_of_another_version_of_ray_is_refused_in_its_words(machines: Machines, database: str) -> None:
    """The cluster's reported version is changed, which is all that Ray checks when a client joins."""
    change = (
        "import json, sys; from ray._raylet import GcsClient; one = GcsClient(address=sys.argv[1]); "
        "said = json.loads(one.internal_kv_get(b'CLUSTER_METADATA', b'cluster')); kept = said['ray_version']; "
        "said['ray_version'] = sys.argv[2] or kept; "
        "one.internal_kv_put(b'CLUSTER_METADATA', json.dumps(said).encode(), True, b'cluster'); print(kept)"
    )

    def changed(to: str) -> str:
        words = [*machines.within(0), sys.executable, "-c", change, machines.address, to]
        return subprocess.run(words, env=machines.environment, check=True, capture_output=True, text=True).stdout

    now = version("ray")
    changed("2.0.0")
    try:
        words = ["run", "select-only", "--dsn", machines.dsn(database), "--clients", "2", "--workers", "2", "--plan"]
        told = machines.run([*words, "--cluster", machines.address])
        assert told.returncode == 2 and "2.0.0" in told.stderr, told.stderr
        assert "install the same versions of Ray and Python on every machine" in told.stderr
    finally:
        changed(now)


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_a_lab_compares_one_worker_with_two_and_has_a_verdict(machines: Machines, database: str) -> None:
    text = blocks(PAGE, "toml")[0].replace("postgresql://bench@db.example:5432/bench", machines.dsn(database))
    file = lab(machines, text, "sql", '\n[workload]\nname = "select-only"\nwith = { scale = 1 }\n')
    told = machines.run(["lab", "run", str(file), "--results", "lab"])
    assert told.returncode in (0, 3), told.stderr
    assert re.search(r"(?i)equivalent|faster|slower|inconclusive", told.stdout), told.stdout


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_two_machines_drive_a_directory_in_a_lab_with_a_verdict(machines: Machines, place: Path) -> None:
    require_installed("slapd")
    port = free_port()
    with started(place, listen=f"ldap://127.0.0.1:{port}") as session:
        address = f"ldap://cn=ironbench,{BASE}@{machines.here}:{machines.reachable(port)}/{BASE}?tls=disable"
        text = re.sub(r"ldaps?://[^\"]+", address, blocks(PAGE, "toml")[1]).replace("entries = 100000", "entries = 300")
        file = lab(machines, text, "directory")
        told = machines.run(["lab", "run", str(file), "--results", "dir"], LDAP_PASSWORD=session._secrets.password)
        assert told.returncode in (0, 3), told.stderr
        assert re.search(r"(?i)equivalent|faster|slower|inconclusive", told.stdout), told.stdout
        records = [json.loads(path.read_text()) for path in (machines.user.home / "dir").glob("trials/*/record.json")]
        # A busy machine may repeat a trial.
        assert len({record["id"].rpartition("-a")[0] for record in records}) == 12
        assert all(check["passed"] for record in records for check in record["checks"])
        assert session._secrets.password not in "".join(map(str, records))


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_machines_load_large_data_that_one_asks_queries_of(machines: Machines, database: str) -> None:
    file = machines.user.home / "load.toml"
    text = blocks(LARGE, "toml")[0].replace("postgresql://bench@db.example:5432/bench", machines.dsn(database))
    file.write_text(text.replace('"auto"', f'"{machines.address}"').replace("workers = 32", "workers = 2"))
    told = machines.run(["lab", "plan", str(file)])
    assert told.returncode == 0, told.stderr
    assert "86,612,150,030 rows are loaded in" in told.stdout, told.stdout
    words = ["run", "tpch", "--dsn", machines.dsn(database), "--with", "sf=0.01", "--workers", "2"]
    told = machines.run([*words, "--cluster", machines.address])
    assert told.returncode in (0, 3), told.stderr
    assert "by 2 connections of 2 workers" in told.stderr, told.stderr


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_starts_are_within_two_milliseconds_over_20_ms_of_network_and_5_s_between_the_clocks(
    raw_server: RawServer, database: str, tmp_path: Path
) -> None:
    with Machines(raw_server, User(tmp_path / "user"), ahead_s=5) as machines:
        machines.slow(20)
        words = ["run", "select-only", "--dsn", machines.dsn(database), "--clients", "2", "--workers", "2", *SHORT]
        told = machines.run([*words, "--cluster", machines.address, "--think-time", "5ms"])
        assert told.returncode in (0, 3), told.stderr
        record = machines.user.records()[-1]
        file = machines.user.results / "trials" / record["id"] / "workers.json"
        rows = json.loads(file.read_text())
    (away,) = [one for one in rows if abs(one["clock_offset_s"]) > 1.0]
    (here,) = [one for one in rows if one is not away]
    # Both use one kernel's clock, which is set forward by 5 s for one, so the true offset of their starts is known.
    wrong_s = away["clock_offset_s"] - 5.0
    assert abs(wrong_s) <= away["clock_error_s"] < 0.025
    assert abs(away["start_s"] + wrong_s - here["start_s"]) < 0.002


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_a_network_that_delays_and_loses_packets_costs_time_and_no_transaction(
    machines: Machines, database: str
) -> None:
    machines.slow(20, 0.02)
    try:
        words = ["run", "tpcb-like", "--dsn", machines.dsn(database), "--clients", "4", "--workers", "2", *SHORT]
        told = machines.run([*words, "--cluster", machines.address])
        assert told.returncode in (0, 3), told.stderr
        record = machines.user.records()[-1]
        assert all(check["passed"] for check in record["checks"]), record["checks"]
    finally:
        machines.slow(0)


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_a_machine_that_is_cut_off_voids_the_trial_within_ten_seconds(machines: Machines, database: str) -> None:
    words = ["run", "select-only", "--dsn", machines.dsn(database), "--clients", "2", "--workers", "2"]
    run = machines.begun([*words, "--cluster", machines.address, "--duration", "30s", "--think-time", "5ms"])
    try:
        assert run.stderr is not None
        assert any("trial 1" in line for line in run.stderr)
        time.sleep(4.0)
        machines.slow(0, 1.0)
        cut_s = time.monotonic()
        _, err = run.communicate(timeout=60)
        late_s = time.monotonic() - cut_s
    finally:
        machines.slow(0)
        run.kill()
    record = machines.user.records()[-1]
    assert record["status"] == "voided" and "did not answer" in record["cause"], err
    assert late_s < 20.0, late_s


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
        assert told.returncode == 2 and "cannot reach the server" in told.stderr, told.stderr
        assert len(machines.user.records()) == before
    finally:
        subprocess.run([*machines.within(1), *["ip", "route", "del", *route[3:]]], check=True)


LOSING = """question = "Does a pause matter?"

[system]
dsn = "{dsn}"

[workload]
name = "select-only"
with = {{ scale = 1 }}

[load]
clients = 4
workers = 2
cluster = "{cluster}"
fewer_workers = {allowed}
duration = "2s"
warmup = "0s"

[vary]
think_time = ["5ms", "6ms"]

[measure]
repeats = {blocks}
margin = 0.5
quiet = "0s"
"""


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
@pytest.mark.parametrize(("allowed", "blocks"), [("true", 6), ("false", 2)])
def test_after_a_machine_is_gone_a_lab_goes_on_with_the_others_only_where_it_says_so(
    raw_server: RawServer, database: str, tmp_path: Path, allowed: str, blocks: int
) -> None:
    with Machines(raw_server, User(tmp_path / "user")) as machines:
        file = machines.user.home / "losing.toml"
        places = {"dsn": machines.dsn(database), "cluster": machines.address}
        file.write_text(LOSING.format(allowed=allowed, blocks=blocks, **places))
        begun = machines.begun(["lab", "run", str(file), "--results", "lab"])
        done = machines.user.home / "lab" / "trials"
        try:
            assert eventually(lambda: len(list(done.glob("*/record.json"))) >= 1, 90.0)
            machines.lose(1)
            out, err = begun.communicate(timeout=400)
        finally:
            begun.kill()
        records = records_in(done.parent)
    compared = [record for record in records if record["status"] in ("ok", "suspect")]
    short = [record for record in compared if record["metrics"]["workers"] == 1]
    if allowed == "false":
        assert not short and begun.returncode not in (0, 3), err
        assert any("have a free CPU" in record["cause"] for record in records), err
        return
    assert begun.returncode in (0, 3), err
    assert len(compared) == 12 and len(short) >= 8, [record["status"] for record in records]
    for record in short:
        assert "fewer-workers" in [warning["code"] for warning in record["warnings"]]
        assert record["conditions"]["workers"].startswith("1 of 2 workers")
        assert all(check["passed"] for check in record["checks"])
    assert "1 of 2 workers ran" in out, out
    mixed = {record["block"] for record in short} & {one["block"] for one in compared if one not in short}
    assert all(f"block {block + 1}: " in out for block in mixed), out
