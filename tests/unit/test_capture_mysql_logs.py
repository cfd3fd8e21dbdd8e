"""General and slow logs of MariaDB and MySQL: what is read from them."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import msgspec
import pytest

from ironbench.engines.mariadb.logs import MysqlLogs, recognised
from ironbench.errors import FailureError, InputError
from ironbench.model.note import note
from ironbench.report import wording
from ironbench.report.capture import page
from ironbench.report.formats import text
from ironbench.workloads.capture import contents, file, logs, tape
from ironbench.workloads.capture.logs import described

GENERAL = """/usr/sbin/mariadbd, Version: 10.11.19-MariaDB-0+deb12u1 (Debian 12). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time\t\t    Id Command\tArgument
\t\t     3 Query\tselect 'before'
261130  2:03:11\t     31 Connect\tapp@localhost on shop using Socket
\t\t     31 Query\tset autocommit=1
\t\t     31 Query\tSTART TRANSACTION
\t\t     31 Query\tinsert into sale
values (1, 'it''s \\' a "b"'), (2, "x")
\t\t     32 Connect\troot@localhost on  using Socket
\t\t     32 Init DB\tshop
261130  2:03:12\t     32 Query\tselect name from `Item` where id=7 /* x */ and n in (1,2, 3) -- end
\t\t     31 Query\tcommit
\t\t     32 Prepare\tselect ?
\t\t     32 Execute\tselect 5
\t\t     32 Query\tset password for app = '<secret>'
\t\t     32 Quit\t
"""
SLOW = """# Time: 261130  2:03:11
# User@Host: app[app] @ localhost []
# Thread_id: 31  Schema: shop  QC_hit: No
# Query_time: 0.250000  Lock_time: 0.000050  Rows_sent: 3  Rows_examined: 100
# Rows_affected: 0  Bytes_sent: 80
use shop;
SET timestamp=1796004191;
select *
from item where price > 5;
# User@Host: app[app] @ localhost []
# Thread_id: 31  Schema: shop  QC_hit: No
# Query_time: 0.000100  Lock_time: 0.000050  Rows_sent: 0  Rows_examined: 0
# Rows_affected: 2  Bytes_sent: 80
SET timestamp=1796004192;
update item set price = 1 where id in (1, 2);
# User@Host: app[app] @ localhost []
# Thread_id: 31  Schema: shop  QC_hit: No
# Query_time: 0.000001  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
# Rows_affected: 0  Bytes_sent: 0
SET timestamp=1796004192;
# administrator command: Quit;
"""
MYSQL = """# Time: 2026-11-30T02:03:11.500000Z
# User@Host: app[app] @ localhost []  Id:    31
# Query_time: 0.250000  Lock_time: 0.000050 Rows_sent: 3  Rows_examined: 100
SET timestamp=1796004191;
select 1;
"""


def captured(folder: Path, log: str, *, mask: bool = False) -> str:
    (folder / "server.log").write_text(log)
    logs.capture([str(folder / "server.log")], str(folder / "shop.capture"), mask=mask)
    return str(folder / "shop.capture")


def rows(path: str, columns: str) -> list[tuple[object, ...]]:
    with file.database() as opened:
        return file.asked(opened, f"SELECT {columns} FROM {file.source(path)} ORDER BY number")


def test_a_general_log(tmp_path: Path) -> None:
    path = captured(tmp_path, GENERAL)
    facts = file.facts(path)
    assert (facts.format, facts.statements, facts.sessions, facts.with_duration) == ("general log", 8, 3, 0)
    assert rows(path, "session, transaction, user_name, database_name, template, writes") == [
        (1, 1, "", "", "select ?", False),
        (2, 2, "app", "shop", "set autocommit = ?", False),
        (2, 3, "app", "shop", "start transaction", False),
        (2, 3, "app", "shop", "insert into sale values (?, ?), ...", True),
        (3, 4, "root", "shop", "select name from `Item` where id = ? and n in (...)", False),
        (2, 3, "app", "shop", "commit", False),
        (3, 5, "root", "shop", "select ?", False),
        (3, 6, "root", "shop", "set password for app = ?", False),
    ]
    assert rows(path, "prepared, text, parameters, parameter_types")[6] == ("1", "select ?", ["5"], "i")
    assert rows(path, "left_out")[7] == ("server-wide",)
    assert rows(path, "epoch_us(started_at)")[1:6] == [
        *((1796004191000000 + place * 333333,) for place in range(3)),
        *((1796004192000000 + place * 250000,) for place in range(2)),
    ]
    assert [one.code for one in facts.notes] == [
        "capture-not-replayable",
        "capture-without-durations",
        "capture-whole-seconds",
        "capture-unknown-users",
    ]
    assert all(wording.sentences(facts.notes))
    assert "long_query_time" in text.page(page(path))
    assert "ironbench run capture" in text.page(page(path))


def test_a_slow_log_has_durations_and_rows(tmp_path: Path) -> None:
    path = captured(tmp_path, SLOW)
    assert rows(path, "session, database_name, template, duration_us, row_count") == [
        (1, "shop", "select * from item where price > ?", 250_000, 3),
        (1, "shop", "update item set price = ? where id in (...)", 100, 2),
    ]
    assert contents.contents(path).top[0].total_s == 0.25
    (tmp_path / "mysql").mkdir()
    exact = captured(tmp_path / "mysql", MYSQL)
    assert rows(exact, "epoch_us(started_at), duration_us") == [(1796004191250000, 250_000)]
    assert "capture-whole-seconds" not in [one.code for one in file.facts(exact).notes]


def test_logs_are_read_compressed_from_a_directory_and_in_the_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "b.log.gz").write_bytes(gzip.compress(MYSQL.encode()))
    (tmp_path / "log" / "a.log").write_text(MYSQL.replace("02:03:11", "02:03:12").replace("select 1", "delete from t"))
    (tmp_path / "log" / "error.log").write_text("a message\n")
    logs.capture([str(tmp_path / "log")], str(tmp_path / "x.capture"))
    assert rows(str(tmp_path / "x.capture"), "template") == [("select ?",), ("delete from t",)]


def test_a_log_whose_compressed_data_are_truncated_is_read_as_far_as_they_reach(tmp_path: Path) -> None:
    whole = gzip.compress("".join(MYSQL.replace("select 1", f"select {n}") for n in range(3000)).encode())
    (tmp_path / "slow.log.gz").write_bytes(whole[: len(whole) // 2])
    facts = logs.capture([str(tmp_path / "slow.log.gz")], str(tmp_path / "x.capture"))
    assert 500 < facts.statements < 2500
    assert note("capture-truncated-archives", files=("slow.log.gz",)) in facts.notes
    damaged = whole[:2000] + bytes(1000) + whole[3000:]
    (tmp_path / "slow.log.gz").write_bytes(damaged)
    with pytest.raises(FailureError, match=r"slow\.log\.gz"):
        logs.capture([str(tmp_path / "slow.log.gz")], str(tmp_path / "y.capture"))
    assert not (tmp_path / "y.capture").exists()


@pytest.mark.parametrize(
    ("log", "end"), [(GENERAL, "insert into sale\n"), (SLOW, "select *\n")], ids=["general", "slow"]
)
def test_the_incomplete_statement_at_the_end_of_a_truncated_archive_is_left_out(
    log: str, end: str, tmp_path: Path
) -> None:
    packer = zlib.compressobj(wbits=31)
    before = log.partition(end)[0]
    (tmp_path / "a.log.gz").write_bytes(packer.compress((before + end).encode()) + packer.flush(zlib.Z_SYNC_FLUSH))
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(before.encode()))
    (tmp_path / "c.log").write_text(log)
    reader = MysqlLogs(recognised(tmp_path / "c.log"))
    texts = [[one.text for one in reader.read([str(tmp_path / name)])] for name in ("a.log.gz", "b.log.gz", "c.log")]
    assert reader.damage.truncated_archives == ["a.log.gz"]
    assert texts[0] == texts[1] and end.strip() not in texts[0]
    assert len(texts[2]) > len(texts[1])


def test_a_masked_capture_has_no_literal(tmp_path: Path) -> None:
    line = (
        "\t\t     31 Query\tupdate sale set buyer = 'Secretname', offset = 471147 where day = '1980-01-05 10:11:12'\n"
    )
    path = captured(tmp_path, GENERAL + line, mask=True)
    whole = str(rows(path, "text, template, parameters")).encode() + Path(path).read_bytes()
    for value in ("Secretname", "471147", "1980-01-05 10:11:12"):
        assert value.encode() not in whole
    (bought,) = (str(text) for (text,) in rows(path, "text") if str(text).startswith("insert"))
    assert bought.count("'") % 2 == 0
    assert file.facts(path).masked and file.facts(path).replayable


def test_a_masked_capture_of_an_earlier_version_can_be_shown_but_not_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = (note("capture-not-replayed"),)
    monkeypatch.setattr(
        logs, "described", lambda *given: msgspec.structs.replace(described(*given), replayable=False, notes=notes)
    )
    path = captured(tmp_path, GENERAL, mask=True)
    assert "capture-not-replayed" not in text.page(page(path))
    assert wording.sentences(notes)
    with pytest.raises(InputError, match="masked by an earlier version") as refused:
        tape.chosen({"file": path, "only": "", "except": "", "read_only": "no", "sessions": "1"})
    assert "capture again" in str(refused.value.hint)


def test_no_password_is_in_a_capture(tmp_path: Path) -> None:
    line = "\t\t     3 Query\tcreate user x identified by 'hunter2hunter2'\n"
    path = captured(tmp_path, GENERAL + line)
    assert "hunter2" not in str(rows(path, "text, template")) and b"hunter2" not in Path(path).read_bytes()
    assert rows(path, "left_out")[-1] == ("server-wide",)


def test_what_is_not_possible_is_refused(tmp_path: Path) -> None:
    captured(tmp_path, SLOW)
    (tmp_path / "general.log").write_text(GENERAL)
    with pytest.raises(InputError, match="several formats"):
        logs.capture([str(tmp_path / "general.log"), str(tmp_path / "server.log")], str(tmp_path / "x"))
    (tmp_path / "other").write_text("text\n")
    with pytest.raises(InputError, match="another format than the other files"):
        logs.capture([str(tmp_path / "general.log"), str(tmp_path / "other")], str(tmp_path / "x"))
    with pytest.raises(InputError, match="no effect on a general log"):
        logs.capture([str(tmp_path / "general.log")], str(tmp_path / "x"), prefix="%m")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("cut", range(0, len(SLOW), 37))
def test_a_log_that_ends_anywhere_is_read(cut: int, tmp_path: Path) -> None:
    for name, log in (("slow log", SLOW), ("general log", GENERAL)):
        (tmp_path / "log").write_text(log[:cut])
        assert recognised(tmp_path / "log") in ("", name)
        assert len(list(MysqlLogs(name).read([str(tmp_path / "log")]))) <= 8


TRIGGERS = """261130  2:03:11\t     31 Connect\tapp@localhost on shop using Socket
\t\t     31 Query\tinsert into t (a) values (1)
\t\t     31 Query\tinsert into audit values (NEW.a, old.b)
\t\t     31 Query\tinsert into t values (1) as new on duplicate key update a = new.a
\t\t     31 Query\tprepare s from 'select ?'
\t\t     31 Prepare\tselect ?
\t\t     31 Query\texecute s using @a
\t\t     31 Execute\tselect 1
\t\t     32 Connect\tx@localhost on shop using Socket
\t\t     32 Connect\tAccess denied for user 'x'@'localhost' (using password: YES)
"""


def test_entries_of_a_general_log_that_no_client_sent_are_left_out(tmp_path: Path) -> None:
    path = captured(tmp_path, TRIGGERS)
    assert [one for (one,) in rows(path, "text")] == [
        "insert into t (a) values (1)",
        "insert into t values (1) as new on duplicate key update a = new.a",
        "prepare s from 'select ?'",
        "execute s using @a",
    ]
    (known,) = (one for one in file.facts(path).notes if one.code == "capture-trigger-statements")
    assert known.values["statements"] == 1


EXECUTED = """261130  2:03:11\t     31 Connect\tapp@localhost on shop using Socket
\t\t     31 Prepare\tselect '?', a from t where b = ? and c = ? -- ?
\t\t     31 Prepare\tselect a from t where d = ?
\t\t     31 Execute\tselect '?', a from t where b = -7 and c = 'it\\'s \\n' -- ?
\t\t     31 Execute\tselect a from t where d = NULL
\t\t     31 Execute\tselect a from t where d = 1.5e0
\t\t     31 Execute\tselect a from unknown
"""


def test_parameters_are_found_in_the_executed_text(tmp_path: Path) -> None:
    path = captured(tmp_path, EXECUTED)
    assert rows(path, "prepared, parameters, parameter_types") == [
        ("1", ["-7", "it's \n"], "is"),
        ("2", [None], "s"),
        ("2", ["1.5e0"], "d"),
        (None, None, None),
    ]


def test_times_in_whole_seconds_do_not_step_back(tmp_path: Path) -> None:
    entry = """# User@Host: app[app] @ localhost []
# Thread_id: 31  Schema: shop  QC_hit: No
# Query_time: 0.000100  Lock_time: 0.000050  Rows_sent: 0  Rows_examined: 0
SET timestamp=1796004191;
select 1;
"""
    times = ("# Time: 261130  2:03:11\n", "", "# Time: 261130  2:03:12\n", "# Time: 261130  2:03:11\n", "")
    path = captured(tmp_path, "".join(time + entry for time in times))
    began = [int(str(at)) for (at,) in rows(path, "epoch_us(started_at)")]
    assert began == sorted(began) and began[-1] - began[0] == 1_666_666


@pytest.mark.parametrize(
    ("was", "damaged"),
    [
        ("261130  2:03:11", "269999  2:03:11"),
        ("# Time: 261130  2:03:11", "# Time: 2026-11-30T2:x"),
        ("0.250000", "0.25.0000"),
        ("Rows_sent: 3", f"Rows_sent: {'9' * 5000}"),
        ("timestamp=1796004191", f"timestamp={'9' * 30}"),
        ("Thread_id: 31", f"Thread_id: {'9' * 30}"),
    ],
)
def test_damaged_times_and_numbers_end_no_capture(tmp_path: Path, was: str, damaged: str) -> None:
    path = captured(tmp_path, SLOW.replace(was, damaged))
    assert {text for (text,) in rows(path, "text")} >= {"update item set price = 1 where id in (1, 2)"}


def test_a_damaged_capture_is_refused(tmp_path: Path) -> None:
    path = Path(captured(tmp_path, SLOW))
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)  # the first column, and not the description of the file at its end
    path.write_bytes(data)
    with pytest.raises(InputError):
        contents.contents(str(path))
