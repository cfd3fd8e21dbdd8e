"""A real server with many simultaneous requests and unusual ones, and its end."""

from __future__ import annotations

import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from served import LAB, TOKEN, stocked

PLAN = """question = "x"
workload.name = "select-only"
system.engine = "null"
load.duration = "1s"
vary.clients = [1, 2]
"""
SECRET = "what-lies-outside-the-results"

pytestmark = pytest.mark.xdist_group("serve-server")
"""Keeps these tests on one worker, which starts the server only once."""


class Server:
    def __init__(self, port: int, results: Path) -> None:
        self.port, self.results = port, results

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = {"host": f"127.0.0.1:{self.port}", "authorization": f"Bearer {TOKEN}", **headers}
            line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {**given, "content-length": str(len(body))}.items():
                line.putheader(name, value)
            line.endheaders(body)
            answer = line.getresponse()
            return answer.status, answer.read()
        finally:
            line.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests. It survives all requests and reports no failures when it ends."""
    place = tmp_path_factory.mktemp("serve")
    results = stocked(place / "results")
    (place / "outside.json").write_text(SECRET)
    words = [sys.executable, "-m", "ironbench.start", "serve", "--listen", "127.0.0.1:0", "--results", str(results)]
    environment = {**os.environ, "IRONBENCH_TOKEN": TOKEN, "XDG_CACHE_HOME": str(place / "cache")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            address = urllib.parse.urlsplit(process.stdout.readline())
            assert address.port is not None
            yield Server(address.port, results)
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
    assert "Traceback" not in said and "failed" not in said
    assert process.returncode == 0


@pytest.mark.long
def test_many_first_requests_at_once_are_all_answered(server: Server) -> None:
    body = urllib.parse.urlencode({"name": "x", "text": PLAN}).encode()
    with ThreadPoolExecutor(6) as pool:
        plans = [pool.submit(server.ask, "POST", "/queue/plan", body) for _ in range(4)]
        pages = [pool.submit(server.ask, "GET", path) for path in ("/", "/archive", f"/lab/{LAB}", "/queue/new")]
        assert all(status == 200 and b"2 configurations" in page for status, page in (one.result() for one in plans))
        assert [one.result()[0] for one in pages] == [200] * 4


def test_a_lab_file_of_ten_megabytes_is_refused_and_the_server_goes_on(server: Server) -> None:
    for path in ("/queue", "/queue/plan", "/cost", f"/note/{LAB}"):
        try:
            status, answer = server.ask("POST", path, b"text=" + b"#" * 10_000_000)
            assert status == 413 and b"The limit is 1 MiB" in answer
        except (ConnectionResetError, BrokenPipeError):  # it disconnected before everything was sent
            pass
    assert server.ask("GET", "/queue")[0] == 200


@pytest.mark.long
def test_readers_that_never_read_keep_nobody_waiting(server: Server) -> None:
    """A browser on a closed laptop: its connections stay open and it reads nothing."""
    lines = []
    for _ in range(20):
        line = socket.create_connection(("127.0.0.1", server.port))
        line.sendall(f"GET /archive HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode() * 20)
        lines.append(line)
    assert server.ask("GET", "/queue")[0] == 200
    for line in lines:
        line.close()
    assert server.ask("GET", "/")[0] == 200


_WORDS = r"""
.. ../.. %2e%2e ..%2f..%2foutside.json ....// \..\ %00 <script> '" %ff%fe /etc/passwd outside.json lab record queue
compare note static events archive label series export cost earlier resume plan import stop 2026-11-21 -1 1e9 ＆ a=b
commit tag:x throughput 0.05 nan xml svg
"""
_PLACES = """
/ /archive?{q} /record/{a} /series/{a} /label?name={a} /lab/{a} /lab/{a}/record/{b} /compare?{q} /queue /queue/{a}
/queue/new?{q} /queue/state /leaderboard?{q} /export?{q} /static/{a} /{a}/{b} /cost?{q} /note/{a} /lab/{a}/note/{b}
/lab/{a}/stop /lab/{a}/resume /queue/plan /queue/{a}/{b} /import /findings /history?{q} /lab/{a}/gate?{q}
/lab/{a}/gate.{b}?{q} /lab/{a}/events /fragment/answers /fragment/{a} /state
"""
_FIELDS = """
q page pick a b name per since until view clone at after nightly text more of by metric margin undecided different_work
workload engine machine status
"""
WORDS = ["", "x" * 3000, "log on disk", "log in memory", LAB, f"{LAB}/log=disk", f"{LAB}/", *_WORDS.split()]
PLACES, FIELDS = _PLACES.split(), _FIELDS.split()


def strange(dice: random.Random) -> tuple[str, str, bytes, dict[str, str]]:
    def word() -> str:
        return dice.choice(WORDS)

    fields = "&".join(
        f"{dice.choice(FIELDS)}={urllib.parse.quote(word(), safe='%')}" for _ in range(dice.randint(0, 4))
    )
    parts = {"a": urllib.parse.quote(word(), safe="%."), "b": urllib.parse.quote(word(), safe="%."), "q": fields}
    path = dice.choice(PLACES).format(**parts)
    body = dice.choice([b"", fields.encode(), bytes(dice.randrange(256) for _ in range(dice.randint(0, 200)))])
    headers = {"cookie": word().encode("ascii", "replace").decode()} if dice.random() < 0.1 else {}
    return dice.choice(["GET", "GET", "GET", "POST", "HEAD", "PUT", "DELETE"]), path, body, headers


def fuzzed(server: Server, requests: int, seed: int) -> dict[int, int]:
    dice, statuses = random.Random(seed), dict[int, int]()
    for number in range(requests):
        method, path, body, headers = strange(dice)
        try:
            status, answer = server.ask(method, path, body, **headers)
        except http.client.HTTPException as error:  # an invalid request is disconnected
            raise AssertionError(f"request {number}: {method} {path!r}: {error}") from error
        statuses[status] = statuses.get(status, 0) + 1
        assert status < 500, f"request {number}: {method} {path!r} gave {status}"
        assert SECRET.encode() not in answer and b"root:x:0" not in answer and b"Traceback" not in answer
        assert str(server.results.parent).encode() not in answer, f"request {number}: {method} {path!r} names a path"
    return statuses


def test_strange_requests_are_answered_and_show_nothing_from_outside(server: Server) -> None:
    assert fuzzed(server, 300, 1)[404] > 0
    assert server.ask("GET", "/")[0] == 200


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_hundred_thousand_strange_requests(server: Server, seed: int) -> None:
    fuzzed(server, 10_000, seed)
    assert server.ask("GET", "/")[0] == 200


def test_what_the_machine_says_of_itself_names_no_path_of_ours(server: Server) -> None:
    status, answer = server.ask("GET", "/fragment/doctor")
    assert status == 200 and str(server.results.parent).encode() not in answer
