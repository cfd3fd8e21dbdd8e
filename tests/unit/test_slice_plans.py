"""Plans of labs that use slices: method, space, minimum detectable effect; and the report on dropped slices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import labfactory
import pytest
from test_slice_lengths import declared

from ironbench.cli.lab import plan as planned
from ironbench.host import space
from ironbench.lab import declare
from ironbench.lab.dry_run import notes
from ironbench.lab.slices import slice_plan
from ironbench.model.note import Note
from ironbench.model.own_data import OwnData
from ironbench.model.system import Choice, Layout
from ironbench.report import document
from ironbench.report.sections import setup
from ironbench.trial.load import snapshot

GIB = 1 << 30


@pytest.fixture
def said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, str], str]:
    """Returns a function that plans a lab with 3.0 GB for each of two systems, on a machine with 4 GiB of memory and
    100 GB of free space."""
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(slice_plan, "memory_there", lambda: 4 * GIB)
    monkeypatch.setattr(space, "free_bytes", lambda path: 100 * 10**9)
    file = tmp_path / "memory.toml"

    def plan(old: str = "", new: str = "") -> str:
        declared(file, "6s")
        text = file.read_text().replace('name = "tpcb-like"', 'name = "tpcb-like"\nwith.scale = 200')
        assert old in text
        file.write_text(text.replace(old, new, 1) if old else text)
        planned(file)
        return " ".join(capsys.readouterr().out.split())

    return plan


def test_every_plan_names_the_method(said: Callable[..., str]) -> None:
    assert "method: slices; all systems of a block run at the same time" in said()
    assert "method: trials, one after another (measure.method)" in said('method = "slices"\n')


def test_the_time_of_a_plan_holds_a_copy_of_data_that_are_only_read_for_each_system(
    said: Callable[..., str], tmp_path: Path
) -> None:
    said()
    file = tmp_path / "memory.toml"
    text = file.read_text().replace('name = "tpcb-like"', 'name = "select-only"')
    copies_s = {}
    for method in ("slices", "trials"):
        file.write_text(text.replace('method = "slices"', f'method = "{method}"'))
        found = declare.planned(declare.read(file))
        assert (found.lab.method.slice_s is not None) == (method == "slices"), found.lab.method.why_trials
        copies_s[method] = found.costs.copies_s
    assert copies_s["slices"] == pytest.approx(2 * copies_s["trials"])
    assert copies_s["trials"] > 10


@pytest.mark.parametrize("order", ["random", "fixed"])
def test_plan_and_report_name_the_order_of_the_turns(said: Callable[..., str], order: str) -> None:
    told = said('method = "slices"', f'method = "slices"\norder = "{order}"')
    fixed = order == "fixed"
    assert ("in the order of the lab file, while the other systems are paused" in told) == fixed
    assert ("in random order, while the other systems are paused" in told) != fixed
    plan = labfactory.lab({"log": ["disk", "memory"]}, blocks=6)
    plan = replace(plan, method=replace(plan.method, slice_s=1.0, order=order))
    study = labfactory.studied(plan, labfactory.trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1000.0)))
    (section,) = [one for one in setup.sections(study) if one.id == "plan"]
    assert (
        'in the order of the lab file (order = "fixed"). While one system is under load, the other systems'
        in section.lead
    ) == fixed
    assert ("in a new random order for each rotation" in section.lead) != fixed
    caveats = document.caveats(study)
    assert any("every rotation ran the systems in the same order" in text for text in caveats) == fixed
    assert not any("Changes within a block" in text for text in caveats)


def test_data_need_not_fit_memory_but_the_plan_says_that_systems_evict_each_others_pages(
    said: Callable[..., str],
) -> None:
    told = said()
    assert "method: slices" in told
    assert "running at the same time (6" in told and "do not fit into the page cache" in told
    assert "do not fit into the page cache" not in said("with.scale = 200", "with.scale = 20")
    own = 'engine = "postgres"\n[limits]\nmemory_total = "1GB"'
    assert "do not fit into the page cache" not in said('engine = "postgres"', own)


def test_caches_and_processes_must_fit_memory(said: Callable[..., str]) -> None:
    assert "2 systems running at the same time need about 4.34 GiB of memory" in said('"256MB"', '"4GB"')


def test_a_plan_that_needs_more_space_than_is_free_says_so(
    said: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "not enough space in" not in said()
    monkeypatch.setattr(space, "free_bytes", lambda path: 10 * 10**9)
    assert "10.0 GB are free, and" in said()


@pytest.mark.parametrize(
    ("fast_free", "slow_free", "short"),
    [(10, 10, ""), (5, 5, ""), (3.4, 10, "/fast"), (10, 3.4, "/slow")],
)
def test_the_space_of_each_file_system_is_compared_with_what_lies_on_it_alone(
    said: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fast_free: float,
    slow_free: float,
    short: str,
) -> None:
    free = {"fast": fast_free * 10**9, "slow": slow_free * 10**9}

    def on(path: object) -> str:
        return "fast" if "/fast" in str(path) else "slow"

    monkeypatch.setattr(space, "file_system", lambda path: list(free).index(on(path)))
    monkeypatch.setattr(space, "free_bytes", lambda path: free[on(path)])
    levels = {
        name: f'{name} = {{ system.memory = "{memory}", layout.data = "{tmp_path}/{name}/pg" }}'
        for name, memory in (("fast", "128MB"), ("slow", "256MB"))
    }
    old = 'small = { system.memory = "128MB" }\nlarge = { system.memory = "256MB" }'
    told = said(old, "\n".join(levels.values()))
    assert ("method: slices" in told) == (not short)
    if short:
        assert "running at the same time, 1 of 2 systems would need about" in told
        assert f"of space in {tmp_path}{short}/pg, but 3.4" in told


def test_what_slices_resolve_is_said_to_be_that_of_trials_where_no_noise_of_slices_is_known(
    said: Callable[..., str],
) -> None:
    assert "so ironbench assumes a typical variation between blocks of trials" in said()
    assert "a typical variation between blocks of trials" not in said('method = "slices"\n')


@pytest.mark.parametrize("stayed", [0, 2])
def test_the_report_says_how_many_slices_were_dropped_and_whether_disturbed_ones_stayed(stayed: int) -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]})
    plan = replace(plan, method=replace(plan.method, slice_s=1.0))
    records = labfactory.trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1000.0))
    figures = {"slices": 8.0, "slices_dropped": 2.0}
    some = (Note("cpu-taken", {"text": "3 slices of the block had CPU time taken from the work"}),)
    records = [
        replace(one, metrics={**one.metrics, **figures}, warnings=some if number < stayed else ())
        for number, one in enumerate(records)
    ]
    (section,) = [one for one in setup.sections(labfactory.studied(plan, records)) if one.id == "plan"]
    count = len(records)
    assert f"{2 * count} of {10 * count} slices were dropped and repeated, because other programs" in section.lead
    assert (f"2 of {count} records still contain disturbed slices" in section.lead) == bool(stayed)


@pytest.mark.parametrize(
    ("data_bytes", "memory", "cache", "told"),
    [
        (105 * 10**6, None, "", True),
        (105 * 10**6, 64 << 20, "", False),
        (8 * GIB, None, "", False),
        (105 * 10**6, None, "cold", False),
    ],
)
def test_a_plan_says_that_no_device_is_read_where_the_data_of_compared_devices_fit_memory(
    monkeypatch: pytest.MonkeyPatch, data_bytes: int, memory: int | None, cache: str, told: bool
) -> None:
    monkeypatch.setattr(slice_plan, "memory_there", lambda: 4 * GIB)
    monkeypatch.setattr(space, "file_system", lambda path: ("/disk", "/ssd").index(str(Path(path).parent)))
    lab = labfactory.lab({"data": ["disk", "ssd"]}, blocks=6)
    setups = [
        replace(
            one,
            system=replace(one.system, layout=Layout(data=place), memory_total_bytes=memory),
            cell=replace(one.cell, load=replace(one.cell.load, cache=cache)),
        )
        for one, place in zip(lab.setups, ("/disk/d", "/ssd/d"), strict=True)
    ]
    found = list(notes._cached(setups, {one.cell.name: data_bytes for one in setups}))
    assert bool(found) == told
    alike = [
        replace(one, system=replace(one.system, layout=Layout(data=place)))
        for one, place in zip(setups, ("/disk/postgres-16", "/disk/postgres-18"), strict=True)
    ]
    assert not list(notes._cached(alike, {one.cell.name: data_bytes for one in alike}))


@pytest.mark.parametrize(
    ("data", "kept", "told"),
    [
        (OwnData(dump="/shop.dump", kind="custom", data_bytes=10**8), None, "estimated from the size of the dump"),
        (OwnData(dump="/shop.dump", kind="custom", data_bytes=10**8), 10**8, "fit in memory"),
        (OwnData(setup=("/shop.sql",), data_bytes=10**6), None, ""),
        (OwnData(setup=("/shop.sql",), data_bytes=10**6), 10**8, "fit in memory"),
    ],
)
def test_a_plan_says_that_own_data_fit_memory_only_once_their_size_is_known(
    monkeypatch: pytest.MonkeyPatch, data: OwnData, kept: int | None, told: str
) -> None:
    monkeypatch.setattr(slice_plan, "memory_there", lambda: 4 * GIB)
    monkeypatch.setattr(space, "file_system", lambda path: path)
    monkeypatch.setattr(snapshot, "known_bytes", lambda system, data: kept)
    lab = labfactory.lab({"data": ["disk", "ssd"]}, blocks=6)
    setups = [
        replace(
            one,
            system=replace(one.system, layout=Layout(data=f"/{place}")),
            choice=Choice("script", data=data),
        )
        for place, one in enumerate(lab.setups)
    ]
    found = list(notes._cached(setups, {one.cell.name: 10**8 for one in setups}))
    assert len(found) == bool(told) and all(told in one for one in found)
    assert all(("may fit" in one) == (kept is None) for one in found)
