"""Reads the SQL files of workloads, in the dialect of an engine."""

from __future__ import annotations

import re
from pathlib import Path

from ironbench import engines
from ironbench.workloads.base import ScriptSource


def text(folder: Path, name: str, engine: str) -> str:
    """Returns the text of `NAME.ENGINE.sql`, which exists if the engine's dialect needs a different text. Otherwise,
    returns the text of `NAME.sql`. Returns "" if neither file exists."""
    for path in (*(folder / f"{name}.{suffix}.sql" for suffix in engines.texts(engine)), folder / f"{name}.sql"):
        if path.exists():
            return path.read_text()
    return ""


def script(folder: Path, name: str, engine: str, weight: int = 1) -> ScriptSource:
    """Returns the script with this name in the engine's dialect."""
    source = text(folder, name, engine)
    assert source, f"{folder.name} has no script {name}"
    return ScriptSource(name, source, weight)


_SIZE = re.compile(r"^-- bytes: (\d+)$", re.MULTILINE)


def size(folder: Path, name: str, engine: str) -> int:
    """Returns the size of the data in bytes per unit of scale. The file contains it in the line `-- bytes: N`. Returns
    0 if there is no such line."""
    note = _SIZE.search(text(folder, name, engine))
    return int(note[1]) if note else 0


def statements(folder: Path, name: str, engine: str) -> tuple[str, ...]:
    """Returns the statements of a file in the engine's dialect. Returns nothing if there is no such file. A `;` at the
    end of a line ends the statement if the line is not indented, or if it ends with `);`. Statements inside the body of
    a trigger are indented, so they do not end it.
    """
    parts: list[str] = []
    current: list[str] = []
    for line in text(folder, name, engine).splitlines():
        if line.startswith("--") or not line.strip():
            continue
        current.append(line)
        closes = line.endswith(";") and (not line.startswith(" ") or line.endswith(");"))
        if closes:
            parts.append("\n".join(current).removesuffix(";"))
            current = []
    assert not current, f"{folder.name}/{name} for {engine} ends inside a statement"
    return tuple(parts)
