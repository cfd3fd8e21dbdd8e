"""Users that work in a directory, what a trial leaves there, and concurrent changes by others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import launch
import pytest
from directory_server import BASE, ENTRIES, DirectoryServer, connected, driven, options, serving
from factories import require_installed
from workload_trial import Trial

from ironbench.errors import InputError
from ironbench.model.driven import Driven
from ironbench.workloads.directory import counts

pytestmark = pytest.mark.live


@pytest.fixture(scope="session")
def server(fast_directory: Path) -> Iterator[DirectoryServer]:
    require_installed("slapd")
    with serving(fast_directory, "slapd-rights") as server:
        yield server


@pytest.mark.parametrize("mechanism", ["simple", "PLAIN", "EXTERNAL"])
def test_after_a_bind_as_a_person_a_client_works_as_its_own_user_again(server: DirectoryServer, mechanism: str) -> None:
    """A person may not change anything under ordinary access rules."""
    script = "bind uid=user.1,ou=directory,?password;\nmodify uid=user.1,ou=directory,?replace description=x;"
    assert driven(server.session, script)["errors"] == {"insufficientAccessRights": 10}
    if mechanism == "simple":
        assert driven(server.session, script, bind_back=True)["errors"] == {}
    wrong = "bind uid=user.1,ou=directory,?wrong;"
    for well in (True, False):
        text = script.partition("\n")[0] if well else wrong
        who = {"PLAIN": "user.3:password", "EXTERNAL": "", "simple": f"uid=user.3,ou=directory,{BASE}:password"}
        where = server.dsn(who[mechanism], f"mechanism={mechanism}")
        if mechanism == "EXTERNAL":
            where = f"ldapi://{(server.session._address.socket or '').replace('/', '%2F')}/{BASE}?mechanism=EXTERNAL"
        session = connected(where)
        summary = driven(session, f"{text}\nsearch uid=user.1,ou=directory,;", bind_back=True)
        assert summary["errors"] == ({} if well else {"invalidCredentials": 10}), summary
        assert not summary["aborted"]
        session.stop()


def test_binding_back_by_scram_is_refused(server: DirectoryServer) -> None:
    session = connected(server.dsn("user.3:password", "mechanism=SCRAM-SHA-256"))
    with pytest.raises(InputError, match="must take only one message"):
        driven(session, "search ,;", bind_back=True)
    session.stop()


def test_what_a_killed_trial_has_renamed_is_repaired_before_the_next_trial(
    server: DirectoryServer, place: Path
) -> None:
    command = [
        *("run", "directory", "--with", f"entries={ENTRIES}", "--with", "job=modify-dn", "--clients", "16"),
        *("--dsn", server.root, "--duration", "30s", "--warmup", "0"),
    ]
    moved = "search ou=directory,?1.1?one?(uid=moved.*)"
    for _ in range(5):
        running = launch.Command(command, cwd=place)
        deadline = time.monotonic() + 60
        while not server.session.query(moved) and time.monotonic() < deadline:
            assert running.poll() is None, running.communicate()
        running.kill()
        running.communicate()
        if server.session.query(moved):
            break
    assert server.session.query(moved), "never killed between two renames"
    trial = Trial(server.session, "directory", transactions=30, **options(job="search"))  # type: ignore[arg-type]
    assert not trial.failed()
    assert not server.session.query(moved)


def test_damage_that_no_repair_mends_voids_every_job(server: DirectoryServer) -> None:
    (row,) = server.session.query("search uid=user.12,ou=directory,?cn,sn,mail?base")
    server.session.query("delete uid=user.12,ou=directory,")
    chosen = options(job="search", id="[1-11]")
    assert "entries" in Trial(server.session, "directory", transactions=5, **chosen).failed()  # type: ignore[arg-type]
    again = "objectClass=inetOrgPerson?uid=user.12?userPassword=password?employeeNumber=12?description=again"
    server.session.query(f"add uid=user.12,ou=directory,?{again}?cn={row[1]}?sn={row[2]}?mail={row[3]}")
    assert not Trial(server.session, "directory", transactions=5, **chosen).failed()  # type: ignore[arg-type]


def test_changes_that_the_server_refuses_are_in_both_counts(server: DirectoryServer) -> None:
    before = counts.writes(server.session)
    summary = driven(server.session, "modify uid=user.1,ou=directory,?add nonsense=1;")
    assert summary["refused_changes"] == 10
    now = counts.writes_after(server.session, before, summary)
    (check,) = counts.changes(server.session, before, now, summary)
    assert check.passed, check


def test_changes_of_others_in_a_directory_of_theirs_are_a_warning(server: DirectoryServer, place: Path) -> None:
    session = connected(server.root)
    before = counts.writes(session)
    summary = driven(session, "modify uid=user.1,ou=directory,?replace description=x;")
    server.session.query("modify uid=user.2,ou=directory,?replace description=theirs")
    # including the other user's
    now = counts.writes_after(session, before, {**summary, "commits": summary["commits"] + 1})
    (check,) = counts.changes(session, before, now, summary)
    assert check.passed
    (more,) = counts.changes(session, before, (before or 0) + 9, summary)
    assert not more.passed
    seen = Driven("", True, summary=summary, checks=(check,))
    (others,) = counts.others(seen)
    assert (others.code, others.values) == ("others-changed", {"changes": 1})
    session.stop()


def test_what_a_run_leaves_in_a_directory_of_others_is_said_and_removed_on_demand(
    server: DirectoryServer, place: Path
) -> None:
    theirs = server.root.replace(f"/{BASE}", f"/ou=theirs,{BASE}")
    server.session.query(f"add ou=theirs,{BASE}?objectClass=organizationalUnit?ou=theirs")
    server.session.query(f"add cn=a,ou=theirs,{BASE}?objectClass=person?cn=a?sn=a")
    try:
        command = ["run", "directory", "--with", "entries=20", "--dsn", theirs, "--duration", "0.4s", "--warmup", "0"]
        done = launch.run([*command, "--clients", "1"], cwd=place)
        assert done.returncode in (0, 3), done.stdout + done.stderr
        top = f"ou=directory,ou=theirs,{BASE}"
        assert f"kept on the server: 22 entries ({top} and below), so that the next run need not load" in done.stderr
        password = server.session._secrets.password or ""
        assert "ironbench cleanup --dsn 'ldap://" in done.stderr and password not in done.stderr
        removed = launch.run(["cleanup", "--dsn", theirs], cwd=place)
        assert removed.returncode == 0, removed.stderr
        assert f"removed: 22 entries ({top} and below)" in removed.stdout + removed.stderr
        again = launch.run(["cleanup", "--dsn", theirs], cwd=place)
        assert "this directory contains no entries created by ironbench" in again.stdout + again.stderr
        assert [dn for dn, *_ in server.session.query(f"search ou=theirs,{BASE}?1.1?one")] == [f"cn=a,ou=theirs,{BASE}"]
    finally:
        for dn, *_ in reversed(server.session.query(f"search ou=theirs,{BASE}?1.1?sub")):
            server.session.query(f"delete {dn}")
