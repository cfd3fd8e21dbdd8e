"""A report shows the statistics of a directory server."""

from __future__ import annotations

import pytest
from factories import DISK, Shelf, record

from ironbench.model.system import Choice
from ironbench.records.work import work_name
from ironbench.report.sections import sections
from ironbench.study.runstudy import studies

WORK = Choice("directory", {"entries": "10", "job": "mixed", "ldif": "", "weights": "search=1,bind=1"})
COUNTED = {
    "directory_operations_per_s{operation=bind}": 120.0,
    "directory_operations_per_s{operation=search}": 1040.0,
    "directory_threads_active": 3.5,
    "directory_operations_waiting": 0.25,
}


def test_operations_by_kind_and_threads_stand_in_a_table_of_systems() -> None:
    found = [record(DISK, 4, 1000.0, block=block, choice=WORK, metrics=COUNTED) for block in range(2)]
    (study,) = studies(found, Shelf(found))
    (shown,) = [section for section in sections(study) if section.id == "directory"]
    ((_, table),) = shown.tables
    assert [row[0] for row in table.texts] == ["bind", "search", "busy threads", "waiting operations"]
    assert [row[1] for row in table.texts] == ["120/s", "1,040/s", "3.50", "0.250"]


def test_other_engines_have_no_such_section() -> None:
    (study,) = studies([record()], Shelf([record()]))
    assert not [section for section in sections(study) if section.id == "directory"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"entries": "10"}, "directory entries=10"),
        ({"entries": "10", "job": "mixed"}, "directory entries=10 job=mixed"),
        ({"entries": "10", "job": "search", "limit": "5", "ldif": ""}, "directory entries=10 job=search limit=5"),
        ({"job": "whoami", "depth": "2", "ldif": ""}, "directory depth=2 job=whoami"),
        ({"job": "mixed", "weights": "whoami=3"}, "directory job=mixed weights=whoami=3"),
    ],
)
def test_a_record_of_another_version_is_named_by_what_it_tells(options: dict[str, str], named: str) -> None:
    choice = Choice("directory", options)
    assert work_name(choice) == named
    found = [record(DISK, choice=choice)]
    assert [study.work for study in studies(found, Shelf(found))] == [named]
