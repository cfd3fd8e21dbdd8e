"""Published results are ranked separately from own results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, MACHINE, MEMORY, Shelf, record, suspect, sweep, unfolded

from ironbench.catalogue import prices, published
from ironbench.errors import InputError
from ironbench.model.curve import Curve
from ironbench.model.note import note, text_note
from ironbench.model.record import Record, Status
from ironbench.model.system import Choice, Load
from ironbench.records import Store
from ironbench.records.index import short
from ironbench.report import formats
from ironbench.report import leaderboard as report
from ironbench.report.leaderboard import rankings as asked
from ironbench.study import leaderboard
from ironbench.study.curve import curve
from ironbench.study.subjects import subjects

SHEET = prices.shipped()


def test_published_scores_per_core_are_the_scores_over_the_cores() -> None:
    for name in published.names():
        for entry in published.get(name).entries:
            # One was published as 108.00, although the division gives 107.96.
            assert entry.per_core == pytest.approx(entry.score / entry.cores, abs=0.05)


def test_the_largest_total_is_only_seventh_per_core() -> None:
    board = published.get("tpce")
    by_score = leaderboard.published(board, "score", SHEET, "")
    by_core = leaderboard.published(board, "core", SHEET, "")
    assert by_score.places[0].system == "PRIMERGY RX2540 M1"
    assert next(place.rank for place in by_core.places if place.system == "PRIMERGY RX2540 M1") == 7


def test_cores_of_processors_named_without_a_count_come_from_the_catalogue() -> None:
    cores = {entry.processor: (entry.sockets, entry.cores) for entry in published.get("tpch").entries}
    assert cores == {"Xeon 5355": (2, 8), "Xeon 7350": (4, 16), "Xeon 5570": (2, 8)}


def test_every_list_names_its_source() -> None:
    for name in published.names():
        assert len(published.get(name).source.split()) > 5


def test_money_is_counted_with_the_licence_named() -> None:
    found = leaderboard.published(published.get("tpce"), "currency", SHEET, "sql-server-2014-enterprise")
    first = found.places[0]
    assert first.per_currency == pytest.approx(1881.76 * 1000 / (16 * 6872))
    assert found.currency == "USD"


def test_a_price_that_is_an_estimate_is_marked_and_what_its_edition_cannot_use_is_said() -> None:
    found = leaderboard.published(published.get("tpce"), "currency", SHEET, "sql-server-2014-standard")
    said = unfolded(report.page([found]))
    assert "≈53.98" in said and "≈ marks an estimate" in said
    assert "IBM System x3650 M4: sql-server-2014-standard: edition Standard can use at most 16 of the 24 cores" in said


def own(directory: Path) -> list[Record]:
    store = Store(directory)
    records = sweep(DISK, 3600, 6)
    for one in records:
        store.keep(one)
    return records


def test_own_results_stand_in_a_table_of_their_own_after_a_sentence(tmp_path: Path) -> None:
    records = own(tmp_path)
    (ranking,) = leaderboard.rankings_of_records(records, Shelf(records), "score", SHEET, "")
    rankings = [replace(ranking, derived="Derived, not comparable.")]
    assert [ranking.title for ranking in rankings] == ["own results: igen-oltp scale=4 weight=light"]
    place = rankings[0].places[0]
    assert place.per_core == pytest.approx(place.score / 2)
    together = [leaderboard.published(published.get("tpce"), "score", SHEET, ""), *rankings]
    text = unfolded(report.page(together))
    assert report.NOT_COMPARABLE in text
    assert "Derived, not comparable." in text
    tables = json.loads(formats.of_page("json")(report.page(together)))["rankings"]
    assert [table["published"] for table in tables] == [True, False]


def test_places_whose_intervals_overlap_are_tied(tmp_path: Path) -> None:
    fast, near, slow = (
        [record(replace(DISK, label=name), 8, value * (1 + 0.02 * (block - 1)), block=block) for block in range(3)]
        for name, value in (("fast", 1020.0), ("near", 1000.0), ("slow", 500.0))
    )
    once = [record(replace(DISK, label="once"), 8, 700.0)]
    (ranking,) = leaderboard.rankings_of_records([*fast, *near, *slow], Shelf(), "score", SHEET, "")
    assert [(one.system, one.rank, one.worst_rank) for one in ranking.places] == [
        ("fast", 1, 2),
        ("near", 1, 2),
        ("slow", 3, 3),
    ]
    assert "1 to 2" in unfolded(report.page([ranking])) and "the 95% CIs of the tied systems overlap" in unfolded(
        report.page([ranking])
    )
    (ranking,) = leaderboard.rankings_of_records([*fast, *once], Shelf(), "score", SHEET, "")
    assert [(one.rank, one.worst_rank) for one in ranking.places] == [(1, 2), (1, 2)]
    assert "700.00 (one trial)" in unfolded(report.page([ranking]))


def test_a_workload_has_a_leaderboard_of_own_results_alone(tmp_path: Path) -> None:
    own(tmp_path)
    found = asked("igen-oltp", "", "", "", (), str(tmp_path))
    assert [ranking.source for ranking in found] == ["records"]


WHOLE = replace(DISK, label="whole")
HELD = replace(MEMORY, label="held", server_cpus=(1,))
LICENCE = "sql-server-2014-enterprise"


def both(directory: Path) -> list[Record]:
    """Returns all of a machine with two cores, and one core of it that does 70% of the work."""
    records = [*sweep(WHOLE, 3600, 6), *sweep(HELD, 2520, 6)]
    store = Store(directory)
    key = store.keep_shared("machines", MACHINE)
    return [store.keep(replace(one, machine=key)) for one in records]


@pytest.mark.parametrize(
    ("per", "sort", "first"),
    [
        ("", "", "whole"),
        ("core", "", "held"),
        ("socket", "", "whole"),
        ("currency", "", "whole"),
        ("", "system", "held"),
        ("", "cores", "whole"),
        ("core", "core", "held"),
    ],
)
def test_own_results_are_ranked_by_what_was_asked_for(tmp_path: Path, per: str, sort: str, first: str) -> None:
    both(tmp_path)
    (ranking,) = asked("igen-oltp", per, sort, LICENCE, (), str(tmp_path))
    places = {place.system: place for place in ranking.places}
    assert ranking.places[0].system == first
    assert (places["whole"].cores, places["held"].cores) == (2, 1)
    assert places["held"].per_core == pytest.approx(places["held"].score)
    assert places["whole"].per_socket == pytest.approx(places["whole"].score)
    # A socket needs at least four core licences, so both systems cost the same.
    assert places["held"].per_currency == pytest.approx(places["held"].score * 1000 / (4 * 6872))
    assert places["held"].pinned_to == (1,)
    text = unfolded(report.page([ranking]))
    assert f"by {report.ordered_by(ranking.sort)}" in text.splitlines()[0]


@pytest.mark.parametrize(("cpus", "known"), [((0, 1, 2, 3, 4, 5), False), (tuple(range(8)), True)])
def test_money_that_hangs_on_a_number_of_sockets_that_nobody_knows_is_not_counted(
    cpus: tuple[int, ...], known: bool
) -> None:
    cpu = {"model": "Example CPU 3.0 GHz", "sockets": 2, "cores": 16, "threads": 32}
    records = sweep(replace(HELD, server_cpus=cpus), 2520, 6)
    (ranking,) = leaderboard.rankings_of_records(
        records, Shelf(records, {"m1": {**MACHINE, "cpu": cpu}}), "score", SHEET, LICENCE
    )
    (place,) = ranking.places
    assert place.per_socket is None and place.cores == len(cpus)
    # A socket needs at least four core licences: six cores on one socket need six, on two sockets eight.
    expected = pytest.approx(place.score * 1000 / (8 * 6872)) if known else None
    assert place.per_currency == expected
    assert ("depends on the number of sockets" in unfolded(report.page([ranking]))) is not known


def test_the_mean_over_a_curve_of_clients_is_no_peak(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ramp = Curve("clients", "ramp:1-8/30s", ((0.0, 1.0), (30.0, 8.0)))
    store.keep(record(DISK, 8, 900.0, load=Load(curve=ramp, duration_s=30.0), id="ramp", machine="m1"))
    with pytest.raises(InputError, match=r"nothing to rank .*the number of clients followed a load curve") as caught:
        asked("igen-oltp", "", "", "", (), str(tmp_path))
    assert caught.value.hint == "run the workload with a constant number of clients"
    store.keep(record(MEMORY, 8, 500.0, id="steady", machine="m1"))
    (ranking,) = asked("igen-oltp", "", "", "", (), str(tmp_path))
    assert [place.score for place in ranking.places] == [500.0]
    assert ranking.left_out == (note("of-subjects", subjects=DISK.label, note=note("driven-along-curve")),)
    store.keep(record(DISK, 8, 700.0, id="again", machine="m1"))
    (ranking,) = asked("igen-oltp", "", "", "", (), str(tmp_path))
    assert [place.score for place in ranking.places] == [700.0, 500.0] and not ranking.left_out


def test_an_own_result_says_what_it_rests_on(tmp_path: Path) -> None:
    records = [suspect(one) if one.purpose == "confirmation" and one.block == 0 else one for one in sweep(DISK, 36, 6)]
    place = leaderboard.rankings_of_records(records, Shelf(records), "score", SHEET, "")[0].places[0]
    assert place.clients == 20 and place.basis is not None
    values = place.basis.values
    assert (values["trials"], values["confirmed"], values["suspect"]) == (3, True, 1)
    assert report.others(place)["clients"] == 20
    assert place.bounds is not None and place.bounds.low < place.score < place.bounds.high


def test_a_workload_is_ranked_by_its_own_score() -> None:
    tpch = Choice("tpch", {"scale_factor": "1", "test": "both"})
    quick = record(DISK, 1, 9.0, choice=tpch, metrics={"composite_unrounded": 500.0}, id="a")
    much = record(MEMORY, 1, 1.0, choice=tpch, metrics={"composite_unrounded": 900.0}, id="b")
    (ranking,) = leaderboard.rankings_of_records([quick, much], Shelf([]), "score", SHEET, "")
    assert ranking.score == "unrounded composite"
    assert [place.score for place in ranking.places] == [900.0, 500.0]
    assert "not comparable" in ranking.derived


@pytest.mark.parametrize("confirmed", [True, False])
def test_the_rows_of_the_index_tell_which_trials_a_peak_rests_on(confirmed: bool) -> None:
    records = [one for one in sweep(DISK, 3600, 6) if confirmed or one.purpose != "confirmation"]
    records += [record(DISK, 4, 99_999.0, status=Status.VOIDED, id="voided"), record(DISK, 4, None, id="load")]
    records += [record(DISK, 4, 99_999.0, purpose="pilot", id="pilot")]
    (subject,) = subjects([one for one in records if one.id not in ("voided", "load", "pilot")])
    peak = curve(subject).peak
    assert peak is not None
    found = leaderboard.peaks([short(one) for one in records])
    opened = [one for one in records if one.id in found]
    assert found[: len(peak.trials)] == [one.id for one in peak.trials]
    assert len(found) == len(peak.trials) + (not confirmed), "what was chosen among several is told by another one"
    (alone,) = subjects(opened)
    again = curve(alone).peak
    assert again is not None and again.basis == peak.basis


def test_no_other_record_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both(tmp_path)
    Store(tmp_path).listed()
    opened: list[str] = []
    read = Store._read

    def counting(store: Store, name: str, unread: list[str]) -> Record | None:
        opened.append(name)
        return read(store, name, unread)

    monkeypatch.setattr(Store, "_read", counting)
    asked("igen-oltp", "", "", "", (), str(tmp_path))
    assert len(opened) == 2 * 3 and all("-c" in name for name in opened)


@pytest.mark.parametrize(
    ("name", "per", "sort", "cause"),
    [
        ("tpcx", "", "", "neither a published list of results nor a workload"),
        ("", "cores", "", "unknown"),
        ("", "", "speed", "is not a column"),
        ("", "currency", "", "--per currency: no price"),
        ("", "", "currency", "--sort currency: no price"),
        ("igen-oltp", "", "", "contains no records of this workload"),
        ("storage", "", "", "no score to rank by"),
    ],
)
def test_unknown_lists_columns_and_money_without_a_price_are_refused(
    tmp_path: Path, name: str, per: str, sort: str, cause: str
) -> None:
    with pytest.raises(InputError, match=cause):
        asked(name, per, sort, "", (), str(tmp_path))


def test_records_of_failed_trials_alone_are_not_said_to_need_a_closed_loop(tmp_path: Path) -> None:
    Store(tmp_path).keep(record(status=Status.VOIDED, causes=(text_note("check failed"),)))
    with pytest.raises(InputError, match=r"nothing to rank .*no usable trial") as caught:
        asked("igen-oltp", "", "", "", (), str(tmp_path))
    assert "--rate" not in caught.value.hint and caught.value.hint


@pytest.mark.parametrize(
    ("per", "every", "cause"),
    [
        ("core", "year", "is paid every year"),
        ("hour", "once", "is charged per hour"),
        ("TB", "once", "is charged per TB"),
    ],
)
def test_a_licence_whose_cost_no_result_tells_is_refused_without_a_systems_file_as_the_way_out(
    tmp_path: Path, per: str, every: str, cause: str
) -> None:
    sheet = tmp_path / "own.toml"
    sheet.write_text(
        f'[price.ours]\nkind = "licence"\nprice = 100\ncurrency = "USD"\nper = "{per}"\nevery = "{every}"\n'
        'date = "2026-01"\nsource = "a list"\n'
    )
    with pytest.raises(InputError, match=f"--licence ours: {cause}") as caught:
        asked("tpce", "currency", "", "ours", (str(sheet),), str(tmp_path))
    assert "systems file" not in caught.value.hint and "ironbench cost" in caught.value.hint


def test_a_hint_names_each_list_and_workload_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        asked("nosuch", "", "", "", (), str(tmp_path))
    known = caught.value.hint.removeprefix("known: ").split(", ")
    assert {"tpce", "tpch"} < set(known)
    assert len(known) == len(set(known))


@pytest.mark.parametrize(
    ("licence", "cause", "hint"),
    [
        ("electricity-us-comercial", "no price sheet contains this licence", "known: "),
        ("electricity-us-commercial", "is a price of kind power, not a licence", "known: "),
        (
            "sql-server-2014-enterprize",
            "no price sheet contains this licence",
            "did you mean sql-server-2014-enterprise",
        ),
        ("oracle", "no price sheet contains this licence", "known: oracle-enterprise, "),
    ],
)
def test_only_licences_stand_for_the_money_of_a_leaderboard_and_hints_name_the_closest_first(
    tmp_path: Path, licence: str, cause: str, hint: str
) -> None:
    with pytest.raises(InputError, match=cause) as caught:
        asked("tpce", "currency", "", licence, (), str(tmp_path))
    assert caught.value.hint.startswith(hint)
    assert "electricity" not in caught.value.hint and "aws" not in caught.value.hint
