"""Labs that compare engines: each runs from end to end, shortened."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from emulated import needs_devices, nothing_left
from factories import lacking, require_installed
from user import User

from ironbench.records.labs import LabDirectory
from ironbench.report import wording

pytestmark = pytest.mark.live

LABS = Path(__file__).parents[2] / "labs"
ONE = """
question = "Do two clients do more of the order system than one?"
[system]
engine = "{engine}"
[layout]
data = "{data}"
[workload]
name = "igen-oltp"
[load]
duration = "0.5s"
warmup = "0s"
think_time = "5ms"
[vary]
clients = [1, 2]
[measure]
repeats = 1
quiet = "0s"
"""


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path / "home")


def records(user: User, text: str) -> list:
    """Runs a lab file to its end and returns the records."""
    file = user.home / "short.toml"
    file.write_text(text)
    with user.begun("lab", "run", str(file), "--results", str(user.home / "lab")) as run:
        told, _ = run.end(within_s=1500)
    assert told.code in (0, 3, 4), told.stderr
    assert user.nothing_runs()
    return LabDirectory(user.home / "lab").records()


@pytest.mark.parametrize(
    "engine",
    [pytest.param("postgres", marks=pytest.mark.long), "sqlite", pytest.param("mariadb", marks=pytest.mark.long)],
)
def test_one_lab_runs_on_another_engine_by_changing_one_word(user: User, engine: str) -> None:
    require_installed(engine)
    found = records(user, ONE.format(engine=engine, data=user.home / "d"))
    assert {(record.system.engine, record.cell.name) for record in found} == {
        (engine, "clients=1"),
        (engine, "clients=2"),
    }
    assert all(record.metrics["transactions"] > 0 for record in found)
    assert {record.status.value for record in found} <= {"ok", "suspect"}, [wording.cause(record) for record in found]


@pytest.mark.long
@needs_devices
@pytest.mark.skipif(bool(lacking("mariadb")), reason="MariaDB is a level of them")
@pytest.mark.parametrize(
    ("name", "shorter"),
    [
        ("engines", {"scale = 16": "scale = 2", '"20s"': '"2s"', '"3s"': '"0s"'}),
        ("page-compression", {"sf = 0.04": "sf = 0.01"}),
    ],
)
def test_a_lab_of_engines_runs_to_its_end(user: User, name: str, shorter: dict[str, str]) -> None:
    text = (LABS / f"{name}.toml").read_text()
    for long, short in shorter.items():
        assert long in text
        text = text.replace(long, short)
    text = re.sub(r"^\[measure\]$", '[measure]\nrepeats = 1\nquiet = "0s"', text, flags=re.MULTILINE)
    found = records(user, text)
    cells = {"engines": 4, "page-compression": 15 if shutil.which("mkfs.btrfs") else 12}[name]
    assert len({record.cell.name for record in found}) == cells
    assert {record.status.value for record in found} <= {"ok", "suspect"}, [wording.cause(record) for record in found]
    assert {record.system.engine for record in found} == {"postgres", "mariadb"}
    assert nothing_left(user.home)
