"""Wait classes divided by wait events and by functions: both divisions add up to the class."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from factories import Shelf
from labfactory import lab, trials

from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.lab import Configuration
from ironbench.model.observer import CPU, LOCKS, LOG_FLUSH, RUN_QUEUE
from ironbench.model.profile import BLOCKED, CPU_QUEUE, WAIT, SampledStack
from ironbench.records.evidence import PROFILE
from ironbench.report.breakdown import breakdown_table
from ironbench.study.bottleneck import where_time_goes
from ironbench.study.explain import explain
from ironbench.study.profiled import REST
from ironbench.study.shares import Side
from ironbench.study.wait_parts import EVENT, FUNCTION, WaitPart, functions_of_limit

SPREAD, HOT = "row=spread", "row=hot"
SHARES = {
    SPREAD: {CPU: 0.5, RUN_QUEUE: 0.3, LOG_FLUSH: 0.2},
    HOT: {CPU: 0.1, RUN_QUEUE: 0.1, LOCKS: 0.75, LOG_FLUSH: 0.05},
}
EVENTS = {
    SPREAD: {"CPU": 0.8, "IO.WalSync": 0.15, "LWLock.WALWrite": 0.05},
    HOT: {"CPU": 0.2, "Lock.transactionid": 0.6, "Lock.tuple": 0.15, "IO.WalSync": 0.05},
}
LOCK = "main;PostgresMain;heap_update;XactLockTableWait;LockAcquireExtended;ProcSleep;WaitLatch;epoll_wait;schedule_[k]"
FLUSH = "main;PostgresMain;RecordTransactionCommit;XLogFlush;XLogWrite;fdatasync;schedule_[k]"
PARSE = "main;PostgresMain;pg_parse_query;base_yyparse"
IDLE = "main;PostgresMain;secure_read;epoll_wait;schedule_[k]"


def measured(blocks: int = 6, profiled_locks: float = 0.7) -> tuple[Side, Side, Shelf]:
    """Returns the trials of a lab in which transactions wait for the lock of a row in the second configuration.

    `profiled_locks`: time of these waits in the profile, as a fraction of the transaction time.
    """
    dice = random.Random(3)
    records = trials(
        lab({"row": ("spread", "hot")}, blocks=blocks), {SPREAD: 2000.0, HOT: 500.0}, files={PROFILE: "0" * 64}
    )
    stacks = {}
    for one in records:
        name = one.cell.name
        one.metrics.update({f"time_share{{part={part}}}": share for part, share in SHARES[name].items()})
        for event, share in EVENTS[name].items():
            one.metrics[f"wait_share{{event={event}}}"] = share * dice.uniform(0.9, 1.1)
        client_s = 8 * 30.0
        stacks[one.id] = (
            SampledStack("cpu", "engine", "postgres", "", PARSE, "", 900, SHARES[name][CPU] * client_s * 0.9),
            SampledStack(WAIT, "engine", "postgres", CPU_QUEUE, PARSE, "", 90, SHARES[name][RUN_QUEUE] * client_s),
            SampledStack(WAIT, "engine", "postgres", BLOCKED, FLUSH, "", 90, SHARES[name][LOG_FLUSH] * client_s),
            SampledStack(WAIT, "engine", "postgres", BLOCKED, IDLE, "", 90, 100.0),
            *(
                [SampledStack(WAIT, "engine", "postgres", BLOCKED, LOCK, "", 900, profiled_locks * client_s)]
                if name == HOT
                else []
            ),
        )
    sides = [(Configuration(name), [one for one in records if one.cell.name == name]) for name in (SPREAD, HOT)]
    return sides[0], sides[1], Shelf(records, profiles=stacks)


def parts(found: tuple[WaitPart, ...], of: str, kind: str) -> dict[str, WaitPart]:
    return {one.name: one for one in found if (one.wait_class, one.kind) == (of, kind)}


@pytest.mark.parametrize("kind", [EVENT, FUNCTION])
def test_the_parts_of_a_wait_class_add_up_to_its_step_of_the_waterfall(kind: str) -> None:
    before, after, shelf = measured()
    found = explain(before, after, shelf, in_blocks=True)
    assert found.waterfall is not None
    steps = {step.part: step.delta_s for step in found.waterfall.steps}
    divided = {one.wait_class for one in found.wait_parts if one.kind == kind}
    assert divided == ({LOCKS, LOG_FLUSH} if kind == EVENT else {CPU, RUN_QUEUE, LOCKS, LOG_FLUSH})
    for of in divided:
        assert sum(one.delta_s for one in parts(found.wait_parts, of, kind).values()) == pytest.approx(steps[of])


def test_a_wait_class_continues_with_its_events_and_its_functions() -> None:
    before, after, shelf = measured()
    found = explain(before, after, shelf, in_blocks=True)
    events, functions = (parts(found.wait_parts, LOCKS, kind) for kind in (EVENT, FUNCTION))
    assert list(events) == ["Lock.transactionid", "Lock.tuple", REST]
    assert events["Lock.transactionid"].clear and events[REST].delta_s == pytest.approx(0.0, abs=1e-9)
    # The profile contains 0.70 of the transaction time, and the class 0.75.
    assert list(functions) == ["XactLockTableWait", REST]
    assert functions[REST].after_s / functions["XactLockTableWait"].after_s == pytest.approx(0.05 / 0.7, rel=0.1)
    levels = [(row[0], row[1]) for row in breakdown_table(found).rows]
    place = levels.index(("wait class", "locks"))
    assert levels[place + 1 : place + 4] == [
        ("wait event", "locks: Lock.transactionid"),
        ("wait event", "locks: Lock.tuple"),
        ("function", "locks: XactLockTableWait"),
    ]


def test_functions_with_more_time_in_the_profile_than_their_wait_class_are_reduced_to_the_class() -> None:
    before, after, shelf = measured(profiled_locks=1.5)
    found = explain(before, after, shelf, in_blocks=True)
    functions = parts(found.wait_parts, LOCKS, FUNCTION)
    assert found.waterfall is not None
    assert functions["XactLockTableWait"].after_s == pytest.approx(0.75 * found.waterfall.after_s)
    assert functions[REST].after_s == pytest.approx(0.0, abs=1e-9)
    share = pytest.approx(0.75)
    assert of_limit(after, shelf) == (
        "limit-functions",
        {"resource": "locks", "functions": (("XactLockTableWait", share),)},
    )


def test_with_too_few_blocks_the_parts_have_no_interval() -> None:
    before, after, shelf = measured(LEAST_BLOCKS_SHOWN - 1)
    found = explain(before, after, shelf, in_blocks=True)
    assert found.wait_parts and not any(one.clear for one in found.wait_parts)


def of_limit(side: Side, shelf: Shelf) -> object:
    spent = where_time_goes(side[1])
    assert spent is not None
    found = functions_of_limit(spent, side[1], shelf)
    return found and (found.code, dict(found.values))


def test_the_functions_of_the_limiting_resource_are_named_with_their_part_of_the_transaction() -> None:
    _, hot, shelf = measured()
    share = pytest.approx(0.7, rel=0.1)
    assert of_limit(hot, shelf) == (
        "limit-functions",
        {"resource": "locks", "functions": (("XactLockTableWait", share),)},
    )


def test_functions_that_wait_for_a_cpu_are_not_named_as_the_limit() -> None:
    spread, _, shelf = measured()
    share = pytest.approx(0.45, rel=0.1)
    expected = ("limit-functions", {"resource": "server-cpu", "functions": (("base_yyparse", share),)})
    assert of_limit(spread, shelf) == expected


def test_without_a_profile_no_function_is_named() -> None:
    _, hot, shelf = measured()

    assert of_limit((hot[0], [replace(one, files={}) for one in hot[1]]), shelf) is None
