"""Plans for the user's own data: their size, the target server, and what a plan does not query."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.engines.postgres import installation
from ironbench.lab.dry_run import estimate
from ironbench.model.own_data import OwnData
from ironbench.model.system import Cell, Choice, Layout, Load, Setup, System
from ironbench.trial.load import own

DUMP = OwnData("/srv/shop.dump", digests=("d1",), kind="custom dump of version 15.8", bytes=10**7, data_bytes=6 * 10**7)
UNASKED = "a dry run does not connect to the server"


def planned(data: OwnData, dsn: str | None, directory: Path) -> list[str]:
    system = System("postgres", "shop", layout=Layout(str(directory)) if dsn is None else Layout(), dsn=dsn)
    return list(estimate.own_data([Setup(Cell("c", Load()), system, Choice("script", data=data))]))


def test_a_plan_names_the_version_of_the_dump_and_of_the_server_that_it_starts(tmp_path: Path) -> None:
    (line,) = planned(DUMP, None, tmp_path)
    assert "custom dump of version 15.8" in line
    assert f"60.0\u202fMB when loaded into postgres {installation.find().version}," in line


@pytest.mark.parametrize("data", [DUMP, OwnData(template="shop")], ids=["dump", "template"])
def test_a_plan_says_that_it_does_not_ask_a_running_server(data: OwnData, tmp_path: Path) -> None:
    line, caution = planned(data, "postgresql://bench@db.example/postgres", tmp_path)
    assert "into postgres" not in line
    assert caution.startswith(UNASKED)


def test_of_data_that_are_kept_the_size_is_known_and_nothing_is_loaded() -> None:
    said = own.expected(DUMP, ["postgres 18.4"], 65_200_000)
    assert said.endswith("65.2\u202fMB when loaded into postgres 18.4, reused from an earlier load")
