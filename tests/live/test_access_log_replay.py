"""An access log that a directory server wrote under load is replayed on it, and the second log equals the first."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from directory_server import BASE, load
from factories import require_installed
from patience import eventually
from raw_server import free_port
from trial import run
from user import User

from ironbench.engines.slapd import dsn, installation, settings
from ironbench.engines.slapd.session import SlapdSession
from ironbench.workloads.access_log import reading
from ironbench.workloads.access_log.reading import AccessLogContents

pytestmark = pytest.mark.live
ROOT = f"cn=ironbench,{BASE}"
WORDS = ("--duration", "2s", "--warmup", "0s", "--think-time", "20ms")


@contextmanager
def logging_server(place: Path, log: Path, first: str = "") -> Iterator[str]:
    """Yields the DSN of a user's directory server that logs at level stats, with these lines before its other
    settings."""
    require_installed("slapd")
    programs, port = installation.find(), free_port()
    files, options = place / "files", place / "own.conf"
    files.mkdir()
    options.write_text(first + settings.as_file(dict(settings.DEFAULTS), programs, files, "secret"))
    subprocess.run(
        [str(programs.loader), "-q", "-f", str(options), "-b", BASE],
        input=f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: e\n",
        text=True,
        check=True,
        capture_output=True,
    )
    words = [str(programs.server), "-d", "stats", "-f", str(options), "-h", f"ldap://127.0.0.1:{port}"]
    with log.open("w") as file:
        server = subprocess.Popen(words, stderr=file, stdout=file)
    try:
        assert eventually(lambda: "slapd starting" in log.read_text())
        yield f"ldap://{ROOT}:secret@127.0.0.1:{port}/{BASE}"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def work(log: AccessLogContents) -> Counter[str]:
    """Counts its searches and compares by their request."""
    kept = [one for one in log.operations if one.verb in ("search", "compare") and one.succeeded]
    return Counter(f"{one.verb} {one.dn} {one.scope} {one.filter} {sorted(one.attributes)}" for one in kept)


def since(log: Path, before: int, to: Path) -> AccessLogContents:
    """Returns what was logged after this many bytes, as a separate log."""
    to.write_bytes(log.read_bytes()[before:])
    return reading.read(str(to))


@pytest.mark.long
def test_a_log_that_is_replayed_is_written_once_more(place: Path) -> None:
    user, log = User(place / "user"), place / "server.log"
    with logging_server(place, log) as address:
        session = SlapdSession(*dsn.parse(address, {}))
        load(session, 200, own_server=False)
        session.stop()
        before = log.stat().st_size
        mix = "weights=search=60,compare=20,modify=20,bind=0,add=0,delete=0,modify-dn=0"
        words = ("--with", "entries=200", "--with", "job=mixed", "--with", mix, "--with", "reconnect=40")
        user.measured("run", "directory", "--dsn", address, "--clients", "3", *words, *WORDS)
        first = since(log, before, place / "first.log")
        own = place / "recorded.log"
        shutil.copy(place / "first.log", own)
        before = log.stat().st_size
        need = 1 + max(reading.at_once(first))
        again = ("--with", f"log={own}", "--with", "loaded=no", "--with", "speed=2", "--clients", str(need))
        user.measured("run", "access-log", "--dsn", address, *again)
        second = since(log, before, place / "second.log")
    record = user.records()[-1]
    (told_of,) = [one["values"]["text"] for one in record["warnings"] if one["code"] == "log-left-out"]
    assert "of the log are replayed; left out" in told_of and "changes" in told_of
    driven = sum(work(first).values())
    assert record["metrics"]["transactions"] == driven and record["metrics"]["failed"] == 0
    assert not work(first) - work(second), "every operation of the first is in the second"
    assert record["checks"] == [], "the directory is somebody's: others may change it meanwhile"
    # Replayed at twice the speed. Observers and checks also search, but not for people.
    people = [[one.at_s for one in found.operations if "user." in one.filter] for found in (first, second)]
    lengths = [times[-1] - times[0] for times in people]
    assert lengths[1] == pytest.approx(lengths[0] / 2, rel=0.1)
    assert record["metrics"]["reconnects"] > 0
    assert "secret" not in str(record)


@pytest.mark.long
def test_clients_that_wait_outlive_connections_that_the_server_ends(place: Path) -> None:
    """One client has finished, one opens another connection late, and one opens its first."""
    with logging_server(place, place / "server.log", "idletimeout 1\n") as address:
        port = int(address.rpartition(":")[2].partition("/")[0])
        connection = {"host": "127.0.0.1", "port": port, "ldaps": False, "tls": "disable", "mechanism": "simple"}
        engine = {"kind": "ldap", "connection": connection | {"user": ROOT, "password": "secret"}, "io": "auto"}
        late = 4_000_000_000
        clients = [[(0, 0, False)], [(0, 0, False), (late, 0, True)], [(late, 0, False)]]
        work = {"kind": "replay", "operations": [f"search {BASE}??base"], "clients": clients}
        summary = run(engine, work=work, clients=3, stop={"duration_s": 4.5}).summary
    assert not summary["aborted"], summary["cause"]
    assert (summary["transactions"], summary["failed"], summary["not_started"]) == (4, 0, 0)


def test_changes_are_made_up_on_a_directory_that_ironbench_fills(place: Path) -> None:
    user = User(place / "user")
    require_installed("slapd")
    log = place / "changes.log"
    lines = []
    for number, text in enumerate(
        (
            'MOD dn="uid=user.1,ou=directory,dc=corp,dc=net"\n5fbea132 conn=1 op=0 MOD attr=description',
            'ADD dn="uid=new,ou=directory,dc=corp,dc=net"',
            'SRCH base="uid=new,ou=directory,dc=corp,dc=net" scope=0 deref=0 filter="(objectClass=*)"',
            'DEL dn="uid=new,ou=directory,dc=corp,dc=net"',
            'BIND dn="uid=user.2,ou=directory,dc=corp,dc=net" method=128',
            'MOD dn="uid=user.2,ou=directory,dc=corp,dc=net"\n5fbea132 conn=1 op=0 MOD attr=description',
        )
    ):
        text = text.replace("op=0 MOD attr", f"op={number} MOD attr")
        lines += [f"5fbea13{number} conn=1 op={number} {text}\n", f"5fbea13{number} conn=1 op={number} RESULT err=0\n"]
    log.write_text("".join(lines))
    words = ("--with", f"log={log}", "--with", "suffix=dc=corp,dc=net", "--with", "entries=20", "--with", "speed=10")
    user.measured("run", "access-log", *words, "--with", "changes=made-up", "--with", "binds=password")
    record = user.records()[-1]
    assert record["metrics"]["transactions"] == 6 and record["metrics"]["failed"] == 0, record
    assert {check["name"]: check["passed"] for check in record["checks"]} == {"client changes = server changes": True}
