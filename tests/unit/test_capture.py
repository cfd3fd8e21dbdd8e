"""Captures of production work: what is read from logs, shown, and chosen for a replay."""

from __future__ import annotations

import gzip
import socket
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ironbench import engines, workloads
from ironbench.cli import show
from ironbench.cli.run import execute
from ironbench.engines.base import Traits
from ironbench.errors import FailureError, InputError
from ironbench.fields.new import NewLab
from ironbench.lab import declare, loop, new
from ironbench.model.digest import Digests, StatementDigest
from ironbench.model.driven import Driven
from ironbench.model.note import note
from ironbench.model.own_data import OwnData
from ironbench.model.system import Choice, Load, System
from ironbench.plan import run_file
from ironbench.report import wording
from ironbench.report.capture import page
from ironbench.report.formats import text
from ironbench.workloads.capture import (
    contents,
    digests,
    fidelity,
    file,
    keys,
    logs,
    making,
    marks,
    proxy,
    selection,
    shift,
    tape,
)

LOGS = Path(__file__).parents[1] / "data" / "pglog"
CSV = str(LOGS / "all-statements.csv")
PREFIX = "%m [%p] %q%u@%d %a "


REST = ',,,,,,,,"web","client backend",,0\n'


def entry(second: int, session: int, line: int, message: str, detail: str = "", *, database: str = "shop") -> str:
    """Returns an entry of a csvlog of PostgreSQL 18."""
    quoted = ['"' + one.replace('"', '""') + '"' for one in (message, detail)]
    return (
        f'2026-11-28 17:00:{second:02}.000 UTC,"app","{database}",{session},"[local]",6b0b1484.{session:x},{line},'
        f'"SELECT",2026-11-28 17:00:00 UTC,3/{line},0,LOG,00000,{quoted[0]},{quoted[1]}{REST}'
    )


def statement(second: int, session: int, line: int, sql: str, ms: float = 1.0, **more: str) -> str:
    return entry(second, session, line, f"duration: {ms:.3f} ms  statement: {sql}", **more)


def failed(line: int, sql: str) -> str:
    """Returns the entry of a statement that failed."""
    logged = entry(1, 7, line, "the error").replace(",LOG,00000,", ",ERROR,22023,")
    return logged.replace(REST, f',,,,,"{sql}",,,"web","client backend",,0\n')


def captured(folder: Path, *entries: str, mask: bool = False) -> str:
    (folder / "server.csv").write_text("".join(entries))
    logs.capture([str(folder / "server.csv")], str(folder / "shop.capture"), mask=mask)
    return str(folder / "shop.capture")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A capture of the sample: two clients of pgbench with prepared statements, one without, and psql."""
    path = tmp_path_factory.mktemp("capture") / "shop.capture"
    logs.capture([CSV], str(path))
    return str(path)


def options(path: str, **more: str) -> dict[str, str]:
    return workloads.get("capture").validated({"file": path, **more})


def test_a_capture_says_what_it_contains_and_what_it_lacks(shop: str) -> None:
    found = contents.contents(shop)
    facts = found.facts
    assert (facts.format, facts.masked, facts.sessions) == ("csvlog", False, 6)
    assert facts.statements == sum(one.calls for one in found.top) == 60
    assert dict(found.mix)["select"] == 13
    assert found.left_out == (("transaction", 6), ("copy", 1), ("listen", 1))
    assert found.failed == 2 and found.at_once >= 2
    assert {one.template for one in found.top} >= {"select name, price from item where id = ?"}
    insert = next(one for one in found.top if one.template.startswith("insert into sale"))
    assert insert.template == "insert into sale(item) values (?) returning id"
    assert insert.calls == 10 and insert.writes
    assert [one.code for one in facts.notes] == [
        "capture-not-replayable",
        "capture-not-replayable",
        "capture-few-durations",
    ]
    assert all(wording.sentences(facts.notes))
    shown = text.page(page(shop))
    assert "cannot be replayed" in shown and "Think times" in shown
    assert page(shop).fields()["capture"]["statements"] == facts.statements


def test_the_sample_is_the_same_in_every_format_and_compressed(shop: str, tmp_path: Path) -> None:
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(gzip.compress(Path(CSV).read_bytes()))
    for number, (log, prefix) in enumerate(
        [(packed, ""), (LOGS / "all-statements.json", ""), (LOGS / "all-statements.log", PREFIX)]
    ):
        found = logs.capture([str(log)], str(tmp_path / f"{number}.capture"), prefix)
        assert (found.statements, found.sessions) == (file.facts(shop).statements, 6)


def test_a_directory_is_read_in_one_of_its_formats(tmp_path: Path) -> None:
    found = logs.capture([str(LOGS)], str(tmp_path / "x.capture"))
    assert (found.format, found.sessions) == ("csvlog", 6)


def test_rotated_files_are_read_in_the_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text(statement(1, 7, 1, "begin") + statement(2, 7, 2, "select 1"))
    (tmp_path / "a.csv").write_text(statement(3, 7, 3, "commit"))
    found = logs.capture([str(tmp_path)], str(tmp_path / "x.capture"))
    assert (found.statements, found.transactions, found.sessions) == (3, 1, 1)


def test_nothing_is_overwritten_and_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "shop.capture").write_text("mine")
    with pytest.raises(InputError, match="never overwritten"):
        logs.capture([CSV], str(tmp_path / "shop.capture"))
    (tmp_path / "empty.csv").write_text(entry(1, 7, 1, "connection authorized: user=app"))
    with pytest.raises(InputError, match="contain no statements"):
        logs.capture([str(tmp_path / "empty.csv")], str(tmp_path / "x.capture"))
    with pytest.raises(InputError, match="no line has the form"):
        logs.capture([str(LOGS / "all-statements.log")], str(tmp_path / "x.capture"))
    with pytest.raises(InputError, match="does not exist"):
        logs.capture([CSV], str(tmp_path / "nowhere" / "x.capture"))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(Path(CSV).read_bytes() * 50)[:-8] + bytes(8))
    with pytest.raises(FailureError, match="cannot be read"):
        logs.capture([str(tmp_path / "cut.csv.gz")], str(tmp_path / "x.capture"))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["cut.csv.gz", "empty.csv", "shop.capture"]
    assert (tmp_path / "shop.capture").read_text() == "mine"


def test_no_password_and_with_a_mask_no_literal_is_in_the_file(tmp_path: Path) -> None:
    entries = (
        statement(1, 7, 1, "alter role app password 'hunter2hunter2'"),
        statement(2, 7, 2, "select * from person where name = 'Secretname' and id = 471147"),
        entry(3, 7, 3, "duration: 1.000 ms  execute a: select $1, $2", "Parameters: $1 = 'Secretname', $2 = '471147'"),
        statement(4, 7, 4, "select dblink('host=h password=hunter2hunter2')"),
    )
    path = captured(tmp_path, *entries, mask=True)
    with file.database() as opened:
        rows = file.asked(opened, f"SELECT * FROM {file.source(path)} ORDER BY number")
        unpacked = str(rows)
        ((text_of, parameters),) = file.asked(
            opened,
            f"SELECT (SELECT text FROM {file.source(path)} WHERE number = 2), parameters "
            f"FROM {file.source(path)} WHERE number = 3",
        )
    for literal in ("hunter2", "Secretname", "471147"):
        assert literal not in unpacked and literal.encode() not in Path(path).read_bytes()
    assert all(value in text_of for value in parameters), "equal values stay equal"
    assert file.facts(path).masked


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ([entry(1, 7, line, "statement: select 1") for line in range(1, 4)], "capture-without-durations"),
        ([statement(1, 7, line, "select 1", 1.0) for line in range(1, 120)], "capture-slow-only"),
        ([statement(1, 7, line, "insert into t values (1)") for line in range(1, 120)], "capture-without-reads"),
        ([statement(1, 7, 1, "select 1"), "nonsense\n"], "capture-unreadable"),
        ([statement(1, 7, 1, "select 1"), statement(1, 7, 2, "select 2")[:80]], "capture-truncated"),
        ([statement(50, 7, 1, "select 1"), statement(10, 7, 2, "select 2")], "capture-clock-steps"),
        ([statement(1, 7, 1, "select 1"), statement(1, 7, 1, "select 1")], "capture-repeated"),
        ([statement(1, 7, 1, "select 1").replace("UTC", "XYZT")], "capture-unknown-zones"),
        ([statement(1, 7, 1, "select 1"), entry(1, 7, 2, "duration: 1.000 ms")], "capture-durations-alone"),
        (
            [
                entry(1, 7, line, "duration: 1.000 ms  execute a: select $1", f"Parameters: $1 = 'abcd{'...' * cut}'")
                for line, cut in ((1, 0), (2, 1))
            ],
            "capture-cut-parameters",
        ),
    ],
)
def test_what_a_log_lacks_is_noted(log: list[str], code: str, tmp_path: Path) -> None:
    notes = file.facts(captured(tmp_path, *log)).notes
    assert code in [one.code for one in notes]
    assert all(wording.sentences(notes))


def test_unreadable_lines_are_noted_with_their_files(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    for name, own in (("new.csv", ""), ("old.log", "2026-11-28 16:59:00.000 UTC [1] LOG:  ready\n")):
        (tmp_path / "log" / name).write_text(own + statement(1, 7, 1 if own else 2, f"select '{name}'"))
    facts = logs.capture([str(tmp_path / "log")], str(tmp_path / "x.capture"))
    assert note("capture-unreadable", lines=1, files=("old.log",)) in facts.notes
    (sentence,) = wording.sentences([one for one in facts.notes if one.code == "capture-unreadable"])
    assert "old.log" in sentence


@pytest.mark.parametrize("named", [False, True])
def test_a_wrong_prefix_is_refused_with_the_beginning_of_a_line(named: bool, tmp_path: Path) -> None:
    log = tmp_path / "log" / "postgresql.log"
    log.parent.mkdir()
    log.write_text("2026-11-28 17:00:00.000 UTC [7] app@shop LOG:  duration: 1.000 ms  statement: select 'secret'\n")
    with pytest.raises(InputError) as error:
        logs.capture([str(log if named else log.parent)], str(tmp_path / "x.capture"), prefix="%t:%r:%u@%d:[%p]:")
    assert "given prefix" in error.value.cause
    assert "'2026-11-28 17:00:00.000 UTC [7] app@shop '" in error.value.hint
    assert "secret" not in error.value.hint


def test_a_prefix_that_matches_only_lines_of_the_server_itself_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "postgresql.log"
    own = "2026-11-28 16:59:00.000 UTC [1] LOG:  ready\n"
    log.write_text(own + "2026-11-28 17:00:00.000 UTC [7] app@shop LOG:  duration: 1.000 ms  statement: select 1\n")
    with pytest.raises(InputError, match="1 line does not match") as error:
        logs.capture([str(log)], str(tmp_path / "x.capture"), prefix="%m [%p] ")
    assert "--prefix" in error.value.subject and "log_line_prefix" in error.value.hint


def test_a_log_whose_compressed_data_are_truncated_is_read_as_far_as_they_reach(tmp_path: Path) -> None:
    whole = "".join(
        statement(1 + line // 500, 7, line, f"select {line * 7919 % 65537}", 0.1) for line in range(1, 20_000)
    )
    packed = gzip.compress(whole.encode())
    log = tmp_path / "log" / "server.csv.gz"
    log.parent.mkdir()
    log.write_bytes(packed[: len(packed) // 2])
    facts = logs.capture([str(log.parent)], str(tmp_path / "x.capture"))
    assert 5000 < facts.statements < 15_000
    assert [one.code for one in facts.notes] == ["capture-truncated-archives"]
    (sentence,) = wording.sentences(facts.notes)
    assert "server.csv.gz" in sentence


def test_damaged_compressed_logs_are_refused_with_their_name(tmp_path: Path) -> None:
    packed = gzip.compress("".join(statement(1, 7, line, "select 1") for line in range(1, 9000)).encode())
    log = tmp_path / "log" / "server.csv.gz"
    log.parent.mkdir()
    for damaged, error in (
        (packed[:30], "truncated before the end of the first"),
        (packed[:-8] + bytes(8), "cannot be read"),
        (packed[:40] + b"\xff" * 40 + packed[80:], "cannot be read"),
    ):
        log.write_bytes(damaged)
        for given in (log, log.parent):
            with pytest.raises((InputError, FailureError), match=rf"server\.csv\.gz.*{error}"):
                logs.capture([str(given)], str(tmp_path / "x.capture"))
            assert not (tmp_path / "x.capture").exists()


def test_a_truncated_compressed_log_with_a_complete_line_is_not_called_too_short(tmp_path: Path) -> None:
    packer = zlib.compressobj(wbits=31)
    line = "2026-11-28 17:00:00 UTC [7] app@shop web LOG:  duration: 1.000 ms  statement: select 1\n"
    packed = packer.compress((line + line[:50]).encode()) + packer.flush(zlib.Z_SYNC_FLUSH)
    log = tmp_path / "postgresql.log.gz"
    log.write_bytes(packed)
    with pytest.raises(InputError, match=r"postgresql\.log\.gz: no line has the form of csvlog or jsonlog"):
        logs.capture([str(log)], str(tmp_path / "x.capture"))
    assert logs.capture([str(log)], str(tmp_path / "x.capture"), prefix="%t [%p] %u@%d %a ").statements == 1


def test_a_transaction_is_chosen_as_a_whole(tmp_path: Path) -> None:
    path = captured(
        tmp_path,
        *(
            statement(1, 7, 1 + n, sql)
            for n, sql in enumerate(("begin", "select 1 from a", "update b set c = 1", "commit"))
        ),
        statement(2, 7, 5, "select 2 from a"),
        statement(3, 7, 6, "select pg_sleep(1)"),
    )
    assert tape.chosen(options(path)).statements == 6
    assert tape.chosen(options(path, only="statement:*from a")).statements == 5
    assert tape.chosen(options(path, **{"except": "statement:update*"})).statements == 2
    assert tape.chosen(options(path, only="user:app,application:w*", **{"except": "statement:*sleep*"})).statements == 5
    with pytest.raises(InputError, match="leave no statement"):
        tape.chosen(options(path, only="user:nobody"))
    for wrong, cause in (("app", "not FIELD:PATTERN"), ("usr:app", "unknown field")):
        with pytest.raises(InputError, match=cause):
            options(path, only=wrong)
    assert selection.read(options(path)).condition == "true"


def test_transactions_that_write_are_left_out_on_request(tmp_path: Path) -> None:
    path = captured(
        tmp_path,
        *(statement(1, 7, 1 + n, sql) for n, sql in enumerate(("begin", "select 1", "delete from b", "commit"))),
        statement(2, 7, 5, "select 2 from a"),
    )
    assert tape.chosen(options(path, read_only="yes")).statements == 1
    assert not selection.read(options(path, read_only="yes")).is_whole("shop")


def test_a_session_is_replayed_several_times(tmp_path: Path) -> None:
    path = captured(tmp_path, *ordered(lambda number: 100 + number, literal=False))
    one, three = (options(path, sessions=number) for number in ("1", "3"))
    assert tape.chosen(three).statements == 3 * tape.chosen(one).statements == 240
    assert tape.chosen(three).clients == 3 * tape.chosen(one).clients == 6
    made = tape.tape(three)
    assert len(made.clients) == 6 and made.clients[0][1] - made.clients[0][0] == made.clients[4][1] - made.clients[4][0]
    assert made.keys.known == 60, "each copy has its own keys"
    ((_, counted),) = made.kinds
    assert {calls for _, calls in counted} == {60}


@pytest.mark.parametrize(
    ("sql", "back"),
    [
        ("select NOW() - at", "select (NOW() - interval '60 s') - at"),
        ("select current_timestamp(3), x", "select (current_timestamp(3) - interval '60 s'), x"),
        ("where day = current_date", "where day = (localtimestamp - interval '60 s')::date"),
        ("select 'now()', t.now, \"now()\", now -- now()", "select 'now()', t.now, \"now()\", now -- now()"),
        ("do $$ now() $$", "do $$ now() $$"),
        ("select knownow()", "select knownow()"),
    ],
)
def test_the_time_of_a_statement_is_moved_back(sql: str, back: str) -> None:
    assert shift.shifted(sql, 60) == back


def test_times_are_moved_back_on_a_tape_and_keys_stay_at_their_places(tmp_path: Path) -> None:
    entries = []
    for number in range(10):
        sql = f"update a set at = now() where id = {100 + number}"
        entries.append(statement(number, 1, 2 * number + 1, "insert into a (x) values (now()) returning id"))
        entries.append(statement(number, 1, 2 * number + 2, sql))
    path = captured(tmp_path, *entries)
    made = tape.tape(options(path, shift_time="yes"))
    assert Path(made.path).read_bytes().count(b"(now() - interval '") == 20
    assert made.keys == keys.KeyUse(10, 10, 10)
    assert b"interval" not in Path(tape.tape(options(path)).path).read_bytes()


def test_sessions_share_clients_only_one_after_another(tmp_path: Path) -> None:
    path = captured(
        tmp_path,
        statement(1, 1, 1, "select 1"),
        statement(2, 2, 1, "select 1"),
        statement(3, 1, 2, "select 1"),
        statement(5, 3, 1, "select 1"),
        statement(6, 2, 2, "select 1"),
    )
    chosen = tape.chosen(options(path))
    assert (chosen.clients, chosen.transactions) == (2, 5)
    made = tape.tape(options(path))
    assert len(made.clients) == 2 and made.clients[0][1] == made.clients[1][0]
    assert made.kinds == (("select", (("select ?", 5),)),)


def test_kinds_of_transactions_are_named_after_their_statements(shop: str) -> None:
    made = tape.tape(options(shop, only="application:pgbench"))
    assert [name for name, _ in made.kinds] == ["select item + insert sale + update sale"]
    assert len(made.kinds[0][1]) == 5
    assert tape.label('with x as (select 1) select * from "a b"') == "with a b"
    assert tape.label("vacuum") == "vacuum"


def test_what_a_replay_cannot_do_is_refused_before_it_starts(shop: str, tmp_path: Path) -> None:
    workload = workloads.get("capture")
    system, choice = System("postgres", "x"), Choice("capture", options(shop))
    suited = workload.suited(Load(warmup_s=0.0), choice.options)
    assert suited.clients == tape.chosen(choice.options).clients
    workload.accepts(system, suited, choice)
    for load, cause in (
        (replace(suited, rate=5.0), "no effect"),
        (replace(suited, transactions=5), "no effect"),
        (replace(suited, warmup_s=1.0), "no effect"),
        (replace(suited, think_time_s=1.0), "no effect"),
    ):
        with pytest.raises(InputError, match=cause):
            workload.accepts(system, load, choice)
    by_rate = replace(choice, options=options(shop, mode="rate"))
    workload.accepts(system, replace(suited, rate=5.0), by_rate)
    with pytest.raises(InputError, match="no trial measures the peak"):
        workload.accepts(system, replace(suited, rate_share=0.5), by_rate)
    with pytest.raises(InputError, match="speed=2"):
        fast = replace(choice, options=options(shop, mode="rate", speed="2"))
        workload.accepts(system, replace(suited, rate=5.0), fast)
    with pytest.raises(InputError, match="missing"):
        workload.accepts(system, suited, Choice("capture", options("")))
    two = captured(tmp_path, statement(1, 1, 1, "select 1"), statement(1, 2, 1, "select 1", database="other"))
    with pytest.raises(InputError, match="several databases: other and shop"):
        workload.accepts(system, replace(suited, clients=2), Choice("capture", options(two)))
    one = Choice("capture", options(two, only="database:shop"))
    workload.accepts(system, replace(suited, clients=1), one)
    changed = workload.identified(one, "postgres")
    Path(two).write_bytes(Path(shop).read_bytes())
    with pytest.raises(InputError, match="was changed"):
        workload.core_work("postgres", changed.options)


def test_a_run_names_the_clients_that_the_capture_needs_and_its_length(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [statement(second, second % 2 + 1, second, "select 1", 10.0) for second in range(1, 11)]
    path = captured(tmp_path, *entries)
    execute(run_file.read("capture", (), options=(f"file={path}",), plan=True, results=str(tmp_path)))
    planned = capsys.readouterr().out
    assert "each with clients=2" in planned and "1 trial, about 9 s of measuring" in planned


@pytest.mark.parametrize("mode", ["schedule", "think", "fast"])
def test_a_rate_without_the_mode_for_rates_is_refused_with_this_mode(mode: str, shop: str, tmp_path: Path) -> None:
    chosen = (f"file={shop}", f"mode={mode}")
    with pytest.raises(InputError, match="no effect") as error:
        execute(run_file.read("capture", (), options=chosen, rate="5", plan=True, results=str(tmp_path)))
    assert "mode=rate" in error.value.hint and "--transactions" not in str(error.value)


def test_a_capture_in_place_of_a_script_is_recognised(shop: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a capture, not a script") as error:
        execute(run_file.read("capture", (shop,), plan=True, results=str(tmp_path)))
    assert f"file={shop}" in error.value.hint


def test_pauses_need_durations(tmp_path: Path) -> None:
    path = captured(tmp_path, *(entry(n, 7, n, "statement: select 1") for n in range(1, 4)))
    choice = Choice("capture", options(path, mode="think"))
    with pytest.raises(InputError, match="needs the durations"):
        workloads.get("capture").accepts(System("postgres", "x"), Load(warmup_s=0.0), choice)
    assert contents.contents(path).between is None


def test_a_file_that_is_no_capture_is_refused(tmp_path: Path) -> None:
    from ironbench.records import parquet

    for name, cause in (("text", "is not a capture"), ("other.parquet", "is a Parquet file, but not a capture")):
        path = tmp_path / name
        path.write_text("x")
        if name.endswith("parquet"):
            parquet.write(path, {"a": bytes(8)})
        with pytest.raises(InputError, match=cause):
            file.facts(str(path))
    with pytest.raises(InputError, match="No such file"):
        file.facts(str(tmp_path / "nowhere"))


def test_a_proxy_does_not_start_without_disk_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy.shutil, "disk_usage", lambda path: SimpleNamespace(free=1 << 20))
    asked = proxy.ProxyOptions("127.0.0.1:0", "postgresql://127.0.0.1:1/shop", str(tmp_path / "shop.capture"))
    with pytest.raises(InputError, match="of disk space is free"):
        proxy.capture(asked, lambda address: None, lambda share, text: None)


def test_a_server_that_accepts_no_connections_is_noticed_when_the_proxy_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert proxy.unreachable(f"postgresql://127.0.0.1:{port}/shop") == ""
        assert proxy.unreachable(f"mysql://127.0.0.1:{port}/shop") == ""
    assert f"127.0.0.1:{port}: " in proxy.unreachable(f"postgresql://127.0.0.1:{port}/shop")
    assert proxy.unreachable("postgresql:///shop?host=/run/nowhere") == ""


def test_statements_that_a_full_disk_lost_are_not_called_missing(tmp_path: Path) -> None:
    output = str(tmp_path / "shop.capture")
    with pytest.raises(FailureError, match="no statement could be stored"):
        proxy.finish(output + ".partial", output, counts={"lost": 12})
    with pytest.raises(InputError, match="no client sent a statement"):
        proxy.finish(output + ".partial", output, counts={"lost": 0})


def test_skipped_statements_are_noted() -> None:
    driven = Driven("", alive=True, summary={"figures": {"capture_statements": 90.0, "capture_skipped": 10.0}})
    metrics, notes = workloads.get("capture").assessed(driven, ())
    assert metrics == {"replayed_statements": 90.0, "replay_skipped_statements": 10.0}
    assert [(one.code, one.values["share"]) for one in notes] == [("replay-skipped", 0.1)]


def marked(second: int, line: int, **counters: int) -> str:
    return statement(second, 99, line, marks.statement(counters))


def test_marks_limit_the_capture_and_give_it_the_servers_counters(tmp_path: Path) -> None:
    path = captured(
        tmp_path,
        statement(1, 7, 1, "begin"),
        statement(1, 7, 2, "select 'before'"),
        marked(2, 1, rows_inserted=5, wal_bytes=1000),
        statement(3, 7, 3, "select 'inside'"),
        statement(3, 7, 4, "commit"),
        statement(4, 8, 1, "insert into t values (1)"),
        marked(5, 2, rows_inserted=6, wal_bytes=5000),
        statement(6, 8, 2, "select 'after'"),
        mask=True,
    )
    facts = file.facts(path)
    assert facts.counters == {"rows_inserted": 1, "wal_bytes": 4000} and facts.counted_database == "shop"
    assert facts.statements == 3 and facts.sessions == 2
    assert ("capture-outside-marks", 3) in [(one.code, one.values.get("statements")) for one in facts.notes]
    # The transaction that began before the first mark is incomplete.
    assert tape.chosen(options(path)).statements == 1


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ([marked(1, 1, wal_bytes=5)], "capture-one-mark"),
        ([marked(1, 1, wal_bytes=5), marked(3, 2, wal_bytes=4)], "capture-counters-reset"),
    ],
)
def test_marks_without_a_growth_are_noted(log: list[str], code: str, tmp_path: Path) -> None:
    facts = file.facts(captured(tmp_path, *log, statement(2, 7, 1, "select 1")))
    assert facts.counters == {} and code in [one.code for one in facts.notes]
    assert all(wording.sentences(facts.notes))


def test_logs_without_work_between_the_marks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="between the marks"):
        captured(tmp_path, statement(1, 7, 1, "select 1"), marked(2, 1, wal_bytes=1), marked(3, 2, wal_bytes=1))


def test_a_replay_that_ends_after_its_schedule_is_flagged(tmp_path: Path) -> None:
    path = captured(tmp_path, *(statement(second, 1, second, "select 1") for second in range(1, 12)))
    length_s = tape.chosen(options(path)).length_s
    for mode, elapsed_s, codes in (
        ("schedule", length_s + 0.1, []),
        ("schedule", length_s + 0.5, ["replay-late"]),
        ("think", length_s + 0.5, []),
    ):
        figures = {"capture_statements": 11.0}
        found = fidelity.measured(options(path, mode=mode), {}, {"figures": figures, "elapsed_s": elapsed_s})
        assert [one.code for one in fidelity.notes(found, elapsed_s)] == codes
    fast = fidelity.measured(options(path, speed="2"), {}, {"figures": figures, "elapsed_s": length_s})
    assert fast[fidelity.LATE] == pytest.approx(length_s / 2)


def replayed(*statements: tuple[str, int], skipped: int = 0, errors: int = 0) -> dict[str, object]:
    return {
        "statements": [{"script": "select", "text": text, "count": count} for text, count in statements],
        "figures": {"capture_statements": float(sum(n for _, n in statements)), "capture_skipped": float(skipped)},
        "errors": {"42P01": errors} if errors else {},
    }


def test_a_replay_is_compared_with_the_recording(tmp_path: Path) -> None:
    selects = (statement(3, 7, line, "select 1") for line in range(1, 101))
    path = captured(
        tmp_path,
        marked(2, 1, rows_inserted=1000, wal_records=1000, wal_bytes=10_000_000),
        *selects,
        marked(5, 2, rows_inserted=2000, wal_records=2000, wal_bytes=20_000_000),
    )
    chosen = options(path)
    grown = {"rows_inserted": 950, "wal_records": 1250, "wal_bytes": 13_000_000, "blocks_hit": 3}
    same = fidelity.measured(chosen, grown, replayed(("select ?", 100)))
    assert same["replay_divergence{of=mix}"] == same["replay_divergence{of=statements}"] == 0
    assert same["recorded_work{of=rows_inserted}"] == 1000 and same["replayed_work{of=rows_inserted}"] == 950
    assert same["replay_divergence{of=rows_inserted}"] == 0.05
    flagged, noted = fidelity.notes(same, 1.0)
    assert (flagged.code, flagged.values) == ("replay-unfaithful", {"measures": ("wal_records",), "most": 0.25})
    assert (noted.code, noted.values) == ("replay-differs", {"measures": ("wal_bytes",), "most": 0.3})
    other = fidelity.measured(chosen, {}, replayed(("select ?", 75), ("select other", 15), skipped=10, errors=6))
    assert other["replay_divergence{of=mix}"] == pytest.approx(15 / 90)
    assert other["replay_divergence{of=failed_statements}"] == 0.06
    assert [one.values["measures"] for one in fidelity.notes(other, 1.0)] == [
        ("mix", "statements", "failed_statements")
    ]
    assert all(wording.sentences((*fidelity.notes(other, 1.0), flagged)))
    part = fidelity.measured(options(path, only="user:app"), grown, replayed(("select ?", 50)))
    assert part == {"replay_divergence{of=mix}": 0.0}, "a part of the replay has no totals"
    some = fidelity.measured(options(path, only="user:app"), grown, replayed(("select ?", 100)))
    assert "recorded_work{of=wal_bytes}" not in some, "the counters are those of the whole database"
    whole = fidelity.measured(options(path, only="database:shop"), grown, replayed(("select ?", 100)))
    assert "recorded_work{of=wal_bytes}" in whole


def test_counters_of_another_database_are_not_compared(tmp_path: Path) -> None:
    path = captured(
        tmp_path,
        statement(2, 99, 1, marks.statement({"rows_inserted": 1000}), database="postgres"),
        statement(3, 7, 1, "insert into t values (1)"),
        statement(4, 99, 2, marks.statement({"rows_inserted": 1000}), database="postgres"),
    )
    assert file.facts(path).counted_database == "postgres"
    found = fidelity.measured(options(path), {"rows_inserted": 1}, replayed(("insert into t values (?)", 1)))
    assert not any("rows_inserted" in metric for metric in found)


UUIDS = [f"0f8fad5b-d9cb-469f-a165-{number * 7919:012x}" for number in range(1, 50)]


def ordered(key_of: object, *, literal: bool) -> list[str]:
    """Returns entries of two sessions that insert rows and then use their keys. `key_of` returns the key of the n-th
    insert."""
    entries, lines = [], {1: 0, 2: 0}

    def add(session: int, second: int, sql: str, *values: object) -> None:
        lines[session] += 1
        if literal:
            for number, value in enumerate(values, 1):
                sql = sql.replace(f"${number}", f"'{value}'" if "-" in str(value) else str(value))
            entries.append(statement(second, session, lines[session], sql))
        else:
            bound = ", ".join(f"${number} = '{value}'" for number, value in enumerate(values, 1))
            message = f"duration: 1.000 ms  execute <unnamed>: {sql}"
            entries.append(entry(second, session, lines[session], message, f"Parameters: {bound}" if values else ""))

    for number in range(20):
        session, key = 1 + number % 2, key_of(number)  # type: ignore[operator]
        add(session, number, "begin")
        add(session, number, "insert into sale (item) values ($1) returning item, id", 7)
        add(session, number, "update sale set note = 5 where item = $2 and id = $1", key, 7)
        add(session, number, "commit")
    return entries


def inferred(path: str) -> tuple[keys.KeyUse, list[tuple[int, int]], list[tuple[int, list[int], list[int], list[int]]]]:
    with file.database() as opened:
        opened.execute(f"CREATE VIEW chosen AS SELECT * FROM {file.source(path)}")
        use = keys.infer(opened, engines.capturing("").generates)
        known = file.asked(opened, "SELECT maker, result FROM keys ORDER BY maker")
        replaced = file.asked(opened, "SELECT number, places, lengths, slots FROM replaced ORDER BY number")
    return use, known, replaced  # type: ignore[return-value]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)], ids=["in order", "reversed"])
@pytest.mark.parametrize("used", [3, 2], ids=["all", "some"])
def test_an_insert_of_several_rows_has_a_key_for_each_row_if_later_statements_contain_all(
    order: tuple[int, ...], used: int, tmp_path: Path
) -> None:
    entries = []
    for number in range(12):
        second, first = 4 * number, 7000 + 3 * number
        entries.append(statement(second, 7, second, "insert into t (a) values ('a), ('), (f(2)), (3) returning id"))
        for place, nth in enumerate(one for one in order if one < used):
            entries.append(statement(second + place + 1, 7, second + place + 1, f"update t set b = {first + nth}"))
    _, _, replaced = inferred(captured(tmp_path, *entries))
    slots = [slot for *_, (slot,) in replaced]
    if used == 3:
        assert slots == [3 * number + nth for number in range(12) for nth in order]
    else:
        assert slots == [], "the key that follows could be the key of any row"


@pytest.mark.parametrize("literal", [True, False])
@pytest.mark.parametrize("key_of", [lambda number: 4990 + number, lambda number: UUIDS[number]], ids=["number", "uuid"])
def test_generated_keys_are_inferred_from_later_statements(key_of: object, literal: bool, tmp_path: Path) -> None:
    path = captured(tmp_path, *ordered(key_of, literal=literal))
    use, known, replaced = inferred(path)
    assert use == keys.KeyUse(20, 20, 20)
    assert known == [(4 * number + 2, 1) for number in range(20)], "`id` is the second column of the result"
    assert [one[3] for one in replaced] == [[slot] for slot in range(20)]
    with file.database() as opened:
        texts = dict(file.asked(opened, f"SELECT number, text FROM {file.source(path)}"))
    for number, places, lengths, (slot,) in replaced:
        key = str(key_of(slot))  # type: ignore[operator]
        assert lengths == [len(key)]
        assert texts[number][places[0] :].startswith(key) if literal else places == [1]
    assert tape.tape(options(path)).keys == use
    assert tape.tape(options(path, keys="recorded")).keys == keys.KeyUse(0, 0, 0)
    shown = text.page(page(path))
    assert "20 statements return a generated key" in shown and "For 100% of these statements" in shown


@pytest.mark.parametrize(
    "key_of",
    [
        lambda number: 5000 - number,
        lambda number: 5000 + 977 * number % 20,
        lambda number: 1795885000 + number,
        lambda number: 5000 + 1000 * number,
        lambda number: UUIDS[number % 3],
    ],
    ids=["falling", "random", "clock", "sparse", "repeated"],
)
def test_other_values_are_no_keys(key_of: object, tmp_path: Path) -> None:
    path = captured(tmp_path, *ordered(key_of, literal=False))
    use, _, replaced = inferred(path)
    assert (use.makers, use.known, replaced) == (20, 0, [])
    assert "For 100% of these statements, ironbench cannot identify the key" in text.page(page(path))


def test_keys_of_two_tables_are_told_apart(tmp_path: Path) -> None:
    """Both have the same numbers at the same time, in another order."""
    entries = []
    for number in range(10):
        sql = (
            "insert into a (x) values (0) returning id",
            f"update a set x = 1 where id = {100 + number}",
            "insert into b (x) values (0) returning id",
            f"update b set x = 1 where id = {101 + number}",
        )
        entries += [statement(number, 1, 4 * number + n, one) for n, one in enumerate(sql, 1)]
    use, known, replaced = inferred(captured(tmp_path, *entries))
    assert use == keys.KeyUse(20, 20, 20)
    slots = {maker: slot for slot, (maker, _) in enumerate(known)}
    assert [(number, one) for number, _, _, (one,) in replaced] == [(maker + 1, slots[maker]) for maker in slots]


def test_the_key_of_a_row_that_a_new_row_refers_to_belongs_to_its_own_maker(tmp_path: Path) -> None:
    """The last statement of each transaction is nearer to the second insert, but contains the key of the first one."""
    entries = []
    for number in range(10):
        key = 5000 + number
        sql = (
            "begin",
            "insert into sale (item) values (7) returning id",
            f"insert into payment (sale) values ({key}) returning id",
            f"update sale set paid = true where id = {key}",
            "commit",
        )
        entries += [statement(number, 1, 5 * number + n, one) for n, one in enumerate(sql, 1)]
    use, known, replaced = inferred(captured(tmp_path, *entries))
    assert use == keys.KeyUse(20, 10, 20)
    assert [maker for maker, _ in known] == [5 * number + 2 for number in range(10)]
    assert [(number, one) for number, _, _, (one,) in replaced] == [
        (5 * slot + n, slot) for slot in range(10) for n in (3, 4)
    ]


@pytest.mark.parametrize(
    ("template", "column"),
    [
        ("insert into t values (?) returning id", 0),
        ("insert into t values (?) returning a, id;", 1),
        ("insert into t values (?) returning t.at, t.order_id", 1),
        ("insert into t values (?) returning *", 0),
        ("select nextval(?)", 0),
    ],
)
def test_the_result_column_of_a_key(template: str, column: int) -> None:
    assert keys.result_column(template) == column


def test_a_capture_from_statistics_has_the_measured_calls_and_says_what_is_invented(tmp_path: Path) -> None:
    found = Digests(
        "shop",
        1_795_885_200_000_000,
        10.0,
        3,
        (
            StatementDigest("SELECT name FROM item WHERE id = $1", "app", 200, 0.002, 190, (("7",), ("8",)), 1, 0),
            StatementDigest("insert into sale (item) values ($1)", "app", 50, 0.01, 50, (("9",),), 0, 1),
            StatementDigest("vacuum", "app", 2, 0.1, 0, refused="utility"),
        ),
        {"wal_bytes": 5000, "commits": 7},
        hidden=4,
    )
    path = str(tmp_path / "shop.capture")
    facts = making.made(path, lambda opened: digests._fill(opened, found, Traits("", digests="statistics"), False))
    assert (facts.statements, facts.sessions, facts.invented, facts.counters) == (252, 3, True, {"wal_bytes": 5000})
    chosen = tape.chosen(options(path))
    assert (chosen.statements, chosen.rows, chosen.writes) == (250, 240, True)
    assert 9 < chosen.length_s < 10.1
    with file.database() as opened:
        sent = file.asked(
            opened, f"SELECT template, parameters, count(*) FROM {file.source(path)} GROUP BY ALL ORDER BY ALL"
        )
    assert sent == [
        ("insert into sale (item) values (?)", ["9"], 50),
        ("select name from item where id = ?", ["7"], 100),
        ("select name from item where id = ?", ["8"], 100),
        ("vacuum", [], 2),
    ]
    assert {one.code for one in facts.notes} == {
        "capture-invented",
        "capture-drawn",
        "capture-not-replayable",
        "capture-hidden",
    }
    shown = text.page(page(path))
    assert "from the statement statistics of the server (statistics)" in shown and "80% are drawn" in shown
    assert len(tape.tape(options(path)).clients) == chosen.clients


def test_values_that_the_server_cut_before_a_long_character_are_not_replayed(tmp_path: Path) -> None:
    values = ["x" * 64 + "...", "x" * 62 + "é...", "x" * 63 + "...", "x" * 61 + "...", "x" * 60 + "...", "x" * 50]
    execute = "duration: 1.000 ms  execute <unnamed>: select $1"
    log = [entry(1, 7, line, execute, f"Parameters: $1 = '{value}'") for line, value in enumerate(values, 1)]
    with file.database() as opened:
        found = file.asked(opened, f"SELECT left_out FROM {file.source(captured(tmp_path, *log))} ORDER BY number")
    assert [reason for (reason,) in found] == [*["cut-parameters"] * 4, None, None]


def test_rates_count_each_transaction_once_in_the_second_of_its_start(tmp_path: Path) -> None:
    """Four transactions of two statements each start in seconds 1, 1, 1 and 2. Every second statement is later."""
    entries = [
        statement(second, session, line, sql)
        for session, begun, ended in ((1, 1, 2), (2, 1, 2), (3, 1, 4), (4, 2, 4))
        for line, (second, sql) in enumerate(((begun, "begin"), (ended, "commit")), 1)
    ]
    found = contents.contents(captured(tmp_path, *entries))
    assert [one.transactions_per_s for one in found.intervals] == [3.0, 1.0, 0.0]
    assert found.peak_per_s == 3.0


def test_a_replay_of_nearly_all_statements_is_not_called_whole(tmp_path: Path) -> None:
    entries = [statement(1 + line % 50, 1, line, "select 1") for line in range(1, 1000)]
    path = captured(tmp_path, *entries, statement(55, 1, 1001, "listen changes"))
    assert "A replay runs 99.9% of the statements" in text.page(page(path))
    (tmp_path / "shop.capture").unlink()
    assert "A replay would be misleading" in text.page(page(captured(tmp_path, *entries, mask=True)))


def test_show_knows_a_capture_by_its_contents(shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert show.show_named(shop, "nowhere", True, False) == 0
    assert '"statements"' in capsys.readouterr().out


def test_the_roles_that_statements_set_are_found(tmp_path: Path) -> None:
    call = "select set_config('role', {}, true), set_config('app.role', 'x', true)"
    texts = [
        *("set role keeper", "SET LOCAL ROLE Keeper", "set session role 'it''s'", 'set role "Shop ""Keeper"""'),
        *("set role = web", "set role to web", "set role none", "reset role", "set application_name = 'role x'"),
        *(call.format("'anon'"), call.format("''")),
    ]
    log = [statement(1, 7, line, text) for line, text in enumerate(texts, 1)]
    prepared = f"duration: 1.000 ms  execute a: {call.format('$1')}"
    log += [entry(1, 7, 50 + n, prepared, f"Parameters: $1 = '{name}'") for n, name in enumerate(["anon", "staff", ""])]
    log += [failed(60, "set role typo"), failed(61, call.format("'typo'"))]
    roles = tape.chosen(options(captured(tmp_path, *log), sessions="2")).roles
    by_statement = {"keeper": (4, 0), "it's": (2, 0), 'Shop "Keeper"': (2, 0), "web": (4, 0)}
    assert roles == by_statement | {"anon": (4, 4), "staff": (2, 2)}


def test_the_statements_of_a_kind_are_numbered_in_the_order_of_the_page(tmp_path: Path) -> None:
    texts = [("begin", 0.1), ("select 1 from a", 2.0), ("update c set x = 1", 9.0), ("select 1 from b", 2.0)]
    texts += [("select 1 from a", 2.0), ("commit", 1.0)]
    log = [
        statement(block, 7, 10 * block + line, text, ms)
        for block in range(1, 4)
        for line, (text, ms) in enumerate(texts, 1)
    ]
    path = captured(tmp_path, *log)
    ((_, numbered),) = tape.tape(options(path)).kinds
    shown = [(one.template, one.calls) for one in contents.contents(path).top]
    assert list(numbered) == shown
    assert [text for text, _ in numbered][:3] == ["update c set x = ?", "select ? from a", "select ? from b"]


def test_statements_that_are_not_numbered_separately_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "_PLACES", 1)
    log = [statement(1, 7, line, f"select 1 from {table}", 5.0) for line, table in enumerate(["a", "b", "c", "c"], 2)]
    log = ["".join((statement(1, 7, 1, "begin", 0.0), *log, statement(2, 7, 9, "commit", 0.0)))]
    ((_, numbered),) = tape.tape(options(captured(tmp_path, *log))).kinds
    assert numbered == (("select ? from c", 2), ("other statements", 4))


@pytest.mark.parametrize(
    ("mode", "rate", "duration_s", "ends_s"),
    [("rate", 10.0, 9.0, None), ("rate", 10.0, 20.0, 9.0), ("rate", 100.0, 20.0, 0.9), ("schedule", None, 20.0, None)],
)
def test_a_capture_that_is_too_short_for_the_rate_is_noted_before_the_trial(
    mode: str, rate: float | None, duration_s: float, ends_s: float | None, tmp_path: Path
) -> None:
    path = captured(tmp_path, *(statement(line // 10, 7, line, "select 1") for line in range(1, 91)))
    load = Load(clients=1, rate=rate, duration_s=duration_s)
    choice = Choice("capture", options(path, mode=mode), data=OwnData(dump="/srv/shop.dump"))
    found = workloads.get("capture").forecast(load, choice)
    assert [one.values["ends_s"] for one in found] == ([] if ends_s is None else [ends_s])
    assert all(f"{ends_s * 1000:g} ms" in one or f"{ends_s:g} s" in one for one in wording.texts(found))


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        (None, ["capture-without-data"]),
        (OwnData(check="select true"), ["capture-without-data"]),
        (OwnData(template="shop"), []),
    ],
)
def test_a_replay_without_restored_data_is_noted(data: OwnData | None, codes: list[str], tmp_path: Path) -> None:
    path = captured(tmp_path, statement(1, 7, 1, "select 1"))
    found = workloads.get("capture").forecast(Load(), Choice("capture", options(path), data=data))
    assert [one.code for one in found] == codes and all(wording.texts(found))


def test_a_replay_of_a_masked_capture_is_noted(tmp_path: Path) -> None:
    path = captured(tmp_path, statement(1, 7, 1, "select 1"), mask=True)
    choice = Choice("capture", options(path), data=OwnData(dump="/srv/shop.dump"))
    assert [one.code for one in workloads.get("capture").forecast(Load(), choice)] == ["capture-masked"]


@pytest.mark.parametrize("plan", [True, False])
def test_plans_and_runs_say_before_they_start_that_a_capture_is_too_short(
    plan: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "run", interrupted)
    path = captured(tmp_path, *(statement(line // 10, 7, line, "select 1") for line in range(1, 91)))
    for rate, warned in (("10", "at 10/s a trial ends after 9 s instead of 20 s"), ("auto:5-30", "at 30/s")):
        chosen = (f"file={path}", "mode=rate")
        execute(
            run_file.read("capture", (), options=chosen, rate=rate, duration="20s", plan=plan, results=str(tmp_path))
        )
        said = capsys.readouterr()
        assert warned in (said.out if plan else said.err)


def test_labs_say_before_they_start_that_a_capture_is_too_short(tmp_path: Path) -> None:
    path = captured(tmp_path, *(statement(line // 10, 7, line, "select 1") for line in range(1, 91)))
    (tmp_path / "rates.toml").write_text(
        f'question = "?"\n[workload]\nname = "capture"\nwith = {{ file = "{path}", mode = "rate" }}\n'
        '[load]\nduration = "20s"\n[measure]\nmetric = "response_time_p50_s"\n[vary]\nrate = [3, 10]\n'
    )
    _, warning = declare.script_warnings(declare.lab(tmp_path / "rates.toml")[0])
    assert "at 10/s a trial ends after 9 s instead of 20 s" in warning


@pytest.mark.parametrize(
    ("kind", "mode"), [("setting", "fast"), ("index", "fast"), ("upgrade", "fast"), ("headroom", "rate")]
)
def test_a_new_lab_replays_a_capture(kind: str, mode: str, tmp_path: Path) -> None:
    path = captured(tmp_path, *(statement(line // 10, 7, line, "select 1") for line in range(1, 91)))
    (tmp_path / "shop.sql").write_text("create table item (id int);\n")
    (tmp_path / "index.sql").write_text("create index on item (id);\n")
    asked = NewLab(dump=str(tmp_path / "shop.sql"), capture=path)
    asked.index = str(tmp_path / "index.sql") if kind == "index" else ""
    asked.today = 10.0 if kind == "headroom" else 0.0
    (tmp_path / "new.toml").write_text(new.text(kind, new.lab_context(kind, asked, tmp_path), "new.toml"))
    lab, _ = declare.lab(tmp_path / "new.toml")
    assert {one.choice.options["mode"] for one in lab.setups} == {mode}
    assert len(lab.setups) > 1


def test_a_new_lab_has_either_scripts_or_a_capture(tmp_path: Path) -> None:
    path = captured(tmp_path, statement(1, 7, 1, "select 1"))
    with pytest.raises(InputError, match="cannot be combined with --capture"):
        new.lab_context("setting", NewLab(script=[path], capture=path), tmp_path)


def test_missing_parameters_are_noted_with_the_setting_that_logs_them(tmp_path: Path) -> None:
    path = captured(tmp_path, entry(1, 7, 1, "duration: 1.000 ms  execute a: select $1"))
    assert any("log_parameter_max_length = -1" in one for one in wording.sentences(file.facts(path).notes))
