"""Files of SQL that a workload ships: for every engine the text of its dialect."""

from __future__ import annotations

import re
from pathlib import Path

from ironbench import engines
from ironbench.workloads.base import ScriptSource


def text(folder: Path, name: str, engine: str) -> str:
    """`NAME.ENGINE.sql` where the engine's dialect needs a text of its own, else `NAME.sql`; "" without either."""
    for path in (*(folder / f"{name}.{suffix}.sql" for suffix in engines.texts(engine)), folder / f"{name}.sql"):
        if path.exists():
            return path.read_text()
    return ""


def script(folder: Path, name: str, engine: str, weight: int = 1) -> ScriptSource:
    """The script of that name in the engine's dialect."""
    source = text(folder, name, engine)
    assert source, f"{folder.name} has no script {name}"
    return ScriptSource(name, source, weight)


_SIZE = re.compile(r"^-- bytes: (\d+)$", re.MULTILINE)


def size(folder: Path, name: str, engine: str) -> int:
    """Bytes for each unit of scale, as the line `-- bytes: N` of a text says; 0 without one."""
    note = _SIZE.search(text(folder, name, engine))
    return int(note[1]) if note else 0


def statements(folder: Path, name: str, engine: str) -> tuple[str, ...]:
    """The statements of a text in the engine's dialect; none when there is no such text.

    A statement ends with `;` at the end of a line that is not indented or closes with `);`: our own files are written
    that way, so that a trigger's body stays whole.
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
