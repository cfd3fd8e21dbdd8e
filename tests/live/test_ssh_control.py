"""Changes on a server's machine over ssh: ironbench asks first, makes them, and undoes lasting ones, whatever kills it
or the link."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import eventually
from raw_server import free_port
from restartable import Restartable
from ssh_server import LACKING, SshServer
from user import User, visitor

pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.skipif(bool(LACKING), reason=LACKING),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU cannot be chosen from"),
]
ALL = ",".join(map(str, sorted(os.sched_getaffinity(0))))
ONE = str(min(os.sched_getaffinity(0)))
RUN = ("run", "select-only", "--with", "scale=1", "--duration", "2s", "--warmup", "0s", "--clients", "2", "--json")
DROPS = os.access("/proc/sys/vm/drop_caches", os.W_OK)


@pytest.fixture(scope="module")
def server() -> Iterator[Restartable]:
    with Restartable() as server:
        yield server


@pytest.fixture
def user(tmp_path: Path, ssh: SshServer, server: Restartable) -> Iterator[User]:
    user = visitor(tmp_path / "user", ssh.home)
    before = cpus(server)
    yield user
    assert eventually(lambda: cpus(server) == before), "what was changed is undone"


def cpus(server: Restartable) -> set[frozenset[int]]:
    """Returns the sets of CPUs on which the processes of the server may run."""
    first, found = server.first, set()
    # Not a pattern with a file name: glob() fails if a process ends while it is visited.
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "status").read_text()
            if f"PPid:\t{first}\n" in text or process.name == str(first):
                found.add(frozenset(os.sched_getaffinity(int(process.name))))
        except OSError:
            continue
    return found


def there(server: Restartable, ssh: SshServer) -> tuple[str, ...]:
    dsn = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
    return ("--dsn", dsn, "--server", ssh.address, "--control", "ssh")


def test_a_server_is_held_to_cpus_during_the_trial_and_has_all_of_them_afterwards(
    user: User, ssh: SshServer, server: Restartable
) -> None:
    with user.begun(*RUN, *there(server, ssh), "--server-cpus", ONE) as begun:
        assert eventually(lambda: cpus(server) == {frozenset({int(ONE)})})
        begun.measured()
    record = user.records()[-1]
    assert record["conditions"]["server CPUs"] == f"{ONE}, set with taskset over SSH"
    done = [(one["when"], one["of"], one["status"]) for one in record["commands"]]
    assert done == [("prepare", "control", 0), ("cleanup", "control", 0)]
    assert [check for check in record["checks"] if check["name"] == "server CPUs" and check["passed"]]
    report = user("report", "--format", "md")
    assert f"pin the server to CPUs {ONE}" in report.stdout, report.stderr


@pytest.mark.skipif(not DROPS, reason="page caches cannot be dropped here")
def test_a_cold_trial_has_a_server_that_has_just_been_restarted(
    user: User, ssh: SshServer, server: Restartable
) -> None:
    before = server.first
    cold = ("--cache", "cold", "--restart", str(server.restart), "--server-cpus", ONE)
    user.measured(*RUN, *there(server, ssh), *cold)
    record = user.records()[-1]
    assert server.first != before
    assert "the server was restarted" in record["conditions"]["cache"]
    assert record["commands"][0]["command"] == str(server.restart)
    assert [one["when"] for one in record["commands"]] == ["prepare", "prepare", "prepare", "cleanup"]
    assert record["status"] in ("ok", "suspect"), "the CPUs were held after the restart"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_what_was_changed_is_undone_whatever_ends_us(
    user: User, ssh: SshServer, server: Restartable, number: int
) -> None:
    words = [word if word != "2s" else "60s" for word in RUN]
    with user.begun(*words, *there(server, ssh), "--server-cpus", ONE) as begun:
        assert eventually(lambda: cpus(server) == {frozenset({int(ONE)})})
        time.sleep(1.0)
        begun.end(number)
        assert eventually(lambda: cpus(server) != {frozenset({int(ONE)})}, 10.0)


def test_a_link_that_falls_silent_undoes_what_was_changed(user: User, ssh: SshServer, server: Restartable) -> None:
    words = [word if word != "2s" else "60s" for word in RUN]
    with user.begun(*words, *there(server, ssh), "--server-cpus", ONE) as begun:
        assert eventually(lambda: cpus(server) == {frozenset({int(ONE)})})
        time.sleep(1.0)
        sessions = ssh.sessions()
        try:
            for pid in sessions:  # the link is dead, but no connection is closed
                os.kill(pid, signal.SIGSTOP)
            begun.end(signal.SIGKILL)
            assert eventually(lambda: cpus(server) != {frozenset({int(ONE)})}, 45.0)
        finally:
            for pid in sessions:
                os.kill(pid, signal.SIGCONT)


def test_a_link_that_is_lost_undoes_what_was_changed_and_voids_the_trial(
    user: User, ssh: SshServer, server: Restartable
) -> None:
    words = [word if word != "2s" else "6s" for word in RUN]
    with user.begun(*words, *there(server, ssh), "--server-cpus", ONE) as begun:
        assert eventually(lambda: cpus(server) == {frozenset({int(ONE)})})
        time.sleep(1.0)
        ssh.stop()
        assert eventually(lambda: cpus(server) != {frozenset({int(ONE)})}, 10.0)
        ssh.start()
        told, _ = begun.end()
    assert told.code == 1, told.stderr
    record = user.records()[-1]
    assert (record["status"], "the connection was lost" in record["cause"]) == ("voided", True), record["cause"]


@pytest.mark.skipif(not DROPS, reason="page caches cannot be dropped here")
def test_a_restart_that_fails_is_named_with_what_it_said(user: User, ssh: SshServer, server: Restartable) -> None:
    cold = ("--cache", "cold", "--restart", "echo no such cluster >&2; exit 7")
    told = user(*RUN, *there(server, ssh), *cold)
    assert told.code == 1
    assert "exit status 7: no such cluster" in told.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--server-cpus", "4711"), "that machine has no CPU 4711"),
        (("--cache", "cold", "--restart", "no-such-thing.service"), "no-such-thing.service"),
        (("--cache", "cold"), "needs a way to restart"),
    ],
)
def test_what_cannot_be_done_there_is_refused_before_the_first_trial(
    user: User, ssh: SshServer, server: Restartable, options: tuple[str, ...], words: str
) -> None:
    told = user(*RUN, *there(server, ssh), *options)
    assert told.code == 2 and words in told.stderr and "hint:" in told.stderr
    assert not list(user.results.glob("trials/*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's server")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--server-cpus", ONE),
            (
                "log in as the user of the server process (set --server), or allow the login user to run the command "
                "with sudo, which is equivalent to root rights"
            ),
        ),
        (("--cache", "cold", "--restart", "true"), "tee /proc/sys/vm/drop_caches"),
    ],
)
def test_a_user_without_the_right_is_told_which_one(
    user: User, server: Restartable, options: tuple[str, ...], words: str
) -> None:
    with SshServer(free_port(), strangers=True) as ssh:
        if not (stranger := ssh.stranger()):
            pytest.skip("no other user of this machine has a shell")
        address = ssh.address.replace(ssh.user, stranger)
        dsn = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
        words_of_it = ("--dsn", dsn, "--server", address, "--control", "ssh", *options)
        told = user(*RUN, *words_of_it, HOME=str(ssh.home))
    assert told.code == 2 and words in told.stderr, told.stderr
    assert f"{stranger} ALL=(root) NOPASSWD: " in told.stderr, told.stderr
    assert not list(user.results.glob("trials/*"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--control", "ssh"), "needs --server"),
        (("--restart", "x.service", "--server", "ssh://db1"), "needs permission"),
        (("--restart", "x.service", "--server", "ssh://db1", "--control", "ssh"), "add --cache cold"),
        (("--control", "telnet", "--server", "ssh://db1"), "'telnet' is unknown"),
        (("--server-cpus", ONE, "--server", "ssh://db1"), "does not configure existing servers"),
        (("--cache", "cold", "--server", "ssh://db1"), "allow restarts with --control ssh"),
    ],
)
def test_nothing_is_changed_without_consent(user: User, options: tuple[str, ...], words: str) -> None:
    told = user(*RUN, "--dsn", "postgresql://postgres@127.0.0.1:1/d", *options)
    assert told.code == 2 and words in told.stderr, told.stderr
    assert user.untouched()


LAB = """
question = "What do more CPUs of the server's machine give?"

[workload]
name = "select-only"
with = {{ scale = 1 }}

[system]
dsn = "{dsn}"
server = "{server}"
control = "ssh"

[load]
clients = 2
duration = "1s"
warmup = "0s"

[vary]
server_cpus = ["{one}", "{all}"]

[measure]
repeats = 2
quiet = "0s"
rates = "none"
"""


def test_a_restart_that_no_cell_makes_is_refused_and_one_of_some_cells_is_taken(user: User) -> None:
    file = user.home / "restart.toml"
    lab = LAB.format(dsn="postgresql://postgres@127.0.0.1:1/d", server="ssh://db1", one=ONE, all=ALL)
    lab = lab.replace('control = "ssh"', 'control = "ssh"\nrestart = "x.service"')
    file.write_text(lab)
    told = user("lab", "plan", str(file))
    assert told.code == 2 and "add load.cache = cold" in told.stderr, told.stderr
    file.write_text(lab.replace("[vary]\n", '[vary]\ncache = ["warm", "cold"]\n'))
    told = user("lab", "plan", str(file))
    assert told.code == 0 and "restart the server: x.service" in told.stdout, told.stdout + told.stderr


def test_the_servers_cpus_are_a_factor_of_a_lab(user: User, ssh: SshServer, server: Restartable) -> None:
    dsn = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
    file = user.home / "cores.toml"
    file.write_text(LAB.format(dsn=dsn, server=ssh.address, one=ONE, all=ALL))
    plan = user("lab", "plan", str(file))
    assert plan.code == 0 and "pin the server to" in plan.stdout, plan.stdout + plan.stderr
    user.measured("lab", "run", str(file))
    records = [json.loads(path.read_text()) for path in user.home.glob("**/trials/*/record.json")]
    held = {record["cell"]["name"]: record["conditions"]["server CPUs"] for record in records}
    assert len(held) == 2 and set(held.values()) == {f"{cpus}, set with taskset over SSH" for cpus in (ONE, ALL)}
