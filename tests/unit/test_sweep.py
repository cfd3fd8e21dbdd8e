"""A plan contains every configuration in every block, in an order determined only by the seed."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.errors import InputError
from ironbench.fields.sections import LoadSection
from ironbench.model.system import Cell, Choice, Load, System
from ironbench.plan import resolve
from ironbench.plan.sweep import CONFIRMATIONS, plan, search

SYSTEM, CHOICE, DEFAULT = System("null", "test"), Choice("select-only"), Load()


def planned(load: Load = DEFAULT, clients=(1,), repeats=1):
    cells = [Cell(f"clients={count}", replace(load, clients=count)) for count in clients]
    return plan(SYSTEM, CHOICE, cells, repeats)


@given(
    clients=st.lists(st.integers(1, 1000), min_size=1, max_size=12, unique=True),
    repeats=st.integers(1, 5),
    seed=st.integers(0, 2**32),
)
def test_every_cell_is_in_every_block_once_and_the_seed_decides_the_order(clients, repeats, seed) -> None:
    found = planned(Load(seed=seed), clients, repeats=repeats)
    seen = Counter((trial.cell.load.clients, trial.block) for trial in found.trials)
    assert seen == {(n, block): 1 for n in clients for block in range(repeats)}
    assert found.trials == planned(Load(seed=seed), clients, repeats=repeats).trials


def test_a_sweep_is_confirmed_and_a_single_cell_is_not() -> None:
    assert planned(clients=(1, 2)).confirmations == CONFIRMATIONS
    assert planned(clients=(8,)).confirmations == 0


def test_threads_never_outnumber_clients() -> None:
    assert resolve.load(LoadSection(clients=1, threads=4), seed=1).threads == 1


@pytest.mark.parametrize(
    ("load", "subject"),
    [
        (Load(duration_s=10, transactions=5), "--transactions"),
        (Load(rate=5, think_time_s=1), "--think-time"),
        (Load(rate=5, duration_s=None, transactions=9), "--rate"),
    ],
)
def test_a_load_that_cannot_be_driven_is_refused_before_anything_starts(load: Load, subject: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve.validate(load)
    assert caught.value.subject == subject
    assert caught.value.hint


@pytest.mark.parametrize(
    ("written", "metric", "most"),
    [
        ("response_time_p99_s=20ms", "response_time_p99_s", 0.02),
        ("engine_cpu_cores = 1.4", "engine_cpu_cores", 1.4),
        ("cpu_user_share=70%", "cpu_user_share", 0.7),
        ("device_queue_depth{role=log}=4", "device_queue_depth{role=log}", 4.0),
    ],
)
def test_a_limit_is_on_any_metric_that_gets_worse_of_the_whole_or_of_a_part(
    written: str, metric: str, most: float
) -> None:
    found = search("auto:1-8", None, [written], 1)
    assert found is not None
    (limit,) = found.limits
    assert (limit.metric, limit.most) == (metric, pytest.approx(most))


@pytest.mark.parametrize(
    "written", ["response_time_p99_s", "device_queue_depth{role=log}", "throughput=5", "nothing=1"]
)
def test_a_limit_that_is_none_is_refused(written: str) -> None:
    with pytest.raises(InputError):
        search("auto:1-8", None, [written], 1)
