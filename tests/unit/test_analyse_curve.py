"""The curve over clients, and the peak, which is chosen and measured by different trials."""

from __future__ import annotations

from factories import DISK, Shelf, record, suspect, sweep

from ironbench.model.note import note
from ironbench.model.record import Record, Status
from ironbench.records.index import short
from ironbench.report.headline import headline
from ironbench.study.curve import alike, curve, held_out_peak, peak
from ironbench.study.leaderboard import peaks
from ironbench.study.runstudy import studies
from ironbench.study.subjects import Subject, subjects


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
    assert found.basis == note("peak-basis", trials=2, confirmed=True, swept=False)


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
    apart = held_out_peak(lab({4: (900, 1300, 910), 8: (1200, 1000, 1240)}))
    assert apart is not None, "the even blocks chose 8 clients, the odd one 4, which the even ones report"
    assert (apart.clients, apart.chosen.centre, apart.throughput.centre, apart.throughput.n) == (4, 1300, 905, 2)
    flat = held_out_peak(lab({4: (1190, 1300, 1195), 8: (1200, 1000, 1240)}))
    assert flat is not None, "both halves chose 4 clients: 8 cannot be told apart"
    assert (flat.clients, flat.throughput.centre, flat.throughput.n) == (4, 1195, 3)
    assert held_out_peak(lab({4: (900,), 8: (1200,)})) is None
    assert held_out_peak(lab({8: (1200, 1000)})) is None
    assert held_out_peak(subjects([record(clients=4), record(clients=8, block=1)])[0]) is None


PLATEAU = {1: (300, 310, 305), 4: (1000, 1020, 990), 8: (1010, 1030, 1000), 16: (1020, 1000, 1040)}


def plateau(**fields: object) -> list[Record]:
    return [
        record(clients=clients, throughput=value, block=block, **fields)
        for clients, values in PLATEAU.items()
        for block, value in enumerate(values)
    ]


def test_on_a_plateau_the_peak_is_the_fewest_clients_that_cannot_be_told_apart_from_the_best() -> None:
    (one,) = subjects(plateau())
    found = curve(one).peak
    assert found is not None and (found.clients, found.alike) == (4, (4, 16))
    (study,) = studies(plateau(), Shelf(plateau()))
    (_, said), *_ = headline(study)
    assert (
        "with 4 clients" in said
        and "no difference in throughput was shown between 4 and 16 clients" in said
        and "peaks at" not in said
    )
    rows = [short(one) for one in plateau()]
    assert sorted(one.clients for one in rows if one.id in peaks(rows)) == [1, 4, 4, 4]


def test_a_difference_that_repeats_show_is_a_peak() -> None:
    assert alike({4: (1000, 1001, 1002), 8: (1100, 1101, 1102), 16: (1050, 1051, 1052)}) == [8]
    assert alike({4: (1000,), 8: (1015,), 16: (900,)}) == [4, 8], "2% is not worth more clients"
    assert alike({4: (1000,), 8: (1100,)}) == [8]


def test_confirmation_trials_do_not_enter_the_curve() -> None:
    (one,) = subjects([record(clients=8), record(clients=8, purpose="confirmation", throughput=1.0)])
    assert curve(one).points[0].metrics["throughput"].n == 1


def test_an_unconfirmed_peak_says_so() -> None:
    (one,) = subjects([record(clients=8)])
    found = curve(one).peak
    assert found is not None
    assert found.basis == note("peak-basis", trials=1, confirmed=False, swept=False)


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
