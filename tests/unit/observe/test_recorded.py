"""Metrics that the observers derive from six recorded seconds of a real server under load."""

from __future__ import annotations

from dataclasses import fields

import pytest

from ironbench import catalogue
from ironbench.model.driven import Driven
from ironbench.model.observation import Sample
from ironbench.trial import observe

Samples = dict[str, list[Sample]]
WINDOW_S = 6.0


@pytest.mark.parametrize("engine", ["recorded", "recorded_elsewhere"])
def test_every_metric_and_series_is_in_the_catalogue(engine: str, request: pytest.FixtureRequest) -> None:
    observation = observe.parse(request.getfixturevalue(engine), WINDOW_S)
    assert {"wal_bytes_per_s", "engine_commits_per_s", "backends_active"} <= observation.metrics.keys()
    for name in [*observation.metrics, *(series.name for series in observation.series)]:
        catalogue.metric(name)


def test_every_observer_finds_something_in_the_recording(recorded: Samples, recorded_elsewhere: Samples) -> None:
    recorded = recorded_elsewhere | recorded
    for observer in observe.observers():
        # Recorded before these were observed: see test_emulation.py, test_relay.py and test_ends.py, and below.
        later = {"emulation", "relay", "pg_statements", "pg_relations", "maria_statements", "maria_relations"}
        if observer.name not in later | {"pg_replication", "slapd_monitor"}:
            assert observer.parse(recorded, WINDOW_S).metrics, observer.name


def test_without_samples_nothing_is_claimed() -> None:
    for observer in observe.observers():
        assert observer.parse({}, WINDOW_S).metrics == {}, observer.name
        assert observer.parse({}, WINDOW_S).series == (), observer.name


def test_unreadable_samples_are_as_good_as_none(recorded: Samples) -> None:
    torn = {name: [Sample(one.t_s, b"\xff?\n") for one in taken] for name, taken in recorded.items()}
    for observer in observe.observers():
        assert observer.parse(torn, WINDOW_S).metrics == {}, observer.name


def test_shares_of_cpu_time_are_all_of_it(recorded: Samples) -> None:
    metrics = observe.parse(recorded, WINDOW_S).metrics
    parts = [metrics[f"cpu_{kind}_share"] for kind in ("user", "system", "iowait", "steal", "idle")]
    assert sum(parts) == pytest.approx(1.0, abs=1e-4)
    assert metrics["cpu_irq_share"] <= metrics["cpu_system_share"]


def test_a_series_per_core_is_kept(recorded: Samples) -> None:
    names = {series.name for series in observe.parse(recorded, WINDOW_S).series}
    assert {"cpu_user_share{core=0}", "cpu_steal_share{core=1}", "cpu_iowait_share"} <= names


def test_the_device_of_each_role_is_seen(recorded: Samples) -> None:
    metrics = observe.parse(recorded, WINDOW_S).metrics
    assert metrics["device_write_bytes_per_s{role=log}"] == pytest.approx(
        metrics["device_write_bytes_per_s{role=data}"], rel=0.01
    ), "both are on one disk"
    assert 0 < metrics["device_write_latency_s{role=log}"] < 1
    assert 0 < metrics["device_utilisation_share{role=log}"] <= 1.01


def test_the_engine_and_the_device_tell_the_same_story(recorded: Samples) -> None:
    metrics = observe.parse(recorded, WINDOW_S).metrics
    written = metrics["engine_write_bytes_per_s{object=wal}"] + metrics["engine_write_bytes_per_s{object=relation}"]
    assert metrics["device_write_bytes_per_s{role=data}"] == pytest.approx(written, rel=0.3)
    assert metrics["wal_bytes_per_s"] < metrics["engine_write_bytes_per_s{object=wal}"], "whole pages are written"
    assert metrics["engine_fsyncs_per_s{object=wal}"] <= metrics["engine_commits_per_s"]


def test_the_checkpoint_in_the_middle_is_seen(recorded: Samples) -> None:
    metrics = observe.parse(recorded, WINDOW_S).metrics
    assert metrics["checkpoints"] == 1
    assert "checkpoint_interval_s" not in metrics, "one checkpoint has no interval"
    assert metrics["wal_since_checkpoint_bytes"] > 0
    assert metrics["dirty_left_bytes"] > 0


@pytest.mark.parametrize(
    ("requests_s", "done_s", "interval_s"),
    [
        ([0.02, 1.35, 2.68], [0.1, 1.4, 2.7], 1.33),
        ([0.02, 1.35], [0.1, 0.8, 1.4, 2.7], None),
        (None, [0.1, 1.4, 2.7], None),
        (None, [0.1, 0.2, 0.3], None),
        (None, [5.0, 35.0, 65.0], 30.0),
    ],
    ids=["ours", "ours and others", "others", "between two samples", "far apart"],
)
def test_an_interval_of_checkpoints_is_told_where_their_times_are_known(
    requests_s: list[float] | None, done_s: list[float], interval_s: float | None
) -> None:
    view = '{"num_timed": %d, "num_requested": 0, "buffers_written": 0, "write_time": 0, "sync_time": 0, "page": 8192}'
    seconds = [float(second) for second in range(71)]
    taken = [Sample(t_s, (view % sum(at <= t_s for at in done_s)).encode()) for t_s in seconds]
    asked = {} if requests_s is None else {"checkpoints.request": [Sample(t_s, b"") for t_s in requests_s]}
    found = observe.parse({"pg_checkpoint.view": taken, **asked}, 70.0).metrics.get("checkpoint_interval_s")
    assert found == (None if interval_s is None else pytest.approx(interval_s))


def test_waits_share_out_the_sessions_that_work(recorded: Samples) -> None:
    metrics = observe.parse(recorded, 1.0).metrics
    shares = [value for name, value in metrics.items() if name.startswith("wait_share{")]
    assert sum(shares) == pytest.approx(1.0)
    assert metrics["backends_active"] + metrics["backends_idle"] == pytest.approx(4.0)
    assert "wait_share{event=IO.WalSync}" in metrics


def test_the_budget_is_all_cpu_time(recorded: Samples) -> None:
    shares = observe.budget(recorded, WINDOW_S, observe.CpuSeconds(client=0.6, observers=0.03))
    assert shares is not None
    parts = [getattr(shares, part.name) for part in fields(shares)]
    assert sum(parts) == pytest.approx(1.0, abs=1e-4)
    assert shares.client == pytest.approx(0.05, rel=0.01)
    assert shares.observers == pytest.approx(0.0025, rel=0.01)
    assert 0.2 < shares.server < 0.5
    assert min(parts) >= 0.0


def test_more_known_than_ran_is_scaled_down_to_what_ran(recorded: Samples) -> None:
    shares = observe.budget(recorded, WINDOW_S, observe.CpuSeconds(client=100.0))
    assert shares is not None
    assert shares.other == 0.0
    assert shares.server + shares.client + shares.steal + shares.idle == pytest.approx(1.0, abs=1e-4)


def test_a_trial_is_observed_from_what_came_back(recorded: Samples) -> None:
    driven = Driven(
        "2026-01-01T00:00:00+00:00",
        alive=True,
        summary={"elapsed_s": 6.0, "transactions": 6000, "client_cpu_s": {"user": 0.2, "system": 0.4}},
        samples={name: [(one.t_s, one.raw) for one in taken] for name, taken in recorded.items()},
    )
    observation, shares = observe.observed(driven)
    assert observation.metrics["wal_bytes_per_transaction"] == pytest.approx(
        observation.metrics["wal_bytes_per_s"] / 1000
    )
    assert shares is not None and shares.client > 0


def test_a_trial_that_never_ran_is_observed_as_nothing() -> None:
    observation, shares = observe.observed(Driven("2026-01-01T00:00:00+00:00", alive=False, failure="no server"))
    assert observation.metrics == {} and shares is None


def test_the_log_is_counted_by_its_position_which_is_known_at_once() -> None:
    late = '{{"wal_bytes": 0, "wal_records": 0, "wal_fpi": 0, "wal_buffers_full": 0, "insert_position": {}}}'
    samples = {"pg_wal.view": [Sample(t_s, late.format(position).encode()) for t_s, position in ((0, 5000), (2, 9000))]}
    assert observe.parse(samples, 2.0).metrics["wal_bytes_per_s"] == 2000


def test_one_page_at_the_edge_of_the_window_is_one_page_or_none() -> None:
    row = '{{"wal_records": 9, "wal_fpi": {}, "wal_buffers_full": 0}}'
    pages = ((-0.1, 7), (2.99, 7), (3.8, 8))
    samples = {"pg_wal.view": [Sample(t_s, row.format(count).encode()) for t_s, count in pages]}
    assert observe.parse(samples, 3.0).metrics["wal_full_pages_per_s"] == 0


def test_a_write_after_the_end_of_the_window_is_none_within_it() -> None:
    row = '{{"object": "wal", "backend_type": "walwriter", "writes": {0}, "write_bytes": {1}, "write_time": {0}}}'
    writes = ((-0.1, 7), (2.99, 7), (3.8, 8))
    samples = {"pg_io.view": [Sample(t_s, row.format(n, 8192 * n).encode()) for t_s, n in writes]}
    found = observe.parse(samples, 3.0).metrics
    assert not [name for name in found if name.startswith("engine_write")]


def test_the_lag_of_the_slowest_replica_is_the_highest_of_the_window() -> None:
    texts = {-0.5: (9.0, 900), 0.5: (0.25, 100), 1.5: (1.5, 70), 2.5: (0.1, 80), 6.5: (7.0, 700)}
    row = '{{"seconds": {}, "bytes": {}}}\n'
    samples = {"pg_replication.view": [Sample(t_s, row.format(*both).encode()) for t_s, both in texts.items()]}
    metrics = observe.parse(samples, WINDOW_S).metrics
    assert metrics == {"replication_lag_s": 1.5, "replication_lag_bytes": 100.0}


def test_a_directory_tells_its_operations_and_threads() -> None:
    """Answers of slapd 2.5."""

    def operations(searches: int, adds: int) -> bytes:
        each = f"cn=Search,cn=Operations,cn=Monitor\t{searches}\ncn=Add,cn=Operations,cn=Monitor\t{adds}\n"
        return (each + "cn=Delete,cn=Operations,cn=Monitor\t7\n").encode()

    def threads(active: int, pending: int) -> bytes:
        state = "cn=State,cn=Threads,cn=Monitor\t\\N\n"
        return (
            f"cn=Active,cn=Threads,cn=Monitor\t{active}\ncn=Pending,cn=Threads,cn=Monitor\t{pending}\n{state}".encode()
        )

    samples = {
        "slapd_monitor.operations": [Sample(0.0, operations(100, 3)), Sample(6.0, operations(700, 9))],
        "slapd_monitor.threads": [Sample(1.0, threads(1, 0)), Sample(2.0, threads(3, 4))],
    }
    assert observe.parse(samples, WINDOW_S).metrics == {
        "directory_operations_per_s{operation=search}": pytest.approx(100.0),
        "directory_operations_per_s{operation=add}": pytest.approx(1.0),
        "directory_threads_active": 2.0,
        "directory_operations_waiting": 2.0,
    }
