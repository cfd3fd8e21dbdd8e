"""Captures of production work: what is read from logs, shown, and chosen for a replay."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from ironbench import workloads
from ironbench.cli import show
from ironbench.errors import FailureError, InputError
from ironbench.model.driven import Driven
from ironbench.model.system import Choice, Load, System
from ironbench.report import wording
from ironbench.report.capture import page
from ironbench.report.formats import text
from ironbench.workloads.capture import contents, file, logs, selection, tape

LOGS = Path(__file__).parents[1] / "data" / "pglog"
CSV = str(LOGS / "all-statements.csv")
PREFIX = "%m [%p] %q%u@%d %a "


REST = ',,,,,,,,"web","client backend",,0\n'


def entry(second: int, session: int, line: int, message: str, detail: str = "", *, database: str = "shop") -> str:
    """An entry of a csvlog of PostgreSQL 18."""
    quoted = ['"' + one.replace('"', '""') + '"' for one in (message, detail)]
    return (
        f'2026-11-28 17:00:{second:02}.000 UTC,"app","{database}",{session},"[local]",6b0b1484.{session:x},{line},'
        f'"SELECT",2026-11-28 17:00:00 UTC,3/{line},0,LOG,00000,{quoted[0]},{quoted[1]}{REST}'
    )


def statement(second: int, session: int, line: int, sql: str, ms: float = 1.0, **more: str) -> str:
    return entry(second, session, line, f"duration: {ms:.3f} ms  statement: {sql}", **more)


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
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(Path(CSV).read_bytes() * 50)[:-2000])
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
        ([statement(1, 7, line, "select 1", 250.0) for line in range(1, 120)], "capture-slow-only"),
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
    with pytest.raises(InputError, match="no statement matches"):
        tape.chosen(options(path, only="user:nobody"))
    for wrong, cause in (("app", "not FIELD:PATTERN"), ("usr:app", "unknown field")):
        with pytest.raises(InputError, match=cause):
            options(path, only=wrong)
    assert selection.read(options(path)).condition == "true"


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
    assert made.kinds == (("select", ("select ?",)),)


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
    workload.accepts(system, replace(suited, rate=5.0), replace(choice, options=options(shop, mode="rate")))
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


def test_skipped_statements_are_noted() -> None:
    driven = Driven("", alive=True, summary={"figures": {"capture_statements": 90.0, "capture_skipped": 10.0}})
    metrics, notes = workloads.get("capture").assessed(driven, ())
    assert metrics == {"replayed_statements": 90.0, "replay_skipped_statements": 10.0}
    assert [(one.code, one.values["share"]) for one in notes] == [("replay-skipped", 0.1)]


def test_show_knows_a_capture_by_its_contents(shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert show.shown(shop, "nowhere", True, False) == 0
    assert '"statements"' in capsys.readouterr().out
