"""A lab that searches for the best number of clients of each configuration on SQLite: searched, resumed, exported."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.lab import declare, freeze, loop
from ironbench.printer import Printer
from ironbench.records.examine import unpacked
from ironbench.records.labs import LabDirectory

pytestmark = pytest.mark.live

FILE = """
question = "What does a safe commit cost at each system's best number of clients?"
[system]
engine = "sqlite"
[workload]
name = "select-only"
[load]
clients = "auto:1-2"
limit = ["response_time_p99_s=10s"]
duration = "200ms"
warmup = "0s"
[vary]
system.set.synchronous = ["off", "normal"]
[measure]
repeats = 1
quiet = "0s"
"""


@pytest.mark.long
def test_cells_are_measured_at_the_clients_that_their_searches_chose_and_resume_goes_on(place: Path) -> None:
    file = place / "safe.toml"
    file.write_text(FILE)
    planned, secrets = declare.lab(file)
    directory = LabDirectory(place / "lab")
    directory.begin(freeze.freeze(planned, secrets, directory.store))
    with directory.locked():
        records = loop.conduct(secrets, directory, Printer())
    searching = [one for one in records if one.purpose == "search"]
    of_blocks = [one for one in records if one.purpose == "lab"]
    assert len(of_blocks) == 2 and records == [*searching, *of_blocks]
    best = directory.best()
    assert {one.cell.name: one.cell.load.clients for one in of_blocks} == {cell: b.point for cell, b in best.items()}
    assert {one.search_result.code for one in of_blocks if one.search_result} == {"search-best"}
    assert all(one.search_result for one in of_blocks)
    # all accept the same number of clients
    assert {one.engine for one in searching} == {one.engine for one in of_blocks}
    unpacked(directory.path, records)

    (directory.path / "best.json").unlink()
    for lost in [*searching[5:], *of_blocks]:
        (directory.path / "trials" / lost.id).rename(place / f"lost-{lost.id}")
    again = LabDirectory(place / "lab")
    with again.locked():
        resumed = loop.conduct(secrets, again, Printer())
    assert [one.id for one in resumed[:5]] == [one.id for one in searching[:5]]
    assert len([one for one in resumed if one.purpose == "lab"]) == 2
    assert set(again.best()) == {"synchronous=off", "synchronous=normal"}
