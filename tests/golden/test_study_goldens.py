"""JSON documents of studies of many kinds, made from records without an engine.

Their texts may change: `IRONBENCH_GOLDEN=write pytest tests/golden` updates them. Their numbers may not, except in
warnings: `write` refuses this, and `IRONBENCH_GOLDEN=numbers` updates changed numbers as well.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import DISK, MEMORY, Shelf, example, record, suspect, sweep
from labfactory import lab, studied, trials

from ironbench.model.finding import Noise
from ironbench.model.lab import Claim, Lab
from ironbench.model.note import note, text_note
from ironbench.model.record import SLICES, Record, Status
from ironbench.model.system import Choice, Load, System
from ironbench.records import Store
from ironbench.report import compare_page, formats, gate_page
from ironbench.report.as_json import run_document
from ironbench.report.derived import sentences
from ironbench.study.compare import compare
from ironbench.study.gate import gate
from ironbench.study.runstudy import studies
from ironbench.study.subjects import Subject
from ironbench.workloads import get as workload
from ironbench.workloads.brokerage import figures

HERE = Path(__file__).parent / "studies"
EARLIER = Path(__file__).parents[1] / "data" / "records-0.1"
DIGITS = 9
"""Significant digits that are written."""
TOLERANCE = 1e-6
"""Relative tolerance. Fits stop within about 1e-8 of the optimum; the exact point depends on the processor's
arithmetic."""


def runs(*records: Record, archive: Any = None) -> bytes:
    """Returns the document of a report on runs."""
    return without_tables(formats.get("json")(studies(records, archive or Shelf(records), sentences(records))))


def of_lab(plan: Lab, records: list[Record], noise: tuple[Noise, ...] = ()) -> bytes:
    return without_tables(formats.get("json")([studied(plan, records, noise)]))


def without_tables(document: bytes) -> bytes:
    """Removes the tables, which `test_report_tables` covers."""
    fields = json.loads(document)
    for one in (*fields.get("studies", ()), *fields.get("labs", ()), fields):
        one.pop("tables", None)
    return json.dumps(fields).encode()


def one_trial() -> bytes:
    return runs(record(machine="m1", engine="e1"))


def open_loop() -> bytes:
    """Returns two systems at two rates, one of which was not sustained."""
    rated = [
        record(
            system,
            8,
            rate * kept,
            load=Load(rate=rate, duration_s=30.0, warmup_s=5.0, on_error="stop", seed=1),
            block=block,
            metrics={"service_time_p50_s": 0.001, "service_time_p99_s": 0.004, "scheduled_throughput": rate * kept},
            id=f"{system.label[-4:].strip()}-{rate:g}-{block}",
        )
        for system, kept in ((DISK, 0.92), (MEMORY, 1.0))
        for rate in (500.0, 2000.0)
        for block in range(3)
    ]
    late = [replace(one, status=Status.SUSPECT) if one.metrics["throughput"] == 1840.0 else one for one in rated]
    return runs(*late)


def clients() -> bytes:
    """Returns a ramp of clients with a knee."""
    return runs(*sweep(MEMORY, 9800, 5, clients=(1, 2, 4, 8, 16, 32, 64), repeats=3))


def two_systems() -> bytes:
    """Returns two systems with flagged, invalid and aborted trials."""
    records = example()
    records[5] = suspect(records[5])
    dead = record(
        DISK, 8, None, status=Status.VOIDED, block=3, causes=(text_note("check failed: order totals"),), machine="m1"
    )
    cut = record(MEMORY, 8, 900.0, status=Status.CUT_SHORT, block=4, causes=(text_note("interrupted"),), machine="m1")
    return runs(*records, dead, cut)


def compared() -> bytes:
    records = example()
    records[5] = suspect(records[5])
    disk = [one for one in records if one.system == DISK]
    memory = [replace(one, software={"ironbench": "0.2"}) for one in records if one.system == MEMORY]
    found = compare(Subject("log on disk", tuple(disk)), Subject("log in memory", tuple(memory)))
    return without_tables(formats.of_page("json")(compare_page.page(found)))


def run_as_json() -> bytes:
    """Returns what `run --json` prints."""
    records = example()[:8]
    records[5] = suspect(records[5])
    return run_document(records, Store(Path("/results"))).encode()


def several_factors() -> bytes:
    """Returns a full design of two factors with claims and observed server waits."""
    levels = {"log": ("disk", "memory"), "shared_buffers": ("64MB", "1GB")}
    pair = ("log=memory shared_buffers=64MB", "log=disk shared_buffers=64MB")
    claims = [
        Claim("log=memory over log=disk: 1.00 to 1.10", "ratio", "throughput", pair, 1.0, 1.1),
        Claim("order: log=memory > log=disk", "order", "throughput", pair),
    ]
    plan = lab(levels, blocks=8, claims=claims)
    means = {setup.cell.name: 1800.0 * (1 + 0.4 * index) for index, setup in enumerate(plan.setups)}
    noise = Noise("m1", "igen-oltp scale=4 weight=light", "throughput", 12, 0.015, 0.021, "2026-11-20T08:00:00")
    return of_lab(plan, trials(plan, means, observed=True), (noise,))


def growth() -> bytes:
    """Returns a lab whose configurations differ in the number of clients."""
    counts = ("1", "2", "4", "8", "16")
    plan = lab({"clients": counts}, blocks=6)
    means = {f"clients={count}": 900.0 * int(count) / (1 + 0.05 * int(count)) for count in counts}
    return of_lab(plan, trials(plan, means))


def slices() -> bytes:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    records = trials(plan, {"log=disk": 1800.0, "log=memory": 1950.0}, spread=0.01)
    metrics = {"slices": 40.0, "slice_systems": 2.0, "slice_error": 0.004, "slice_autocorrelation": 0.1}
    beside = [
        replace(one, method=SLICES, turns_since=f"block {one.block}", metrics={**one.metrics, **metrics})
        for one in records
    ]
    return of_lab(plan, beside)


def losses() -> bytes:
    """Returns a lab whose sides lost trials unequally, with repeated blocks, flagged trials and disturbances."""
    plan = lab({"log": ("disk", "memory", "ssd")}, blocks=8, skipped={"log=ssd": "/ssd is not there"})
    records = trials(plan, {"log=disk": 1800.0, "log=memory": 1990.0})
    for place in (2, 4, 5):
        records[place] = replace(
            records[place], status=Status.FAILED, metrics={}, causes=(text_note("server died: out of memory"),)
        )
    records.append(replace(records[4], attempt=2, id=f"{records[4].id}-a2"))
    records[7] = suspect(records[7])
    records[9] = suspect(records[9])
    return of_lab(plan, records)


def gated() -> bytes:
    plan = lab({"version": ("16", "18")}, blocks=12, question="Is the new version slower?")
    study = studied(plan, trials(plan, {"version=16": 1000.0, "version=18": 930.0}, spread=0.01))
    return without_tables(gate_page.written(gate(study, study.findings, 0.05, "pass"), "json"))


def queries() -> bytes:
    """Returns a TPC-H-derived lab of two systems with three repeats."""

    def single(system: System, faster: float, block: int) -> Record:
        times = {f"query_time_s{{query=q{number:02}}}": number / 100 / faster for number in range(1, 23)}
        scores = {"power": 360.0 * faster, "power_unrounded": 2877.3 * faster, "query_time_geomean_s": 0.012 / faster}
        one = record(system, 1, 67.0, metrics={**times, **scores}, block=block, id=f"{system.label[-4:]}{block}")
        return replace(one, choice=Choice("tpch", {"sf": "1"}), answers=note("answers-checked", right=22, of=22))

    return runs(*(single(*of, block) for block in range(3) for of in ((DISK, 1.0 + block / 50), (MEMORY, 1.3))))


def storage() -> bytes:
    """Returns a lab of two devices."""
    read, write = "storage_bytes_per_s{profile=seq1m-q8t1-read}", "storage_bytes_per_s{profile=rnd4k-q32t1-write}"
    rates = {"generic": {read: 682.8e6, write: 282.3e6}, "vendor's": {read: 1547.7e6, write: 419.7e6}}
    plan = lab({"driver": tuple(rates)}, blocks=6, metric=read)
    work = Choice("storage", {})
    plan = replace(plan, setups=tuple(replace(setup, choice=work) for setup in plan.setups))
    means = {setup.cell.name: 1.0 for setup in plan.setups}
    found = [
        replace(one, choice=work, metrics={name: rate * (1 + one.block / 100) for name, rate in measured.items()})
        for one in trials(plan, means)
        if (measured := rates[one.cell.levels["driver"]])
    ]
    return of_lab(plan, found)


def brokerage() -> bytes:
    shares = {name: share * 1000.0 for name, share in figures.MIX.items()}
    metrics = {f"throughput{{script={name}}}": rate for name, rate in shares.items()}
    metrics |= {f"response_time_p90_s{{script={name}}}": 0.01 for name in shares}
    metrics |= {figures.SCORE: shares["trade_result"], "market_lag_p99_s": 0.004, figures.TAKEN_BACK: 30.0}
    return runs(record(metrics=metrics, choice=Choice("brokerage", workload("brokerage").validated({}))))


def earlier_records() -> bytes:
    """Returns records of version 0.1, with warnings as texts."""
    store = Store(EARLIER)
    return runs(*store.all(), archive=store)


MADE: dict[str, Callable[[], bytes]] = {
    made.__name__.replace("_", "-"): made
    for made in (
        *(one_trial, open_loop, clients, two_systems, compared, run_as_json, several_factors, growth, slices, losses),
        *(gated, queries, storage, brokerage, earlier_records),
    )
}


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yields every number with its path in the document, except those in warnings and the schema version."""
    if isinstance(value, bool) or path.endswith((".warnings", ".disturbances")) or path == ".schema":
        return
    if isinstance(value, int | float):
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from numbers(part, f"{path}.{key}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from numbers(part, f"{path}[{index}]")


def unlike(one: object, other: object) -> bool:
    """Returns whether two values differ. Numbers differ if their difference exceeds the tolerance."""
    if isinstance(one, float) and isinstance(other, float):
        return not math.isclose(one, other, rel_tol=TOLERANCE)
    return one != other


def differences(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yields the path and both values of every place in which two documents differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from differences(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (part, its) in enumerate(zip(one, other, strict=True)):
            yield from differences(part, its, f"{path}[{index}]")
    elif unlike(one, other):
        yield path, one, other


@pytest.mark.parametrize("name", MADE)
def test_the_document_of_a_study_stays_as_it_is(name: str) -> None:
    path, found = HERE / f"{name}.json", rounded(json.loads(MADE[name]()))
    mode = os.environ.get("IRONBENCH_GOLDEN")
    if path.exists() and mode != "numbers":
        before, after = (dict(numbers(document)) for document in (json.loads(path.read_text()), found))
        changed = {
            place: (value, after.get(place)) for place, value in before.items() if unlike(value, after.get(place))
        }
        assert not changed
    if mode:
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert not list(differences(json.loads(path.read_text(encoding="utf-8")), found))
