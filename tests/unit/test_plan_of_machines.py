"""A plan of a lab on many machines, none of which exists yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.errors import InputError
from ironbench.lab import declare
from ironbench.lab.dry_run import lab as plans
from ironbench.trial.cluster import worker_pool

LAB = """
question = "?"
[system]
dsn = "postgresql://bench@db.example:5432/bench"
[workload]
name = "tpch"
with = {{ sf = 10000, test = "throughput" }}
[load]
workers = {workers}
cluster = "auto"
[vary]
workload.with.streams = [9, 18]
"""


def lab(folder: Path, workers: int) -> Path:
    path = folder / f"w{workers}.toml"
    path.write_text(LAB.format(workers=workers))
    return path


def none_there(cluster: str) -> int:
    raise InputError("load.cluster = auto", "is not a running Ray cluster")


@pytest.mark.parametrize(
    ("machines", "words"), [(none_there, "is not a running Ray cluster"), (lambda _: 2, "has only 2 machines")]
)
def test_a_plan_needs_no_machines_and_says_which_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machines: object, words: str
) -> None:
    monkeypatch.setattr(worker_pool, "machines", machines)
    declared = declare.read(lab(tmp_path, 32))
    planned = declare.planned(declared, machines_needed=False)
    (warning,) = planned.warnings
    assert words in warning and warning.endswith("add the machines before you start the lab")
    assert warning in plans.notes(planned)
    with pytest.raises(InputError):
        declare.planned(declared)


def test_twice_as_many_workers_load_in_half_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "machines", lambda _: 64)
    once = [declare.planned(declare.read(lab(tmp_path, workers))).costs.once_s for workers in (8, 16)]
    assert once[0] / once[1] == pytest.approx(2.0, rel=0.001)
