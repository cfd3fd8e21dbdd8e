"""Facts about a population that are known before anything is started."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench import _core, workloads
from ironbench.errors import InputError
from ironbench.model.system import Choice, Load, System
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads.wide_table import FIXED_BYTES, WideTable

LOAD = Load(duration_s=None, on_error="stop")


def populate() -> Any:
    return workloads.get("populate")


def choice(**options: str) -> Choice:
    return Choice("populate", populate().validated(options))


@given(st.floats(0.0001, 10), st.integers(64, 8000))
def test_so_many_gigabytes_are_so_many_rows(gb: float, row: int) -> None:
    table = WideTable.of({"gb": f"{gb:g}", "row": str(row)}, "identity")
    assert table.width + FIXED_BYTES == row
    assert abs(table.value_bytes - gb * 1e9) <= row + gb * 1e4
    for engine in ("postgres", "sqlite"):
        assert table.stored_bytes(engine) > table.value_bytes


def test_its_work_is_what_the_core_reads_and_as_many_commits_as_said() -> None:
    options = choice(gb="0.001", row="100", commit="33", method="copy", keys="random").options
    work = populate().core_work("null", options)
    plan = compiled_plan({"kind": "null"}, Tasks(work=work), replace(LOAD, clients=3), ())
    summary = msgspec.json.decode(_core.drive(plan).summary)
    assert summary["transactions"] == populate().units(options) == -(-10_000 // 33)
    assert [script["name"] for script in summary["scripts"]] == ["commit"]


def test_a_table_begins_empty_and_its_key_names_what_would_change_it() -> None:
    empty = populate().dataset("postgres", choice().options)
    assert (empty.rows, empty.generator["count"]) == (0, 0)
    keys = {
        populate().dataset("postgres", choice(**one).options).key for one in ({}, {"keys": "random"}, {"row": "99"})
    }
    assert len(keys) == 3
    assert populate().dataset("null", choice().options) is None
    full = workloads.get("vacuum").dataset("postgres", workloads.get("vacuum").validated({"gb": "0.01"}))
    assert full.rows == full.generator["count"] == 10_000


@pytest.mark.parametrize(
    ("changes", "options", "subject"),
    [
        ({"duration_s": 30.0}, {}, "--duration"),
        ({"transactions": 5}, {}, "--transactions"),
        ({"rate": 5.0}, {}, "--rate"),
        ({"warmup_s": 5.0}, {}, "--warmup"),
        ({"cache": "warm"}, {}, "--cache"),
        ({"clients": 3}, {"gb": "0.001", "commit": "500"}, "--clients 3"),
    ],
)
def test_what_means_nothing_to_work_that_has_an_end_is_refused(
    changes: dict[str, Any], options: dict[str, str], subject: str
) -> None:
    with pytest.raises(InputError) as refused:
        populate().accepts(System("postgres", "s"), replace(LOAD, **changes), choice(**options))
    assert refused.value.subject == subject


def test_sqlite_has_no_stream() -> None:
    with pytest.raises(InputError, match="has no COPY stream"):
        populate().accepts(System("sqlite", "s"), LOAD, choice(method="copy"))
    populate().accepts(System("postgres", "s"), LOAD, choice(method="copy"))


@pytest.mark.parametrize("name", ["backup", "restore", "index-build", "vacuum"])
def test_maintenance_has_one_operation_and_no_length(name: str) -> None:
    workload = workloads.get(name)
    chosen = Choice(name, workload.validated({}))
    workload.accepts(System("postgres", "s"), LOAD, chosen)
    for load in (replace(LOAD, duration_s=5.0), replace(LOAD, clients=2)):
        with pytest.raises(InputError):
            workload.accepts(System("postgres", "s"), load, chosen)


def test_work_without_scripts_has_no_mistakes_of_scripts() -> None:
    populate = workloads.get("populate")
    assert populate.warnings("postgres", Choice("populate", populate.validated({})), "prepared") == []
