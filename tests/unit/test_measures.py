"""Records stay small however much was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from ironbench import _core, catalogue, workloads
from ironbench.catalogue import storage_tests
from ironbench.model.driven import Driven
from ironbench.model.note import Note, text_note
from ironbench.model.record import Budget, Check, Record, Status
from ironbench.model.system import Cell, Choice, Layout, Load, System
from ironbench.records import Store, make, measures
from ironbench.workloads import probe_client
from ironbench.workloads.storage import figures
from ironbench.workloads.storage.passes import PassResult

MOST_BYTES = 16384
LONG = 1234567.8912345678
"""A number with the maximum number of digits."""


def histogram_of(count: int) -> _core.Histogram:
    found = _core.Histogram()
    for _ in range(count):
        found.record(1000)
    return found


def histogram() -> _core.Histogram:
    found = _core.Histogram()
    for nanoseconds in range(1_000_003, 9_000_000, 777_777):
        found.record(nanoseconds)
    return found


def driven(scripts: list[str]) -> Driven:
    """Returns as much as the core can report about a trial with these scripts."""
    told = [
        {"name": name, "weight": 1, "transactions": 1000 + n, "failed": int(n == 1)} for n, name in enumerate(scripts)
    ]
    names = ["response_time", "service_time"]
    names += [f"{kind}{{script={name}}}" for kind in names for name in scripts]
    summary = dict.fromkeys(measures._PLAIN, LONG) | {
        "transactions": 123456789,
        "elapsed_s": 29.123456789012345,
        "failed": 3,
        "errors": {"40001": 12},
        "scripts": told,
    }
    return Driven("2026-01-01T00:00:00+00:00", True, summary=summary, histograms={n: histogram() for n in names})


def ended_early(**summary: object) -> dict[str, float]:
    whole = driven([])
    return measures.metrics(replace(whole, summary=whole.summary | {"aborted": True, "errors": {}} | summary))


def test_a_trial_that_died_before_its_window_counted_nothing_and_not_zero() -> None:
    assert ended_early(elapsed_s=0.0, transactions=0, failed=0) == {}


def test_failures_of_a_trial_that_died_are_shown_where_some_were_counted_else_unknown() -> None:
    died = ended_early(failed=0)
    assert died["transactions"] > 0 and died.keys().isdisjoint({"failed", "failed_fraction", "errors"})
    assert ended_early(failed=7)["failed"] == 7


BESIDE_A_BYSTANDER = ("backup", "restore", "index-build", "vacuum")
OF_SOME_WORK = {
    "storage_": ("storage",),
    "population_": ("populate",),
    "debt_": ("populate",),
    "maintenance_": BESIDE_A_BYSTANDER,
    "bystander_": BESIDE_A_BYSTANDER,
    "restore_": ("restore",),
}
"""Prefixes of metrics that only some workloads measure; their source in the catalogue names the workload."""


def of_other_work(metric: catalogue.Metric, name: str) -> bool:
    for beginning, measuring in OF_SOME_WORK.items():
        if metric.name.startswith(beginning):
            return name not in measuring
    named = [one for one in ("tpch", "igen-ram", "igen-cpu", "brokerage") if one in metric.source]
    return bool(named) and name not in named


def fullest(choice: Choice, metrics: dict[str, float]) -> Record:
    told = [one.name for one in catalogue.metrics().values() if not of_other_work(one, choice.workload)]
    observed = dict.fromkeys(told, LONG)
    place = "/srv/databases/of-the-laboratory/device-under-test"
    return Record(
        id="20261121T022652-6e4e-clients10000-c2",
        series="20261121T022652-6e4e",
        system=System("postgres", "a label of some length", {"io_method": "io_uring"}, Layout(place, place, place)),
        choice=choice,
        cell=Cell("clients=10000", Load(10000, 16, LONG)),
        block=2,
        purpose="confirmation",
        started_at="2026-01-01T00:00:00+00:00",
        elapsed_s=LONG,
        status=Status.SUSPECT,
        metrics=measures.concise(observed | metrics),
        checks=tuple(Check(f"a rule of the workload {n}", True, "123456789", "123456789") for n in range(6)),
        warnings=tuple(Note("own-cpu-share", {"text": "x" * 90}) for _ in range(4)),
        causes=(text_note("y" * 200),),
        budget=Budget(*[0.12345] * 8),
        machine="0" * 16,
        engine="0" * 16,
        software=make.software(),
    )


def written(record: Record, results: Path) -> int:
    store = Store(results)
    store.keep(record)
    return (store.path(record.id) / "record.json").stat().st_size


@pytest.mark.parametrize("name", sorted(set(workloads.names()) - {"script"}))
def test_a_record_of_every_workload_is_at_most_16_kilobytes(name: str, tmp_path: Path) -> None:
    workload = workloads.get(name)
    choice = Choice(name, workload.validated({}))
    scripts = [script.name for script in workload.scripts("postgres", choice)]
    assert written(fullest(choice, measures.metrics(driven(scripts), workload.script_figures)), tmp_path) <= MOST_BYTES


def test_of_many_statements_a_record_holds_those_that_took_most_and_the_beginning_of_their_texts() -> None:
    statement = {"script": "/srv/scripts/of-the-laboratory/new_order.sql", "count": 123456, "failed": 123}
    statement |= {"text": "SELECT " + "x" * 1000, "stdev_s": LONG}
    rows = [statement | {"line": 3 * n, "command": n, "mean_s": n * 1e-3} for n in range(1, 41)]
    found = measures.statements(replace(driven([]), summary={"statements": rows}))
    assert [one.command for one in found] == list(range(41 - measures.MOST_STATEMENTS, 41))
    assert len(msgspec.json.encode(found)) < 3000


def test_of_many_scripts_those_that_ran_most_have_figures_of_their_own() -> None:
    names = [f"script{n}" for n in range(50)]
    found = measures.metrics(driven(names))
    told = {catalogue.part_of(name) for name in found} - {""}
    assert told == {f"script={name}" for name in names[-measures.MOST_SCRIPTS :]}


def test_a_script_has_throughput_and_response_time_in_short_and_no_service_time() -> None:
    found = measures.metrics(driven(["a", "b"]))
    own = {catalogue.base_name(name) for name in found if name.endswith("{script=a}")}
    assert own == {"throughput", "response_time_mean_s", "response_time_p50_s", "response_time_p99_s"}
    assert found["failed{script=b}"] == 1 and "failed{script=a}" not in found


def test_a_lone_script_is_the_whole() -> None:
    assert not [name for name in measures.metrics(driven(["a"])) if "{" in name]


def test_every_metric_of_the_core_is_in_the_catalogue() -> None:
    for name in measures.metrics(driven(["a", "b"])):
        catalogue.metric(name)


def test_percentiles_of_too_few_times_of_a_bystander_or_of_a_disk_are_not_kept() -> None:
    few = histogram_of(50)
    seen = probe_client.ProbeTimes(dict.fromkeys(probe_client.KINDS, few))
    ran = replace(driven([]), histograms=probe_client.histograms(seen, seen))
    test = storage_tests.Test("sync4k", "SYNC4K", "write", "random", 4096)
    once = PassResult(test, 0.0, 1.0, 50, 50 * 4096, 0.1, histogram_of(0), few, (), "io_uring", "", stopped=False)
    for kept in (probe_client.metrics(seen, seen) | measures.metrics(ran), figures.metrics([once])):
        assert any("_p50_s" in name for name in kept)
        assert not [name for name in kept if name.startswith(("bystander_", "storage_")) and "_p99_s" in name]


def test_work_beside_what_is_counted_leaves_nothing_to_say_of_a_unit() -> None:
    assert measures.of_no_unit({"wal_bytes_per_transaction": 1.0, "wal_bytes_per_s": 2.0}) == {"wal_bytes_per_s": 2.0}
    tpch = workloads.get("tpch")
    assert [tpch.counts_all({"test": test}) for test in ("power", "stream")] == [False, True]


def test_nothing_driven_has_no_metrics() -> None:
    assert measures.metrics(replace(driven([]), summary={})) == {}


def test_counts_stay_whole_and_fractions_keep_seven_digits() -> None:
    exact = {"bytes": float(2**53), "time_s": 0.000123456789012345}
    assert measures.concise(exact) == {"bytes": float(2**53), "time_s": 0.0001234568}


def test_what_is_not_a_number_is_left_out_of_a_record() -> None:
    assert measures.concise({"a": float("nan"), "b": float("inf"), "c": 1.5}) == {"c": 1.5}


def test_a_loop_without_a_schedule_was_never_late_and_records_no_lateness() -> None:
    whole = driven([])
    late = {"lateness_mean_s": 1e-5, "lateness_p99_s": 2e-5, "lateness_max_s": 3e-5}
    open_loop = measures.metrics(replace(whole, summary=whole.summary | late))
    closed = measures.metrics(replace(whole, summary=whole.summary | dict.fromkeys(late, 0.0)))
    assert late.items() <= open_loop.items() and late.keys().isdisjoint(closed)


def test_the_shares_of_the_clients_are_metrics_if_there_are_several_clients() -> None:
    each = {"transactions_mean": 10.0, "transactions_stdev": 1.0, "busy_mean_s": 2.0, "busy_stdev_s": 0.1}
    whole = driven([])

    def found(clients: int) -> dict[str, float]:
        several = measures.metrics(replace(whole, summary=whole.summary | {"per_client": each | {"clients": clients}}))
        return {name: value for name, value in several.items() if name.startswith("client_") and "cpu" not in name}

    assert found(2) == {f"client_{name}": value for name, value in each.items()}
    assert found(1) == {}
