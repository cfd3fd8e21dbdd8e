"""Observers request only what exists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ironbench.errors import InputError
from ironbench.host.tree import Tree
from ironbench.model.driven import Driven, ServerMachine
from ironbench.model.observation import Sample
from ironbench.model.profile import SampledProfile
from ironbench.trial import observe
from ironbench.trial.observe import processes
from ironbench.trial.observe.runqueue import count_list

MakeSession = Callable[..., Any]
MakeTree = Callable[[dict[str, str]], Tree]

MACHINE = {
    "proc/self/mountinfo": (
        "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "28 27 0:40 / /mnt/ram rw - tmpfs ram rw\n"
        "29 27 259:3 / /fast rw - xfs /dev/nvme0n1p1 rw\n"
    ),
    "sys/dev/block/8:1/stat": "1 2 3\n",
    "sys/dev/block/259:3/stat": "1 2 3\n",
    "proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "proc/schedstat": "version 15\n",
}


def source_names(session: Any, machine: Tree) -> set[str]:
    return {source.name for source in observe.sources(session, machine=machine)}


def test_a_source_is_named_after_its_observer(session: MakeSession, bare: MakeTree) -> None:
    for observer in observe.observers():
        for source in observer.sources(session(roles={"log": "/fast/wal"}), bare(MACHINE)):
            assert source.name.startswith(f"{observer.name}."), source


def test_each_role_is_led_to_its_device(session: MakeSession, bare: MakeTree) -> None:
    one = session(roles={"data": "/var/db", "log": "/fast/wal", "temp": "/mnt/ram/tmp"})
    targets = {s.name: s.target for s in observe.sources(one, machine=bare(MACHINE)) if s.name.startswith("disk.")}
    assert targets == {"disk.data": "/sys/dev/block/8:1/stat", "disk.log": "/sys/dev/block/259:3/stat"}


def test_only_postgres_is_asked_in_sql(session: MakeSession, bare: MakeTree) -> None:
    found = observe.sources(session(engine="sqlite"), machine=bare(MACHINE))
    assert {source.kind for source in found} == {"file"}


def test_an_old_server_is_not_asked_for_views_it_lacks(session: MakeSession, bare: MakeTree) -> None:
    found = source_names(session(has=("pg_stat_bgwriter", "pg_stat_database", "pg_locks")), bare(MACHINE))
    assert {"pg_io.view", "pg_wal.view", "pg_debt.wal"}.isdisjoint(found)
    assert {"pg_checkpoint.view", "pg_database.view", "pg_waits.activity"} <= found


def test_a_server_that_does_not_answer_costs_sources_not_the_trial(session: MakeSession, bare: MakeTree) -> None:
    assert "pg_io.view" not in source_names(session(broken=True), bare(MACHINE))


def test_pressure_is_asked_for_only_where_the_kernel_tells_it(session: MakeSession, bare: MakeTree) -> None:
    found = source_names(session(), bare(MACHINE))
    assert "pressure.io" in found and "pressure.cpu" not in found


def test_without_schedstat_processes_are_asked_for_their_delay(session: MakeSession, bare: MakeTree) -> None:
    assert "runqueue.schedstat" in source_names(session(), bare(MACHINE))
    without = bare({name: text for name, text in MACHINE.items() if name != "proc/schedstat"})
    without.path("/proc/schedstat").unlink()
    assert "runqueue.processes" in source_names(session(), without)


def test_nothing_is_asked_when_observing_is_switched_off(session: MakeSession) -> None:
    assert observe.sources(session(broken=True), observe=False) == ()


def test_an_unknown_observer_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        observe.get("memry")
    assert "memory" in caught.value.hint


def test_a_process_that_ends_takes_none_of_its_time_away() -> None:
    def stat(pid: int, parent: int, own: int, ended: int) -> str:
        return f"==> /proc/{pid}/stat\n{pid} (post) gres) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 {ended} 0 20 0 1 0 0\n"

    before = stat(10, 1, 100, 50) + stat(11, 10, 30, 0) + stat(99, 1, 7000, 0)
    after = stat(10, 1, 110, 90) + stat(12, 10, 20, 0) + stat(99, 1, 8000, 0)
    samples = {
        "processes.root.10": [],
        "processes.all": [Sample(0.0, before.encode()), Sample(2.0, after.encode())],
    }
    metrics = observe.get("processes").parse(samples, 2.0).metrics
    # First process 10 ticks, its ended child 10 more than was seen of it, a new child 20: 40 ticks of 10 ms.
    assert metrics["engine_cpu_s"] == pytest.approx(0.40)
    assert metrics["engine_cpu_cores"] == pytest.approx(0.20)


KERNEL_THREAD = 0x00200040


def a_reading(*processes: tuple[int, int, int, int], seen: bool = True) -> bytes:
    """Returns one sample. Each process: (pid, parent, own ticks, ticks of ended children). `seen`: includes the
    kernel's threads, which used CPU time."""
    rows = [(pid, parent, 0, own, ended) for pid, parent, own, ended in processes]
    rows += [(2, 0, KERNEL_THREAD, 0, 0), (20, 2, KERNEL_THREAD, 40 * processes[0][2], 0)] if seen else []
    return "".join(
        f"==> /proc/{pid}/stat\n{pid} (a b) S {parent} 1 1 0 -1 {flags} 0 0 0 0 {own} 0 {ended} 0 20 0 1 0 0\n"
        for pid, parent, flags, own, ended in rows
    ).encode()


def test_other_programs_are_those_that_neither_engine_nor_ironbench_nor_kernel_started() -> None:
    me, child, engine, backend, stranger, compiler = 50, 51, 10, 11, 90, 91
    before = a_reading((me, 1, 1, 0), (engine, 1, 0, 0), (stranger, 1, 100, 0), (compiler, stranger, 500, 0))
    after = a_reading(
        *((me, 1, 9, 0), (child, me, 50, 0), (engine, 1, 60, 0), (backend, engine, 60, 0)),
        (stranger, 1, 110, 520),  # its compiler has ended, 20 ticks later
    )
    samples = {"processes.root.10": [], "processes.all": [Sample(0.0, before), Sample(2.0, after)]}
    grown = processes.programs_growth(samples, 2.0, {me})
    assert grown is not None and grown.by["programs"] == pytest.approx(0.30)


def test_time_that_a_process_takes_with_it_is_no_reset() -> None:
    readings = [a_reading((90, 1, n, 0), (91, 1, m, 0)) for n, m in ((100, 50), (110, 60))]
    readings.append(a_reading((90, 1, 130, 0)))
    samples = {"processes.all": [Sample(float(t), raw) for t, raw in enumerate(readings)]}
    grown = processes.programs_growth(samples, 2.0, {7})
    assert grown is not None and grown.by["programs"] == pytest.approx(0.20)


def test_what_watching_costs_is_known_also_after_a_link_was_made_anew() -> None:
    """The session of the first link (70) is gone, and the session of the second link (71) has used less CPU time."""
    readings = [a_reading((90, 1, 100, 0), (pid, 1, own, 0)) for pid, own in ((70, 50), (70, 60), (71, 2), (71, 12))]
    samples = {"processes.all": [Sample(float(t), raw) for t, raw in enumerate(readings)]}
    grown = processes.own_growth(samples, 3.0, {70, 71})
    assert grown is not None and grown.by["own"] == pytest.approx(0.20)


def test_other_programs_are_not_counted_where_some_are_out_of_sight() -> None:
    taken = [Sample(float(t), a_reading((90, 1, 100 * t, 0), seen=False)) for t in range(2)]
    assert processes.programs_growth({"processes.all": taken}, 1.0, {7}) is None


def test_the_servers_work_for_observers_is_theirs() -> None:
    def stat(pid: int, parent: int, own: int) -> str:
        return f"==> /proc/{pid}/stat\n{pid} (postgres) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 0 0 20 0 1 0 0\n"

    def cpu(user: int, idle: int) -> bytes:
        return f"cpu {user} 0 0 {idle} 0 0 0 0 0 0\ncpu0 {user} 0 0 {idle} 0 0 0 0 0 0\nctxt 1\n".encode()

    samples = {
        "cpu.stat": [Sample(0.0, cpu(0, 0)), Sample(1.0, cpu(50, 50))],
        "processes.root.10": [],
        "processes.all": [
            Sample(0.0, (stat(10, 1, 0) + stat(11, 10, 0) + stat(12, 10, 0)).encode()),
            Sample(1.0, (stat(10, 1, 0) + stat(11, 10, 20) + stat(12, 10, 5)).encode()),
        ],
    }
    shares = observe.budget(samples, 1.0, observe.CpuSeconds(client=0.1, observers=0.01), [12])
    assert shares is not None
    assert (shares.server, shares.client) == (pytest.approx(0.20), pytest.approx(0.10))
    assert (shares.observers, shares.other) == (pytest.approx(0.06), pytest.approx(0.14))


def test_a_library_engine_is_the_server_in_its_clients_threads() -> None:
    ticks = ("0 0 0 0 0 0 0 0 0 0", "50 0 0 50 0 0 0 0 0 0")
    taken = [(float(t), f"cpu {spent}\ncpu0 {spent}\nctxt 1\n".encode()) for t, spent in enumerate(ticks)]
    cpu_s = {"user": 0.3, "system": 0.1}
    for io, server, client in (("blocking", 0.4, 0.0), ("epoll", 0.0, 0.4)):
        summary = {"elapsed_s": 1.0, "io": io, "client_cpu_s": cpu_s, "transactions": 1}
        _, shares = observe.observed(Driven("", True, summary=summary, samples={"cpu.stat": taken}))
        assert shares is not None
        assert (shares.server, shares.client) == (pytest.approx(server), pytest.approx(client))


@pytest.mark.parametrize(
    ("elsewhere", "observers_s"),
    [(None, 0.2), (ServerMachine("ssh://db1", ours=True), 0.2), (ServerMachine("ssh://db1"), 0.0)],
)
def test_the_sampler_of_stacks_is_an_observer_of_the_machine_of_ironbench(
    elsewhere: ServerMachine | None, observers_s: float
) -> None:
    ticks = ("0 0 0 0 0 0 0 0 0 0", "50 0 0 50 0 0 0 0 0 0")
    taken = [(float(t), f"cpu {spent}\ncpu0 {spent}\nctxt 1\n".encode()) for t, spent in enumerate(ticks)]
    driven = Driven(
        summary={"elapsed_s": 1.0, "warmup_s": 0.5, "transactions": 1},
        samples={"cpu.stat": taken},
        profile=SampledProfile((), cpu_s=0.3, unresolved_share=0.0, lost=0),
        elsewhere=elsewhere,
    )
    _, shares = observe.observed(driven)
    assert shares is not None and shares.observers == pytest.approx(observers_s)


@pytest.mark.parametrize(("text", "count"), [("0\n", 1), ("0-3\n", 4), ("0-1,4,6-7\n", 5)])
def test_lists_of_cpus_are_counted(text: str, count: int) -> None:
    assert count_list(text) == count


def test_every_observer_is_explained() -> None:
    text = (Path(__file__).parents[3] / "docs" / "understand" / "observers.md").read_text()
    for observer in observe.observers():
        assert f"| `{observer.name}` |" in text, f"{observer.name} is not in the table"
        assert f"**{observer.name}**" in text, f"{observer.name} is not explained"
