"""Published results are ranked by themselves; ours never among them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from factories import DISK, Shelf, sweep

from ironbench.analyse import leaderboard
from ironbench.catalogue import prices, published
from ironbench.cli.ranking import asked
from ironbench.errors import InputError
from ironbench.model.record import Record
from ironbench.record import Store
from ironbench.record.store import Evidence
from ironbench.report import leaderboard as report

SHEET = prices.shipped()


def test_published_scores_per_core_are_the_scores_over_the_cores() -> None:
    for name in published.names():
        for entry in published.get(name).entries:
            # One was published as a round 108.00 where the division gives 107.96.
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


def own(directory: Path) -> list[Record]:
    store = Store(directory)
    records = sweep(DISK, 3600, 6)
    for one in records:
        store.keep(one, Evidence())
    return records


def test_own_results_stand_in_a_table_of_their_own_after_a_sentence(tmp_path: Path) -> None:
    records = own(tmp_path)
    rankings = leaderboard.own(records, Shelf(records), "score", SHEET, "", "Derived, not comparable.")
    assert [ranking.title for ranking in rankings] == ["own results: igen-oltp scale=4 weight=light"]
    place = rankings[0].places[0]
    assert place.per_core == pytest.approx(place.score / 2)
    together = [leaderboard.published(published.get("tpce"), "score", SHEET, ""), *rankings]
    text = report.text(together, None)
    assert text.index(leaderboard.NOT_COMPARABLE) < text.index("own results")
    assert "Derived, not comparable." in text
    tables = json.loads(report.document(together))["rankings"]
    assert [table["published"] for table in tables] == [True, False]


def test_a_workload_has_a_leaderboard_of_own_results_alone(tmp_path: Path) -> None:
    own(tmp_path)
    found = asked("igen-oltp", "", "", "", (), str(tmp_path))
    assert [ranking.source for ranking in found] == ["records"]


@pytest.mark.parametrize(
    ("name", "per", "sort", "cause"),
    [
        ("tpcx", "", "", "no published list and no workload"),
        ("", "cores", "", "unknown"),
        ("", "", "speed", "no column"),
        ("", "currency", "", "nothing says what a system costs"),
        ("igen-oltp", "", "", "there are no records"),
    ],
)
def test_unknown_lists_columns_and_money_without_a_price_are_refused(
    tmp_path: Path, name: str, per: str, sort: str, cause: str
) -> None:
    with pytest.raises(InputError, match=cause):
        asked(name, per, sort, "", (), str(tmp_path))
