"""Foreign records are shown with their gaps, beside trials too, but never ranked, judged or mixed with trials."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, evidence, record

from ironbench import cli
from ironbench.model.record import Check
from ironbench.model.system import Choice
from ironbench.printer import Printer
from ironbench.records import Store, foreign
from ironbench.report.wording.answers.foreign import _GAPS, PROGRAMS
from ironbench.study.foreign import gaps

DATA = Path(__file__).parents[1] / "data" / "foreign"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command on the results below `tmp_path`; returns exit code, stdout and stderr."""
    monkeypatch.setenv("IRONBENCH_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("COLUMNS", "200")

    def command(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ironbench", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return int(end.value.code or 0), *capsys.readouterr()

    return command


def trials(tmp_path: Path) -> None:
    """Stores one trial with 1 client and two with 4 clients."""
    store = Store(tmp_path / "results", Printer.silent())
    for clients, block in ((1, 0), (4, 0), (4, 1)):
        one = record(
            replace(DISK, label="ours"),
            clients,
            1000.0 * clients + block,
            block=block,
            id=f"r{clients}-{block}",
            choice=Choice("tpcb-like", {"scale": "1"}),
            checks=(Check("sums agree", True),),
        )
        store.keep(one, **evidence())


def imported(run: Run, program: str = "pgbench", name: str = "pgbench.txt", label: str = "theirs") -> str:
    code, out, _ = run("record", "import", "--from", program, DATA / name, "--label", label)
    assert code == 0
    return out.strip()


def test_an_import_says_what_it_made_and_a_second_one_makes_nothing(tmp_path: Path, run: Run) -> None:
    id = imported(run)
    assert id.startswith("pgbench-") and (tmp_path / "results" / "foreign" / f"{id}.json").is_file()
    before = (tmp_path / "results" / "foreign" / f"{id}.json").read_bytes()
    code, out, err = run("record", "import", "--from", "pgbench", DATA / "pgbench.txt", "--label", "other")
    assert code == 0 and out.strip() == id
    assert "0 new foreign records, 1 already present" in err
    assert (tmp_path / "results" / "foreign" / f"{id}.json").read_bytes() == before


def test_several_results_of_a_file_are_shown_by_their_common_label(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "loop.log"
    file.write_text(
        "".join(
            f"Vuser 1:{users} Active Virtual Users configured\n"
            f"Vuser 1:TEST RESULT : System achieved {users}000 NOPM from {users}2300 PostgreSQL TPM\n"
            for users in (1, 4)
        )
    )
    code, _, err = run("record", "import", "--from", "hammerdb", file, "--label", "loop")
    assert code == 0 and "label: loop 1, 1 client" in err and "label: loop 2, 4 clients" in err
    assert "to view: `ironbench show 'loop 1'`" in err
    code, shown, _ = run("show", "loop")
    assert code == 0 and "1,000/min" in shown and "4,000/min" in shown


def test_output_of_another_program_is_recognised(run: Run) -> None:
    for words in (("record", "import"), ("record", "import", "--from", "sysbench")):
        code, _, err = run(*words, DATA / "hammerdb.txt")
        assert code == 2 and "the file is output of hammerdb: " in err and "--from hammerdb" in err
    code, _, err = run("record", "import", Path(__file__))
    assert code == 2 and "`ironbench record export`" in err


def test_an_empty_list_names_foreign_records(run: Run) -> None:
    assert "there are no foreign records in " in run("list", "foreign")[2]


def test_foreign_records_are_listed_and_shown_with_their_gaps(run: Run) -> None:
    id = imported(run)
    _, listed, _ = run("list", "foreign")
    assert id in listed and "theirs" in listed and "2,260/s" in listed
    _, shown, _ = run("show", "theirs")
    words = " ".join(shown.split())
    assert (
        "The output of the other program does not contain: the machine, the version and the settings of the database"
    ) in words
    assert "the variation between repeats" in words and "No verdict" in words
    assert "throughput" in shown and "not stated" in shown
    _, whole, _ = run("show", id, "--json")
    assert json.loads(whole)[0]["metrics"]["throughput"] == 2261.969379


@pytest.mark.parametrize("format", ["text", "md", "csv", "json", "html", "png"])
def test_a_report_of_a_foreign_record_has_every_format(format: str, tmp_path: Path, run: Run) -> None:
    imported(run)
    file = tmp_path / f"report.{format}"
    code, out, err = run("report", "theirs", "-o", file, "--format", format)
    assert code == 0 and "report of foreign records" in err
    assert out.strip() == str(file) and file.stat().st_size > 500


def test_the_seconds_of_a_foreign_record_are_in_its_csv_report(run: Run) -> None:
    id = imported(run)
    _, text, _ = run("report", "theirs", "--format", "csv")
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["section"] == "Every second"]
    assert [(row["row"], row["t_s"], row["value"]) for row in rows if row["column"] == "throughput"] == [
        (id, "0.0", "1985.8"),
        (id, "1.0", "2448.2"),
        (id, "2.0", "1448.0"),
        (id, "3.0", "3129.1"),
    ]
    assert {row["text"] for row in rows} == {"foreign"}


def test_a_foreign_record_is_shown_beside_trials_with_as_many_clients_and_without_a_verdict(
    tmp_path: Path, run: Run
) -> None:
    trials(tmp_path)
    imported(run)
    code, text, _ = run("compare", "theirs", "ours")
    assert code == 0 and text.startswith("theirs and ours")
    assert "No verdict and no rank" in text and "The output of the other program does not contain: the machine" in text
    (row,) = (line for line in text.splitlines() if line.strip().startswith("throughput "))
    assert "2,260/s" in row and "4,000/s (4,000 to 4,000/s)" in row
    assert "B / A" not in text and "faster" not in text
    _, document, _ = run("compare", "ours", "theirs", "--json")
    fields = json.loads(document)
    assert fields["verdict"] is None
    assert [side["name"] for side in fields["sides"]] == ["ours", "theirs"]
    assert sorted(fields["sides"][0]["trials"]) == ["r4-0", "r4-1"]
    assert "machine" in fields["sides"][1]["gaps"]


def test_two_foreign_records_are_shown_side_by_side(run: Run) -> None:
    imported(run)
    imported(run, "sysbench", "sysbench.txt", "other")
    code, text, _ = run("compare", "theirs", "other")
    assert code == 0 and "2 foreign records side by side." in text and "324/s" in text and "2,260/s" in text


@pytest.mark.parametrize(
    "words",
    [
        ("lead", "theirs", "ours"),
        ("explain", "theirs", "ours"),
        ("history", "theirs"),
        ("cost", "theirs", "--target", "p99 < 10ms at 100 tps"),
        ("record", "export", "theirs", "-o", "x.ibr"),
    ],
)
def test_a_command_that_ranks_or_judges_refuses_a_foreign_record(
    words: tuple[str, ...], tmp_path: Path, run: Run
) -> None:
    trials(tmp_path)
    imported(run)
    code, _, err = run(*words)
    assert code == 2 and "theirs: is a foreign record" in err and "ironbench compare theirs" in err


def test_a_report_of_trials_and_foreign_records_shows_them_side_by_side_without_a_verdict(
    tmp_path: Path, run: Run
) -> None:
    trials(tmp_path)
    imported(run)
    imported(run, "sysbench", "sysbench.txt", "other")
    code, text, _ = run("report", "theirs", "ours", "other", "--format", "json")
    assert code == 0
    fields = json.loads(text)
    assert [side["name"] for side in fields["sides"]] == ["theirs", "ours", "other"] and fields["verdict"] is None
    assert all("machine" in side["gaps"] for side in (fields["sides"][0], fields["sides"][2]))
    code, text, _ = run("report", "theirs", "ours", "--format", "text")
    assert code == 0 and "No verdict and no rank" in text and "4,000/s (4,000 to 4,000/s)" in text
    assert run("report", "theirs", "nobody")[0] == 2


def test_kinds_of_transactions_that_both_programs_measure_are_rows(tmp_path: Path, run: Run) -> None:
    store = Store(tmp_path / "results", Printer.silent())
    metrics = {
        f"{name}{{script=new-order}}": value for name, value in (("throughput", 10.0), ("response_time_p95_s", 0.2))
    }
    one = record(replace(DISK, label="ours"), 4, metrics=metrics, choice=Choice("tpcc", {"warehouses": "1"}))
    store.keep(one, **evidence())
    imported(run, "hammerdb", "hammerdb.txt")
    _, text, _ = run("report", "theirs", "ours", "--format", "text")
    rows = {line.split("  ")[1]: line for line in text.splitlines() if line.startswith("  new-order:")}
    (p95,) = (line for name, line in rows.items() if "95th" in name)
    assert "5.31" in p95 and "200" in p95
    assert "payment:" not in text


@pytest.mark.parametrize("words", [("report",), ("history",), ("leaderboard", "tpcb-like"), ("list", "records")])
def test_commands_on_everything_leave_foreign_records_out_and_say_so(
    words: tuple[str, ...], tmp_path: Path, run: Run
) -> None:
    trials(tmp_path)
    _, before, said = run(*words)
    assert "left out" not in said
    imported(run)
    code, after, said = run(*words)
    assert code == 0 and after == before
    assert "left out: 1 foreign record, because foreign records are never ranked" in said


def test_a_name_of_trials_means_the_trials(tmp_path: Path, run: Run) -> None:
    trials(tmp_path)
    imported(run, label="ours")
    _, text, _ = run("show", "ours")
    assert "foreign" not in text
    _, text, _ = run("compare", "ours", "r1-0")
    assert "foreign" not in text


def test_a_label_of_several_foreign_records_is_refused_with_their_ids(run: Run) -> None:
    ids = [imported(run), imported(run, "sysbench", "sysbench.txt")]
    code, _, err = run("compare", "theirs", ids[0])
    assert code == 2 and "matches 2 foreign records" in err and all(id in err for id in ids)


def test_secrets_in_the_output_are_not_kept(tmp_path: Path, run: Run) -> None:
    secrets = ("hunter2-secret", "hunter2secret", "s3cretWord")
    text = (DATA / "pgbench-scripts.txt").read_text().replace("pay.sql", "postgresql://app:s3cretWord@db/shop")
    (tmp_path / "password=s3cretWord").write_text(text)
    assert run("record", "import", "--from", "pgbench", tmp_path / "password=s3cretWord")[0] == 0
    assert (
        run("record", "import", "--from", "hammerdb", DATA / "hammerdb.txt", "--label", "password=s3cretWord")[0] == 0
    )
    kept = b"".join(path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()).decode()
    assert "NOPM" not in kept and "app:" in kept
    assert not [secret for secret in secrets if secret in kept]


def test_a_damaged_foreign_record_is_left_out(tmp_path: Path, run: Run) -> None:
    id = imported(run)
    path = tmp_path / "results" / "foreign" / f"{id}.json"
    for data in (b"", b"{", path.read_bytes()[:-40], path.read_bytes().replace(b'"format":1', b'"format":9')):
        path.write_bytes(data)
        unread: list[str] = []
        assert foreign.every(tmp_path / "results", unread) == []
        assert unread == [f"foreign/{id}.json"]
    path.write_bytes(b"{}")
    assert run("show", id)[0] == 2


def test_a_file_that_is_no_bundle_names_the_option_for_other_programs(run: Run) -> None:
    code, _, err = run("record", "import", DATA / "pgbench.txt")
    assert code == 2 and "--from" in err
    code, _, err = run("record", "import", DATA / "pgbench.txt", "--label", "x")
    assert code == 2 and "--label" in err


def test_every_program_and_every_gap_has_words() -> None:
    assert PROGRAMS.keys() == foreign.PROGRAMS.keys()
    names = (
        "pgbench.txt",
        "sysbench.txt",
        "hammerdb-job.json",
        "go-tpc.txt",
        "pgbench-log.txt",
        "hammerdb-counter.txt",
    )
    programs = ("pgbench", "sysbench", "hammerdb", "go-tpc", "pgbench", "hammerdb")
    found = {
        gap for program, name in zip(programs, names, strict=True) for one in foreign.read(program, DATA / name, "")
        for gap in gaps(one)
    }  # fmt: skip
    assert found == _GAPS.keys()
