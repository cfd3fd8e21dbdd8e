"""The curve against clients, and the peak that is chosen on one set of trials and reported from another."""

from __future__ import annotations

from factories import DISK, record, suspect, sweep

from ironbench.analyse.curve import curve, held_out_peak, peak
from ironbench.analyse.subjects import Subject, subjects
from ironbench.model.record import Status


def test_points_are_in_order_of_clients_with_every_repeat() -> None:
    (one,) = subjects(sweep(DISK, 3000, 6, clients=(8, 1, 4), repeats=2))
    points = curve(one).points
    assert [point.clients for point in points] == [1, 4, 8]
    assert all(point.metrics["throughput"].n == 2 for point in points)


def test_the_peak_is_chosen_on_the_sweep_and_reported_from_confirmations() -> None:
    (one,) = subjects(
        [
            record(clients=4, throughput=900),
            record(clients=8, throughput=1200),
            record(clients=8, throughput=1000, purpose="confirmation", block=0),
            record(clients=8, throughput=1010, purpose="confirmation", block=1),
        ]
    )
    found = curve(one).peak
    assert found is not None
    assert (found.clients, found.chosen.centre, found.throughput.centre) == (8, 1200, 1005)
    assert found.basis == "2 confirmation trials"


def test_in_a_lab_each_half_of_the_blocks_reports_the_peak_that_the_other_chose() -> None:
    def lab(given: dict[int, tuple[float, ...]]) -> Subject:
        trials = [
            record(clients=clients, throughput=value, block=block, purpose="lab")
            for clients, values in given.items()
            for block, value in enumerate(values)
        ]
        return subjects(trials)[0]

    agreed = held_out_peak(lab({4: (900, 800, 900), 8: (1200, 1000, 1240)}))
    assert agreed is not None
    assert (agreed.clients, agreed.throughput.centre, agreed.throughput.n, agreed.confirmed) == (8, 1200, 3, True)
    flat = held_out_peak(lab({4: (1190, 1300, 1195), 8: (1200, 1000, 1240)}))
    assert flat is not None, "the even blocks chose 8 clients, the odd one 4, which the even ones report"
    assert (flat.clients, flat.chosen.centre, flat.throughput.centre, flat.throughput.n) == (4, 1300, 1192.5, 2)
    assert held_out_peak(lab({4: (900,), 8: (1200,)})) is None
    assert held_out_peak(lab({8: (1200, 1000)})) is None
    assert held_out_peak(subjects([record(clients=4), record(clients=8, block=1)])[0]) is None


def test_confirmation_trials_do_not_enter_the_curve() -> None:
    (one,) = subjects([record(clients=8), record(clients=8, purpose="confirmation", throughput=1.0)])
    assert curve(one).points[0].metrics["throughput"].n == 1


def test_an_unconfirmed_peak_says_so() -> None:
    (one,) = subjects([record(clients=8)])
    found = curve(one).peak
    assert found is not None
    assert found.basis == "1 trial"


def test_trials_that_may_not_be_compared_choose_nothing() -> None:
    trials = [record(clients=4, throughput=500)]
    for place, status in enumerate((Status.VOIDED, Status.FAILED, Status.CUT_SHORT)):
        trials.append(record(clients=8, throughput=9000, status=status, block=place))
    (one,) = subjects(trials)
    found = curve(one)
    assert [point.clients for point in found.points] == [4]
    assert peak(trials) == trials[0].cell


def test_suspect_trials_enter() -> None:
    (one,) = subjects([suspect(record(clients=8))])
    assert curve(one).peak is not None


def test_there_is_no_peak_where_nothing_was_measured() -> None:
    assert peak([record(throughput=None)]) is None
    assert peak([]) is None


def test_a_failed_confirmation_leaves_the_sweep_to_report() -> None:
    trials = [record(clients=8), record(clients=8, purpose="confirmation", status=Status.VOIDED)]
    found = curve(subjects(trials)[0]).peak
    assert found is not None
    assert not found.confirmed
