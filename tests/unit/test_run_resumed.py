"""`--resume` continues only a run of the same command, or reports the differences of the new command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import evidence, record

from ironbench.errors import InputError
from ironbench.lab import run_plan
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.record import Record
from ironbench.plan import run_file
from ironbench.printer import Printer
from ironbench.records import Store

SEARCH = {
    "workload": "igen-oltp",
    "engine": "null",
    "seed": 1,
    "clients": "auto:1-8",
    "limit": ("response_time_p99_s=1s",),
    "tag": ("commit=a",),
}
SWEEP = {**SEARCH, "clients": "1,8", "limit": ()}


def begun(options: dict[str, Any], store: Store, monkeypatch: pytest.MonkeyPatch) -> Record:
    """Returns the first trial of a run, stored as if measured on this machine."""
    plan, _ = run_plan.planned(run_file.read(**options))
    trial, machine = plan.trials[0], "m1"
    one = record(
        plan.system,
        trial.cell.load.clients,
        choice=plan.choice,
        load=trial.cell.load,
        series=plan.series,
        seed_given=plan.seed_given,
        search_range=plan.search_range,
        limits=plan.limits,
        crash=plan.crash,
        profile=plan.profile,
        tags=dict(plan.tags),
        machine=machine,
    )
    one = replace(one, cell=trial.cell)
    store.keep(one, **evidence())
    monkeypatch.setattr(run_plan, "fingerprint", dict)
    monkeypatch.setattr(run_plan, "content_key", lambda _: machine)
    return one


@pytest.mark.parametrize("options", [SEARCH, SWEEP], ids=["search", "sweep"])
def test_the_same_command_goes_on(options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, Printer.silent())
    one = begun(options, store, monkeypatch)
    for again in (options, {**options, "tag": ()}, {**options, "seed": None}):
        plan, _ = run_plan.resumed(run_file.read(**again), store)
        assert (plan.series, plan.tags) == (one.series, {"commit": "a"})


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        (SEARCH, {"limit": ("response_time_p99_s=2s",)}),
        (SEARCH, {"limit": ()}),
        (SEARCH, {"clients": "auto:1-16"}),
        (SEARCH, {"clients": "1,8", "limit": ()}),
        (SWEEP, {"clients": "auto:1-8"}),
    ],
)
def test_another_search_is_another_command(
    before: dict[str, Any], changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, Printer.silent())
    begun(before, store, monkeypatch)
    with pytest.raises(InputError, match="no run of this command"):
        run_plan.resumed(run_file.read(**before | changes), store)


@pytest.mark.parametrize("changes", [{"crash": "lose"}, {"profile": ProfileRequest(("cpu",))}], ids=["cut", "profile"])
def test_a_run_with_another_power_cut_or_profile_is_another_command(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, Printer.silent())
    begun(SWEEP, store, monkeypatch)
    plan, secrets = run_plan.planned(run_file.read(**SWEEP))
    monkeypatch.setattr(run_plan, "planned", lambda _: (replace(plan, **changes), secrets))
    with pytest.raises(InputError, match="no run of this command"):
        run_plan.resumed(run_file.read(**SWEEP), store)


def test_a_tag_that_the_run_does_not_have_is_refused_and_not_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, Printer.silent())
    begun(SWEEP, store, monkeypatch)
    with pytest.raises(InputError, match="does not have this tag") as caught:
        run_plan.resumed(run_file.read(**{**SWEEP, "tag": ("commit=b",)}), store)
    assert caught.value.subject == "--tag commit=b"
