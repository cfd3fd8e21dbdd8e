"""Scale factors, sizes, refresh keys and settings of TPC-H-derived tables, without an engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench import engines
from ironbench.engines.postgres import resources
from ironbench.engines.postgres.resources import preset
from ironbench.errors import InputError
from ironbench.model.system import Device, Layout, Partition, System
from ironbench.trial.load import Loaded, space
from ironbench.workloads import tpch_tables

OPTIONS = {"sf": "1"}


@pytest.mark.parametrize("text", ["0", "-1", "nan", "abc", "inf", "0.009"])
def test_a_scale_factor_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        tpch_tables.SCALE_FACTOR.validated(text)
    assert "0.01 to 100,000" in refused.value.hint


def test_a_scale_factor_that_is_too_large_is_refused_with_the_space_it_needs() -> None:
    with pytest.raises(InputError, match=r"up to 2,100\u202fPB"):
        tpch_tables.SCALE_FACTOR.validated("1e9")


def test_fractional_scale_factors_are_possible() -> None:
    assert tpch_tables.SCALE_FACTOR.validated("0.25") == "0.25"
    assert tpch_tables.rows_of("supplier", 0.25) == 2500
    assert tpch_tables.rows_of("nation", 0.25) == 25


@pytest.mark.parametrize("engine", engines.able(("data", "queries")))
def test_every_engine_has_all_tables(engine: str) -> None:
    dataset = tpch_tables.dataset(engine, OPTIONS)
    made = [statement.split("(")[0].split()[-1] for statement in dataset.schema]
    assert sorted(made) == sorted(dataset.tables)


def test_keys_are_wide_only_where_they_must_be() -> None:
    assert not any("bigint" in statement for statement in tpch_tables.dataset("postgres", {"sf": "300"}).schema)
    assert any("o_orderkey bigint" in statement for statement in tpch_tables.dataset("postgres", {"sf": "301"}).schema)


def test_the_content_key_tells_apart_whatever_gives_other_tables() -> None:
    wanted = ({}, {"indexes": "no"}, {"references": "no"}, {"sf": "2"})
    keys = {tpch_tables.dataset("postgres", OPTIONS | options).key for options in wanted}
    assert len(keys) == len(wanted)


def test_foreign_keys_are_all_or_none() -> None:
    assert len(tpch_tables.dataset("postgres", OPTIONS).references) == 10
    assert tpch_tables.dataset("postgres", OPTIONS | {"indexes": "no"}).references == ()


def test_indexes_name_only_keys_and_dates() -> None:
    allowed = ("key", "date", "linenumber")
    for engine in engines.able(("data", "queries")):
        for statement in tpch_tables.dataset(engine, OPTIONS).keys:
            columns = statement[statement.index("(") + 1 : statement.rindex(")")].split(", ")
            assert all(column.endswith(allowed) for column in columns), statement


def test_a_load_is_refused_where_making_its_rows_takes_more_memory_than_there_is() -> None:
    with pytest.raises(InputError, match=r"generating the rows takes about 429\u202fMiB"):
        space.enough_memory(tpch_tables.dataset("postgres", OPTIONS), available_bytes=200 << 20)
    space.enough_memory(tpch_tables.dataset("postgres", OPTIONS), available_bytes=1 << 30)


def test_the_record_tells_the_phases_of_a_load_apart() -> None:
    metrics = Loaded(10, 100, 3.0, {"schema": 0.5, "rows": 2.0, "keys": 0.5}).metrics()
    assert metrics["load_phase_s{phase=rows}"] == 2.0 and metrics["load_rows_per_s"] == 5.0
    assert "load_phase_s{phase=rows}" not in Loaded(10, 100, 3.0, {"rows": 2.0}, resumed=True).metrics()


def test_the_preset_follows_the_memory_and_leaves_alone_what_is_declared() -> None:
    whole = preset(System("postgres", "", layout=Layout("/proc"), memory_total_bytes=4 << 30))
    assert whole["shared_buffers"] == f"{1 << 20}kB" and whole["effective_cache_size"] == f"{3 << 20}kB"
    declared = preset(System("postgres", "", memory_bytes=1 << 28, parallelism=2, memory_total_bytes=4 << 30))
    assert "shared_buffers" not in declared and "max_parallel_workers_per_gather" not in declared


def test_the_preset_knows_an_emulated_disk_by_its_model_and_leaves_its_depth_to_the_engine() -> None:
    def on(model: str, rotates: bool) -> dict[str, str]:
        device = Device(model, (Partition("data", 1 << 30, "/nowhere/data"),), rotates=rotates)
        return preset(System("postgres", "", layout=Layout("/nowhere/data", devices=(device,))))

    disk, flash = on("hdd-10k", True), on("ssd-sata-2011", False)
    assert (disk["random_page_cost"], flash["random_page_cost"]) == ("4", "1.1")
    assert not {"effective_io_concurrency", "io_workers"} & (set(disk) | set(flash))


@pytest.mark.parametrize(("rotational", "cost"), [("1", "4"), ("0", "1.1")])
def test_the_preset_knows_the_device_of_the_default_directory(
    rotational: str, cost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(resources, "rotates", lambda directory: (asked.append(directory), rotational == "1")[1])
    assert preset(System("postgres", ""))["random_page_cost"] == cost
    assert asked == [str(tmp_path / "data")]


def test_more_streams_share_the_memory_for_sorts() -> None:
    system = System("postgres", "", memory_total_bytes=8 << 30, parallelism=1)
    one, four = (int(preset(system, streams)["work_mem"].removesuffix("kB")) for streams in (1, 4))
    assert one == 4 * four
