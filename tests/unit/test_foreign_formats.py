"""Output of other programs is read by its figures; anything else is refused, within bounds and without secrets."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ironbench.errors import InputError
from ironbench.model.foreign import ForeignRecord
from ironbench.records import foreign
from ironbench.records.foreign import output
from ironbench.study.foreign import gaps

DATA = Path(__file__).parents[1] / "data" / "foreign"
OF_FILE = {
    "hammerdb.txt": "hammerdb",
    "hammerdb-job.json": "hammerdb",
    "hammerdb-timing.json": "hammerdb",
    "hammerdb-profile.txt": "hammerdb",
    "hammerdb-counter.txt": "hammerdb",
    "go-tpc.txt": "go-tpc",
    "sysbench.txt": "sysbench",
    "sysbench-histogram.txt": "sysbench",
    "pgbench.txt": "pgbench",
    "pgbench-9.6.txt": "pgbench",
    "pgbench-scripts.txt": "pgbench",
    "pgbench-statements.txt": "pgbench",
    "pgbench-log.txt": "pgbench",
    "pgbench-log-retries.txt": "pgbench",
    "pgbench-aggregated.txt": "pgbench",
}


def read(name: str, tmp_path: Path, change: Callable[[str], str] = lambda text: text) -> ForeignRecord:
    """Imports one of the files, after a change to its text."""
    path = tmp_path / name
    path.write_text(change((DATA / name).read_text()))
    (record,) = foreign.read(OF_FILE[name], path, "")
    return record


def refused(program: str, text: str | bytes, tmp_path: Path) -> str:
    path = tmp_path / "output"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as error:
        foreign.read(program, path, "")
    return f"{error.value}: {error.value.hint}"


def test_every_file_of_these_tests_is_read(tmp_path: Path) -> None:
    assert OF_FILE.keys() == {path.name for path in DATA.iterdir()}
    for name in OF_FILE:
        record = read(name, tmp_path)
        assert record.metrics or record.parts or record.seconds


def test_hammerdb_on_the_console(tmp_path: Path) -> None:
    record = read("hammerdb.txt", tmp_path)
    assert record.metrics == {"new_orders_per_min": 35849, "transactions_per_min": 82449}
    assert (record.version, record.clients, record.elapsed_s) == ("4.10", 4, 300)
    assert record.facts == {"warmup": "2 min", "workload": "TPROC-C", "database": "PostgreSQL"}
    assert [part.name for part in record.parts] == ["New-Order", "Payment"]
    # The summary of all users, not the profile of one.
    assert record.parts[0].metrics["transactions"] == 250568
    assert record.parts[0].metrics["response_time_p99_s"] == pytest.approx(0.007117)
    assert record.failed_users == 0


def test_hammerdb_before_version_3_names_tpm_first(tmp_path: Path) -> None:
    record = read("hammerdb.txt", tmp_path, lambda text: text.replace(
        "System achieved 35849 NOPM from 82449 PostgreSQL TPM", "System achieved 82449 PostgreSQL TPM at 35849 NOPM"
    ))  # fmt: skip
    assert record.metrics == {"new_orders_per_min": 35849, "transactions_per_min": 82449}


def test_a_failed_virtual_user_is_counted(tmp_path: Path) -> None:
    record = read("hammerdb.txt", tmp_path, lambda text: text.replace("2:FINISHED SUCCESS", "2:FINISHED FAILED"))
    assert record.failed_users == 1


def test_hammerdb_jobs_as_json(tmp_path: Path) -> None:
    record = read("hammerdb-job.json", tmp_path)
    assert record.metrics == {"new_orders_per_min": 35849, "transactions_per_min": 82449}
    assert (record.clients, record.started_at, record.parts) == (4, "2023-04-17 10:08:29", ())
    timed = read("hammerdb-timing.json", tmp_path)
    assert timed.parts[0].name == "New-Order"
    assert timed.parts[0].metrics["response_time_mean_s"] == pytest.approx(0.003217)


def test_the_time_profile_of_hammerdb_has_the_response_times_of_all_users(tmp_path: Path) -> None:
    record = read("hammerdb-profile.txt", tmp_path)
    assert (record.clients, record.metrics, record.elapsed_s) == (2, {}, None)
    assert record.facts == {"workload": "TPROC-C", "database": "MariaDB"}
    assert [part.name for part in record.parts] == ["New-Order", "Payment", "Delivery", "Stock-Level", "Order-Status"]
    assert record.parts[1].metrics == pytest.approx(
        {
            "transactions": 20207,
            **{f"response_time_{name}_s": ms / 1e3 for name, ms in (("min", 0.301), ("mean", 1.644), ("max", 44.82))},
            **{f"response_time_{name}_s": ms / 1e3 for name, ms in (("p50", 1.402), ("p95", 3.187), ("p99", 4.502))},
        }
    )
    assert "throughput" in gaps(record) and "response_times" not in gaps(record)


def test_each_report_in_a_time_profile_is_a_record_and_an_unfinished_one_is_left_out(tmp_path: Path) -> None:
    text = (DATA / "hammerdb-profile.txt").read_text()
    (tmp_path / "both").write_text(text + text.replace("SUMMARY OF 2", "SUMMARY OF 4") + text[: text.index("SUMMARY")])
    records = foreign.read("hammerdb", tmp_path / "both", "")
    assert [(one.clients, len(one.parts)) for one in records] == [(2, 5), (4, 5)]


def test_the_transaction_counter_of_hammerdb_is_a_time_series_and_no_result(tmp_path: Path) -> None:
    record = read("hammerdb-counter.txt", tmp_path)
    assert record.seconds == {"t_s": (0.0, 10.0, 20.0, 31.0), "transactions_per_min": (1212, 21480, 22044, 21936)}
    assert (record.metrics, record.started_at, record.elapsed_s) == ({}, "2026-11-24 09:27:58", None)
    assert "throughput" in gaps(record) and "seconds" not in gaps(record)


def test_each_start_of_the_transaction_counter_is_a_record(tmp_path: Path) -> None:
    text = (DATA / "hammerdb-counter.txt").read_text()
    (tmp_path / "both").write_text(text + text.replace("Tue Nov 24", "Wed Nov 25"))
    records = foreign.read("hammerdb", tmp_path / "both", "")
    assert [one.started_at[:10] for one in records] == ["2026-11-24", "2026-11-25"]


def test_a_transaction_counter_without_times_is_refused_with_the_setting(tmp_path: Path) -> None:
    text = (DATA / "hammerdb-counter.txt").read_text()
    plain = "\n".join(line.partition(" tpm @")[0] + " tpm" if " tpm" in line else line for line in text.splitlines())
    assert "contains no times" in (said := refused("hammerdb", plain, tmp_path)) and "tcset timestamps 1" in said


def hammerdb_files(tmp_path: Path, database: str = "PostgreSQL", sections: int = 1) -> list[Path]:
    """Returns the log of a run on PostgreSQL, and a log of the transaction counter."""
    log, counter = tmp_path / "hammerdb.log", tmp_path / "hdbtcount.log"
    log.write_text((DATA / "hammerdb.txt").read_text())
    counter.write_text((DATA / "hammerdb-counter.txt").read_text().replace("MariaDB", database) * sections)
    return [log, counter]


def test_the_counter_log_of_a_run_is_merged_with_its_log(tmp_path: Path) -> None:
    log, counter = hammerdb_files(tmp_path)
    (alone,), (series,) = foreign.read("hammerdb", log, ""), foreign.read("hammerdb", counter, "")
    for paths in ([log, counter], [counter, log]):
        both = foreign.read_run("hammerdb", paths, "night")
        assert both.metrics == alone.metrics and both.seconds == series.seconds and both.parts == alone.parts
        assert (both.clients, both.elapsed_s, both.label) == (alone.clients, alone.elapsed_s, "night")
        assert both.file == ", ".join(path.name for path in paths)
        assert both.id not in (alone.id, series.id)


@pytest.mark.parametrize(
    ("chosen", "database", "sections", "cause"),
    [
        ((0, 0), "PostgreSQL", 1, "NOPM"),
        ((1, 1), "PostgreSQL", 1, "transaction counter"),
        ((0, 1), "MariaDB", 1, "MariaDB"),
        ((0, 1), "PostgreSQL", 2, "2 results"),
    ],
)
def test_files_of_different_runs_are_not_merged(
    tmp_path: Path, chosen: tuple[int, int], database: str, sections: int, cause: str
) -> None:
    files = hammerdb_files(tmp_path, database, sections)
    with pytest.raises(InputError) as error:
        foreign.read_run("hammerdb", [files[one] for one in chosen], "")
    assert cause in str(error.value) and "each file" in error.value.hint


def test_only_hammerdb_writes_a_run_into_several_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one file"):
        foreign.read_run("sysbench", [DATA / "sysbench.txt", DATA / "sysbench-histogram.txt"], "")


def test_several_results_in_a_file_are_several_records(tmp_path: Path) -> None:
    one = (DATA / "hammerdb.txt").read_text()
    (tmp_path / "loop.txt").write_text(one + one.replace("35849", "40000").replace("4 Active", "8 Active"))
    records = foreign.read("hammerdb", tmp_path / "loop.txt", "night")
    assert [(one.clients, one.metrics["new_orders_per_min"], one.label) for one in records] == [
        (4, 35849, "night 1"),
        (8, 40000, "night 2"),
    ]
    assert [len(one.parts) for one in records] == [2, 2]


def test_go_tpc(tmp_path: Path) -> None:
    record = read("go-tpc.txt", tmp_path)
    assert record.metrics["new_orders_per_min"] == 8893.2
    assert record.metrics["transactions_per_min"] == 21621.4
    assert record.metrics["transactions"] == 75 + 737 + 68 + 825 + 83
    assert record.metrics["response_time_mean_s"] == pytest.approx((924.7 + 4992.3 + 84.4 + 3217.9 + 237.3) / 1788e3)
    assert record.elapsed_s == 5.0 and record.clients is None
    new_order = next(part for part in record.parts if part.name == "New-Order")
    assert new_order.metrics["response_time_p999_s"] == pytest.approx(0.0545)


def test_failed_transactions_of_go_tpc_are_counted_with_their_kind(tmp_path: Path) -> None:
    line = "[Summary] NEW_ORDER_ERR - Takes(s): 5.0, Count: 17, TPM: 3.4, Sum(ms): 1978.4, Avg(ms): 0.3\ntpmC:"
    record = read("go-tpc.txt", tmp_path, lambda text: text.replace("tpmC:", line))
    assert record.metrics["failed"] == 17
    assert record.metrics["failed_fraction"] == pytest.approx(17 / (1788 + 17))
    assert next(part for part in record.parts if part.name == "New-Order").metrics["failed"] == 17


def test_go_tpc_without_a_score_has_that_of_its_new_orders(tmp_path: Path) -> None:
    record = read("go-tpc.txt", tmp_path, lambda text: text[: text.index("tpmC:")])
    assert record.metrics["new_orders_per_min"] == 8893.3


def test_sysbench_with_its_intervals(tmp_path: Path) -> None:
    record = read("sysbench.txt", tmp_path)
    assert (record.version, record.clients, record.elapsed_s) == ("1.0.20", 4, 4.3292)
    assert record.metrics["throughput"] == 324.45 and record.metrics["failed"] == 16
    assert record.metrics["failed_fraction"] == pytest.approx(16 / 1421)
    assert record.metrics["response_time_p95_s"] == pytest.approx(0.01165)
    assert "response_time_p99_s" not in record.metrics
    assert record.seconds["t_s"] == (0.0, 1.0, 2.0, 3.0)
    assert record.seconds["throughput"] == (169.71, 434.64, 434.47, 361.91)
    assert record.seconds["failed"] == (3, 3, 3, 5)


def test_the_histogram_of_sysbench_gives_percentiles(tmp_path: Path) -> None:
    record = read("sysbench-histogram.txt", tmp_path)
    assert record.metrics["response_time_p50_s"] == pytest.approx(0.017e-3)
    assert record.metrics["response_time_p95_s"] == pytest.approx(0.03e-3), "as the report itself says"
    assert record.metrics["response_time_p999_s"] == pytest.approx(6.095e-3)


def test_pgbench_with_its_progress(tmp_path: Path) -> None:
    record = read("pgbench.txt", tmp_path)
    assert (record.version, record.clients, record.elapsed_s) == ("15.18", 4, 4)
    assert record.facts["workload"] == "<builtin: TPC-B (sort of)>"
    assert record.metrics["throughput"] == 2261.969379
    assert record.metrics["response_time_mean_s"] == pytest.approx(0.001763)
    assert record.seconds["response_time_mean_s"] == pytest.approx((0.001966, 0.001627, 0.002765, 0.001274))


def test_pgbench_before_version_14_excludes_connections_in_its_second_line(tmp_path: Path) -> None:
    record = read("pgbench-9.6.txt", tmp_path)
    assert record.metrics["throughput"] == 2002.969379 and "failed" not in record.metrics


def test_a_number_of_transactions_gives_the_time(tmp_path: Path) -> None:
    record = read("pgbench-statements.txt", tmp_path)
    assert record.elapsed_s == pytest.approx(100 / 1065.019437)


def test_pgbench_with_several_scripts(tmp_path: Path) -> None:
    record = read("pgbench-scripts.txt", tmp_path)
    assert record.parts[0].name == "pay.sql"
    assert [part.metrics["transactions"] for part in record.parts] == [91, 9]
    assert "hunter2secret" not in str(record)


def test_a_log_of_pgbench_has_exact_percentiles_and_seconds(tmp_path: Path) -> None:
    record = read("pgbench-log.txt", tmp_path)
    times = sorted(int(words[2]) for line in (DATA / "pgbench-log.txt").read_text().splitlines()
                   if (words := line.split())[2] != "failed")  # fmt: skip
    assert record.metrics["transactions"] == len(times) == 599
    assert record.metrics["failed"] == 1 and record.clients == 4
    assert record.metrics["response_time_mean_s"] == pytest.approx(sum(times) / len(times) / 1e6)
    assert record.metrics["response_time_p99_s"] == pytest.approx(times[-(-599 * 99 // 100) - 1] / 1e6)
    assert "response_time_p999_s" not in record.metrics, "too few transactions"
    assert record.started_at == "2026-11-29T20:28:27+00:00"


def test_a_log_whose_last_line_was_cut_off_is_read_without_it(tmp_path: Path) -> None:
    # Without its end, the last number may have lost digits.
    record = read("pgbench-log-retries.txt", tmp_path, lambda text: text + "0 41 99999999 0 1795984115 7")
    assert record.metrics["transactions"] == 40
    assert record.metrics["response_time_max_s"] < 1


def test_an_aggregated_log_counts_only_complete_intervals(tmp_path: Path) -> None:
    record = read("pgbench-aggregated.txt", tmp_path)
    assert (record.metrics["transactions"], record.elapsed_s) == (990, 2)
    assert record.metrics["throughput"] == 495 and record.metrics["failed"] == 2
    assert record.metrics["response_time_mean_s"] == pytest.approx((461339 + 441339) / 990 / 1e6)
    assert record.seconds["throughput"] == (500, 490)


TRUNCATED = {
    "hammerdb": ("hammerdb.txt", "Vuser 1:TEST RESULT"),
    "go-tpc": ("go-tpc.txt", "[Summary] NEW_ORDER"),
    "sysbench": ("sysbench.txt", "SQL statistics"),
    "pgbench": ("pgbench.txt", "transaction type"),
}


@pytest.mark.parametrize("program", TRUNCATED)
def test_output_without_its_summary_is_refused(program: str, tmp_path: Path) -> None:
    name, end = TRUNCATED[program]
    text = (DATA / name).read_text()
    said = refused(program, text[: text.index(end)], tmp_path)
    assert "contains no complete result: the output may be truncated" in said


@pytest.mark.parametrize("program", TRUNCATED)
def test_an_unfinished_run_after_complete_ones_is_left_out(program: str, tmp_path: Path) -> None:
    name, end = TRUNCATED[program]
    text = (DATA / name).read_text()
    (tmp_path / "loop").write_text(text + text[: text.index(end)])
    records = foreign.read(program, tmp_path / "loop", "")
    assert len(records) == 1


@pytest.mark.parametrize("program", TRUNCATED)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"\x1f\x8b\x08\0\0", "compressed with gzip"),
        (b"text\0\1\2" * 99, "a binary file"),
        ("tps".encode("utf-16") * 99, "UTF-16"),
        (b"x" * (1 << 17), "is not the output of"),
        (b"nothing of the kind\n" * 1000, "contains no complete result"),
        (b'{"a": [[[[', "complete"),
    ],
)
def test_other_files_are_refused_by_what_they_are(program: str, content: bytes, words: str, tmp_path: Path) -> None:
    assert words in refused(program, content, tmp_path)


def test_a_pipe_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for name, words in (("pipe", "is not a regular file"), ("", "is a directory"), ("none", "no such file")):
        with pytest.raises(InputError, match=words):
            foreign.read("pgbench", tmp_path / name, "")


def test_a_file_larger_than_the_limit_is_refused_without_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MOST_BYTES", 500)
    assert "is larger than" in refused("pgbench", (DATA / "pgbench.txt").read_text(), tmp_path)


def test_deep_json_is_refused(tmp_path: Path) -> None:
    assert "is not complete JSON" in refused("hammerdb", "[" * 200_000 + "]" * 200_000, tmp_path)


def test_an_unknown_program_names_the_nearest(tmp_path: Path) -> None:
    assert "did you mean sysbench?" in refused("sysbnch", "x", tmp_path)


@pytest.mark.parametrize(
    "line", ["1 2 3", "0 1 2 0 1795984107", "0 1 -5 0 1795984107 1", "0 1 5 0 1795984107 1 2 3 4", "tps = 5"]
)
def test_a_log_with_another_line_is_refused_by_its_number(line: str, tmp_path: Path) -> None:
    good = "0 1 13609 0 1795984107 730343\n"
    assert "line 3 is not a line of pgbench's log" in refused("pgbench", f"{good}{good}{line}\n", tmp_path)


def test_impossible_times_of_a_log_are_refused(tmp_path: Path) -> None:
    text = "0 1 100 0 1795984107 1\n0 2 100 0 99999999999 1\n"
    assert "contains impossible times" in refused("pgbench", text, tmp_path)
    assert "twice" in refused("pgbench", "1795984111 1 2 3 4 5\n" * 2, tmp_path)


def test_figures_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    def broken(text: str) -> str:
        return text.replace("latency average = 1.763 ms", "latency average = inf ms").replace("1448.0 tps", "nan tps")

    record = read("pgbench.txt", tmp_path, broken)
    assert "response_time_mean_s" not in record.metrics
    assert len(record.seconds["t_s"]) == 3


@pytest.mark.parametrize("name", OF_FILE)
def test_no_mutated_file_ends_in_another_error_or_in_a_record_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    data, dice = (DATA / name).read_bytes(), random.Random(name)
    for number in range(60):
        mutated = bytearray(data)
        for _ in range(dice.randrange(1, 8)):
            at = dice.randrange(len(mutated))
            length = dice.choice((1, 1, 4, 40, 400))
            mutated[at : at + length] = dice.choice(
                (b"", b"9" * length, b"\n", bytes(mutated[at : at + length]) * 2, dice.randbytes(length))
            )
        (tmp_path / f"{number}").write_bytes(mutated)
        try:
            records = foreign.read(OF_FILE[name], tmp_path / f"{number}", "")
        except InputError:
            continue
        assert msgspec.json.decode(msgspec.json.encode(records), type=list[ForeignRecord]) == records


def test_impossible_values_are_refused(tmp_path: Path) -> None:
    text = (DATA / "pgbench.txt").read_text().replace("duration: 4 s", "duration: 999999999999 s")
    assert "contains impossible values" in refused("pgbench", text, tmp_path)
