"""Curves of rate and clients: their declaration, their form for the core, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from factories import Shelf, record
from hypothesis import assume, given
from hypothesis import strategies as st

from ironbench.errors import InputError
from ironbench.fields.sections import LoadSection
from ironbench.lab.dry_run.lab import load_text
from ironbench.model.curve import Curve
from ironbench.plan import curves, resolve
from ironbench.report import formats
from ironbench.report.reproduce import run_command
from ironbench.report.sections import sections
from ironbench.study.runstudy import studies
from ironbench.study.timelines import LoadCourse, Timeline, TimelineSeries, course


def rate(text: str, folder: Path | None = None) -> Curve:
    return curves.read("load.rate", text, folder)


def test_each_word_declares_its_values() -> None:
    ramp = rate("ramp:100-300/10s")
    assert [ramp.value(at) for at in (0, 5, 10, 99)] == [100, 200, 300, 300]
    assert ramp.mean(0, 10) == 200 and ramp.mean(0, 20) == 250 and ramp.is_ramp
    steps = rate("steps:10, 30,20/2s")
    assert [steps.value(at) for at in (0, 1.9, 2, 4, 6, 9)] == [10, 10, 30, 20, 20, 20]
    assert steps.length_s == 6 and steps.mean(0, 6) == 20 and steps.mean(1, 3) == 20
    sine = rate("sine:100-500/60s")
    assert sine.value(0) == 100 and sine.value(30) == pytest.approx(500) and sine.mean(0, 120) == pytest.approx(300)
    assert rate("ramp:5000-100/1m").length_s == 60 and not rate("ramp:5000-100/1m").is_ramp


def test_a_file_has_times_and_values_joined_by_lines(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("time,rate\n0s,100  # night\n\n1m,400\n1m,900\n2m,100\n")
    day = rate("file:day.csv", tmp_path)
    assert [day.value(at) for at in (0, 30, 60, 120)] == [100, 250, 900, 100]
    assert day.length_s == 120 and day.text.startswith("file:day.csv (4 points, ")
    (tmp_path / "day.csv").write_text("0 100\n60 400\n")
    assert rate("file:day.csv", tmp_path).text != day.text


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1e5)), min_size=1, max_size=20), st.floats(0.1, 3000))
def test_the_mean_is_that_of_the_pieces_that_the_core_gets(steps: list[tuple[float, float]], until_s: float) -> None:
    points, at = [(0.0, 1.0)], 0.0
    for gap, value in steps:
        at += gap
        points.append((at, value))
    curve = Curve("rate", "x", tuple(points))
    assume(curve.length_s > 0)
    pieces = curve.pieces(0.0, curve.length_s)
    area = sum(piece["seconds"] * (piece["from"] + piece["to"]) / 2 for piece in pieces)
    assert curve.mean(0.0, curve.length_s) * curve.length_s == pytest.approx(area, rel=1e-6, abs=1e-6)
    assert 0 <= curve.mean(0.0, until_s) <= curve.most * (1 + 1e-9)


def test_the_warm_up_runs_at_the_first_value_and_a_wave_is_repeated() -> None:
    first, *waves = rate("sine:100-500/10s").pieces(3.0, 25.0)
    assert first == {"kind": "line", "seconds": 3.0, "from": 100.0, "to": 100.0}
    assert waves == [{"kind": "wave", "seconds": 10.0, "low": 100.0, "high": 500.0}] * 3


def test_a_load_has_the_mean_rate_or_the_most_clients_and_lasts_as_long_as_its_curve() -> None:
    load = resolve.load(LoadSection(rate="ramp:100-300/10s", clients=4), 1)
    assert (load.rate, load.clients, load.duration_s) == (200.0, 4, 10.0)
    load = resolve.load(LoadSection(rate="ramp:100-300/10s", duration="20s"), 1)
    assert (load.rate, load.duration_s) == (250.0, 20.0)
    load = resolve.load(LoadSection(clients="ramp:1-8/5s", threads=16), 1)
    assert (load.rate, load.clients, load.threads, load.duration_s) == (None, 8, 8, 5.0)


def test_a_plan_shows_a_curve_and_not_the_mean_of_it() -> None:
    load = resolve.load(LoadSection(rate="sine:100-500/10s", clients=4), 1)
    assert load_text(load) == "rate sine:100-500/10s, 4 clients"
    assert load_text(resolve.load(LoadSection(clients="ramp:1-8/5s"), 1)) == "clients ramp:1-8/5s"


@pytest.mark.parametrize(
    ("section", "said", "unsaid"),
    [
        (LoadSection(rate="ramp:100-300/10s", clients=4), "--clients 4 --rate ramp:100-300/10s", "--duration"),
        (
            LoadSection(rate="sine:1-9/5s", duration="20s"),
            "--rate sine:1-9/5s --duration 20s",
            "mean",
        ),
        (LoadSection(clients="steps:1,8/5s"), "--clients steps:1,8/5s", "--rate"),
        (LoadSection(rate="file:a day.csv"), "--rate 'file:a day.csv' ", "points"),
    ],
)
def test_the_command_that_repeats_a_trial_has_its_curve_and_not_the_mean_of_it(
    section: LoadSection, said: str, unsaid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a day.csv").write_text("0s,100\n10s,300\n")
    load = resolve.load(section, 1)
    command = run_command([record(clients=load.clients, load=load)])
    assert said in command and unsaid not in command


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (LoadSection(rate="ramp:100/60s"), "'ramp:100/60s' is not a range of two numbers"),
        (LoadSection(rate="ramp:100-200"), "has no duration"),
        (LoadSection(rate="ramp:100-200/0s"), "--rate"),
        (LoadSection(rate="ramp:100-1e99/5s"), "--rate"),
        (LoadSection(rate="ramp:0-0/5s"), "is always zero"),
        (LoadSection(rate="steps:100,x/5s"), "'x' is not a number"),
        (LoadSection(rate="sine:500-100/5s"), "must have the lower number first"),
        (LoadSection(rate="file:nowhere.csv"), "--rate, nowhere.csv: no such file"),
        (LoadSection(rate="file:/dev/null"), "--rate, /dev/null: is not a regular file"),
        (LoadSection(clients="ramp:1-99999999/5s"), "--clients"),
        (LoadSection(clients="steps:1,1.5/5s"), "'1.5' is not a whole number"),
        (LoadSection(rate="ramp:10-20/60s", duration="30s"), "shorter than"),
        (LoadSection(rate="ramp:10-20/60s", transactions=5), "cannot be combined with a curve in --rate"),
        (LoadSection(rate="ramp:10-20/60s", clients="ramp:1-2/60s"), "cannot be combined with a curve in --rate"),
        (LoadSection(rate=5.0, clients="ramp:1-2/60s"), "cannot be combined with a curve in --clients"),
        (LoadSection(rate="ramp:10-20/60s", warmup="auto"), "no steady state"),
        (LoadSection(rate="ramp:10-20/60s", think_time="5ms"), "--think-time"),
    ],
)
def test_what_is_no_curve_or_goes_with_none_is_refused(section: LoadSection, words: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve.load(section, 1)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 5\n", "fewer than two points"),
        ("1 5\n2 5\n", "line 1: the time of the first point is 1"),
        ("0 5\n5 5\n3 5\n", "line 3: the time 3 is earlier"),
        ("0 5\n5 5 5\n", "line 2: '5 5 5' is not a time and a value"),
        ("0 5\n5 -1\n", "line 2"),
        ("0 5\n0 6\n", "the time of the last point in"),
        ("".join(f"{second} 5\n" for second in range(301)), "301 points; the maximum is 300"),
    ],
)
def test_a_file_that_is_no_curve_is_refused_by_its_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        rate("file:bad.csv", tmp_path)
    assert words in str(caught.value)


def ramped(of: str, done: Callable[[float], float], step_s: float = 1.0, most: float = 600.0) -> LoadCourse:
    curve = Curve(of, f"{of} ramp", ((0.0, 0.0), (60.0, most)))
    times = [place * step_s for place in range(int(60 / step_s))]
    lines = (TimelineSeries("throughput", "", tuple(times), tuple(done(curve.mean(t, t + step_s)) for t in times)),)
    trial = record(throughput=100.0)
    trial = replace(trial, cell=replace(trial.cell, load=replace(trial.cell.load, curve=curve)))
    found = course(trial, Timeline(trial.id, step_s, lines))
    assert found is not None
    return found


def test_the_knee_of_a_ramp_of_the_rate_is_where_work_stays_behind() -> None:
    knee = ramped("rate", lambda asked: min(asked, 305.0)).knee
    assert knee is not None and 305 <= knee <= 345
    assert ramped("rate", lambda asked: asked).knee is None
    # A single low point, as at a checkpoint, is no knee.
    assert ramped("rate", lambda asked: asked * (0.5 if 200 < asked < 210 else 1.0)).knee is None


@pytest.mark.parametrize("most", [100.0, 600.0, 5000.0])
@pytest.mark.parametrize("seed", range(8))
def test_the_noise_of_random_arrivals_is_no_knee_and_hides_none(seed: int, most: float) -> None:
    dice = np.random.default_rng(seed)
    assert ramped("rate", lambda asked: float(dice.poisson(asked)), most=most).knee is None
    knee = ramped("rate", lambda asked: min(float(dice.poisson(asked)), most / 2), most=most).knee
    assert knee is not None and 0.4 * most <= knee <= 0.65 * most


def test_the_knee_of_a_ramp_of_clients_is_where_more_of_them_bring_no_more() -> None:
    knee = ramped("clients", lambda clients: min(clients, 250.0) * 40).knee
    assert knee is not None and 225 <= knee <= 260
    assert ramped("clients", lambda clients: clients * 40).knee is None


def test_a_report_draws_load_and_response_time_in_one_chart_and_calls_the_knee_an_estimate() -> None:
    trial = record(throughput=300.0)
    curve = Curve("rate", "ramp:0-600/30s", ((0.0, 0.0), (30.0, 600.0)))
    trial = replace(trial, cell=replace(trial.cell, load=replace(trial.cell.load, rate=300.0, curve=curve)))
    study = studies([trial], Shelf([trial]))[0]
    section = next(section for section in sections(study) if section.id == "load-curve")
    (chart,) = section.charts
    assert set(chart.specification["datasets"]) == {"load", "late"}
    assert "an estimate from a ramp" in section.sentences[0] and "--rate auto:" in section.sentences[0]
    told = json.loads(formats.get("json")([study]))["studies"][0]["parts"][0]["course"]
    assert told["moments"] and set(told["moments"][0]) == {"t_s", "asked", "done"}
    for kind in ("text", "html", "md", "json", "svg"):
        assert "ramp:0-600/30s" in formats.get(kind)([study]).decode()
    assert study.shared["load.curve"] == "ramp:0-600/30s" and "load.curve.points" not in study.shared


def test_a_value_of_a_file_that_is_none_is_answered_with_a_line_of_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("0s 100\n10s many\n")
    with pytest.raises(InputError) as caught:
        rate("file:day.csv", tmp_path)
    assert "day.csv line 2" in caught.value.subject
    assert caught.value.hint == "write a time and a value, for example `30s 500`"


@pytest.mark.parametrize("seed", range(4))
def test_a_stall_after_which_the_system_keeps_a_higher_rate_is_no_knee(seed: int) -> None:
    dice = np.random.default_rng(seed)
    waiting = 0.0

    def done(asked: float) -> float:
        """Returns a server that stops for 4 seconds at 200/s and then processes its backlog at 450/s at most."""
        nonlocal waiting
        waiting += float(dice.poisson(asked))
        finished = 0.0 if 200 <= asked < 240 else min(waiting, 450.0)
        waiting -= finished
        return finished

    knee = ramped("rate", done).knee
    assert knee is not None and 420 <= knee <= 500
