"""The TPC-H-derived workload on all engines: correct answers, ordered refresh sets, limits, and scores only if
complete."""

from __future__ import annotations

import csv
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import require_installed
from user import User

from ironbench import catalogue, engines
from ironbench.engines.dialect import Dialect
from ironbench.model.system import Layout, System
from ironbench.workloads import tpch_tables
from ironbench.workloads.tpch import answers, refresh, refresh_position, validation
from ironbench.workloads.tpch.answers import QueryAnswer

pytestmark = [pytest.mark.live, pytest.mark.long]
SMALL = ("--with", "sf=0.01", "--no-observe", "--json")


@pytest.fixture(scope="module")
def user(fast_directory: Path) -> User:
    """A user whose data are loaded once for all tests of an engine."""
    return User(fast_directory / "tpch")


def tried(user: User, engine: str, *words: str) -> dict[str, Any]:
    told = user("run", "tpch", "--engine", engine, *SMALL, *words)
    assert told.code in (0, 1, 3), told.stderr
    trial: dict[str, Any] = told.document["trials"][0]
    folder = Path(trial["record"])
    record = json.loads((folder / "record.json").read_text())
    trial |= {"conditions": record["conditions"], "answers": record.get("answers"), "folder": folder}
    return trial


def _steps(folder: Path, stream: int) -> dict[str, float]:
    """Query or refresh function → its time in the record, for one stream."""
    rows = csv.DictReader((folder / "streams.csv").read_text().splitlines())
    return {row["step"]: float(row["elapsed_s"]) for row in rows if row["stream"] == str(stream)}


@pytest.mark.parametrize("engine", ["postgres", "duckdb", "sqlite", "mariadb"])
def test_both_tests_give_right_answers_and_all_figures_and_use_each_refresh_set_once(
    user: User, engine: str, tmp_path: Path
) -> None:
    require_installed(engine)
    first = tried(user, engine, "--with", "test=both", "--with", f"answers={tmp_path}")
    assert first["status"] in ("ok", "suspect"), first["cause"]
    assert {"name": "answers", "passed": True, "expected": "22 right", "actual": "22 right"} in first["checks"]
    assert first["conditions"]["refresh sets"].startswith("1 to 3,")
    metrics = first["metrics"]
    for name in metrics:
        catalogue.metric(name)
    for name in ("power", "stream_throughput", "composite"):
        assert metrics[name] > 0 and metrics[f"{name}_unrounded"] > 0
    assert sum(name.startswith("query_time_s{") for name in metrics) == 22
    assert metrics["transactions"] == 3 * 22
    both = _steps(first["folder"], stream=0)
    assert metrics["power_unrounded"] == pytest.approx(36 / statistics.geometric_mean(both.values()), rel=0.001)
    assert len((first["folder"] / "streams.csv").read_text().splitlines()) == 1 + 24 + 2 * 22 + 2 * 2
    assert "q22" in (first["folder"] / "plans.txt").read_text()
    assert (first["folder"] / "record.json").stat().st_size <= 8192
    stored = validation.stored("0.01")
    assert stored is not None
    written = validation.from_folder(tmp_path)
    assert [answers.difference(query, stored[query], written[query]) for query in stored] == [""] * 22

    second = tried(user, engine)
    assert second["conditions"]["refresh sets"].startswith("4 to 4,")
    assert second["answers"]["values"]["earlier"] == "before refresh"


def test_a_refresh_set_that_was_interrupted_is_ended_before_the_next_one_is_used(user: User, place: Path) -> None:
    data = str(place / "data")
    tried(user, "duckdb", "--data", data, "--with", "check=no")
    system, secrets = engines.get("duckdb").validated(System("duckdb", "t", layout=Layout(data)), 1)
    with engines.running(system, secrets, 1) as session:
        dataset = tpch_tables.dataset("duckdb", {"sf": "0.01"})
        at = refresh_position.read(session, refresh_position.loaded_at(session, dataset.name))
        (half,) = refresh.made(dataset.generator, [at.next], 5, place)
        refresh_position.write(session, replace(at, past=at.next + 1))
        refresh.insert(session.line(), replace(half, pieces=half.pieces[:1]), Dialect())
        assert session.query("select count(*) from orders") == [("15005",)]
    trial = tried(user, "duckdb", "--data", data, "--with", "check=no")
    assert trial["conditions"]["refresh sets"].startswith("3 to 3,")
    with engines.running(system, secrets, 1) as session:
        assert session.query("select count(*), count(distinct o_orderkey) from orders") == [("15000", "15000")]
        assert session.query("select count(*) from orders where o_orderkey % 32 between 8 and 15") == [("45",)]
        assert session.query(
            "select count(*) from lineitem where l_orderkey not in (select o_orderkey from orders)"
        ) == [("0",)]


def test_a_query_over_its_limit_is_named_and_figures_that_need_it_are_withheld(user: User) -> None:
    trial = tried(user, "sqlite", "--with", "limit=0.001", "--with", "check=no")
    assert [warning["code"] for warning in trial["warnings"]].count("over-limit") == 1
    assert trial["metrics"]["errors"] >= 1
    assert not {"power", "power_unrounded", "composite", "query_time_geomean_s"} & set(trial["metrics"])


def test_a_wrong_answer_voids_the_trial_and_shows_the_difference(user: User, tmp_path: Path) -> None:
    stored = dict(validation.stored("0.01") or {})
    stored[6] = QueryAnswer(stored[6].columns, (("1.0",),))
    validation.into_folder(tmp_path, stored)
    trial = tried(user, "duckdb", "--data", str(tmp_path / "fresh"), "--with", f"expected={tmp_path}")
    assert trial["status"] == "voided"
    assert "answer q06" in trial["cause"] and "instead of 1.0" in trial["cause"]


def test_chosen_queries_run_alone_with_their_plans_and_give_no_figure_of_merit(user: User) -> None:
    trial = tried(user, "postgres", "--with", "test=stream", "--with", "queries=6,1", "--with", "plans=measured")
    assert {name for name in trial["metrics"] if name.startswith("query_time_s")} == {
        "query_time_s{query=q01}",
        "query_time_s{query=q06}",
    }
    assert "power" not in trial["metrics"] and "refresh sets" not in trial["conditions"]
    assert trial["metrics"]["planning_time_s{query=q06}"] > 0
    assert "Execution Time" in (trial["folder"] / "plans.txt").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--with", "queries=23"), "there is no query 23"),
        (("--with", "test=powr"), "did you mean power"),
        (("--with", "sf=0"), "out of range"),
        (("--with", "check=drawn"), "no reference answers"),
        (("--with", "expected=/nowhere"), "does not exist"),
        (("--duration", "10s"), "ends when all queries are answered"),
        (("--clients", "4"), "--clients"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_starts(user: User, words: tuple[str, ...], said: str) -> None:
    told = user("run", "tpch", "--engine", "duckdb", *words)
    assert told.code == 2
    assert said in told.stderr
