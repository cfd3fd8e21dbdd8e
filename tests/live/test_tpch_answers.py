"""Servers answer the 22 queries correctly, at every scale factor with stored answers that tests have time for."""

from __future__ import annotations

from pathlib import Path

import pytest
from factories import require_installed
from user import User

pytestmark = pytest.mark.live


def answered(home: Path, engine: str, sf: str) -> list[dict[str, object]]:
    """Returns the checks of one stream of all queries."""
    user = User(home)
    words = ("run", "tpch", "--engine", engine, "--memory", "512MB", "--with", f"sf={sf}", "--with", "test=stream")
    with user.begun(*words, "--with", "plans=no", "--no-observe", "--json") as run:
        told = run.measured(within_s=1700)
    checks: list[dict[str, object]] = told.document["trials"][0]["checks"]
    return checks


@pytest.mark.parametrize(
    ("engine", "sf"),
    [
        pytest.param("mariadb", "0.01", marks=pytest.mark.long),
        pytest.param("mariadb", "0.1", marks=pytest.mark.long),
        pytest.param("mariadb", "1", marks=pytest.mark.long),
        pytest.param("postgres", "1", marks=pytest.mark.long),
    ],
)
def test_all_answers_are_right(place: Path, engine: str, sf: str) -> None:
    require_installed(engine)
    right = {"name": "answers", "passed": True, "expected": "22 right", "actual": "22 right"}
    assert right in answered(place, engine, sf)
