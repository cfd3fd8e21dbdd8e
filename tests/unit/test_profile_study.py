"""Profiles in the study: which functions make the difference between two configurations, and how certain that is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from factories import Shelf, record
from profiles import AFTER, BEFORE, BURN, ProfiledLab, Program, profiled, program

from ironbench import engines
from ironbench.model.lab import Configuration
from ironbench.model.profile import CPU_QUEUE, WAITING_FOR_WORK, SampledStack
from ironbench.model.record import Status
from ironbench.records.evidence import PROFILE
from ironbench.study import profile_groups
from ironbench.study.call_tree import call_tree
from ironbench.study.profile import compare_profiles, profile
from ironbench.study.profiled import LEAST_SAMPLES, MOST_ACTIVITIES, MOST_FUNCTIONS, REST, Profile, ProfileComparison

SLEEP = "main;serve;execute;trigger;pg_sleep;WaitLatch;schedule_[k]"
PLANTED_S, SLEPT_S = 20e-6, 200e-6
LABS = 20


def called(found: ProfileComparison) -> list[str]:
    return [one.name for one in (*found.frames, *found.activities, *found.kernel) if one.called]


def of(*stacks: SampledStack, transactions: float = 1000.0, engine: str = "postgres") -> Profile:
    one = record(metrics={"transactions": transactions}, files={PROFILE: "0" * 64})
    one = replace(one, system=replace(one.system, engine=engine))
    found = profile(Configuration("a"), [one], Shelf([one], profiles={one.id: stacks}))
    assert found is not None
    return found


def on_cpu(stack: str, samples: int = 100, role: str = "engine") -> SampledStack:
    return SampledStack("cpu", role, "t", "", stack, "", samples, samples / 100)


def blocked(stack: str, samples: int = 100, role: str = "engine", reason: str = "blocked") -> SampledStack:
    return SampledStack("wait", role, "t", reason, stack, "", samples, samples / 100)


def test_a_function_that_one_configuration_runs_in_addition_is_named_first() -> None:
    """95% of the function's confidence intervals contain the planted time."""
    found = [profiled({BURN: PLANTED_S}, seed=seed, cpu_s=15.0).compared() for seed in range(LABS)]
    assert sum(one.frames[0].name == "burn" and one.frames[0].called for one in found) >= 19
    assert sum(one.frames[0].low_s <= PLANTED_S <= one.frames[0].high_s for one in found) >= 18
    assert all(one.main == one.frames[0] and one.main.area == "engine:cpu" for one in found)


def test_a_wait_that_one_configuration_has_in_addition_is_named_first() -> None:
    found = [profiled({}, {SLEEP: SLEPT_S}, seed=seed, cpu_s=15.0).compared() for seed in range(LABS)]
    assert sum(one.frames[0].called and one.frames[0].area == "engine:blocked" for one in found) >= 19
    assert sum(one.frames[0].low_s <= SLEPT_S <= one.frames[0].high_s for one in found) >= 18


def test_cpu_time_is_named_before_a_longer_wait_for_a_free_cpu() -> None:
    found = profiled({BURN: 40e-6}, {SLEEP: SLEPT_S}, reason=CPU_QUEUE).compared()
    first, second = found.frames[:2]
    assert (first.area, second.area) == ("engine:cpu", "engine:cpu-queue")
    assert first.called and second.called and second.at_least_s > first.at_least_s


@pytest.mark.parametrize(("spread", "blocks"), [(0.0, 3), (0.03, 6), (0.1, 10)])
def test_in_an_a_a_test_at_most_5_percent_of_labs_name_any_difference(spread: float, blocks: int) -> None:
    base = program(60)
    found = [profiled({}, blocks=blocks, seed=seed, spread=spread, base=base).compared() for seed in range(60)]
    assert sum(bool(called(one)) for one in found) <= 3


def test_few_equal_counts_are_not_certain() -> None:
    """Without the counting error, three blocks with 5 samples more would have an interval without width."""
    lab = profiled({}, blocks=3)
    for one in lab.records:
        one.metrics["transactions"] = 1000.0
        more = (on_cpu("main;rare", 5),) if one.cell.name == AFTER else (on_cpu("main;rare", 2),)
        lab.stacks[one.id] = (on_cpu("main", 1000), *more)
    found = lab.compared()
    (rare,) = (one for one in found.nodes if one.name == "rare")
    assert rare.low_s < 0 < rare.high_s and not called(found)


def test_a_significant_function_is_named_if_no_function_that_it_calls_differs_significantly() -> None:
    """The intervals of the six callees exclude 0, but only their sum is significant after the correction."""
    lab = profiled({}, blocks=12)
    others = [on_cpu(f"main;other{number}") for number in range(40)]
    for one in lab.records:
        one.metrics["transactions"] = 1000.0
        samples = 110 if one.cell.name == AFTER else 100
        lab.stacks[one.id] = (*others, *(on_cpu(f"main;burn;small{number}", samples) for number in range(6)))
    found = lab.compared()
    assert found.main is not None and found.main.name == "burn"
    small = [one for one in found.frames if one.name.startswith("small")]
    assert len(small) == 6 and all(one.clear and not one.called for one in small)


def test_with_fewer_than_three_blocks_there_is_no_interval_and_no_significant_difference() -> None:
    found = profiled({BURN: PLANTED_S}, blocks=2).compared()
    assert not found.has_intervals and found.main is None and not called(found)
    assert all(math.isinf(one.low_s) and math.isinf(one.high_s) for one in found.frames)
    assert found.frames[0].name == "burn"


def test_trials_that_are_not_paired_have_no_interval() -> None:
    lab = profiled({BURN: PLANTED_S})
    found = compare_profiles(*lab.sides(), lab.shelf, in_blocks=False)
    assert found is not None and not found.has_intervals and found.main is None
    assert found.frames[0].name == "burn"


def test_only_blocks_in_which_both_were_profiled_are_compared() -> None:
    lab = profiled({BURN: PLANTED_S}, blocks=6)
    lab.records = [
        replace(one, files={}) if one.block == 0 and one.cell.name == BEFORE
        else replace(one, status=Status.FAILED) if one.block == 1 and one.cell.name == AFTER
        else one
        for one in lab.records
    ]  # fmt: skip
    assert lab.compared().blocks == 4


def test_the_parts_of_a_difference_add_up_to_their_whole() -> None:
    found = profiled({BURN: PLANTED_S}, {SLEEP: SLEPT_S}).compared()
    areas = [one for one in found.parts if not one.activity]
    roots = [one for one in found.nodes if one.parent < 0]
    assert sum(one.delta_s for one in areas) == pytest.approx(sum(one.delta_s for one in roots))
    for area in areas:
        inside = [one for one in found.parts if one.area == area.area and one.activity]
        activities = [one for one in inside if not one.function]
        assert len(activities) <= MOST_ACTIVITIES + 1
        assert sum(one.delta_s for one in activities) == pytest.approx(area.delta_s)
        for activity in (one for one in activities if one.activity != REST):
            functions = [one for one in inside if one.activity == activity.activity and one.function]
            assert len(functions) <= MOST_FUNCTIONS + 1
            assert sum(one.before_s for one in functions) == pytest.approx(activity.before_s)
            assert sum(one.after_s for one in functions) == pytest.approx(activity.after_s)


def test_without_a_profile_on_both_sides_there_is_no_comparison() -> None:
    lab = profiled({})
    lab.records = [replace(one, files={}) if one.cell.name == AFTER else one for one in lab.records]
    assert compare_profiles(*lab.sides(), lab.shelf, in_blocks=True) is None
    assert profile(*lab.sides()[1], lab.shelf) is None


def planted_below(*stacks: str) -> ProfiledLab:
    times = {"main;other": 100e-6, **dict.fromkeys(stacks, 10e-6)}
    return profiled(dict.fromkeys(stacks, 20e-6), base=Program(times), cpu_s=60.0)


def test_a_caller_is_left_out_if_its_callees_account_for_its_difference() -> None:
    names = [one.name for one in planted_below("main;serve;a", "main;serve;b").compared().frames if one.called]
    assert sorted(names) == ["a", "b"]


def test_a_function_that_computes_itself_is_named_before_its_callee() -> None:
    names = [one.name for one in planted_below("main;serve;burn", "main;serve;burn;clock").compared().frames]
    assert names[0] == "burn" and "serve" not in names


def test_a_callee_with_most_of_the_difference_is_named_before_its_caller() -> None:
    """The caller has the larger difference, because it includes the callee's, but less of it is its own."""
    found = profiled({"main;serve;execute;project": 10e-6, BURN: 25e-6}, cpu_s=60.0).compared()
    assert [one.name for one in found.frames[:2]] == ["burn", "project"]
    assert found.frames[1].at_least_s > found.frames[0].at_least_s and found.frames[1].called


def test_an_activity_is_the_answer_if_none_of_its_functions_explains_half_of_it() -> None:
    parts = [f"main;execute;pg_regexec;part{number}" for number in range(6)]
    base = Program({"main;execute": 100e-6, **dict.fromkeys(parts, 2e-6)})
    many = profiled(dict.fromkeys(parts, 20e-6), base=base, cpu_s=60.0).compared()
    assert many.main is not None and many.main_activity is not None
    assert (many.main_activity.name, many.main_activity.area) == ("regular expressions", "engine:cpu")
    assert many.main_activity.at_least_s > 2 * many.main.at_least_s
    one = profiled({parts[0]: 120e-6}, base=base, cpu_s=60.0).compared()
    assert one.main is not None and one.main.name == "part0" and one.main_activity is None


def test_functions_below_the_resolution_are_part_of_their_caller() -> None:
    tree = call_tree([[on_cpu("main;often", 1000), on_cpu("main;often;rare", LEAST_SAMPLES - 1)]], [1000.0])
    assert tree.names == ("engine:cpu", "main", "often")
    assert tree.own.seconds[2, 0] == pytest.approx((1000 + LEAST_SAMPLES - 1) / 100 / 1000)
    assert tree.total.seconds[0, 0] == pytest.approx(tree.own.seconds.sum())


def test_a_function_that_calls_itself_is_counted_once() -> None:
    found = of(on_cpu("main;walk;walk;walk"), on_cpu("main;walk", 50))
    (walk,) = (one for one in found.frames if one.name == "walk")
    assert walk.time_s == pytest.approx(1.5e-3) and walk.own_s == pytest.approx(1.5e-3)


def test_the_times_of_an_area_add_up_over_functions_activities_and_nodes() -> None:
    stacks = [on_cpu("main;XLogInsert;memcpy"), on_cpu("main;btinsert", 300), blocked("main;XLogFlush;fsync_[k]")]
    found = of(*stacks)
    roots = [one.time_s for one in found.nodes if one.parent < 0]
    assert sum(roots) == pytest.approx(sum(one.seconds for one in stacks) / 1000)
    assert sum(one.time_s for one in found.activities) == pytest.approx(sum(roots))
    assert sum(one.own_s for one in found.frames) == pytest.approx(sum(roots))


def test_waits_for_work_and_waits_of_the_client_are_no_part_of_a_transaction() -> None:
    found = of(
        on_cpu("main;serve"),
        blocked("main;PostgresMain;secure_read;epoll_wait_[k]"),
        blocked("main;CheckpointerMain;WaitLatch;epoll_wait_[k]"),
        blocked("drive;io_uring_enter_[k]", role="client"),
    )
    assert [one.name for one in found.nodes] == ["engine:cpu", "main", "serve"]


def test_a_thread_that_was_woken_and_waits_for_a_cpu_no_longer_waits_for_work() -> None:
    found = of(blocked("main;PostgresMain;secure_read;epoll_wait_[k]", reason="cpu-queue"))
    assert found.nodes[0].name == "engine:cpu-queue" and not found.kernel


def test_functions_of_the_client_are_no_activity_of_the_engine() -> None:
    wait = "start;__new_sem_wait_slow64"
    found = of(on_cpu(wait), on_cpu(wait, role="client"))
    assert {(one.area, one.name) for one in found.activities} == {
        ("engine:cpu", "LWLocks"),
        ("client:cpu", profile_groups.OTHER),
    }


@pytest.mark.parametrize(
    ("engine", "stack", "activity"),
    [
        ("postgres", "main;heap_insert;XLogInsert;WALInsertLockAcquire;LWLockAcquire", "WAL insertion"),
        ("postgres", "main;ReadBuffer_common;LWLockAcquire", "buffer cache"),
        ("postgres", "main;CommitTransactionCommand;LWLockAcquire;PGSemaphoreLock", "LWLocks"),
        ("postgres", "main;heap_update;LockTuple;LockAcquireExtended;ProcSleep;WaitLatch", "row and table locks"),
        ("postgres", "main;ExecInterpExpr;pg_advisory_lock_int8;LockAcquireExtended;ProcSleep", "advisory locks"),
        ("mariadb", "do_command;Item_func_get_lock::val_int();MDL_context::acquire_lock", "user locks (GET_LOCK)"),
        ("mariadb", "do_command;open_tables;MDL_context::acquire_lock;MDL_wait::timed_wait", "metadata locks"),
        ("postgres", "main;CheckpointerMain;BufferSync;CheckpointWriteDelay;WaitLatch", WAITING_FOR_WORK),
        ("postgres", "main;CheckpointerMain;ProcessSyncRequests;fsync", "data writes"),
        ("postgres", "main;PostmasterMain;ServerLoop.isra.0;WaitEventSetWait;epoll_wait", WAITING_FOR_WORK),
        ("postgres", "main;ServerLoop.isra.0;BackendMain;PostgresMain;unheard_of", "other work of backends"),
        ("postgres", "main;ServerLoop;BackendMain;PostgresMain;FlushBuffer.part.0.cold;pwrite", "data writes"),
        ("mariadb", "start_thread;log_write_up_to(unsigned long, bool);fdatasync", "redo log flush"),
        ("sqlite", "sqlite3_step;sqlite3VdbeExec;sqlite3BtreeNext", "B-tree access"),
        ("duckdb", "duckdb::PipelineExecutor::Execute;duckdb::JoinHashTable::Probe", "hash joins"),
        ("sqlite", "ironbench_core::wire::sqlite::busy_handler::busy;std::thread::functions::sleep", "lock waits"),
        ("sqlite", "_PyEval_EvalFrameDefault;PyThread_acquire_lock_timed;__new_sem_wait_slow64", WAITING_FOR_WORK),
        ("duckdb", "duckdb::TaskScheduler::ExecuteForever(std::atomic<bool>*);__new_sem_wait_slow64", WAITING_FOR_WORK),
        ("duckdb", "duckdb::TaskScheduler::ExecuteForever();duckdb::JoinHashTable::Probe()", "hash joins"),
        ("duckdb", "duckdb::Executor::WaitForTask();___pthread_cond_timedwait64", "waits for parallel tasks"),
        ("duckdb", "duckdb::WriteAheadLog::Flush();duckdb::LocalFileSystem::FileSync();__GI_fdatasync", "sync to disk"),
        ("slapd", "start_thread;[libldap-2.5.so.0.1.8];___pthread_cond_wait;__futex_abstimed_wait_common",
         WAITING_FOR_WORK),
        ("slapd", "start_thread;[slapd];__pthread_mutex_lock_full;__futex_lock_pi64", "write lock"),
        ("slapd", "slapd_daemon_task;connection_read_activate;ldap_pvt_thread_pool_submit2", "thread pool"),
        ("slapd", "mdb_search;slap_send_ldap_result;__syslog_chk;__vsyslog_internal", "logging"),
        ("slapd", "do_modify;mdb_modify;mdb_txn_commit;mdb_page_flush;mdb_env_sync0", "sync to disk"),
        ("postgres", "[unknown];__GI_fdatasync;do_fsync_[k]", "WAL flush"),
        ("postgres", "__futex_abstimed_wait_common;do_futex_[k]", "LWLocks"),
        ("postgres", "main;unknown", profile_groups.OTHER),
        ("no such engine", "main;XLogInsert", profile_groups.OTHER),
    ],
)  # fmt: skip
def test_an_engine_names_the_activity_of_a_stack(engine: str, stack: str, activity: str) -> None:
    found = engines.find(engine)
    assert profile_groups.activity_of(found.profile_groups if found else {})(stack) == activity


@pytest.mark.parametrize(
    ("frames", "path"),
    [
        ("read;do_syscall_64_[k];vfs_read_[k];ext4_file_read_iter_[k];filemap_read_[k]", "page cache"),
        ("fsync;do_syscall_64_[k];vfs_fsync_range_[k];ext4_sync_file_[k];jbd2_log_wait_commit_[k];schedule_[k]",
         "file system"),
        ("send;do_syscall_64_[k];__sys_sendto_[k];tcp_sendmsg_[k]", "network"),
        ("pread;do_syscall_64_[k];submit_bio_noacct_[k]", "block layer"),
        ("wait;do_syscall_64_[k];do_futex_[k];futex_wait_[k];schedule_[k]", "futex"),
        ("strange;unheard_of_[k]", profile_groups.OTHER),
        ("main;compute", ""),
    ],
)  # fmt: skip
def test_the_innermost_known_function_of_the_kernel_names_the_subsystem(frames: str, path: str) -> None:
    assert profile_groups.kernel_path(blocked(frames)) == path


def test_time_in_the_scheduler_is_the_schedulers_only_on_a_cpu() -> None:
    frames = "read;do_syscall_64_[k];pipe_read_[k];schedule_[k]"
    assert profile_groups.kernel_path(on_cpu(frames)) == "scheduler"
    assert profile_groups.kernel_path(blocked(frames)) == "system call"


def test_the_counting_error_is_that_of_independent_samples() -> None:
    counts = np.random.default_rng(1).poisson(100, 4000)
    tree = call_tree([[on_cpu("f", int(count))] for count in counts], [1.0] * len(counts))
    assert tree.own.error[1].mean() == pytest.approx(tree.own.seconds[1].var(), rel=0.1)
