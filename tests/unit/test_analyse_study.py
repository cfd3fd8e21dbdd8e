"""A study groups records and finds their differences, sizing ratios and warnings."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, MACHINE, MEMORY, OLTP, Shelf, SortedHistogram, codes, example, record, sweep, unfolded

from ironbench.model.note import note, text_note
from ironbench.model.record import Budget, Record, Status
from ironbench.model.redact import HIDDEN, redacted
from ironbench.model.system import Choice, Load, System
from ironbench.report import compare_page, trial_text, wording
from ironbench.report.document import peaks
from ironbench.report.headline import headline
from ironbench.report.reproduce import run_command
from ironbench.study.balance import balance
from ironbench.study.compare import compare
from ironbench.study.curve import little
from ironbench.study.differences import chosen, differences, flattened, shared
from ironbench.study.runstudy import studies
from ironbench.study.shares import MOST_EVENTS, OTHER, budgets, main_events, waits
from ironbench.study.subjects import Subject, subjects
from ironbench.study.timelines import MOST_POINTS, percentiles, timeline, typical


def test_different_work_is_never_put_in_one_study() -> None:
    other = record(choice=Choice("select-only", {"scale": "4"}))
    assert [study.work for study in studies([record(), other])] == [
        "igen-oltp scale=4 weight=light",
        "select-only scale=4",
    ]


def test_trials_of_one_system_are_one_subject_whatever_their_series_and_seed() -> None:
    again = record(series="later", load=Load(duration_s=30.0, warmup_s=5.0, seed=9))
    assert len(subjects([record(), again])) == 1


def test_systems_of_one_label_are_told_apart_by_what_differs() -> None:
    small = replace(DISK, settings={"shared_buffers": "64MB"})
    names = [subject.name for subject in subjects([record(DISK), record(small)])]
    assert names == ["log on disk (shared_buffers=256MB)", "log on disk (shared_buffers=64MB)"]


def test_names_are_unique_even_where_nothing_tells_apart() -> None:
    names = [subject.name for subject in subjects([record(machine="m1"), record(machine="m2")])]
    assert len(set(names)) == 2


def test_the_standing_is_against_the_first_system() -> None:
    (study,) = studies(example(), Shelf(example()))
    first, second = study.parts
    assert first.standing is None
    assert second.standing is not None
    assert second.standing.ratio == pytest.approx(2.8, abs=0.3)
    low, high = second.standing.extremes or (0.0, 0.0)
    assert low <= second.standing.ratio <= high


def test_a_study_needs_no_evidence_beyond_records() -> None:
    (study,) = studies(example())
    assert all(part.response is None and part.timeline is not None and not part.timeline.lines for part in study.parts)


def test_a_study_of_failed_trials_has_no_peak_and_says_why() -> None:
    (study,) = studies([record(throughput=None, status=Status.FAILED, causes=(text_note("no such host"),))])
    assert study.parts[0].curve.peak is None
    assert wording.texts(study.parts[0].left_out) == ["1 failed trial left out (no such host)."]


def test_derived_results_carry_their_sentence() -> None:
    (study,) = studies([record()], Shelf(), {"igen-oltp": "Not comparable with published results."})
    assert study.derived == "Not comparable with published results."


def test_closed_and_open_loops_are_named() -> None:
    (closed,) = studies([record()])
    (opened,) = studies([record(load=Load(rate=100.0))])
    assert codes(*closed.footnotes) == ["closed-loop"]
    assert codes(*opened.footnotes) == ["open-loop"]
    assert opened.open_loop
    assert not closed.open_loop


def test_emulated_results_say_so() -> None:
    (study,) = studies([record(budget=Budget(emulation=0.12, idle=0.5))])
    assert note("emulation-cost", cpu_share=0.12) in study.footnotes


def test_differences_name_every_fact_that_is_not_the_same() -> None:
    facts = [
        {"engine.version": "18.1", "system.layout.log": "/a"},
        {"engine.version": "18.1", "system.layout.log": "/b"},
    ]
    (row,) = differences(facts)
    assert (row.group, row.name, row.values) == ("system", "layout.log", ("/a", "/b"))
    assert shared(facts) == {"engine.version": "18.1"}


def test_a_fact_that_one_side_lacks_differs() -> None:
    (row,) = differences([{"engine.a": "1"}, {}])
    assert row.values == ("1", "not set")


def test_lists_of_things_are_flattened_by_their_names() -> None:
    blocks = [{"name": "sda", "model": "X"}, {"name": "sdb", "model": None}]
    assert flattened("machine", {"blocks": blocks}) == {
        "machine.blocks.sda.name": "sda",
        "machine.blocks.sda.model": "X",
        "machine.blocks.sdb.name": "sdb",
    }


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("primary_conninfo", "host=h password=secret port=1", f"host=h password={HIDDEN} port=1"),
        ("primary_conninfo", "password='a b' user=x", f"password={HIDDEN} user=x"),
        ("dsn", "postgres://u:secret@h/d", f"postgres://u:{HIDDEN}@h/d"),
        ("settings.ssl_passphrase_command", "echo secret", HIDDEN),
        ("settings.password_encryption", "scram-sha-256", "scram-sha-256"),
        ("settings.work_mem", "4MB", "4MB"),
        ("dsn", "postgres://u@h/d", "postgres://u@h/d"),
    ],
)
def test_passwords_are_hidden_and_nothing_else(name: str, value: str, shown: str) -> None:
    assert redacted(value, name) == shown


def test_passwords_in_nested_facts_are_hidden() -> None:
    flat = flattened("engine", {"settings": {"primary_conninfo": "password=secret"}, "list": ["password=secret"]})
    assert "secret" not in str(flat)


def test_littles_law_holds_in_a_coherent_closed_loop() -> None:
    found = little(record(clients=8, throughput=1000))
    assert found is not None
    assert found.holds


def test_littles_law_counts_think_time() -> None:
    metrics = {"response_time_mean_s": 0.01}
    found = little(record(clients=8, throughput=400, metrics=metrics, load=Load(think_time_s=0.01)))
    assert found is not None
    assert found.holds


def test_incoherent_numbers_are_called_so() -> None:
    found = little(record(clients=8, throughput=1000, metrics={"response_time_mean_s": 0.001}))
    assert found is not None
    assert not found.holds and not found.note.values["holds"]


def test_littles_law_counts_the_time_in_which_clients_connect_anew() -> None:
    metrics = {"response_time_mean_s": 0.001, "reconnects": 30_000.0, "reconnect_mean_s": 0.007}
    found = little(record(clients=8, throughput=1000, metrics=metrics))
    assert found is not None and found.holds and found.expected == pytest.approx(8.0)


def test_littles_law_counts_what_the_window_cut_off_at_either_edge() -> None:
    """One of two clients waits for a lock for half of the window, across its end or its start."""
    for response_s, edges in ((0.0005, {"unfinished_s": 15.0}), (0.00125, {"carried_s": 15.0})):
        metrics = {"response_time_mean_s": response_s, "unfinished_s": 0.0, "carried_s": 0.0}
        bare = little(record(clients=2, throughput=2000, metrics=metrics))
        assert bare is not None
        assert not bare.holds
        found = little(record(clients=2, throughput=3000 if "unfinished_s" in edges else 2000, metrics=metrics | edges))
        assert found is not None
        assert found.expected == pytest.approx(2)


def test_an_open_loop_has_no_fixed_number_at_work() -> None:
    assert little(record(load=Load(rate=100.0))) is None


def test_the_balance_sheet_holds_ratios_and_says_what_is_not_known() -> None:
    (entry, *_), known = balance([record(clients=8)], {}), None
    assert (entry.name, entry.value) == (note("balance-data-to-cache"), known)
    sheet = {entry.name: entry for entry in balance(sweep(DISK, 3000, 6, clients=(8,), repeats=1), MACHINE)}
    assert sheet[note("balance-data-to-cache")].value == pytest.approx(640e6 / (256 << 20))
    assert sheet[note("balance-clients")].value == 4
    assert sheet[note("balance-bandwidth", roles=("log",))].value == pytest.approx(11e6)
    interval = sheet[note("balance-checkpoint-interval")]
    assert (interval.value, interval.words) == (None, note("balance-checkpoints", checkpoints=0, elapsed_s=30.0))


@pytest.mark.parametrize(
    ("engine", "settings", "cache_bytes"),
    [
        ("postgres", {"shared_buffers": "128MB"}, 128 << 20),
        ("sqlite", {"cache_size": "-2000"}, 8 * 2000 * 1024),
        ("sqlite", {"cache_size": "100", "page_size": "8192"}, 8 * 819200),
        ("duckdb", {"memory_limit": "18.8 GiB"}, int(18.8 * 2**30)),
        ("null", {}, None),
    ],
)
def test_an_undeclared_cache_is_as_large_as_the_engines_settings_say(
    engine: str, settings: dict[str, str], cache_bytes: int | None
) -> None:
    system = replace(DISK, engine=engine, memory_bytes=None)
    entry = balance([record(system, 8, metrics={"data_bytes": 640e6})], {}, {"settings": settings})[0]
    assert entry.value == (pytest.approx(640e6 / cache_bytes) if cache_bytes else None)
    assert entry.note == (None if cache_bytes else note("balance-size-unknown", of="cache"))


def test_a_single_number_of_clients_has_no_peak() -> None:
    trials = [record(system, 8, 1000.0) for system in (DISK, MEMORY)]
    (study,) = studies(trials)
    assert study.place == note("measured-at", at="clients", clients=8, or_rate=False)
    assert peaks(study).head[1] == "clients"
    text = unfolded(compare_page.page(compare(Subject("a", (trials[0],)), Subject("b", (trials[1],)))))
    assert " with 8 clients: 1,000/s vs. 1,000/s" in text and "peak" not in text
    assert "sweep" not in trial_text.one(trials[0], {}, {})


def test_cpu_budgets_are_averaged_and_absent_ones_left_out() -> None:
    one = record(budget=Budget(server=0.2, idle=0.8))
    two = record(budget=Budget(server=0.4, idle=0.6))
    (bar,) = budgets([(8, [one, two]), (16, [record()])])
    assert bar.clients == 8
    assert bar.parts["server"] == pytest.approx(0.3)
    assert sum(bar.parts.values()) == pytest.approx(1.0)


def test_cpu_budgets_and_waits_are_those_of_all_trials_of_a_number_of_clients() -> None:
    def spent(trial: Record) -> Record:
        fresh = trial.purpose == "confirmation"
        budget = Budget(server=0.9, idle=0.1) if fresh else Budget(server=0.5, idle=0.5)
        shares = {"wait_share{event=CPU}": 1.0 if fresh else 0.5}
        return replace(trial, budget=budget, metrics={**trial.metrics, **shares})

    trials = [spent(trial) for trial in sweep(DISK, 3000, 6, clients=(1, 8), repeats=1)]
    part = studies(trials, Shelf(trials))[0].parts[0]
    fresh = [trial for trial in trials if trial.purpose == "confirmation"]
    shown = {bar.clients: bar.parts["server"] for bar in part.budgets}
    peak = fresh[0].cell.load.clients
    assert shown[peak] == pytest.approx((0.5 + 0.9 * len(fresh)) / (1 + len(fresh)))
    assert {bar.clients: bar.parts["CPU"] for bar in part.waits}[peak] == 1.0


def test_rare_waits_are_summed_as_other() -> None:
    metrics = {f"wait_share{{event=IO.E{n}}}": (n + 1) / 100 for n in range(MOST_EVENTS + 2)}
    trial = record(metrics=metrics)
    events = main_events([trial])
    (bar,) = waits([(8, [trial])], events)
    assert len(events) == MOST_EVENTS
    assert events[0] == f"IO.E{MOST_EVENTS + 1}"
    assert bar.parts[OTHER] == pytest.approx(0.03)


def test_a_long_trial_is_thinned_to_what_a_chart_can_show() -> None:
    trial = record()

    class Long(Shelf):
        def seconds(self, id: str) -> dict[str, list[float]]:
            return {
                "t_s": [float(t) for t in range(5000)],
                "transactions": [10.0] * 5000,
                "response_p99_s": [float(t == 2500) for t in range(5000)],
            }

    found = timeline(trial, Long([trial]))
    lines = {line.metric: line for line in found.lines}
    assert len(lines["throughput"].t_s) <= MOST_POINTS
    assert set(lines["throughput"].value) == {10.0}
    assert max(lines["response_time_p99_s"].value) == 1.0, "a spike must survive thinning"
    assert found.step_s == 13


def test_seconds_without_transactions_leave_gaps_not_zeros() -> None:
    trial = record()

    class Gap(Shelf):
        def seconds(self, id: str) -> dict[str, list[float]]:
            return {"t_s": [0.0, 1.0], "response_p99_s": [float("nan"), 0.5]}

    (line,) = timeline(trial, Gap([trial])).lines
    assert (line.t_s, line.value) == ((1.0,), (0.5,))


def test_percentiles_come_from_merged_histograms_and_end_where_the_sample_ends() -> None:
    trials = [record(id="a"), record(id="b")]

    class Two(Shelf):
        def histograms(self, id: str) -> dict[str, SortedHistogram]:
            return {"response_time": SortedHistogram([1.0] * 50 if id == "a" else [3.0] * 50)}

    found = percentiles(trials, Two(trials))
    assert found is not None
    assert found.count == 100
    assert dict(found.points)[0.9] == 3.0
    assert max(share for share, _ in found.points) == 0.97, "a 98th percentile needs 149"


def test_the_typical_trial_is_a_real_one_in_the_middle() -> None:
    trials = [record(throughput=value, block=n) for n, value in enumerate((900, 1000, 5000))]
    assert typical(trials).metrics["throughput"] == 1000


def test_the_command_makes_the_same_trials_again() -> None:
    system = replace(MEMORY, label="it's mine", server_cpus=(0, 1), dsn="postgres://u:secret@h/d")
    trials = [record(system, n, block=b, choice=replace(OLTP, defines={"x": "1"})) for n in (4, 1) for b in range(2)]
    said = run_command(trials)
    assert said.startswith("ironbench run igen-oltp --dsn ")
    assert "secret" not in said
    for option in ("-D x=1", "--clients 1,4 --duration 30s --warmup 5s", "--repeats 2", "--seed 1"):
        assert f" {option}" in said
    assert "--memory 256MiB" in said and "--server-cpus 0,1" in said
    assert "'it'\"'\"'s mine'" in said


def test_the_command_of_an_older_record_has_no_option_that_its_work_refuses() -> None:
    """Before `on_error` existed, a workload that drives its own load continued after errors. It has no such option
    now."""
    load = Load(duration_s=30.0)
    assert "--on-error continue" in run_command([record(load=load)])
    assert "--on-error" not in run_command([record(choice=Choice("storage"), load=load)])


def test_a_command_is_told_though_programs_of_its_engine_no_longer_run(tmp_path: Path) -> None:
    for program in ("postgres", "initdb", "pg_controldata", "pg_resetwal"):
        (tmp_path / program).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / program).chmod(0o755)
    system = System("postgres", "mine", settings={"bin": str(tmp_path), "work_mem": "7MB"})
    assert "--set work_mem=7MB" in run_command([record(system)])


def test_roles_on_one_device_are_told_once() -> None:
    class One(Shelf):
        def observed(self, id: str) -> dict[str, dict[str, list[float]]]:
            column = {"t_s": [-1.0, 0.0, 1.0], "value": [9.0, 5.0, 6.0]}
            return {f"device_writes_per_s{{role={role}}}": column for role in ("log", "data")}

    (line,) = timeline(record(), One()).devices
    assert (line.part, line.t_s, line.value) == ("data and log", (0.0, 1.0), (5.0, 6.0))
    metrics = {f"device_writes_per_s{{role={role}}}": 40.0 for role in ("log", "data")}
    names = [entry.name for entry in balance([record(metrics=metrics)], MACHINE)]
    assert note("balance-operations", roles=("data", "log")) in names
    assert note("balance-operations", roles=("log",)) not in names


def test_the_paths_of_a_server_are_no_difference_of_their_own() -> None:
    assert flattened("engine", {"settings": {"data_directory": "/a", "work_mem": "4MB"}}) == {
        "engine.settings.work_mem": "4MB"
    }


def test_a_peak_that_fresh_trials_do_not_bear_out_is_said_to_be_so_and_why() -> None:
    quiet, crowded = Budget(0.8, 0.06, 0, 0, 0.05, 0, 0.09), Budget(0.6, 0.05, 0, 0, 0.34, 0, 0.01)
    swept = [record(throughput=2280, budget=quiet), record(clients=4, throughput=2000, budget=quiet)]
    fresh = [
        record(throughput=x, block=b, purpose="confirmation", budget=crowded) for b, x in enumerate((1580, 1600, 1700))
    ]
    (study,) = studies([*swept, *fresh])
    ((_, headed),) = headline(study)
    assert "; throughput is 30% lower than in the sweep" in headed
    (said,) = [text for text in wording.texts(study.parts[0].warnings) if "confirmation trials" in text]
    assert "8 clients reached 30% less" in said
    assert "34% of the CPU time during the confirmation trials and 5% during the sweep" in said


def test_a_peak_that_is_a_little_lower_when_measured_again_is_what_choosing_the_best_does() -> None:
    fresh = [record(throughput=x, block=b, purpose="confirmation") for b, x in enumerate((920, 930, 905))]
    (study,) = studies([record(throughput=1000), *fresh])
    assert not any("confirmation trials" in text for text in wording.texts(study.parts[0].warnings))
    assert "than in the sweep" not in headline(study)[0][1]


def test_a_shortfall_without_a_cpu_budget_blames_nobody() -> None:
    fresh = [record(throughput=x, block=b, purpose="confirmation") for b, x in enumerate((620, 630, 605))]
    (study,) = studies([record(throughput=1000), *fresh])
    assert any("neither number is reliable" in text for text in wording.texts(study.parts[0].warnings))


def test_littles_law_says_nothing_of_work_that_ends_by_itself() -> None:
    metrics = {"response_time_mean_s": 0.1}
    assert little(record(clients=1, throughput=2, metrics=metrics, load=Load(duration_s=None))) is None


def test_a_whole_rate_is_written_without_a_fraction() -> None:
    assert chosen(DISK, Load(rate=100.0))["load.rate"] == "100"
    assert chosen(DISK, Load(rate=0.1))["load.rate"] == "0.1"


def test_facts_of_the_other_kind_of_loop_are_no_facts_of_this_one() -> None:
    closed, opened = (chosen(DISK, load) for load in (Load(), Load(rate=5.0)))
    assert "load.arrivals" not in closed and "load.think_time_s" in closed
    assert "load.think_time_s" not in opened and "load.arrivals" in opened


@pytest.mark.parametrize(("workload", "word"), [("tpch", "query"), ("igen-oltp", "transaction")])
def test_a_footnote_names_the_work_as_its_workload_does(workload: str, word: str) -> None:
    trials = [record(choice=Choice(workload, {}))]
    (study,) = studies(trials, Shelf(trials), {})
    assert note("closed-loop", unit=word) in study.footnotes


@pytest.mark.parametrize(("elapsed_s", "seconds"), [(3.0, 3), (3.4, 3), (3.97, 4)])
def test_the_count_of_a_second_that_the_trial_did_not_fill_is_not_drawn_as_a_rate(
    elapsed_s: float, seconds: int
) -> None:
    trial = replace(record(), elapsed_s=elapsed_s)

    class Ends(Shelf):
        def seconds(self, id: str) -> dict[str, list[float]]:
            times = [float(t) for t in range(math.ceil(elapsed_s))]
            return {"t_s": times, "transactions": [10.0] * len(times), "response_p99_s": [0.1] * len(times)}

    rates, times = timeline(trial, Ends([trial])).lines
    assert (len(rates.t_s), len(times.t_s)) == (seconds, math.ceil(elapsed_s))
