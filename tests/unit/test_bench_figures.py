"""A benchmark fails if a required figure is missed, and names it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import __main__ as run
from bench import figures
from bench.figures import above, at_least, at_most, equal, not_above, report, table, within
from bench.pairs import Ratio

SPREAD = Ratio(0.80, 0.75, 0.85, 10)


@pytest.mark.parametrize(
    ("asked", "value", "met"),
    [
        (at_most(0.85), SPREAD, True),
        (at_most(0.80), SPREAD, False),
        (at_least(0.75), SPREAD, True),
        (at_least(0.80), SPREAD, False),
        (above(0.75), SPREAD, False),
        (not_above(0.80), SPREAD, True),
        (not_above(0.70), SPREAD, False),
        (within(0.7, 0.9), SPREAD, True),
        (within(0.78, 0.9), SPREAD, False),
        (at_most(150), 151, False),
        (at_least(3), 3.0, True),
        (equal(0), 0, True),
        (equal(0), 1, False),
    ],
)
def test_the_end_of_the_interval_that_could_miss_is_held_against_what_was_asked(
    asked: figures.Target, value: float | Ratio, met: bool
) -> None:
    assert asked.holds(value) is met


def ran(monkeypatch: pytest.MonkeyPatch, *benches: SimpleNamespace) -> int:
    monkeypatch.setattr(figures, "FIGURES", [])
    monkeypatch.setattr(sys, "argv", ["bench", "loading", "tpcb"][: 1 + len(benches)])
    mains = iter(benches)
    monkeypatch.setattr(run, "importlib", SimpleNamespace(import_module=lambda _: next(mains)))
    return run.main()


def test_figures_that_hold_end_with_0_and_stand_in_one_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = SimpleNamespace(main=lambda: report("speed", 5.0, at_least(4)))
    free = SimpleNamespace(main=lambda: report("colour", "blue"))
    assert ran(monkeypatch, good, free) == 0
    out = capsys.readouterr().out
    assert "2 results, 1 of them with a target, 0 missed" in out
    assert out.count("speed") == out.count("colour") == 2


def test_a_missed_figure_is_named_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = SimpleNamespace(main=lambda: report("speed", 3.0, at_least(4)))
    good = SimpleNamespace(main=lambda: report("size", 1.0, at_most(4)))
    assert ran(monkeypatch, bad, good) == 1
    out = capsys.readouterr().out
    assert "missed: loading: speed: 3 [target: ≥ 4]" in out
    assert "missed: tpcb" not in out


def test_a_benchmark_that_breaks_is_missed_and_the_others_still_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise RuntimeError("pgbench failed")

    assert ran(monkeypatch, SimpleNamespace(main=broken), SimpleNamespace(main=lambda: report("size", 1.0))) == 1
    out = capsys.readouterr().out
    assert "missed: loading: did not end: pgbench failed" in out
    assert "size" in out


def test_words_are_shown_and_nothing_is_held_against_them() -> None:
    assert "0 missed" in table([figures.Figure("b", "w", "v", "[target: words]", None)])


@pytest.mark.parametrize("name", sorted(path.stem for path in (Path(__file__).parents[2] / "bench").glob("[a-z]*.py")))
def test_every_benchmark_finds_what_it_measures(name: str) -> None:
    importlib.import_module(f"bench.{name}")
