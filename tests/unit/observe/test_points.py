"""Counter arithmetic is exact at the edges of the window and reports resets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.model.observation import Sample
from ironbench.model.points import SamplePoint, by_file, growth, last_within, mean_within, points, steps
from ironbench.trial.observe import processes


def track(*pairs: tuple[float, float]) -> list[SamplePoint]:
    return [SamplePoint(t_s, {"n": value}) for t_s, value in pairs]


def test_growth_is_taken_from_the_edges_of_the_window() -> None:
    grown = growth(track((-1, 0), (1, 20), (3, 40)), 2.0)
    assert grown is not None
    assert (grown.span_s, grown.by["n"]) == (2.0, 20.0)


@given(
    st.lists(st.floats(-5, 20), min_size=2, max_size=30, unique=True),
    st.floats(0.1, 1e6),
    st.floats(0.5, 15),
)
def test_a_steady_counter_has_its_rate_however_it_was_sampled(times: list[float], rate: float, window_s: float) -> None:
    found = track(*((t, 1e9 + rate * t) for t in sorted(times)))
    grown = growth(found, window_s)
    if grown is not None and grown.span_s > 1e-3:
        assert grown.rate("n") == pytest.approx(rate, rel=1e-3, abs=1e-2)


def test_a_counter_that_appears_later_began_at_zero() -> None:
    grown = growth([SamplePoint(0, {"a": 1.0}), SamplePoint(2, {"a": 1.0, "b": 10.0})], 2.0)
    assert grown is not None and grown.by == {"a": 0.0, "b": 10.0}


def test_a_counter_that_was_reset_is_left_out() -> None:
    grown = growth(track((0, 1000), (1, 1100), (2, 5), (3, 105)), 3.0)
    assert grown is not None and "n" not in grown.by


@pytest.mark.parametrize(("edge", "count"), [((2.99, 3.8), 0.0), ((2.1, 3.1), 1.0)])
def test_an_event_at_the_edge_of_the_window_happened_in_it_or_did_not(edge: tuple[float, float], count: float) -> None:
    """The sampling times decide; but a page in three seconds is 0.33/s and never 0.004/s."""
    grown = growth(track((-0.1, 7), (edge[0], 7), (edge[1], 8)), 3.0)
    assert grown is not None and 0 < grown.by["n"] < 1
    assert (grown.count("n"), grown.count_rate("n")) == (count, count / 3.0)


def test_a_small_step_back_is_no_reset() -> None:
    grown = growth(track((0, 1000), (1, 999), (2, 1100)), 2.0)
    assert grown is not None and grown.by["n"] == 100


@pytest.mark.parametrize("found", [track(), track((0, 1)), track((-2, 1), (-1, 2)), track((11, 1), (12, 2))])
def test_without_two_samples_around_the_window_nothing_is_claimed(found: list[SamplePoint]) -> None:
    assert growth(found, 10.0) is None


def test_samples_at_the_edges_of_the_window_make_no_intervals_of_their_own() -> None:
    spans = [grown.span_s for _, grown in steps(track((0, 0), (1, 10), (2, 20), (2.001, 20), (3, 30)))]
    assert spans == [1, 1, 1]


def test_torn_and_empty_samples_are_left_out() -> None:
    found = points([Sample(0, b""), Sample(1, b"x"), Sample(2, b"7")], lambda text: {"n": float(text)})
    assert found == track((2, 7))


def test_means_and_last_values_are_those_of_the_window() -> None:
    found = track((-1, 100), (0, 1), (5, 3), (10, 5), (11, 100))
    assert mean_within(found, "n", 10.0) == 3
    last = last_within(found, 10.0)
    assert last is not None and last.values["n"] == 5


def test_joined_files_are_told_apart() -> None:
    assert by_file("==> /a\n1\n2\n==> /b\n==> /c\n3\n") == {"/a": "1\n2", "/b": "", "/c": "3\n"}


def _tree(own: int, ended: int, backend: int | None) -> bytes:
    """Returns a sample of the CPU ticks of a server with pid 7 and of a backend."""
    stats = {7: (1, own, ended)} | ({} if backend is None else {8: (7, backend, 0)})
    lines = (f"==> /proc/{pid}/stat\n{pid} (x) S {parent} 0 0 0 0 0 0 0 0 0 {mine} 0 {past} 0 0\n"
             for pid, (parent, mine, past) in stats.items())  # fmt: skip
    return "".join(lines).encode()


def test_a_reading_while_clients_leave_does_not_lose_what_their_processes_used() -> None:
    """The server was read before it had waited for the backend, and the backend when it was gone."""
    of_all = [Sample(0.0, _tree(0, 0, 0)), Sample(5.0, _tree(10, 0, 490)), Sample(9.0, _tree(18, 0, 882))]
    torn = Sample(10.1, _tree(20, 0, None))
    whole = Sample(10.1, _tree(20, 990, None))
    for last in ([], [torn], [whole]):
        samples = {"processes.root.7": [Sample(0.0, b"")], "processes.all": [*of_all, *last]}
        grown = processes.engine_growth(samples, 10.0)
        assert grown is not None and grown.rate("engine") == pytest.approx(1.0, rel=0.01), last


def engine_cores(*pairs: tuple[float, bytes], window_s: float = 4.0) -> float | None:
    samples = {"processes.root.7": [Sample(0.0, b"")], "processes.all": [Sample(t_s, raw) for t_s, raw in pairs]}
    grown = processes.engine_growth(samples, window_s)
    observed = processes.OBSERVER.parse(samples, window_s).metrics.get("engine_cpu_cores")
    assert observed == (None if grown is None else grown.rate("engine"))
    return observed


LOADED = 4000
"""Ticks that the server's first process and its ended children had used before, for example for a load."""


def test_a_torn_reading_at_the_end_of_the_window_is_left_out_though_a_whole_one_follows() -> None:
    """The backends were gone when their files were to be read, but the server's file had been read before."""
    before = [(-1.0, _tree(0, LOADED, 0)), (0.0, _tree(0, LOADED, 100)), (2.0, _tree(0, LOADED, 300))]
    torn, whole = (4.01, _tree(0, LOADED, None)), (4.4, _tree(0, LOADED + 500, None))
    assert engine_cores(*before, torn, whole) == pytest.approx(1.0, rel=0.1)
    assert engine_cores(*before, torn) == pytest.approx(1.0, rel=0.1)


def test_a_process_that_was_read_before_it_ended_and_with_its_parent_counts_once() -> None:
    twice = (0.0, _tree(0, LOADED + 900, 900))
    after = [(2.0, _tree(0, LOADED + 900, 200)), (4.0, _tree(0, LOADED + 900, 400))]
    assert engine_cores(twice, *after) == pytest.approx(1.0, rel=0.1)


def test_samples_of_a_small_part_of_the_window_say_nothing_about_it() -> None:
    assert engine_cores((-1.0, _tree(0, LOADED, 0)), (0.004, _tree(0, LOADED, 0))) is None
    assert engine_cores((0.0, _tree(0, LOADED, 0)), (1.9, _tree(0, LOADED, 190))) is None
    assert engine_cores((0.0, _tree(0, LOADED, 0)), (2.1, _tree(0, LOADED, 210))) == pytest.approx(1.0)


@given(st.lists(st.integers(0, 9), max_size=12))
def test_the_samples_that_are_kept_never_decrease_and_no_longer_series_exists(values: list[int]) -> None:
    found = [
        one.values["engine"] for one in processes._whole([SamplePoint(t, {"engine": v}) for t, v in enumerate(values)])
    ]
    assert found == sorted(found)
    longest = [0] * (len(values) + 1)
    for place, value in enumerate(values):
        longest[place] = 1 + max((longest[other] for other in range(place) if values[other] <= value), default=0)
    assert len(found) == max(longest)
