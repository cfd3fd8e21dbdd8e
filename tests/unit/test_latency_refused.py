"""`--latency` is refused if no relay can delay the clients, before anything starts."""

from __future__ import annotations

import pytest

from ironbench.errors import InputError
from ironbench.lab import build, run_plan
from ironbench.model.observation import Observation
from ironbench.model.record import LATENCY_LATE, RELAY_SATURATED
from ironbench.model.system import System
from ironbench.plan import run_file
from ironbench.records import judge
from ironbench.trial.drive import drive_trial


def planned(workload: str = "select-only", **options: object) -> System:
    return run_plan.planned(run_file.read(workload, **{"engine": "postgres", "latency": "0.2ms"} | options))[0].system


@pytest.mark.parametrize(("text", "latency_s"), [("0.2ms", 0.0002), ("50us", 0.00005), ("1s", 1.0), ("0", None)])
def test_the_round_trip_time_is_declared_with_a_unit(text: str, latency_s: float | None) -> None:
    assert planned(latency=text).latency_s == latency_s


@pytest.mark.parametrize(
    ("workload", "options", "words"),
    [
        ("select-only", {"latency": "10us"}, "cannot add less than 50"),
        ("select-only", {"latency": "2s"}, "out of range"),
        ("select-only", {"engine": "sqlite"}, "sqlite does not use network connections that a relay could delay"),
        ("tpch", {"engine": "duckdb"}, "duckdb does not use network connections"),
        ("select-only", {"engine": "null"}, "null does not use network connections"),
        ("storage", {"engine": "none"}, "none does not use network connections"),
        ("backup", {}, "programs that connect to the server directly"),
        ("select-only", {"ideal": "client"}, "cannot be combined with --ideal client"),
        ("select-only", {"dsn": "postgresql://h/d", "engine": None, "workers": 2, "cluster": "auto"}, "cannot reach"),
    ],
)
def test_what_no_relay_can_delay_is_refused(workload: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        planned(workload, **options)
    assert "--latency" in caught.value.subject
    assert caught.value.hint


def test_a_relay_needs_two_open_files_for_each_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.resource, "getrlimit", lambda _: (1000, 1000))
    assert planned(clients="800", latency="0").latency_s is None
    with pytest.raises(InputError, match="need 1696 open files"):
        planned(clients="800")


@pytest.mark.parametrize(
    ("server", "client", "cpus"),
    [(None, None, ()), ((0,), None, (1, 2, 3)), ((0,), (1,), (2, 3)), ((0, 1), (2, 3), (2, 3)), (None, (0, 1), (2, 3))],
)
def test_the_relay_runs_beside_pinned_servers_and_clients(
    server: tuple[int, ...] | None, client: tuple[int, ...] | None, cpus: tuple[int, ...]
) -> None:
    system = System("postgres", "a", server_cpus=server, client_cpus=client)
    assert drive_trial._relay_cpus(system, range(4)) == cpus


@pytest.mark.parametrize(
    ("busy", "added_s", "codes"),
    [(0.5, 0.00021, []), (0.95, 0.00021, [RELAY_SATURATED]), (0.5, 0.0003, [LATENCY_LATE])],
)
def test_a_busy_relay_and_a_longer_latency_are_reported(busy: float, added_s: float, codes: list[str]) -> None:
    seen = Observation({"relay_busiest_thread_share": busy, "added_latency_s": added_s})
    assert [one.code for one in judge._relay(System("postgres", "a", latency_s=0.0002), seen)] == codes
    assert judge._relay(System("postgres", "a"), seen) == []
