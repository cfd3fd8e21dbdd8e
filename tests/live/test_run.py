"""`ironbench run` on the command line: its output, exit codes and stored records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from user import FULL_SPEED, PAUSED, SHORT, User

from ironbench import catalogue

pytestmark = pytest.mark.live


def test_json_is_one_document_of_the_documented_shape_and_all_talk_is_on_stderr(user: User) -> None:
    told = user.measured("run", "igen-oltp", "--engine", "null", "--clients", "1,2,4", *SHORT, "--json")
    document = told.document
    assert {"schema", "system", "trials", "warnings"} <= document.keys()
    assert document["system"]["engine"] == "null"
    expected = {"id", "cell", "block", "status", "metrics", "checks", "warnings", "record"}
    for trial in document["trials"]:
        assert expected <= trial.keys()
        assert json.loads((Path(trial["record"]) / "record.json").read_text())["id"] == trial["id"]
        assert trial["metrics"]["throughput"] > 0
    assert "trials" in told.stderr


def test_a_sweep_is_followed_by_three_fresh_trials_of_its_peak(user: User) -> None:
    told = user.measured("run", "igen-oltp", "--engine", "null", "--clients", "1,2,4", *SHORT, "--json")
    trials = told.document["trials"]
    sweep, fresh = trials[:3], trials[3:]
    assert sorted(trial["cell"] for trial in sweep) == ["clients=1", "clients=2", "clients=4"]
    assert len(fresh) == 3
    assert {trial["purpose"] for trial in fresh} == {"confirmation"}
    peak = max(sweep, key=lambda trial: trial["metrics"]["throughput"])
    assert {trial["cell"] for trial in fresh} == {peak["cell"]}
    assert [trial["id"] for trial in trials] == [trial["id"] for trial in told.document["trials"]]
    assert len(user.records()) == 6


@pytest.mark.parametrize(
    "words",
    [("igen-oltp",), pytest.param(("igen-oltp", "--with", "weight=heavy"), marks=pytest.mark.long), ("tpcb-like",)],
)
def test_a_trial_on_a_server_of_our_own_is_recorded_whole_and_leaves_nothing_running(
    user: User, fast_directory: Path, words: tuple[str, ...]
) -> None:
    words = (*words, "--data", str(fast_directory / "run"), "--clients", "2", *PAUSED)
    told = user.measured("run", *words, "--duration", "2s", "--warmup", "0s", "--json")
    (trial,) = told.document["trials"]
    assert trial["checks"] and all(check["passed"] for check in trial["checks"]), trial["checks"]
    for name in trial["metrics"]:
        catalogue.metric(name)
    kept = Path(trial["record"])
    assert (kept / "record.json").stat().st_size <= 16384
    assert {path.name for path in kept.iterdir()} >= {"record.json", "latency.hlog", "seconds.parquet"}
    assert user.nothing_runs()


ONE_SECOND = ("--duration", "1s", "--warmup", "0s")


def test_an_open_loop_whose_rate_cannot_be_kept_is_suspect_and_counts_what_waited(user: User, dsn: str) -> None:
    script = user.home / "slow.sql"
    script.write_text("SELECT pg_sleep(0.05);\n")
    words = ("--dsn", dsn, "--clients", "2", "--rate", "200", "--arrivals", "fixed")
    told = user("run", "script", str(script), *words, *ONE_SECOND, "--json")
    assert told.code == 3, told.stderr
    (trial,) = told.document["trials"]
    assert trial["status"] == "suspect"
    assert "rate-not-kept" in [warning["code"] for warning in trial["warnings"]]
    metrics = trial["metrics"]
    assert metrics["not_started"] > 100 and metrics["unfinished"] >= 1
    assert metrics["transactions"] + metrics["not_started"] + metrics["unfinished"] == pytest.approx(200, abs=1)


def test_without_json_the_table_is_on_stdout_and_the_way_to_the_records_on_stderr(user: User) -> None:
    told = user.measured("run", "select-only", "--engine", "null", *SHORT)
    assert "clients" in told.stdout
    assert str(user.results / "trials") in told.stderr


def test_other_verbs_say_what_is_missing_and_exit_2(user: User) -> None:
    for words, said in (
        (("report",), "contains no records"),
        (("compare", "a", "b"), "matches no record"),
        (("show", "igen-olpt"), "did you mean workload igen-oltp"),
        (("run", "igen-oltp", "--threads", "0"), "--threads: 0 is out of range"),
        (("run", "igen-oltp", "--repeats", "many"), "--repeats: 'many' is not a whole number"),
        (("list", "metrcs"), "did you mean metrics?"),
        (("rum",), "run"),
        (("run",), "WORKLOAD is missing"),
        (("run", "igen-oltp", "--cleints", "3"), "--clients"),
        (("report", "--format", "pgn"), "did you mean png?"),
    ):
        told = user(*words)
        assert (told.code, told.stdout) == (2, ""), (words, told)
        assert said in told.stderr, (words, told)
        assert "hint: " in told.stderr, (words, told)
    assert user.untouched()


def test_compare_names_the_label_that_is_unknown_and_the_nearest(user: User) -> None:
    assert user("run", "select-only", "--engine", "null", "--label", "first", *SHORT).code in (0, 3)
    told = user("compare", "first", "frist")
    assert told.code == 2
    assert "frist: matches no record" in told.stderr
    assert "did you mean first" in told.stderr


@pytest.mark.long
def test_a_search_tries_loads_until_it_has_an_answer_and_measures_that_afresh(user: User) -> None:
    told = user.measured("run", "igen-oltp", "--engine", "null", "--clients", "auto:1-8", *FULL_SPEED, "--json")
    assert "best number of clients: " in told.stderr
    trials = told.document["trials"]
    fresh = [trial for trial in trials if trial["purpose"] == "confirmation"]
    assert len(fresh) == 3
    assert len({trial["cell"] for trial in fresh}) == 1
    assert {"clients=1", "clients=2", "clients=4", "clients=8"} <= {trial["cell"] for trial in trials}
    assert len({trial["id"] for trial in trials}) == len(trials)
    found = told.document["search"]
    assert found["of"] == "clients"
    assert {trial["cell"] for trial in fresh} == {f"clients={found['point']}"}
    assert found["sentence"] in told.stderr
    report = user("report")
    assert f"Search result: {found['sentence']}." in report.stdout


def test_a_search_whose_limit_nothing_keeps_says_so(user: User) -> None:
    told = user.measured(
        "run",
        "igen-oltp",
        "--engine",
        "null",
        "--clients",
        "auto:1-8",
        "--limit",
        "response_time_p99_s=0.001us",
        *SHORT,
    )
    assert "the limit on response_time_p99_s" in told.stderr
    assert [{"metric": "response_time_p99_s", "most": 1e-09}] in [record["limits"] for record in user.records()]


def test_a_search_whose_trials_are_too_short_for_its_limit_is_inconclusive(user: User) -> None:
    command = ["run", "igen-oltp", "--engine", "null", "--clients", "2", "--rate", "auto:20-40", "--duration", "1s"]
    command += ["--warmup", "0s", "--limit", "response_time_p99_s=10s"]
    plan = user(*command, "--plan")
    assert "trials in total" in plan.stdout and "at most " in plan.stdout
    told = user(*command)
    assert told.code == 3
    assert "inconclusive: no rate was confirmed (limit: response_time_p99_s at most 10 s)" in told.stderr
    assert "exit code 3: the search is inconclusive" in told.stderr
    assert "has this search result: inconclusive: " in " ".join(user("report").stdout.split())


@pytest.mark.long
def test_a_search_for_a_rate_shows_what_it_tried_rate_by_rate(user: User) -> None:
    told = user.measured(
        "run", "igen-oltp", "--engine", "null", "--clients", "4", "--rate", "auto:100-400", *FULL_SPEED
    )
    assert "best rate: " in told.stderr
    assert all(f"{rate}/s" in told.stdout for rate in (100, 200, 400))
    assert "confirmation" in told.stdout


@pytest.mark.alone
def test_other_programs_that_take_the_cpu_make_a_trial_suspect_and_are_named(user: User) -> None:
    busy = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    others = [subprocess.Popen(busy) for _ in os.sched_getaffinity(0)]
    try:
        told = user("run", "select-only", "--engine", "null", "--duration", "2s", "--warmup", "0s")
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert told.code == 3, told.stderr
    (trial,) = user.records()
    assert trial["status"] == "suspect"
    assert trial["budget"]["other"] > 0.2, "they were as many as the cores"
    (taken,) = [warning["values"] for warning in trial["warnings"] if warning["code"] == "cpu-taken"]
    assert taken["programs"] > 0.2


def test_a_run_with_an_ideal_log_has_it_in_memory_and_leaves_nothing_there(user: User, fast_directory: Path) -> None:
    words = ("--data", str(fast_directory / "run"), "--ideal", "log", "--parallelism", "1")
    user.measured("run", "tpcb-like", *words, *SHORT, "--json")
    (record,) = user.records()
    system = record["system"]
    assert (system["ideal"], system["parallelism"]) == (["log"], 1)
    assert system["layout"]["log"].startswith("/dev/shm/ironbench-")
    assert not Path(system["layout"]["log"]).exists() and user.nothing_runs()


def test_a_run_within_a_budget_measures_as_many_blocks_as_its_plan_says(user: User) -> None:
    words = ("run", "igen-oltp", "--engine", "null", "--clients", "1,2", *SHORT, "--budget", "6s", "--json")
    planned = user(*words, "--plan").document
    assert planned["estimate_s"] <= 6 and len(planned["trials"]) > 2
    told = user.measured(*words)
    assert len(told.document["trials"]) == len(planned["trials"]) + planned["confirmations"]


def test_a_run_whose_clients_connect_anew_says_what_that_took(user: User, dsn: str) -> None:
    words = ("run", "select-only", "--dsn", dsn, "--clients", "2", "--reconnect", "1")
    told = user.measured(*words, "--transactions", "50", "--warmup", "0s", "--no-observe")
    [record] = user.records()
    metrics = record["metrics"]
    assert record["cell"]["load"]["reconnect"] == 1
    assert metrics["reconnects"] == 2 * 49 and 0 < metrics["reconnect_mean_s"] < 1
    assert "New connections" in told.stdout
