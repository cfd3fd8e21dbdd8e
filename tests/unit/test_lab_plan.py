"""`ironbench lab plan` shows what a lab will do and what this machine cannot do. It starts nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ironbench import workloads
from ironbench.cli.lab import plan as planned
from ironbench.errors import InputError, MistakesError
from ironbench.lab import declare
from ironbench.model.lab import SCREEN, Lab
from ironbench.trial.load.estimate import COPY_BYTES_PER_S

START = 'question = "Does it matter?"\n[system]\nengine = "{engine}"\n[workload]\nname = "{workload}"\n'
CLIENTS = "[vary]\nclients = [1, 2]\n"


@pytest.fixture
def lab_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path.parent / f"{tmp_path.name}-data"))
    return tmp_path / "clients.toml"


def lab(path: Path, text: str, engine: str = "null", workload: str = "select-only", budget: float | None = None) -> Lab:
    path.write_text(START.format(engine=engine, workload=workload) + text)
    return declare.lab(path, budget)[0]


def refused(path: Path, text: str, engine: str = "null", workload: str = "select-only") -> InputError:
    with pytest.raises(InputError) as caught:
        lab(path, text, engine, workload)
    assert str(path) in caught.value.subject
    return caught.value


def test_a_lab_is_planned_whole(lab_file: Path) -> None:
    found = lab(lab_file, CLIENTS + "[measure]\nseed = 3\nmargin = 0.02\n[expect]\nclaims = ['2 over 1: 1 to 2']\n")
    assert (found.name, found.baseline, found.method.margin) == ("clients", "clients=1", 0.02)
    assert found.comparisons == (("clients=2", "clients=1"),)
    assert found.claims[0].cells == ("clients=2", "clients=1")
    assert len(found.trials) == 12
    assert found.setup("clients=2").cell.load.clients == 2
    assert found.setup("clients=2").cell.levels == {"clients": "2"}
    assert {trial.purpose for trial in found.trials} == {"lab"}
    assert found.estimate_s > 12 * 35
    assert found.source == lab_file.read_text()
    assert [path.name for path in lab_file.parent.iterdir()] == ["clients.toml"]


def test_a_system_is_called_by_the_levels_that_make_it(lab_file: Path) -> None:
    text = '[vary]\nclients = [1, 2]\n[vary.speed]\nslow = { set = { service = "1ms" } }\nfast = {}\n'
    found = lab(lab_file, text)
    assert [setup.system.label for setup in found.setups] == ["speed=slow", "speed=slow", "speed=fast"]
    assert {setup.system.label for setup in lab(lab_file, CLIENTS).setups} == {"null"}


@pytest.mark.parametrize(("name", "meant"), [("work_mem", ""), ("workmem", "did you mean work_mem?")])
@pytest.mark.parametrize("design", ["", SCREEN])
def test_a_setting_of_a_running_server_is_refused_with_the_way_to_vary_it(
    lab_file: Path, design: str, name: str, meant: str
) -> None:
    lab_file.write_text(
        f"""question = "Does it matter?"
[system]
dsn = "postgresql://bench@db.example/shop"
[workload]
name = "select-only"
[vary.system.set]
{name} = ["4MB", "64MB"]
jit = ["on", "off"]
"""
    )
    with pytest.raises(InputError, match="does not configure existing servers") as caught:
        declare.planned(declare.read(lab_file, design))
    assert "options=-c%20NAME%3DVALUE" in caught.value.hint and "`prepare`" in caught.value.hint
    assert meant in caught.value.hint and ("did you mean" in caught.value.hint) == bool(meant)
    assert "list another value first" not in caught.value.hint


def test_data_that_a_lab_copies_once_are_planned_once(lab_file: Path) -> None:
    def estimated_s(restore: str, workload: str = "select-only", scale: int = 1000, duration: int = 10) -> float:
        work = f'with.scale = {scale}\n[load]\nduration = "{duration}s"\nwarmup = "0s"\n'
        text = work + f'[measure]\nrestore = "{restore}"\n'
        return lab(lab_file, text + CLIENTS, "sqlite", workload).estimate_s

    select_only = workloads.get("select-only")
    options = select_only.validated({"scale": "1000"})
    copy_s = select_only.estimate_bytes("sqlite", options) / COPY_BYTES_PER_S
    assert estimated_s("trial") - estimated_s("auto") == pytest.approx(11 * copy_s)
    for same in ({"workload": "tpcb-like"}, {"scale": 1}, {"duration": 10_000}):
        assert estimated_s("trial", **same) == estimated_s("auto", **same)


def test_cells_that_leave_one_directory_otherwise_are_planned_with_a_copy_each(lab_file: Path) -> None:
    text = '[load]\nduration = "10s"\n[measure]\nrestore = "{}"\n[vary]\n"workload.with.scale" = [999, 1000]\n'
    trial, auto = (lab(lab_file, text.format(restore), "sqlite").estimate_s for restore in ("trial", "auto"))
    assert trial == auto


def test_a_cell_that_is_impossible_here_is_named_and_skipped(lab_file: Path) -> None:
    found = lab(lab_file, "[vary]\nclients = [1, 2, 1001]\n", "sqlite")
    skipped = found.setup("clients=1001")
    assert "SQLite supports 1 to 1000" in skipped.skipped
    assert {trial.cell.name for trial in found.trials} == {"clients=1", "clients=2"}
    assert found.comparisons == (("clients=2", "clients=1"),)


def test_a_workload_that_an_engine_cannot_run_is_skipped(lab_file: Path) -> None:
    text = '[vary.engine]\na = {}\nb = { set = { service = "1ms" } }\nc = { engine = "sqlite" }\n'
    (lab_file.parent / "own.sql").write_text("SELECT 1;\n")
    found = lab(lab_file, 'files = ["own.sql"]\n' + text, "null", "script")
    assert [setup.skipped for setup in found.setups] == ["", "", ""]
    assert found.setups[0].choice.scripts == (str(lab_file.parent / "own.sql"),)


def test_a_file_that_an_option_names_starts_at_the_directory_of_the_lab_file(lab_file: Path) -> None:
    found = lab(lab_file, f'with.png = "set.png"\n{CLIENTS}', "none", "igen-cpu")
    assert {setup.choice.options["png"] for setup in found.setups} == {str(lab_file.parent / "set.png")}


def test_a_directory_that_cannot_be_made_is_the_reason(lab_file: Path) -> None:
    text = """
        [vary.data]
        here = { layout.data = './here' }
        there = { layout.data = '/proc/there' }
        beside = { layout.data = './beside' }
    """
    found = lab(lab_file, text, "sqlite")
    assert "/proc/there" in found.setup("data=there").skipped
    assert found.setup("data=here").system.layout.data == str(lab_file.parent / "here")


def test_without_its_baseline_a_lab_cannot_be_run(lab_file: Path) -> None:
    error = refused(lab_file, "[vary]\nclients = [1001, 1, 2]\n", "sqlite")
    assert "baseline" in error.cause and "SQLite supports 1 to 1000" in error.cause


def test_with_fewer_than_two_cells_a_lab_cannot_be_run(lab_file: Path) -> None:
    error = refused(lab_file, "[vary]\nclients = [1, 1001]\n", "sqlite")
    assert "fewer than two" in error.cause and "clients=1001" in error.hint


@pytest.mark.parametrize(
    ("text", "subject", "cause"),
    [
        ("[load]\nduration = 'soon'\n" + CLIENTS, "load.duration", "not a duration"),
        ("[load]\nrate = 5.0\nthink_time = '1ms'\n" + CLIENTS, "load.think_time", "combined with load.rate"),
        ("[load]\nduration = '1s'\ntransactions = 5\n" + CLIENTS, "load.transactions", "combined with load.duration"),
        ("with.scael = 2\n" + CLIENTS, "workload.with.scael", "is not an option"),
        ("files = ['a.sql']\n" + CLIENTS, "a.sql", "runs built-in scripts"),
        ("[vary]\nsystem.engine = ['null', 'postgre']\n", "engine postgre", "no such engine"),
        ("[vary]\nworkload.name = ['select-only', 'select-onli']\n", "workload select-onli", "no such workload"),
        ("[vary]\nideal = ['none', 'lgo']\n", "system.ideal", "zero-latency version"),
        (CLIENTS + "[measure]\nmetric = 'thruput'\n", "measure.metric", "unknown metric"),
        (CLIENTS + "[measure]\nmetric = 'transactions'\n", "measure.metric", "neither higher nor lower"),
        (CLIENTS + "[measure]\nmetric = 'wal_bytes_per_transaction'\n", "measure.metric", "null does not have"),
        (CLIENTS + "[expect]\nclaims = ['2 over 1 (load_rows_per_s): 1 to 2']\n", "claims[0]", "before its trials"),
        (CLIENTS + "[expect]\nclaims = ['2 over 1 (not_started): 1 to 2']\n", "claims[0]", "open loop"),
        (CLIENTS + "[expect]\nclaims = ['2 over 1 (throughput{script=a}): 1 to 2']\n", "claims[0]", "one script"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_in_the_words_of_the_file(lab_file: Path, text: str, subject: str, cause: str) -> None:
    error = refused(lab_file, text)
    assert subject in error.subject
    assert cause in error.cause


def test_all_mistakes_of_a_file_are_named_at_once(lab_file: Path) -> None:
    wrong = """
[load]
durration = "5s"
cache = "wram"
clients = "four"
[vary]
memory = ["1MB"]
[measure]
repeats = 0
margin = 3.0
"""
    with pytest.raises(MistakesError) as caught:
        lab(lab_file, wrong)
    fields = [one.subject.partition(", ")[2] for one in caught.value.mistakes]
    right_names = ["measure.repeats", "measure.margin", "vary.memory"]
    assert fields == ["load.durration", "load.cache", "load.clients", *right_names]
    assert "did you mean duration?" in str(caught.value)

    with pytest.raises(MistakesError) as caught:
        lab(lab_file, wrong.replace("durration", "duration").replace("wram", "warm").replace('"four"', "4"))
    fields = [one.subject.partition(", ")[2] for one in caught.value.mistakes]
    assert fields == right_names


def test_all_values_that_cannot_be_are_named_at_once_and_not_for_each_cell(lab_file: Path) -> None:
    load = "[load]\nduration = 'soon'\nwarmup = '-1s'\ntransactions = 0\n"
    with pytest.raises(MistakesError) as caught:
        lab(lab_file, f"{load}[limits]\nmemory_total = 'much'\n{CLIENTS}")
    assert [one.subject.removeprefix(f"{lab_file}, ") for one in caught.value.mistakes] == [
        "load.duration",
        "load.warmup",
        "load.transactions",
        "limits.memory_total",
    ]


def test_a_mistake_that_cells_share_is_named_once(lab_file: Path) -> None:
    text = "with.scael = 2\n" + CLIENTS + "[expect]\nclaims = ['2 over 3: 1 to 2', '1 over 2']\n"
    with pytest.raises(MistakesError) as caught:
        lab(lab_file, text)
    assert [one.subject.split(", ")[1] for one in caught.value.mistakes] == [
        "expect.claims[0]",
        "expect.claims[1]",
        "configuration clients=1",
    ]


def test_a_metric_that_a_workload_cannot_have_is_refused(lab_file: Path) -> None:
    claim = "[expect]\nclaims = ['2 over 1 ({metric}): 1 to 2']\n"
    reads = CLIENTS + claim.format(metric="wal_bytes_per_transaction")
    assert "writes nothing" in refused(lab_file, reads, "postgres").cause
    parts = CLIENTS + claim.format(metric="throughput{script=place_ordr}")
    assert "no script place_ordr" in refused(lab_file, parts, "postgres", "igen-oltp").cause
    for metric in ("query_time_s{query=q01}", "maintenance_elapsed_s", "debt_settle_s", "storage_iops"):
        refusal = refused(lab_file, CLIENTS + claim.format(metric=metric), "postgres", "igen-oltp")
        assert "igen-oltp does not measure this metric" in refusal.cause


def test_a_percentile_of_one_script_is_accepted_only_if_the_workload_records_it(lab_file: Path) -> None:
    claim = "[expect]\nclaims = ['2 over 1 (response_time_p95_s{{script={script}}}): 1 to 2']\n"
    lab(lab_file, CLIENTS + claim.format(script="payment"), "postgres", "tpcc")
    refusal = refused(lab_file, CLIENTS + claim.format(script="place_order"), "postgres", "igen-oltp")
    assert "response_time_p99_s" in refusal.hint and "response_time_p95_s" not in refusal.hint


def test_a_metric_that_tpch_does_not_have_with_these_options_is_refused(lab_file: Path) -> None:
    vary = "[vary]\nparallelism = [1, 2]\n[workload.with]\nqueries = '1,6'\n[expect]\n"

    def refusal(metric: str) -> str:
        text = vary + f"claims = ['2 over 1 ({metric}): 1 to 2']\n"
        return refused(lab_file, text, "postgres", "tpch").cause

    assert "with certain values in braces" in refusal("query_time_s")
    assert "with certain values in braces" in refusal("query_time_s{query=q02}")
    assert "does not measure this metric with these options" in refusal("power")
    assert "does not measure this metric with these options" in refusal("throughput_test_s")
    assert "runs its own code" in refusal("service_time_p99_s")
    assert "work that is not part of its queries" in refusal("client_cpu_per_transaction_s")


def test_cells_that_come_to_the_same_are_refused(lab_file: Path) -> None:
    error = refused(lab_file, "[vary]\nload.duration = ['60s', '1m']\n")
    assert "the same configuration" in error.cause


def test_the_plan_shows_cells_order_and_estimate(lab_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab(lab_file, "[vary]\nclients = [1, 2, 4]\n[measure]\nseed = 1\nstages = [6, 6]\n")
    assert planned(str(lab_file), "", json=False) == 0
    shown = capsys.readouterr().out
    assert "Does it matter?" in shown
    assert "3 configurations, design one-at-a-time" in shown
    assert "12 blocks, each block in random order (seed 1)" in shown
    assert "interim analysis 1 of 2" in shown
    assert "36 trials" in shown
    assert "90% power" in shown


def test_a_plan_speaks_of_no_time_around_trials_where_there_is_next_to_none(
    lab_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for warmup, named in (("0s", False), ("5s", True)):
        lab(lab_file, f"[load]\nwarmup = '{warmup}'\nduration = '2s'\n{CLIENTS}")
        assert planned(str(lab_file), "", json=False) == 0
        shown = capsys.readouterr().out
        assert "each trial takes 2 s of measuring" in shown and ("s of warm-up" in shown) is named, shown


def test_the_time_of_a_plan_is_called_an_estimate_that_a_fast_machine_undercuts(
    lab_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab(lab_file, f"[load]\nwarmup = '0s'\nduration = '2s'\n{CLIENTS}", "postgres")
    assert planned(str(lab_file), "", json=False) == 0
    shown = capsys.readouterr().out
    assert "of starting, restoring and checking (less on a fast machine)\n" in shown, shown


def test_a_plan_names_only_what_takes_time_and_space(lab_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lab_file.parent / "one.sql").write_text("SELECT 1;\n")
    load = "[load]\nwarmup = '1s'\nduration = '3s'\n[vary]\nclients = [1, 2]\n"
    of_others = 'question = "Does it matter?"\nsystem.dsn = "host=db.example user=bench dbname=bench"\n'
    lab_file.write_text(of_others + '[workload]\nname = "script"\nfiles = ["one.sql"]\n' + load)
    assert planned(str(lab_file), "", json=False) == 0
    shown = capsys.readouterr().out
    assert "in total: each trial takes 3 s of measuring and about 1 s of warm-up\n" in shown, shown
    assert " of disk space for records\n" in shown
    assert "(at most 4 s)\n" in shown, "not 30 s, and nothing shorter"

    lab(lab_file, load, "sqlite")
    assert planned(str(lab_file), "", json=False) == 0
    shown = capsys.readouterr().out
    assert "of warm-up, starting, restoring and checking" in shown and "data, snapshots and records" in shown


def test_a_budget_chooses_blocks_and_length_and_says_what_they_resolve(
    lab_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab(lab_file, CLIENTS)
    planned(str(lab_file), "15m", json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["estimate_s"] <= 900
    assert document["method"]["budget_s"] == 900
    assert len(document["trials"]) >= 12
    assert 0.01 < document["resolution"]["detectable"] < 0.2
    assert document["resolution"]["needed_s"] > 900
    planned(str(lab_file), "15m", json=False)
    assert "minimum detectable effect in 15 min:" in capsys.readouterr().out


@pytest.mark.parametrize(("stages", "ends"), [("", True), ("stages = 1", False)])
def test_a_plan_with_a_budget_says_when_the_lab_exceeds_it(
    lab_file: Path, capsys: pytest.CaptureFixture[str], stages: str, ends: bool
) -> None:
    lab(lab_file, f"{CLIENTS}[measure]\n{stages}\n")
    planned(str(lab_file), "15m", json=False)
    shown = capsys.readouterr().out
    assert "exceeds its budget by more than 10%" in shown
    assert ("ends at the last interim analysis before it would exceed the budget by more than 10%" in shown) == ends
    assert ("exceeds the budget, because it has no interim analysis" in shown) == (not ends)


def test_a_budget_needs_trials_of_a_known_time(lab_file: Path) -> None:
    with pytest.raises(InputError, match=r"load\.transactions"):
        lab(lab_file, "[load]\ntransactions = 10\n" + CLIENTS, budget=900)


def test_a_budget_keeps_times_that_the_lab_varies(lab_file: Path) -> None:
    found = lab(lab_file, "[vary]\nload.duration = ['5s', '10s']\n", budget=600)
    assert [setup.cell.load.duration_s for setup in found.setups] == [5.0, 10.0]
    assert found.method.blocks > 6


def test_five_hundred_cells_are_planned(lab_file: Path) -> None:
    levels = ", ".join(map(str, range(1, 501)))
    found = lab(lab_file, f"[vary]\nclients = [{levels}]\n")
    assert len(found.setups) == 500


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        declare.lab(tmp_path / "none.toml")


def test_cells_of_different_workloads_are_not_compared() -> None:
    lab, _ = declare.lab(Path(__file__).parents[2] / "labs" / "old-against-new.toml", None)
    works = {setup.cell.name: setup.choice.workload for setup in lab.setups}
    assert len(lab.comparisons) == 12 + 16, "new over old at each number of clients, more clients over one"
    assert all(works[cell] == works[baseline] for cell, baseline in lab.comparisons)


@pytest.mark.parametrize("name", ["old-against-new", "two-processors"])
def test_labs_of_two_servers_have_curves_and_fit_a_quarter_of_an_hour(name: str) -> None:
    lab, _ = declare.lab(Path(__file__).parents[2] / "labs" / f"{name}.toml", 900.0)
    if any(setup.skipped for setup in lab.setups):
        pytest.skip("two CPU limits need two CPUs")
    assert {setup.cell.load.clients for setup in lab.setups} == {1, 2, 4}
    assert lab.method.blocks >= 6
    assert lab.estimate_s <= 900
