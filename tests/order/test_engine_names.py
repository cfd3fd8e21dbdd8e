"""An engine is one folder, and nothing else knows its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_imports import parsed

from ironbench import engines, workloads
from ironbench.engines.base import ABILITIES

pytestmark = pytest.mark.xdist_group("sources")

SOURCE = Path(engines.__file__).parents[1]
ENGINES = SOURCE / "engines"
WIRES = {"postgres", "sqlite", "mysql"}
"""Of the core, as a session's `target` names them: an engine may speak another's."""
EVERYDAY = {"none", "null"}
"""Engines whose names are words of everyday language, and of Python."""
NAMES = [name for name in engines.names() if name not in EVERYDAY]
WORDS = re.compile("|".join([*NAMES, "mysql", r"\bpg_[a-z]"]), re.IGNORECASE)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every string and imported name of a module, docstrings and comments aside."""
    tree = parsed(path)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ironbench.engines."):
            yield node.lineno, node.module


def test_no_engine_is_named_outside_its_folder() -> None:
    outside = [path for path in SOURCE.rglob("*.py") if ENGINES not in path.parents]
    named = [f"{path}:{line}: {text!r}" for path in outside for line, text in texts(path) if WORDS.search(text)]
    assert len(outside) > 100 and not named


@pytest.mark.parametrize("name", engines.names())
def test_no_engine_names_another(name: str) -> None:
    others = re.compile("|".join(rf"\b{other}\b" for other in NAMES if other != name))
    for path in (ENGINES / name).rglob("*.py"):
        assert not [text for _, text in texts(path) if others.search(text) and text not in WIRES], path


def test_what_engines_share_names_none_of_them() -> None:
    for path in ENGINES.glob("*.py"):
        assert not [text for _, text in texts(path) if WORDS.search(text)], path


def test_every_ability_is_defined_and_somebody_has_it() -> None:
    found = {ability for name in engines.names() for ability in engines.get(name).traits.abilities}
    assert found == set(ABILITIES)


def test_every_workload_runs_somewhere_by_what_it_needs() -> None:
    for name in workloads.names():
        workload = workloads.get(name)
        assert set(workload.needs) <= set(ABILITIES)
        assert workload.engines, name
