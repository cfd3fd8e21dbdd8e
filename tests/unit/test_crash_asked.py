"""`run --crash` is refused if no power can be cut or a power cut could not lose data."""

from collections.abc import Mapping

import pytest

from ironbench import workloads
from ironbench.errors import InputError
from ironbench.lab import build
from ironbench.model.own_data import OwnData
from ironbench.model.system import Choice, Device, Layout, Partition, System

ROLES = ("data", "log")


def asked(
    how: str = "lose",
    workload: str = "tpcb-like",
    engine: str = "postgres",
    on: tuple[str, ...] = ROLES,
    options: Mapping[str, str] | None = None,
    check: str = "",
) -> None:
    device = Device("free", tuple(Partition(role, 1 << 30, f"/emulated/{role}") for role in on))
    places = {role: f"/emulated/{role}" if role in on else f"/real/{role}" for role in ROLES}
    layout = Layout(places["data"], log=places["log"], devices=(device,))
    found = workloads.get(workload)
    choice = Choice(workload, found.validated(options or {}), data=OwnData(check=check) if check else None)
    build.require_cut(how, System(engine, engine, layout=layout), found, choice)


@pytest.mark.parametrize("how", ["lose", "subset", "torn"])
@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_what_a_cut_may_take_can_be_chosen(how: str, engine: str) -> None:
    asked(how, engine=engine)


def test_an_unknown_cut_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown kind of power cut") as caught:
        asked("tron")
    assert "torn" in caught.value.hint


@pytest.mark.parametrize("workload", ["select-only", "storage", "tpch"])
def test_work_without_commits_has_nothing_to_lose(workload: str) -> None:
    with pytest.raises(InputError, match="a power cut could not lose data"):
        asked(workload=workload)


@pytest.mark.parametrize("role", ROLES)
def test_a_real_directory_would_keep_what_was_cut(role: str) -> None:
    with pytest.raises(InputError, match=f"{role} would not be on an emulated device"):
        asked(on=tuple(one for one in ROLES if one != role))


def test_an_engine_that_cannot_be_started_again_is_refused() -> None:
    with pytest.raises(InputError, match="does not support power cuts"):
        asked(engine="null")


def test_scripts_of_the_user_need_a_check_that_sees_a_loss() -> None:
    with pytest.raises(InputError, match="workload script does not count its commits") as caught:
        asked(workload="script")
    assert "--check SQL" in caught.value.hint
    asked(workload="script", check="select count(*) > 0 from orders")


@pytest.mark.parametrize("options", [{"job": "modify"}, {"job": "mixed", "weights": "add=1,modify=1"}])
def test_jobs_of_a_directory_that_nobody_counts_afterwards_are_not_cut(options: dict[str, str]) -> None:
    with pytest.raises(InputError, match="workload directory does not count its commits"):
        asked(workload="directory", engine="slapd", options=options)
    asked(workload="directory", engine="slapd", options={"job": "mixed", "weights": "add=1"})


def test_a_replayed_log_is_not_cut_for_nobody_counts_its_changes_afterwards() -> None:
    with pytest.raises(InputError, match="workload access-log does not count its commits"):
        asked(workload="access-log", engine="slapd", options={"changes": "made-up"})
