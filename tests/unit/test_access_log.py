"""Access logs of directories: how their lines are parsed, what is replayed and what is refused."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from factories import Shelf, record
from hypothesis import given
from hypothesis import strategies as some

from ironbench import workloads
from ironbench.catalogue.prices import Sheet
from ironbench.errors import InputError
from ironbench.lab import metric_checks
from ironbench.model.record import Record
from ironbench.model.system import Cell, Choice, Load, Setup, System
from ironbench.report.headline import headline
from ironbench.study import leaderboard
from ironbench.study.compare import compare
from ironbench.study.curve import little
from ironbench.study.rate import PACED, Ratios
from ironbench.study.runstudy import studies
from ironbench.study.subjects import Subject
from ironbench.workloads.access_log import reading
from ironbench.workloads.access_log.reading import AccessLogContents, LoggedOperation

WORKLOAD = workloads.get("access-log")
LOGS = Path(__file__).parents[1] / "data" / "access_logs"
OPENLDAP, OF_389 = ((LOGS / name).read_text() for name in ("openldap.log", "389.log"))


def log(folder: Path, text: str, name: str = "log") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def work(path: str, **options: str) -> dict[str, Any]:
    return dict(WORKLOAD.core_work("", WORKLOAD.validated({"log": path, **options})))


def test_a_log_of_openldap_gives_operations_times_and_connections(tmp_path: Path) -> None:
    found = reading.read(log(tmp_path, OPENLDAP))
    assert [one.verb for one in found.operations] == ["bind", "compare", "search", "modify", "delete", "search"]
    bind, compare, search, modify, delete, root = found.operations
    assert bind.simple and bind.dn == "cn=admin,dc=example,dc=com" and bind.code == 0
    assert (search.scope, search.filter, search.attributes) == ("sub", "(&(cn=a*)(sn=b\\28))", ("cn", "sn"))
    assert search.at_s - bind.at_s == pytest.approx(0.050043489, abs=1e-6)
    assert compare.attributes == ("sn",) and compare.succeeded and compare.connection == 1001
    assert modify.attributes == ("description", "sn") and not delete.succeeded and root.dn == ""
    assert found.others == {"EXT": 1} and found.numbers == (1000, 1001, 1002)


def test_a_log_of_389_gives_the_same_and_leaves_out_the_servers_own_operations(tmp_path: Path) -> None:
    found = reading.read(log(tmp_path, OF_389))
    assert [one.verb for one in found.operations] == ["bind", "search", "search", "rename", "add"]
    assert found.operations[1].attributes == ("cn", "mail") and found.operations[2].attributes == ()
    assert (found.operations[3].new_rdn, found.operations[3].parent) == ("cn=b", "")
    assert found.length_s == pytest.approx(1.8)


def test_a_log_that_389_wrote_is_read_though_its_lines_are_out_of_order() -> None:
    found = reading.read(str(LOGS / "389-2.3.1.log"))
    verbs = [one.verb for one in found.operations if one.verb != "bind"]
    assert verbs == ["modify", "add", "add", "add", "add", "search", "search", "compare", "rename", "modify", "delete"]
    assert [one.code for one in found.operations if one.verb == "compare"] == [5]
    assert all(one.succeeded for one in found.operations)
    assert len(found.numbers) == 7 and max(reading.at_once(found)) == 0


@pytest.mark.parametrize(
    ("first", "second", "apart_s"),
    [
        ("2026-11-25T18:44:02.250000+00:00 h slapd[1]: ", "2026-11-25T19:44:02.500000+01:00 h slapd[1]: ", 0.25),
        ("2026-11-25T18:44:02Z h slapd[1]: ", "2026-11-25T18:44:04Z h slapd[1]: ", 2.0),
        ("Nov 25 18:44:02 h slapd[1]: ", "Nov 25 18:44:07 h slapd[1]: ", 5.0),
        ("Dec 31 23:59:59 h slapd[1]: ", "Jan  1 00:00:01 h slapd[1]: ", 2.0),
        ("5fbea132 ", "5fbea135 ", 3.0),
    ],
)
def test_times_of_every_form_are_read(tmp_path: Path, first: str, second: str, apart_s: float) -> None:
    lines = [
        f"{time}conn=1 op={number} {text}\n"
        for number, time in enumerate((first, second))
        for text in ('SRCH base="" scope=0 deref=0 filter="(a=b)"', "SEARCH RESULT tag=101 err=0 nentries=0 text=")
    ]
    assert reading.read(log(tmp_path, "".join(lines))).length_s == pytest.approx(apart_s, abs=1e-6)


def test_operations_of_one_second_are_spread_over_it_where_times_are_whole_seconds(tmp_path: Path) -> None:
    lines = [f'5fbea132 conn=1 op={number} SRCH base="" scope=0 deref=0 filter="(a=b)"\n' for number in range(4)]
    found = reading.read(log(tmp_path, "".join(lines)))
    assert [one.at_s % 1 for one in found.operations] == [0.125, 0.375, 0.625, 0.875]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "contains no LDAP operation"),
        ('127.0.0.1 - - [25/Nov/2026:18:44:02 +0000] "GET / HTTP/1.1" 200\n', "contains no LDAP operation"),
        ("yesterday conn=1 op=0 UNBIND\n", "line 1: has no known time format"),
        ("[25/Foo/2026:18:44:02 +0100] conn=1 op=1 UNBIND\n", "line 1: has no known time format"),
        (
            OF_389 + "[25/Nov/2026:18:44:05 +0100] conn=2 op=1 RESULT err=0\nnoon conn=2 op=2 UNBIND\n",
            "line 19: has no",
        ),
    ],
)
def test_what_is_no_access_log_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        reading.read(log(tmp_path, text))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        WORKLOAD.validated({"log": str(tmp_path / "none")})


def test_searches_and_compares_are_replayed_at_their_times_and_the_rest_is_told(tmp_path: Path) -> None:
    path = log(tmp_path, OPENLDAP)
    made = work(path)
    assert made["operations"] == [
        "compare cn=A B,dc=example,dc=com?sn=ironbench",
        "search ou=a b,dc=example,dc=com?cn,sn?sub?(&(cn=a*)(sn=b\\28))",
        "search ??base?(objectClass=*)",
    ]
    times = [[at_ns / 1e9 for at_ns, *_ in client] for client in made["clients"]]
    assert [len(one) for one in times] == [2, 1] and times[0][0] == pytest.approx(0.05005, abs=1e-4)
    choice = Choice("access-log", WORKLOAD.validated({"log": path}))
    (told,) = WORKLOAD.warnings("", choice, "")
    assert (
        told
        == "3 of 7 operations of the log are replayed; left out: EXT (1), binds (1), changes (1) and operations that "
        "failed originally (1)"
    )


def test_a_log_twice_as_fast_has_its_operations_at_half_the_time(tmp_path: Path) -> None:
    path = log(tmp_path, OPENLDAP)
    once, twice = ([at for client in work(path, speed=speed)["clients"] for at, *_ in client] for speed in ("1", "2"))
    assert twice == [pytest.approx(at / 2, abs=1) for at in once]
    options = [WORKLOAD.validated({"log": path, "speed": speed}) for speed in ("1", "2")]
    assert [WORKLOAD.usual_duration_s(one) for one in options] == [2.7, 1.4]


def test_another_base_takes_the_place_of_the_logs_suffix(tmp_path: Path) -> None:
    made = work(log(tmp_path, OF_389), suffix="DC=corp,dc=net", changes="made-up", binds="password")
    assert made["operations"] == [
        "bind uid=user.1,ou=people,?password",
        "search ,?cn,mail?sub?(uid=user.7)",
        "search ,??one?(objectClass=*)",
        "rename cn=a,?cn=b",
        "add uid=new,ou=people,?objectClass=device?objectClass=extensibleObject?uid=new?cn=[a-z]{20}",
    ]
    assert [first for _, _, first in made["clients"][0]] == [False, False, False, False, True]


def test_a_changed_log_is_refused_when_its_trials_are_resumed(tmp_path: Path) -> None:
    path = log(tmp_path, OPENLDAP)
    choice = WORKLOAD.identified(Choice("access-log", WORKLOAD.validated({"log": path})), "slapd")
    WORKLOAD.core_work("", choice.options)
    log(tmp_path, OF_389)
    with pytest.raises(InputError, match="was changed since"):
        WORKLOAD.core_work("", choice.options)


def test_what_a_log_cannot_be_driven_with_is_refused(tmp_path: Path) -> None:
    path = log(tmp_path, OPENLDAP)
    mine, theirs = System("x", "x"), System("x", "x", dsn="ldap://h/dc=x")
    for system, load, options, words in (
        (mine, Load(clients=1), {}, "up to 2 connections of the log"),
        (mine, Load(clients=2, rate=5.0), {}, "the log determines the start"),
        (theirs, Load(clients=2), {"changes": "made-up"}, "values in your directory"),
        (mine, Load(clients=2), {"loaded": "no"}, "is empty"),
        (mine, Load(clients=2), {"log": ""}, "log file is missing"),
    ):
        with pytest.raises(InputError, match=words):
            WORKLOAD.accepts(system, load, Choice("access-log", WORKLOAD.validated({"log": path, **options})))


@given(some.lists(some.tuples(some.integers(0, 50), some.floats(0, 100), some.floats(0, 10)), min_size=1, max_size=60))
def test_no_client_has_two_connections_at_once_and_there_is_no_client_too_many(
    spans: list[tuple[int, float, float]],
) -> None:
    numbers = tuple(range(len(spans)))
    times = tuple((began, began + long) for _, began, long in spans)
    operations = tuple(
        LoggedOperation(began, number, "search", "") for number, (began, _) in zip(numbers, times, strict=True)
    )
    chosen = reading.at_once(AccessLogContents(operations, times, numbers))
    for one in numbers:
        for other in numbers[:one]:
            apart = times[one][1] < times[other][0] or times[other][1] < times[one][0]
            assert apart or chosen[one] != chosen[other]
    most = max(sum(began <= at <= ended for began, ended in times) for at, _ in times)
    assert len(set(chosen)) == most


def test_a_server_that_begins_again_counts_its_connections_anew(tmp_path: Path) -> None:
    lines = [
        f"{second:08x}.00000000 0x1 conn=1000 op={op} {text}\n"
        for second, op, text in [
            (1, 0, 'SRCH base="dc=x" scope=0 deref=0 filter="(a=1)"'),
            (1, 0, "SEARCH RESULT tag=101 err=0 nentries=0 text="),
            (2, 1, 'CMP dn="dc=x" attr="a"'),  # the server died
            (9, 0, 'SRCH base="dc=x" scope=0 deref=0 filter="(a=2)"'),
            (9, 1, 'CMP dn="dc=x" attr="b"'),
        ]
    ]
    unsaid = reading.read(log(tmp_path, "".join(lines)))
    told = reading.read(
        log(tmp_path, "".join([*lines[:3], "00000008.00000000 0x1 slapd starting\n", *lines[3:]]), "told")
    )
    for found in (unsaid, told):
        assert [one.connection < 0 for one in found.operations] == [False, False, True, True]
        assert found.operations[1].code is None and reading.at_once(found) == [0, 0]


def test_operations_whose_line_is_cut_off_are_counted_and_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    begun = '00000001.00000000 0x1 conn=1000 op={} SRCH base="dc=x" scope=0 deref=0 filter="{}\r\n'
    found = reading.read(log(tmp_path, begun.format(0, '(a=1)"') + begun.format(1, "(|(a=2)(a=3")))
    assert [one.filter for one in found.operations] == ["(a=1)"]
    assert found.others == {reading.UNREADABLE: 1}


def test_a_night_at_the_end_of_february_is_as_long_as_it_was(tmp_path: Path) -> None:
    text = "".join(
        f'{day} h slapd[1]: conn=1 op={op} CMP dn="dc=x" attr="a"\n'
        for op, day in enumerate(("Feb 28 23:00:00", "Mar  1 01:00:00"))
    )
    path = Path(log(tmp_path, text))
    for year, hours in ((2026, 2), (2028, 26)):
        instant = datetime(year, 3, 2, tzinfo=UTC).timestamp()
        os.utime(path, (instant, instant))
        assert round(reading.read(str(path)).length_s / 3600) == hours


def replayed(pace: float, **fields: object) -> Record:
    choice = Choice("access-log", {"log": "access.log", "digest": "a", "speed": f"{pace:g}"})
    return record(System("slapd", "directory"), 8, 54.9 * pace, choice=choice, **fields)


def test_throughput_of_a_replay_follows_from_the_log_and_is_no_result() -> None:
    slow, fast = [replayed(1, block=b, id=f"s{b}") for b in range(3)], [replayed(219, id=f"f{b}") for b in range(3)]
    assert little(slow[0]) is None
    assert Ratios(slow, fast).lacking("throughput") == PACED
    comparison = compare(Subject("slow", tuple(slow)), Subject("fast", tuple(fast)))
    assert comparison.leading[0] == "response_time_p99_s"
    assert comparison.peaks is not None
    row = comparison.peaks.row("throughput")
    assert row is not None and row.ratio is None and row.improves is None
    (study,) = studies(slow, Shelf(slow))
    ((_, said),) = headline(study)
    assert said.startswith("runs ") and "at the recorded pace" in said and "reaches" not in said
    (study,) = studies(fast, Shelf(fast))
    ((_, said),) = headline(study)
    assert said.startswith("runs ") and "at 219 times the recorded pace" in said
    assert leaderboard.rankings_of_records(slow, Shelf(slow), "score", Sheet({}), "") == []


def test_a_lab_of_a_replay_is_not_judged_by_its_throughput() -> None:
    setup = Setup(Cell("log=disk", Load()), System("slapd", "directory"), replayed(1).choice)
    with pytest.raises(InputError, match="throughput: the recorded times of the capture determine this metric"):
        metric_checks.refuse_impossible((), "throughput", [setup], "lab.toml")
    metric_checks.refuse_impossible((), "response_time_p99_s", [setup], "lab.toml")


SYSLOG = "".join(
    f"Nov 28 19:00:0{number}.25 host slapd[7]: conn=1 op={number} {what}\n"
    for number, what in enumerate(
        ['BIND dn="cn=a" method=128', 'SRCH base="dc=x" scope=2 deref=0 filter="(cn=a)"', 'DEL dn="cn=b"']
    )
)
ISO = SYSLOG.replace("Nov 28 ", "2026-11-28T").replace(".25 host", ".25+00:00 host")
UNIX = "".join(f"176435280{number}.250000 {line[19:]}\n" for number, line in enumerate(SYSLOG.splitlines()))
WRAPPED = {
    "journalctl -o short-precise": f"-- Logs begin at Sat --\n{SYSLOG}",
    "journalctl -o short-iso-precise": ISO,
    "journalctl -o short-unix": UNIX,
    "journalctl -o json": "".join(
        json.dumps({"__REALTIME_TIMESTAMP": str(1_764_352_800_250_000 + number * 1_000_000), "MESSAGE": line[32:]})
        + "\n"
        for number, line in enumerate(SYSLOG.splitlines())
    ),
    "docker compose logs": "".join(f"ldap-1  | {line}\n" for line in ISO.splitlines()),
    "a container's log file": "".join(
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-11-28T19:00:09Z"}) + "\n"
        for line in ISO.splitlines()
    ),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("way", list(WRAPPED))
def test_a_log_that_a_journal_or_a_container_kept_is_read(way: str, packed: bool, tmp_path: Path) -> None:
    data = WRAPPED[way].encode()
    file = tmp_path / "log"
    file.write_bytes(gzip.compress(data) if packed else data)
    found = reading.read(str(file))
    assert [one.verb for one in found.operations] == ["bind", "search", "delete"]
    assert found.length_s == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\0\0", "xz"),
        (b"\x28\xb5\x2f\xfd\0\0", "zstd"),
        (b"PK\x03\x04....", "zip"),
        (gzip.compress(SYSLOG.encode(), mtime=0)[:-12], "gzip"),
        (b'{"local_time":"2026-11-28T19:00:00", "operation":"SEARCH", "conn_id":1, "op_id":0}\n', "389"),
        (b'{\n  "operation":"SEARCH",\n', "389"),
    ],
    ids=["bzip2", "xz", "zstd", "zip", "cut gzip", "json", "json-pretty"],
)
def test_a_log_in_another_form_is_refused_by_its_name(data: bytes, named: str, tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(data)
    with pytest.raises(InputError) as refused:
        reading.read(str(file))
    assert named in refused.value.cause
