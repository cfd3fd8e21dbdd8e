"""A lab with a zero-latency WAL reports what the WAL costs, worded by its finding, and leaves nothing in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.engines import ideal
from ironbench.lab import declare, freeze, loop
from ironbench.printer import Printer
from ironbench.records.labs import LabDirectory
from ironbench.study.bottleneck import where_time_goes
from ironbench.study.ceiling import baseline_of, ceilings
from ironbench.study.findings import findings

pytestmark = [pytest.mark.live, pytest.mark.long]

FILE = """
question = "Is the log what holds this database back?"
[system]
engine = "postgres"
[layout]
data = "{place}/data"
[workload]
name = "simple-update"
[load]
clients = 4
duration = "4s"
[vary]
ideal = ["none", "log"]
[measure]
repeats = 6
quiet = "1s"
rates = "none"
"""


def test_a_free_log_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "ironbench"))
    file = tmp_path / "lab.toml"
    file.write_text(FILE.format(place=tmp_path))
    planned, secrets = declare.lab(file)
    directory = LabDirectory(tmp_path / "lab")
    directory.begin(freeze.freeze(planned, secrets, directory.store))
    with directory.locked():
        records = loop.conduct(secrets, directory, Printer())
    by_cell = {name: [one for one in records if one.cell.name == name] for name in ("ideal=none", "ideal=log")}
    spent = {name: found for name, trials in by_cell.items() if (found := where_time_goes(trials)) is not None}
    assert len(spent) == 2
    known = {name: baseline_of(spent[name], by_cell[name]) for name in spent}
    (found,) = ceilings([one for one in findings(records, planned, 1) if one.decides], planned, known)
    assert found.parts == ("log",)
    assert found.low <= found.speedup <= found.high
    assert found.seen == ("log",)
    assert spent["ideal=log"].share("log flush") < spent["ideal=none"].share("log flush")
    assert not ideal.root(str(tmp_path / "data")).exists()
