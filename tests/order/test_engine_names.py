"""An engine is one folder, and no code elsewhere uses its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from test_imports import parsed

from ironbench import engines, workloads
from ironbench.engines.base import ABILITIES

pytestmark = pytest.mark.xdist_group("sources")

SOURCE = Path(engines.__file__).parents[1]
ENGINES = SOURCE / "engines"
WIRES = {"postgres", "sqlite", "mysql"}
"""Wire protocols of the core, as in a session's `target`; an engine may use the protocol of another engine."""
EVERYDAY = {"none", "null"}
"""Engines whose names are common words or Python words."""
NAMES = [name for name in engines.names() if name not in EVERYDAY]
WORDS = re.compile("|".join([*NAMES, "mysql", r"\bpg_[a-z]"]), re.IGNORECASE)
SQLSTATE = re.compile(r"[0-9][0-9A-Z]{4}")
STATES = {SOURCE / "host" / "child_connection.py", ENGINES / "administration.py"}
"""Files with SQLSTATE codes that mean the same on every server."""


def settings() -> set[str]:
    """Returns the names of engine settings that are not common words."""
    found = {"full_page_writes", "innodb_flush_method", "track_io_timing"}
    for name in engines.names():
        engine = engines.get(name)
        found |= {knob.name for knob in engine.traits.knobs} | {engine.administration.checkpoint_setting}
        found |= {setting for part in engine.traits.ideal_settings.values() for setting in part}
    return {name for name in found if "_" in name}


@cache
def texts(path: Path) -> list[tuple[int, str]]:
    """Lists every string and imported name of a module, except docstrings and comments."""
    return list(_texts(list(ast.walk(parsed(path)))))


def _texts(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ironbench.engines"):
            yield node.lineno, " ".join([node.module, *(alias.name for alias in node.names)])
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.startswith("ironbench.engines"))


def test_no_engine_is_named_outside_its_folder() -> None:
    outside = [path for path in SOURCE.rglob("*.py") if ENGINES not in path.parents]
    assert len(outside) > 100
    # Parse only files that contain a name anywhere.
    suspects = [path for path in outside if WORDS.search(path.read_text())]
    named = [f"{path}:{line}: {text!r}" for path in suspects for line, text in texts(path) if WORDS.search(text)]
    assert not named


@pytest.mark.parametrize(
    "line",
    [
        "from ironbench.engines import postgres",
        "from ironbench.engines.postgres.dsn import PostgresAddress",
        "import ironbench.engines.mariadb.dsn",
        'name = "postgres"',
    ],
)
def test_a_name_of_an_engine_is_found(line: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(f"{line}\n")
    assert any(WORDS.search(text) for _, text in texts(tmp_path / "one.py"))


def test_no_setting_or_sqlstate_of_an_engine_is_named_outside_its_folder() -> None:
    known = settings()
    assert {"shared_buffers", "innodb_buffer_pool_size", "temp_store"} < known
    setting = re.compile("|".join(rf"\b{name}\b" for name in known))
    shared = [path for path in SOURCE.rglob("*.py") if path.parent == ENGINES or ENGINES not in path.parents]
    named = [f"{path}:{line}: {text!r}" for path in shared for line, text in texts(path) if setting.search(text)]
    named += [
        f"{path}:{line}: {text!r}"
        for path in set(shared) - STATES
        for line, text in texts(path)
        if SQLSTATE.fullmatch(text)
    ]
    assert not named


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
