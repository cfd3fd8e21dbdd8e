"""Directories: the wire protocol against slapd, the engine's files, the jobs of workload `directory`, and failures."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import launch
import pytest
from directory_server import (
    BASE,
    CERTIFICATES,
    DirectoryServer,
    connected,
    driven,
    load,
    options,
    searched,
    serving,
    started,
    system,
)
from factories import require_installed
from raw_server import free_port
from workload_trial import Trial

from ironbench import engines, workloads
from ironbench.engines.slapd import dsn
from ironbench.errors import FailureError, InputError
from ironbench.model.driven import Driven
from ironbench.workloads.directory.jobs import JOBS
from ironbench.workloads.directory.search_results import metrics, warnings

pytestmark = pytest.mark.live
ENGINE = engines.get("slapd")


@pytest.fixture(scope="session")
def server(fast_directory: Path) -> Iterator[DirectoryServer]:
    require_installed("slapd")
    with serving(fast_directory, "slapd") as server:
        yield server


@pytest.fixture(autouse=True)
def installed() -> None:
    require_installed("slapd")


@pytest.mark.parametrize("job", JOBS)
def test_every_job_runs_without_an_error_and_leaves_the_directory_as_it_was(server: DirectoryServer, job: str) -> None:
    trial = Trial(server.session, "directory", transactions=30, **options(job=job))  # type: ignore[arg-type]
    checks = trial.checks()
    assert checks["entries"].passed
    assert all(check.passed for check in checks.values()), checks
    if workloads.get("directory").writes(options(job=job)):
        assert "client changes = server changes" in checks


def test_searches_that_find_nobody_and_compares_that_are_false_are_noticed(server: DirectoryServer) -> None:
    found = Trial(server.session, "directory", transactions=10, **options(job="search"))  # type: ignore[arg-type]
    figures = found.summary["figures"]
    assert (figures["directory_searches"], figures["directory_entries"]) == (40, 40)
    assert not found.failed()
    empty = {**figures, "directory_empty_searches": 3.0}
    assert found.failed(figures=empty) == {"searches that return no entry"}
    person = "uid=user.1,ou=directory,"
    server.session.query(f"modify {person}?replace employeeNumber=0")
    try:
        trial = Trial(server.session, "directory", transactions=10, **options(job="compare", id="[1-1]"))  # type: ignore[arg-type]
        assert trial.failed() == {"compares that are false"}
    finally:
        server.session.query(f"modify {person}?replace employeeNumber=1")


def test_a_filter_of_the_users_that_finds_nobody_is_measured_and_not_checked(server: DirectoryServer) -> None:
    wanted = options(job="search", filter="(uid=nobody.[1-9])")
    trial = Trial(server.session, "directory", transactions=10, **wanted)  # type: ignore[arg-type]
    assert not trial.failed() and "searches that return no entry" not in trial.checks()
    values = metrics(trial.summary)
    assert values["directory_empty_searches"] == 1.0 and values["directory_entries_per_search"] == 0.0
    assert values["directory_results{code=success}"] == 40
    (warning,) = warnings(Driven("", True, summary=trial.summary))
    assert warning.code == "searches-empty"


@pytest.mark.parametrize("job", ["add-delete", "modify-dn", "mixed"])
def test_what_a_job_leaves_is_counted_before_it_is_removed(server: DirectoryServer, job: str) -> None:
    wanted = options(job=job)
    where = "ou=directory,?1.1?one?(uid=moved.*)" if job == "modify-dn" else "ou=work,ou=directory,?1.1?one"
    name = "people renamed at the end" if job == "modify-dn" else "entries added and not deleted"
    trial = Trial(server.session, "directory", transactions=25, **wanted)  # type: ignore[arg-type]
    left = server.session.count(f"search {where}")
    if job == "modify-dn":
        server.session.query("rename uid=user.12,ou=directory,?uid=moved.12")
    else:
        server.session.query("add uid=left,ou=work,ou=directory,?objectClass=account?uid=left")
    check = trial.checks()[name]
    assert not check.passed and (check.expected, check.actual) == (str(left), str(left + 1))
    again = Trial(server.session, "directory", transactions=25, **wanted)  # type: ignore[arg-type]
    assert not again.failed()


def test_a_rename_of_a_mix_is_one_operation(server: DirectoryServer) -> None:
    wanted = options(job="mixed", weights="modify-dn=1")
    trial = Trial(server.session, "directory", transactions=10, **wanted)  # type: ignore[arg-type]
    assert trial.summary["commits"] == 40 + 4  # each of the four clients adds the entry that it renames
    assert not trial.failed()


def test_a_search_finds_what_openldaps_own_client_finds(server: DirectoryServer) -> None:
    found = server.session.query("search ou=directory,?uid,cn?sub?(|(uid=user.7)(uid=user.8))")
    theirs = searched(server, "-b", f"ou=directory,{BASE}", "(|(uid=user.7)(uid=user.8))", "uid", "cn")
    for dn, uid, cn in found:
        assert f"dn: {dn}\n" in theirs and f"uid: {uid}\n" in theirs and f"cn: {cn}\n" in theirs
    assert len(found) == 2


def test_letters_beyond_ascii_and_long_values_come_back_as_they_were_written(server: DirectoryServer) -> None:
    text = "é€" * 40_000
    server.session.query(f"modify uid=user.9,ou=directory,?replace description={text}")
    assert server.session.query("search uid=user.9,ou=directory,?description?base")[0][1] == text


def test_a_lost_entry_and_a_lost_value_are_found(server: DirectoryServer) -> None:
    trial = Trial(server.session, "directory", transactions=5, **options(job="modify"))  # type: ignore[arg-type]
    server.session.query("modify uid=user.11,ou=directory,?delete description")
    assert trial.failed() == {"people with description", "client changes = server changes"}
    assert trial.failed(refused_changes=1) == {"people with description"}
    server.session.query("modify uid=user.11,ou=directory,?add description=again")
    server.session.query("add uid=more,ou=directory,?objectClass=account?uid=more")
    assert "entries" in trial.failed()
    server.session.query("delete uid=more,ou=directory,")


@pytest.mark.parametrize("io", ["io_uring", "epoll"])
def test_answers_of_many_pieces_come_through_either_transport(server: DirectoryServer, io: str) -> None:
    script = (
        "search ou=directory,??sub;\n\\startpipeline\n" + "search uid=user.1,ou=directory,;\n" * 20 + "\\endpipeline"
    )
    summary = driven(server.session, script, 20, io)
    assert (summary["completed"], summary["errors"]) == (40, {})


@pytest.mark.parametrize(
    ("script", "name", "words"),
    [
        ("search uid=nobody,ou=directory,;", "noSuchObject", "nearest entry above is ou=directory"),
        ("modify uid=user.1,ou=directory,?add nonsense=1;", "undefinedAttributeType", "nonsense"),
        ("add uid=x,ou=directory,?objectClass=person?uid=x;", "objectClassViolation", ""),
        ("bind uid=user.1,ou=directory,?wrong;", "invalidCredentials", ""),
        ("search cn=elsewhere,dc=net;", "noSuchObject", ""),
        ("modify uid=user.1,?replace cn=:nothing;", "script", "has no value"),
    ],
)
def test_a_refused_operation_is_a_failure_by_its_name_and_place(
    server: DirectoryServer, script: str, name: str, words: str
) -> None:
    summary = driven(server.session, script)
    assert summary["failed"] == 10 and name in summary["errors"], summary
    assert "script s, line 1, command 1" in summary["error_messages"][name]
    assert words in summary["error_messages"][name]


def test_a_referral_is_a_failure_that_names_the_other_server(place: Path) -> None:
    with started(place) as session:
        load(session, 5)
        away = "ou=away,ou=directory,"
        more = "objectClass=extensibleObject?ou=away?ref=ldap://other.example/dc=x"
        session.query(f"add {away}?objectClass=referral?{more}")
        summary = driven(session, f"search cn=a,{away};")
        assert summary["errors"] == {"referral": 10}
        assert "ldap://other.example/" in summary["error_messages"]["referral"]


def test_a_size_limit_of_the_server_is_a_failure(place: Path) -> None:
    port = free_port()
    with started(place, listen=f"ldap://127.0.0.1:{port}", sizelimit="3") as session:
        load(session, 10)
        anybody = connected(f"ldap://127.0.0.1:{port}/{BASE}")
        try:
            assert driven(anybody, "search ou=directory,?1.1?one;")["errors"] == {"sizeLimitExceeded": 10}
        finally:
            anybody.stop()


def test_a_size_limit_that_a_search_asks_for_is_no_failure(server: DirectoryServer) -> None:
    assert driven(server.session, "search ou=directory,??sub?(objectClass=person)?sizelimit=5;")["errors"] == {}
    assert server.session.count("search ou=directory,??sub?(objectClass=person)?sizelimit=5") == 5


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("ldap", ""),
        ("ldap", "tls=require"),
        ("ldap", f"tls=verify-full&tls_ca={CERTIFICATES / 'root.crt'}"),
        ("ldaps", "tls=require"),
        ("ldaps", f"tls_ca={CERTIFICATES / 'root.crt'}"),
    ],
)
def test_start_tls_and_ldaps_carry_a_trial(server: DirectoryServer, scheme: str, words: str) -> None:
    who = f"cn=ironbench,{BASE}:{server.session._secrets.password}"
    session = connected(server.dsn(who, words, scheme))
    try:
        assert session._connection is not None
        assert session._connection.connection.tls == bool(words)
        assert driven(session, "search uid=user.1,ou=directory,;")["errors"] == {}
    finally:
        session.stop()


def test_a_certificate_of_nobody_is_refused(server: DirectoryServer) -> None:
    with pytest.raises(InputError, match="certificate is not trusted"):
        connected(server.dsn("", f"tls_ca={CERTIFICATES / 'other_root.crt'}", "ldaps"))


def test_a_wrong_password_is_refused_with_a_way_out_and_not_shown(server: DirectoryServer) -> None:
    with pytest.raises(InputError) as caught:
        connected(server.dsn(f"uid=user.1,ou=directory,{BASE}:wrong-secret"))
    assert "invalidCredentials (49)" in str(caught.value) and "wrong-secret" not in str(caught.value)
    assert caught.value.hint == "correct DN and password in the DSN"
    with pytest.raises(InputError, match="no password was given"):
        connected(server.dsn(f"uid=user.1,ou=directory,{BASE}"))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_sasl_bind_lets_a_person_in_and_nobody_else(server: DirectoryServer, mechanism: str) -> None:
    session = connected(server.dsn("user.3:password", f"mechanism={mechanism}"))
    assert session.query("search uid=user.3,ou=directory,?uid")[0][1] == "user.3"
    session.stop()
    with pytest.raises(InputError, match=r"invalidCredentials \(49\)"):
        connected(server.dsn("user.3:other", f"mechanism={mechanism}"))


def test_a_sasl_bind_by_the_sockets_own_user_needs_no_password(server: DirectoryServer) -> None:
    socket = server.session._address.socket or ""
    session = connected(f"ldapi://{socket.replace('/', '%2F')}/{BASE}?mechanism=EXTERNAL")
    assert session.query("search ,")[0][0] == BASE
    session.stop()


def test_what_tls_protects_may_be_required(place: Path) -> None:
    port = free_port()
    shutil.copy(CERTIFICATES / "server.key", place / "key")
    settings = {"TLSCertificateFile": str(CERTIFICATES / "server.crt"), "TLSCertificateKeyFile": str(place / "key")}
    listen = f"ldap://127.0.0.1:{port}"
    with started(place, listen=listen, security="ssf=128", localSSF="256", **settings):
        with pytest.raises((InputError, FailureError)) as caught:
            connected(f"ldap://127.0.0.1:{port}/{BASE}").query("search ,")
        assert "confidentialityRequired (13)" in str(caught.value)
        assert caught.value.hint == "use TLS (tls=require, or ldaps://)"
        session = connected(f"ldap://127.0.0.1:{port}/{BASE}?tls=require")
        assert session.query("search ,")[0][0] == BASE
        session.stop()


def test_a_map_that_is_full_ends_in_failures_with_the_servers_words(place: Path) -> None:
    with started(place, maxsize="300000") as session:
        load(session, 20)
        summary = driven(session, "modify uid=user.1,ou=directory,?replace description=[a-z]{200000};")
        assert summary["errors"].get("other") == 10, summary
        assert session.alive()


def test_a_server_that_is_killed_ends_the_trial_at_once(place: Path) -> None:
    with started(place) as session:
        load(session, 20)
        os.kill(session.processes()[0], signal.SIGKILL)
        with pytest.raises(FailureError, match="killed by SIGKILL"):
            session.query("search ,")
        assert not session.alive()


def test_a_server_that_is_killed_during_a_trial_ends_it_with_its_last_words(place: Path) -> None:
    with started(place) as session:
        load(session, 20)
        strike = threading.Timer(0.5, os.kill, (session.processes()[0], signal.SIGKILL))
        strike.start()
        began_s = time.monotonic()
        summary = driven(session, "search uid=user.1,ou=directory,;\n\\sleep 1 ms\n", 60_000)
        assert summary["aborted"] and "onnection" in summary["cause"], summary  # reset, or closed
        assert time.monotonic() - began_s < 10.0
        assert not session.alive()


def test_entries_of_others_are_never_touched(server: DirectoryServer, place: Path) -> None:
    session = connected(server.root.replace(f"/{BASE}", f"/ou=theirs,{BASE}"))
    try:
        session.query(f"add ou=theirs,{BASE}?objectClass=organizationalUnit?ou=theirs")
        session.query("add ou=directory,?objectClass=organizationalUnit?ou=directory")
        with pytest.raises(InputError, match="was not loaded by ironbench"):
            load(session, 5, own_server=False)
        session.query("delete ou=directory,")
        load(session, 5, own_server=False)
        assert session.count("search ou=directory,?1.1?one") == 6
        load(session, 5, own_server=False)
        with pytest.raises(InputError, match="entries=5, not "):
            load(session, 6, own_server=False)
    finally:
        for dn, *_ in sorted(session.query("search ,?1.1?sub"), key=lambda row: -str(row[0]).count(",")):
            session.query(f"delete {dn}")
        session.stop()


def test_files_go_into_a_snapshot_and_come_back(place: Path) -> None:
    whole, _ = ENGINE.validated(system(place), 4)
    with started(place) as session:
        load(session, 20)
    ENGINE.snapshot(whole, place / "snapshot")
    with started(place) as session:
        session.query("delete uid=user.1,ou=directory,")
    ENGINE.restore(whole, place / "snapshot")
    assert (place / "d" / "files.kept-1").is_dir()
    with started(place) as session:
        assert session.count("search ou=directory,?1.1?one?(objectClass=person)") == 20
        session.restart()
        assert session.count("search ou=directory,?1.1?one?(objectClass=person)") == 20


def test_entries_of_the_users_own_are_loaded_and_found(place: Path) -> None:
    own = place / "own.ldif"
    own.write_text(
        f"dn: cn=a,{BASE}\nobjectClass: person\ncn: a\nsn: a\n\ndn: cn=b,{BASE}\nobjectClass: person\ncn: b\nsn: b\n"
    )
    with started(place) as session:
        load(session, 1, ldif=str(own), filter="(cn=a)")
        assert session.count("search ,?1.1?one?(objectClass=person)") == 2


def test_an_export_with_the_base_dn_is_loaded_without_it(place: Path) -> None:
    own = place / "own.ldif"
    own.write_text(
        f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: theirs\ndc: example\n\n"
        f"dn: cn=a,{BASE}\nobjectClass: person\ncn: a\nsn: a\n"
    )
    with started(place) as session:
        load(session, 1, ldif=str(own), filter="(cn=a)")
        assert session.count("search ,?1.1?one?(objectClass=person)") == 1
        trial = Trial(session, "directory", transactions=5, ldif=str(own), filter="(cn=a)")  # type: ignore[arg-type]
        assert not trial.failed()


def test_an_entry_that_breaks_the_schema_is_told_and_nothing_is_left(place: Path) -> None:
    own = place / "own.ldif"
    own.write_text(f"dn: cn=a,{BASE}\nobjectClass: person\ncn: a\n")
    with started(place) as session:
        with pytest.raises(FailureError, match=r"(?i)object class 'person' requires attribute 'sn'"):
            load(session, 1, ldif=str(own), filter="(cn=a)")
        assert session.query("search ,")[0][0] == BASE


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"settings": {"maxsise": "1"}}, "unknown slapd setting maxsise"),
        ({"settings": {"rootpw": "x"}}, "reserved: "),
        ({"settings": {"listen": "ldap://h; reboot"}}, "is not a listen address"),
        ({"settings": {"index:cn": "all"}}, "is not a list of indexes"),
        ({"memory_bytes": 1 << 20}, "has no cache of its data besides the page cache"),
    ],
)
def test_what_it_cannot_do_is_refused_before_anything_starts(place: Path, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ENGINE.validated(replace(system(place), **fields), 1)
    assert not (place / "d").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ldap://h", "no base DN"),
        ("ldaps://h/dc=x?tls=disable", "contradict"),
        ("ldap://h/dc=x?tls=maybe", "unknown value of tls: maybe"),
        ("ldap://h/dc=x?mechanism=CRAM", "unknown value of mechanism: CRAM"),
        ("ldapi://h/dc=x", "not an absolute path"),
        ("ldap://h:x/dc=x", "port is not a number"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        dsn.parse(text, {})


@pytest.mark.parametrize("text", ["ldap://cn=a,dc=b:p%40w@h:390/dc=b?tls=require", "ldapi://%2Frun%2Fldapi/dc=b"])
def test_an_address_reads_back_as_it_was(text: str) -> None:
    address, _ = dsn.parse(text, {})
    assert dsn.parse(address.text(), {})[0] == address
    assert "p@w" not in address.text()


def test_a_run_of_the_directory_makes_a_record(place: Path) -> None:
    command = [
        *("run", "directory", "--with", "entries=200", "--with", "job=mixed", "--data", str(place / "d")),
        *("--clients", "2", "--duration", "1s", "--warmup", "0"),
    ]
    done = launch.run(command, cwd=place)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert "data: directory version=1 entries=200" in done.stderr
    (record,) = (json.loads(path.read_text()) for path in place.rglob("trials/*/record.json"))
    metrics = record["metrics"]
    # 70 of 100 transactions are searches, and the checks also search.
    searches = metrics["directory_operations_per_s{operation=search}"]
    assert searches == pytest.approx(0.7 * metrics["throughput"], rel=0.3)
    assert metrics["directory_threads_active"] >= 1.0


def commands_of_the_guide() -> list[Any]:
    page = (Path(__file__).parents[2] / "docs" / "databases" / "directory.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("ironbench run ")]
    # To keep it short, only the command with most options. All can be planned: tests/docs/test_page_commands.py.
    return [pytest.param(line, marks=() if "share=80" in line else pytest.mark.long) for line in lines]


@pytest.mark.parametrize("line", commands_of_the_guide())
def test_the_commands_of_the_guide_run(place: Path, line: str) -> None:
    fewer = {"entries=100000": "entries=200", "id=[1-1000]": "id=[1-100]", "id2=[1001-100000]": "id2=[101-200]"}
    words = [fewer.get(word, word) for word in shlex.split(line)[1:]]
    words = ["1,2" if before == "--clients" else word for before, word in zip(["", *words], words, strict=False)]
    done = launch.run([*words, "--data", str(place / "d"), "--duration", "0.4s", "--warmup", "0"], cwd=place)
    assert done.returncode in (0, 3), done.stdout + done.stderr
