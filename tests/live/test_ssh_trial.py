"""A server on this machine is watched over ssh, so local and remote observers must report the same values."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from patience import eventually
from raw_server import RawServer, free_port
from ssh_server import LACKING, SshServer
from user import User, visitor

pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(LACKING), reason=LACKING)]
RUN = ("run", "select-only", "--with", "scale=1", "--duration", "4s", "--warmup", "1s", "--clients", "2", "--json")


@pytest.fixture
def user(tmp_path: Path, ssh: SshServer) -> User:
    return visitor(tmp_path / "user", ssh.home)


def test_a_trial_on_a_watched_machine_has_its_cpu_its_processes_and_its_devices(
    user: User, ssh: SshServer, raw_server: RawServer, database: str
) -> None:
    dsn = f"postgresql://postgres@127.0.0.1:{raw_server.port}/{database}"
    user.measured(*RUN, "--dsn", dsn, "--server", ssh.address)
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
    assert "clock offset known to" in record["conditions"]["server watched"]
    assert not [warning for warning in record["warnings"] if warning["code"] in ("link-lost", "server-unseen")]


@pytest.mark.long
def test_a_link_lost_for_5_s_costs_its_samples_and_not_the_trial(
    user: User, ssh: SshServer, raw_server: RawServer, database: str
) -> None:
    words = [word if word != "4s" else "12s" for word in RUN]
    dsn = f"postgresql://postgres@127.0.0.1:{raw_server.port}/{database}"
    with user.begun(*words, "--dsn", dsn, "--server", ssh.address) as begun:
        begun.wait_for("1 trial, about")
        working = f"select from pg_stat_activity where datname = '{database}' and query ilike 'select abalance%'"
        boss = raw_server.connect()
        assert eventually(lambda: bool(boss.query(working)) and bool(ssh.sessions()))
        time.sleep(3.0)
        ssh.stop()
        time.sleep(5.0)
        ssh.start()
        told, _ = begun.end()
        boss.close()
    assert told.code in (0, 3), told.stderr
    record = user.records()[-1]
    (lost,) = [warning["values"] for warning in record["warnings"] if warning["code"] == "link-lost"]
    assert lost["times"] >= 1 and lost["lost_s"] > 0
    assert record["metrics"]["cpu_user_share"] > 0
    assert record["status"] in ("ok", "suspect")


@pytest.mark.long
def test_a_machine_that_is_gone_when_a_trial_begins_leaves_that_trial_without_it(
    user: User, ssh: SshServer, raw_server: RawServer, database: str
) -> None:
    words = [{"4s": "2s", "2": "1,2"}.get(word, word) for word in RUN]
    dsn = f"postgresql://postgres@127.0.0.1:{raw_server.port}/{database}"
    with user.begun(*words, "--dsn", dsn, "--server", ssh.address) as begun:
        begun.wait_for("clients=")
        ssh.stop()
        try:
            told, _ = begun.end()
        finally:
            ssh.start()
    assert told.code in (0, 3), told.stderr
    unseen = [one for one in user.records() if any(found["code"] == "server-unseen" for found in one["warnings"])]
    assert unseen and all(one["status"] in ("ok", "suspect") for one in unseen), told.stderr
    assert all("engine_cpu_cores" not in one["metrics"] and one["metrics"]["throughput"] > 0 for one in unseen)


DSN = ("--dsn", "postgresql://postgres@127.0.0.1:1/d")


def test_a_machine_that_refuses_us_is_named_before_anything_starts(user: User, ssh: SshServer, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".ssh").mkdir(parents=True)
    ssh.known(ssh.directory / "host.pub", other)
    ssh.key("stranger", other / ".ssh" / "id_ed25519")
    told = user(*RUN, *DSN, "--server", ssh.address, HOME=str(other))
    assert (told.code, user.untouched()) == (2, True)
    assert "accepts none of your keys" in told.stderr and "ssh-add" in told.stderr


def test_a_key_with_a_passphrase_that_nobody_typed_is_no_way_in(user: User, ssh: SshServer, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".ssh").mkdir(parents=True)
    ssh.known(ssh.directory / "host.pub", other)
    ssh.key("locked", other / ".ssh" / "id_ed25519", passphrase="open sesame")
    told = user(*RUN, *DSN, "--server", ssh.address, HOME=str(other))
    assert told.code == 2 and "ssh-add" in told.stderr and "sesame" not in told.stderr


@pytest.mark.parametrize(("known", "words"), [("nothing", "not in known_hosts"), ("another", "another machine")])
def test_a_host_key_that_is_not_known_is_refused(
    user: User, ssh: SshServer, tmp_path: Path, known: str, words: str
) -> None:
    other = tmp_path / "other"
    (other / ".ssh").mkdir(parents=True)
    shutil.copy(ssh.home / ".ssh" / "id_ed25519", other / ".ssh" / "id_ed25519")
    if known == "another":
        ssh.key("another", tmp_path / "another")
        ssh.known(tmp_path / "another.pub", other)
    told = user(*RUN, *DSN, "--server", ssh.address, HOME=str(other))
    assert (told.code, user.untouched()) == (2, True)
    assert words in told.stderr and "hint:" in told.stderr


def test_a_machine_without_an_ssh_server_is_a_failure_with_its_cause(user: User) -> None:
    told = user(*RUN, *DSN, "--server", f"ssh://127.0.0.1:{free_port()}")
    assert told.code == 1 and "no ssh server listens on this port" in told.stderr


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("ssh://root:topsecret@db1", "contains a password"),
        ("db1", "is not the address of a machine"),
        ("ssh://db1/data", "contains more than the address of a machine"),
        ("ssh://db1:99999", "the host or port is invalid"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused_unseen(user: User, server: str, words: str) -> None:
    told = user(*RUN, *DSN, "--server", server)
    assert told.code == 2 and words in told.stderr and "topsecret" not in told.stderr + told.stdout
    assert user.untouched()


def test_a_server_that_ironbench_starts_is_watched_here_alone(user: User) -> None:
    told = user(*RUN, "--server", "ssh://db1")
    assert told.code == 2 and "run on this machine" in told.stderr and user.untouched()


def test_the_doctor_sees_the_machine_behind_ssh_as_it_sees_this_one(user: User, ssh: SshServer) -> None:
    there = user("doctor", "--server", ssh.address, "--data", "/tmp", "--json").document
    here = user("doctor", "--data", "/tmp", "--json").document
    for part in ("cpu", "memory_bytes", "kernel", "os", "virtualisation", "blocks"):
        assert there["machine"][part] == here["machine"][part], part
    seen = {one["name"]: one for one in there["diagnoses"]}
    same = {
        one["name"]: one for one in here["diagnoses"] if one["name"] in ("file system", "swappiness", "clock source")
    }
    assert same and all(seen[name]["seen"] == one["seen"] for name, one in same.items())
    assert "FUSE" not in seen, "nothing of ours runs there"


def test_the_doctor_examines_a_machine_or_a_database(user: User) -> None:
    assert user("doctor", "--server", "ssh://db1", *DSN).code == 2
