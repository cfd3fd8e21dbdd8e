"""A load follows its curve exactly, and the commands of docs/how/load-curves.md run as written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from user import User

from ironbench.records import Store

pytestmark = pytest.mark.live
PAGE = (Path(__file__).parents[2] / "docs" / "how" / "load-curves.md").read_text()
SHORT = ("--engine", "null", "--warmup", "0s", "--no-observe")


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def per_second(user: User) -> list[float]:
    """Returns the transactions in each second of the last trial."""
    store = Store(user.results)
    return [float(count) for count in store.seconds(store.all()[-1].id)["transactions"]]


@pytest.mark.parametrize("threads", [pytest.param("1", marks=pytest.mark.long), "3"])
def test_transactions_are_as_many_as_the_area_under_the_curve(user: User, threads: str) -> None:
    words = ("--rate", "ramp:100-1900/3s", "--arrivals", "fixed", "--clients", "8", "--threads", threads)
    user.measured("run", "select-only", *words, *SHORT)
    assert per_second(user) == pytest.approx([400, 1000, 1600], rel=0.1)
    (record,) = user.records()
    due = sum(record["metrics"][name] for name in ("transactions", "unfinished", "not_started"))
    assert due == pytest.approx(3000, abs=10)
    assert record["cell"]["load"]["curve"]["text"] == "ramp:100-1900/3s" and record["cell"]["load"]["rate"] == 1000


def test_a_file_is_followed_and_its_points_are_in_the_record(user: User) -> None:
    (user.home / "day.csv").write_text("0 100\n1s 100\n1s 900\n2s 900\n2s 0\n3s 0\n")
    user.measured("run", "select-only", "--rate", "file:day.csv", "--arrivals", "fixed", *SHORT)
    assert per_second(user) == pytest.approx([100, 900, 0], abs=30)
    (record,) = user.records()
    assert record["cell"]["load"]["curve"]["points"][3] == [2, 900]


@pytest.mark.parametrize("engine", ["null", pytest.param("sqlite", marks=pytest.mark.long)])
def test_as_many_clients_are_active_as_the_curve_says(user: User, engine: str) -> None:
    words = ("--clients", "steps:2,8,0/1s", "--think-time", "20ms", "--threads", "3", "--engine", engine)
    user.measured("run", "select-only", *words, "--warmup", "0s", "--no-observe", "--duration", "3s")
    # Fifty transactions a second of each active client, less the time of transactions.
    low, high, none = per_second(user)
    assert 60 <= low <= 100 and 240 <= high <= 400 and none <= 8
    assert user.records()[0]["cell"]["load"]["clients"] == 8


@pytest.mark.long
def test_the_commands_of_the_page_run_as_written(user: User) -> None:
    (lines,), (file,), (lab,) = (re.findall(rf"^```{of}\n(.*?)^```", PAGE, re.M | re.S) for of in ("sh", "csv", "toml"))
    (user.home / "day.csv").write_text(file.replace("5s", "1s").replace("8s", "2s").replace("10s", "3s"))
    for line in lines.replace("/20s", "/1s").replace("/5s", "/0.3s").splitlines():
        words = shlex.split(line)[1:]
        told = user(*words, *(SHORT if words[0] == "run" else ()))
        assert told.code in (0, 3), f"{line}: {told.stderr}"
    assert (user.home / "curves.html").stat().st_size > 10_000
    (user.home / "curves.toml").write_text(lab)
    told = user("lab", "plan", "curves.toml")
    assert told.code == 0, told.stderr
