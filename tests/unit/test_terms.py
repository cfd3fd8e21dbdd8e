"""Names of configurations and comparisons in reports."""

from __future__ import annotations

import pytest

from ironbench.model.note import note, text_note
from ironbench.report import wording
from ironbench.report.wording.terms import comparison, configuration
from ironbench.study.factors import Contrast


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("log=memory clients=8", "WAL in memory, 8 clients"),
        ("log=on disk", "WAL on disk"),
        ("log=/mnt/wal", "WAL on /mnt/wal"),
        ("log=ssd-nvme-enterprise", "WAL on ssd-nvme-enterprise"),
        ("log=card mirrored data=8 disks", "WAL on card mirrored, data on 8 disks"),
        ("data=half cached", "data half cached"),
        ("rate=50%", "50% of peak throughput"),
        ("rate=500/s clients=1", "500 per second, 1 client"),
        ("rate=2500", "2500 per second"),
        ("rate=high", "rate=high"),
        # The lab's own factors, which have nothing to do with storage.
        ("log=on", "log=on"),
        ("log=statement log_min=1", "log=statement, log_min=1"),
        ("data=small", "data=small"),
        ("data=large temp=none", "data=large, temp=none"),
    ],
)
def test_only_values_that_name_a_place_are_shown_as_one(name: str, words: str) -> None:
    assert configuration(name) == words


def test_names_that_contain_the_words_of_a_comparison_stay_whole() -> None:
    odd = Contrast("read over network", "local, at night")
    assert comparison(odd) == "read over network vs. local, at night"
    assert comparison(Contrast("log=memory", "log=disk", "clients=8")) == (
        "WAL in memory vs. WAL on disk, with 8 clients"
    )


def test_a_note_on_comparisons_names_them_from_their_parts() -> None:
    inner = text_note("counters were reset")
    of_two = note(
        "of-subjects", subjects=(Contrast("a over b", "c").name,), comparisons=(("a over b", "c", ""),), note=inner
    )
    assert wording.text(of_two) == "a over b vs. c: counters were reset"
    of_a_run = note("of-subjects", subjects="reads over night", note=inner)
    assert wording.text(of_a_run) == "reads over night: counters were reset"
