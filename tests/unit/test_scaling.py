"""What a report says of a system's scalability, in words that the trials support."""

from __future__ import annotations

from collections.abc import Sequence

from factories import DISK, record, sweep

from ironbench.model.record import Record, Status
from ironbench.model.system import Load
from ironbench.report import wording
from ironbench.report.sections.scalability import scalability
from ironbench.stats.scalability import Usl
from ironbench.study.scaling import MOST_CURVES, Scaling, scaling, scalings


def trials(curve: Usl, clients: Sequence[int] = (1, 2, 4, 8, 16, 32, 64)) -> list[Record]:
    """Returns three trials of each number of clients, which scatter by one percent."""
    return [record(DISK, n, curve.at(n) * wobble, block=b) for n in clients for b, wobble in enumerate((0.99, 1, 1.01))]


def of(curve: Usl, clients: Sequence[int] = (1, 2, 4, 8, 16, 32, 64)) -> Scaling:
    found = scaling("disk", trials(curve, clients))
    assert found is not None
    return found


def test_a_peak_within_the_range_and_the_knee_are_stated() -> None:
    found = of(Usl(0.05, 0.001, 500.0))
    peak, knee = found.sentences
    assert peak.code == "curve-peak" and not peak.values["beyond"] and round(peak.values["clients"]) == 31
    assert knee.code == "curve-knee" and round(knee.values["clients"]) == 20
    assert found.caveats == ()


def test_a_curve_that_falls_from_the_first_client_on_names_no_fraction_of_a_client() -> None:
    found = of(Usl(0.8, 0.3, 500.0))
    assert found.sentences[0].code == "curve-falls"
    assert found.caveats == ()


def test_a_curve_that_neither_grows_nor_falls_is_not_said_to_fall() -> None:
    flat = [
        record(DISK, n, 500.0 * wobble, block=b) for n in (1, 2, 4, 8, 16) for b, wobble in enumerate((0.9, 1, 1.1))
    ]
    found = scaling("disk", flat)
    assert found is not None
    assert found.sentences[0].code != "curve-falls"


def test_a_peak_beyond_the_range_is_a_prediction_and_said_to_be_one() -> None:
    found = of(Usl(0.05, 0.0002, 500.0), (1, 2, 4, 8, 12, 16, 32))
    assert found.sentences[0].values["beyond"]
    assert "curve-peak-beyond" in {one.code for one in found.caveats}


def test_on_a_plateau_throughput_is_not_said_to_fall() -> None:
    """A flat end bends the fitted curve as a cost of coherency would."""
    found = of(Usl(0.05, 0.001, 500.0), (1, 2, 4, 8, 16, 24, 32, 40))
    assert found.sentences[-1].code == "curve-without-measured-fall"
    assert found.sentences[-1].values == {"first": 24, "last": 40}


def test_a_curve_that_rises_to_the_end_names_an_asymptote_and_no_peak() -> None:
    found = of(Usl(0.1, 0.0, 100.0), (1, 2, 4, 6, 8, 12))
    assert found.fit.peak_is_beyond
    assert found.sentences[0].code in {"curve-rises", "curve-peak"}


def test_no_knee_is_named_where_contention_is_too_small_to_measure() -> None:
    found = of(Usl(0.002, 0.004, 500.0), (1, 2, 4, 8))
    assert "curve-knee" not in {one.code for one in found.sentences}


def test_superlinear_growth_is_flagged() -> None:
    found = of(Usl(-0.02, 0.001, 100.0))
    assert found.sentences[1].code == "curve-superlinear"
    assert contention(found).startswith("\u2212")


def test_contention_is_the_same_in_the_sentence_and_in_the_table() -> None:
    found = of(Usl(0.05, 0.001, 500.0))
    assert contention(found) in wording.text(found.sentences[1])


def contention(found: Scaling) -> str:
    """Returns the contention as the table shows it."""
    (chart,) = scalability([found], "transactions")
    name, value = chart.table.texts[0]
    assert name == "contention α"
    return value


def test_few_numbers_of_clients_and_a_curve_with_a_poor_fit_are_caveats() -> None:
    few = of(Usl(0.05, 0.001, 500.0), (1, 4, 16, 64)).caveats
    assert ("curve-of-few-points", {"points": 4, "enough": 6}) in [(one.code, one.values) for one in few]
    cliff = [record(DISK, n, 100.0 * n if n < 20 else 400.0 + b) for n in (1, 2, 4, 8, 16, 32, 64) for b in range(3)]
    found = scaling("disk", cliff)
    assert found is not None
    assert "curve-misfit" in {one.code for one in found.caveats}


def test_the_drawn_curve_covers_what_was_measured_and_continues_beyond_it() -> None:
    (chart,) = scalability([of(Usl(0.05, 0.001, 500.0))], "transactions")
    drawn = [(point["part"], point["clients"]) for point in chart.specification["datasets"]["curve"]]
    assert drawn[0] == ("measured", 1) and drawn[-1] == ("beyond", 96)
    assert {("measured", 64), ("beyond", 64)} <= set(drawn)


def test_open_loops_and_failed_trials_have_no_curve() -> None:
    assert scaling("x", [record(DISK, n, 100.0 * n, load=Load(rate=100.0)) for n in (1, 2, 4, 8)]) is None
    assert scaling("x", [record(DISK, n, 100.0 * n, status=Status.VOIDED) for n in (1, 2, 4, 8)]) is None


def test_more_systems_than_a_chart_holds_are_not_fitted() -> None:
    assert scalings([(str(place), sweep(DISK, 4000, 8)) for place in range(MOST_CURVES + 1)]) == ()
