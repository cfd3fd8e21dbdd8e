"""Rotations of a block: disturbed ones are dropped for all systems alike; a pilot chooses the slice length."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.host.tree import Tree
from ironbench.lab.slices.rotations import Rotations, chosen, slow_start
from ironbench.lab.slices.shared import SharedChecks, combined
from ironbench.lab.slices.side import SliceSide, TurnDriver
from ironbench.lab.slices.slice_plan import EARLY_S, LATE_S, LENGTHS_S
from ironbench.model.judging_limits import BUSY, BUSY_WITH_KERNEL
from ironbench.model.record import SUSPICIOUS
from ironbench.model.system import Load
from ironbench.stats.slices import StartTransactions
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.trial.observe import disturbance
from ironbench.trial.observe.disturbance import DisturbanceShares
from ironbench.workloads.base import ScriptSource

_core = pytest.importorskip("ironbench._core", reason="the core is not built")


@dataclass
class Recorded:
    """A side that records what is done with it."""

    pids: tuple[int, ...] = (1,)
    cell: str = "one"
    warmup_s: float | None = None
    lost_s: float = 0.0
    turns: list[bool] = field(default_factory=list)
    """For each slice, whether it was dropped."""
    taken: list[float] = field(default_factory=list)

    def processes(self) -> tuple[int, ...]:
        return self.pids

    def turn(self, start_up_s: float, slice_s: float) -> None:
        self.turns.append(False)

    def judge(self, taken: float) -> None:
        self.taken.append(taken)

    def forget(self) -> None:
        self.turns[-1] = True

    def started(self) -> StartTransactions:
        """Returns counts for so many clients that chance has no effect."""
        early = round(1e9 * max(0.0, EARLY_S - self.lost_s))
        return StartTransactions(early, round(1e9 * LATE_S), EARLY_S, LATE_S)


def measured(
    monkeypatch: pytest.MonkeyPatch, shares: list[float], count: int, systems: int = 2
) -> tuple[list[Any], Rotations]:
    """Runs rotations in which other programs took `shares[n]` of the CPU time of the n-th turn, and none of later
    turns."""
    each: Iterator[float] = iter(shares)
    monkeypatch.setattr(disturbance, "read", lambda own: None)
    monkeypatch.setattr(disturbance, "used_between", lambda before, after: DisturbanceShares(next(each, 0.0), 0.0))
    sides: list[Any] = [Recorded() for _ in range(systems)]
    found = Rotations(sides, random.Random(1), fixed=True)
    found.measure(count, 1.0, lambda kept: None)
    return sides, found


def test_a_rotation_in_which_one_turn_was_disturbed_is_dropped_for_all_systems_and_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sides, found = measured(monkeypatch, [0.0, 0.0, 0.0, 2 * BUSY], 4)
    assert [side.turns for side in sides] == [[False, True, False, False, False]] * 2
    assert found.dropped == 1
    assert found.warnings() == ()
    assert "dropped and repeated because of other processes: 1 rotation" in found.description()


@given(st.lists(st.sampled_from([0.0, 0.03, 0.06, 0.5]), max_size=60), st.integers(1, 12), st.integers(2, 4))
def test_systems_have_as_many_slices_as_were_asked_for_and_drop_the_same_ones(
    shares: list[float], count: int, systems: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        sides, found = measured(patch, shares, count, systems)
    assert all(side.turns == sides[0].turns for side in sides)
    assert sides[0].turns.count(False) == count
    assert found.dropped == sides[0].turns.count(True) <= count // 4
    assert bool(found.warnings()) == bool(found.kept_disturbed)
    if found.kept_disturbed:
        assert found.dropped == count // 4


@pytest.mark.parametrize("fixed", [False, True])
def test_each_rotation_has_an_order_of_its_own_unless_the_lab_fixes_it(
    fixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disturbance, "read", lambda own: None)
    monkeypatch.setattr(disturbance, "used_between", lambda before, after: DisturbanceShares(0.0, 0.0))
    sides: list[Any] = [Recorded(cell=name) for name in "abc"]
    turns: list[str] = []
    for side in sides:
        monkeypatch.setattr(side, "turn", lambda start_up_s, slice_s, name=side.cell: turns.append(name))
    Rotations(sides, random.Random(1), fixed=fixed).measure(20, 1.0, lambda kept: None)
    orders = ["".join(turns[first : first + 3]) for first in range(0, len(turns), 3)]
    assert {"".join(sorted(order)) for order in orders} == {"abc"}
    assert set(orders) == {"abc"} if fixed else len(set(orders)) > 3


def test_records_of_a_block_with_more_disturbed_rotations_than_may_be_dropped_are_suspect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, found = measured(monkeypatch, [0.3] * 100, 8)
    (warning,) = found.warnings()
    assert warning.code in SUSPICIOUS
    assert (warning.values["slices"], warning.values["dropped"]) == (16, 2)
    assert warning.values["programs"] + warning.values["steal"] == pytest.approx(0.3, abs=0.01)


def test_a_server_out_of_sight_is_no_program_that_disturbs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disturbance, "read", lambda own: None)
    monkeypatch.setattr(disturbance, "used_between", lambda before, after: DisturbanceShares(0.9, 0.01))
    sides: list[Any] = [Recorded(()), Recorded(())]
    found = Rotations(sides, random.Random(1), fixed=True)
    found.measure(3, 1.0, lambda kept: None)
    assert (found.dropped, found.warnings()) == (0, ())
    assert sides[0].taken == [0.01] * 3


def test_threads_of_the_kernel_that_are_not_told_apart_drop_no_slice_of_the_system_that_writes_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(disturbance, "read", lambda own: None)
    monkeypatch.setattr(disturbance, "used_between", lambda before, after: DisturbanceShares(0.9, 0.01, counted=False))
    sides: list[Any] = [Recorded(), Recorded()]
    found = Rotations(sides, random.Random(1), fixed=True)
    found.measure(3, 1.0, lambda kept: None)
    assert (found.dropped, found.warnings()) == (0, ())


def test_the_limit_is_that_of_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not DisturbanceShares(BUSY / 2, BUSY / 2).disturbs
    assert DisturbanceShares(BUSY / 2, BUSY / 2 + 0.001).disturbs
    with_kernel = DisturbanceShares(BUSY_WITH_KERNEL, 0.0, counted=False)
    assert not with_kernel.disturbs and replace(with_kernel, steal=0.001).disturbs


@pytest.mark.parametrize(
    ("lost", "length"),
    [((-0.01, 0.0), 0.5), ((0.004, 0.0), 0.5), ((0.004, 0.006), 1.0), ((0.03, 0), 5.0), ((1, 1), 5.0)],
)
def test_the_pilot_chooses_the_shortest_slice_whose_start_up_costs_less_than_one_in_a_hundred_of_it(
    lost: tuple[float, float], length: float
) -> None:
    found = Rotations(
        [Recorded(cell=str(place), lost_s=one) for place, one in enumerate(lost)], random.Random(1), fixed=False
    )  # type: ignore[arg-type]
    assert found.pilot(LENGTHS_S[-1]) == length
    assert "a pilot trial chose the slice length" in found.description()


@dataclass
class Clients:
    """One hundred clients of a system that was thawed before the first of two turns; their transactions take equally
    long."""

    took_s: float
    lost_s: float
    """Seconds of their work lost in the first half second after the start-up of a thawed system."""
    turns: int = 0
    done: int = 0
    slice_s: float = 0.0

    def begin_turn(self, start_up_s: float, slice_s: float, cpus: tuple[int, ...]) -> None:
        lost_s = self.lost_s if self.turns % 2 == 0 else 0.0
        self.turns += 1
        self.slice_s = slice_s
        self.done = round(100 * (slice_s - lost_s) / self.took_s)

    def rested(self) -> tuple[int, int, float, float, float]:
        return self.done, 0, 100 * self.slice_s, 0.1, 0.0

    def forget(self) -> None:
        pass


@pytest.mark.parametrize("took_s", [0.0005, 0.02, 0.08])
@pytest.mark.parametrize("lost_s", [0.0, 0.008, 0.03])
def test_the_pilot_finds_what_a_turn_loses_however_long_transactions_take(took_s: float, lost_s: float) -> None:
    plan: Any = SimpleNamespace(choice=SimpleNamespace(workload="select-only", options={}))
    unused: Any = None
    setup: Any = SimpleNamespace(cell=SimpleNamespace(name="one", load=Load(clients=100)))
    side = SliceSide(plan, setup, unused, unused, unused, "")
    progress: Any = Clients(took_s, lost_s)
    side._at_turns.progress = progress
    found = side.started()
    assert EARLY_S - found.early / found.late * LATE_S == pytest.approx(lost_s, abs=0.001)
    assert progress.turns == 2


@dataclass
class Counted:
    """A side whose transactions end at random, at a constant rate except for the loss at a turn's start."""

    chance: np.random.Generator
    per_s: float
    lost_s: float = 0.0
    cell: str = "one"

    def started(self) -> StartTransactions:
        early, late = self.chance.poisson((self.per_s * (EARLY_S - self.lost_s), self.per_s * LATE_S))
        return StartTransactions(int(early), int(late), EARLY_S, LATE_S)


def warned(per_s: float, lost_s: float = 0.0, systems: int = 3) -> list[bool]:
    """Returns, for each of 200 pilots for the shortest slices, whether it warns."""
    found = []
    for seed in range(200):
        chance = np.random.default_rng(seed)
        sides: list[Any] = [
            Counted(chance, per_s, lost_s if place == 0 else 0.0, str(place)) for place in range(systems)
        ]
        rotations = Rotations(sides, random.Random(seed), fixed=False)
        slice_s = rotations.pilot(LENGTHS_S[0])
        assert rotations.start_up_s is not None
        found.append(bool(slow_start(rotations.start_up_s, slice_s)))
    return found


@pytest.mark.parametrize("per_s", [40.0, 100.0, 10_000.0])
def test_the_pilot_takes_no_noise_of_its_counts_for_a_loss(per_s: float) -> None:
    assert sum(warned(per_s)) <= 0.05 * 200


@pytest.mark.parametrize(("per_s", "lost_s"), [(100.0, 0.3), (20_000.0, 0.03)])
def test_the_pilot_finds_a_loss_of_one_system_that_chance_does_not_explain(per_s: float, lost_s: float) -> None:
    assert all(warned(per_s, lost_s))


def test_a_pilot_that_saw_hardly_any_transaction_end_chooses_the_longest_slices_and_claims_no_loss() -> None:
    sides: list[Any] = [Counted(np.random.default_rng(1), 10_000.0), Counted(np.random.default_rng(1), 0.0, cell="two")]
    found = Rotations(sides, random.Random(1), fixed=False)
    assert found.pilot(2.0) == 2.0
    assert found.start_up_s is not None and found.start_up_s < 0.01


@pytest.mark.parametrize("early", [True, False])
def test_a_system_that_rehearses_is_stopped_at_once(early: bool) -> None:
    at_turns, progress = TurnDriver(), _core.Progress()
    load = Load(1, duration_s=600.0)
    plan = compiled_plan({"kind": "null", "service_ns": 0}, Tasks((ScriptSource("one", "SELECT 1;"),)), load, ())
    with ThreadPoolExecutor(1) as pool:
        if early:
            at_turns.stop()
        rehearsed = pool.submit(at_turns.drive, plan, load, progress, rehearsal=True)
        while not early and progress.phase != "run":
            time.sleep(0.01)
        at_turns.stop()
        assert rehearsed.result(timeout=10).summary["cut_short"]


def test_the_core_says_at_once_whether_a_drive_by_turns_is_over() -> None:
    at_turns, progress = TurnDriver(), _core.Progress()
    load = Load(2, duration_s=1.0)
    plan = compiled_plan({"kind": "null", "service_ns": 0}, Tasks((ScriptSource("one", "SELECT 1;"),)), load, ())
    with ThreadPoolExecutor(1) as pool:
        driven = pool.submit(at_turns.drive, plan, load, progress)
        try:
            assert at_turns.begun.wait(10) and progress.rested()
            assert not progress.over
        finally:
            at_turns.stop()
        driven.result(timeout=10)
    assert progress.over and not progress.rested()


def test_transactions_longer_than_a_slice_are_measured_with_the_whole_time_that_they_take() -> None:
    """A transaction that starts in a slice counts, whenever it ends, so throughput does not depend on the slice's
    ends."""
    clients, sleep_s, slice_s = 4, 0.3, 0.2
    at_turns, progress = TurnDriver(), _core.Progress()
    load, script = Load(clients, duration_s=1.0), ScriptSource("one", "\\sleep 300 ms\nSELECT 1;\n")
    plan = compiled_plan({"kind": "null", "service_ns": 0}, Tasks((script,)), load, ())
    turns = []
    with ThreadPoolExecutor(1) as pool:
        driven = pool.submit(at_turns.drive, plan, load, progress)
        try:
            assert at_turns.begun.wait(10) and progress.rested()
            for length_s in (0.0, slice_s, slice_s, slice_s):
                progress.begin_turn(0.05, length_s, ())
                turned = progress.rested()
                assert turned is not None
                turns.append(turned)
            progress.finish()
        finally:
            at_turns.stop()
        summary = driven.result(timeout=10).summary
    measured, busy_s = sum(done for done, *_ in turns), sum(busy_s for _, _, busy_s, *_ in turns)
    assert measured == summary["transactions"] > 0
    assert busy_s >= sleep_s * measured
    assert summary["elapsed_s"] == pytest.approx(busy_s / clients)
    assert (summary["unfinished"], summary["unfinished_s"], summary["carried_s"]) == (0, 0.0, 0.0)
    # The starts of clients are spread over the length of their last transactions, and the slice starts after that.
    assert all(start_up_s >= sleep_s for *_, start_up_s, _ in turns[1:])


def test_time_between_transactions_of_a_turn_is_what_passed_and_not_what_the_load_says() -> None:
    """Late timers lengthen think times. With the load's think time, the computed throughput would be too high."""
    clients, think_s = 2, 0.0005
    at_turns, progress = TurnDriver(), _core.Progress()
    load, script = Load(clients, duration_s=1.0, think_time_s=think_s), ScriptSource("one", "SELECT 1;\n")
    plan = compiled_plan({"kind": "null", "service_ns": 0}, Tasks((script,)), load, ())
    with ThreadPoolExecutor(1) as pool:
        driven = pool.submit(at_turns.drive, plan, load, progress)
        try:
            assert at_turns.begun.wait(10) and progress.rested()
            progress.begin_turn(0.05, 1.0, ())
            turned = progress.rested()
            assert turned is not None
            progress.finish()
        finally:
            at_turns.stop()
        summary = driven.result(timeout=10).summary
    transactions, _, busy_s, *_ = turned
    assert transactions > clients and summary["elapsed_s"] == pytest.approx(busy_s / clients)
    # A client's last pause may end after the slice, and its first pause may have started before.
    late_s = (transactions - clients) * summary["lateness_mean_s"] - clients * summary["lateness_max_s"]
    assert busy_s >= transactions * think_s + late_s


def test_every_chosen_length_is_one_of_those_offered() -> None:
    assert {chosen(lost / 1000) for lost in range(100)} == set(LENGTHS_S)


STAT = "cpu {0} 0 100 {1} 0 0 0 {2}\ncpu0 {0} 0 100 {1} 0 0 0 {2}\n"
PROCESS = "{pid} (it) S {parent} 0 0 0 0 {flags} 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5"


def machine(root: Path, user: int, idle: int, steal: int, cpu: dict[int, tuple[int, int, int]]) -> Tree:
    """Builds a machine's files. `cpu`: process → (parent, flags, ticks)."""
    for pid, (parent, flags, ticks) in cpu.items():
        (root / f"proc/{pid}").mkdir(parents=True, exist_ok=True)
        text = PROCESS.format(pid=pid, parent=parent, flags=flags, ticks=ticks)
        (root / f"proc/{pid}/stat").write_text(text)
    (root / "proc/stat").write_text(STAT.format(user, idle, steal))
    return Tree(root)


def test_what_others_took_is_the_time_of_programs_and_of_other_virtual_machines(tmp_path: Path) -> None:
    kernel = 0x00200000
    before = {2: (0, kernel, 10), 7: (1, 0, 50), 8: (7, 0, 20), 9: (1, 0, 5)}
    first = disturbance.read({7}, machine(tmp_path, 100, 100, 0, before))
    after = {2: (0, kernel, 30), 7: (1, 0, 60), 8: (7, 0, 70), 9: (1, 0, 13)}
    second = disturbance.read({7}, machine(tmp_path, 188, 107, 5, after))
    found = disturbance.used_between(first, second)
    assert (found.programs, found.steal, found.counted) == (0.08, 0.05, True)


def test_where_kernel_threads_are_out_of_sight_all_that_is_not_ours_counts_and_the_record_knows(tmp_path: Path) -> None:
    first = disturbance.read({7}, machine(tmp_path, 100, 100, 0, {7: (1, 0, 50), 8: (7, 0, 20)}))
    second = disturbance.read({7}, machine(tmp_path, 180, 120, 0, {7: (1, 0, 60), 8: (7, 0, 70)}))
    found = disturbance.used_between(first, second)
    assert (found.programs, found.steal, found.counted) == (pytest.approx(0.2), 0.0, False)


def summary(commits: int, run: int) -> dict[str, Any]:
    script = {"name": "one", "completed": run, "transactions": run, "failed": 0, "statements": 3}
    counts = {"server_commits_uncertain": 1, "clients": 2, "elapsed_s": 1.0, "warmup_s": 0.5}
    return {"commits": commits, "scripts": [script], **counts}


def test_checks_of_systems_on_the_same_tables_see_the_work_of_all() -> None:
    missed = {"figures": {"ycsb_reads_missed": 2.0}}
    found = combined([summary(10, 4), summary(5, 3) | missed])
    assert found["figures"] == missed["figures"]
    assert (found["commits"], found["server_commits_uncertain"], found["clients"], found["elapsed_s"]) == (15, 2, 4, 2)
    assert [(one["name"], one["completed"], one["statements"]) for one in found["scripts"]] == [("one", 7, 3)]


def test_nothing_is_checked_where_one_of_them_never_came_to_its_end() -> None:
    shared = SharedChecks(2)
    shared.give_up()
    assert shared.whole(summary(1, 1)) is None
    whole = SharedChecks(1)
    whole.give_up()
    assert whole.whole(summary(1, 1)) is not None
