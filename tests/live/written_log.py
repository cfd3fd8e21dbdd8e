"""Logs of PostgreSQL that a test writes itself."""

from __future__ import annotations

from pathlib import Path

_REST = ',,,,,,,,"web","client backend",,0\n'


def write_csvlog(path: Path, *statements: tuple[float, str]) -> None:
    """Writes a csvlog of one session of PostgreSQL 18. `statements`: second and text of each statement."""
    entries = (
        f'2026-11-28 17:00:{second:06.3f} UTC,"app","postgres",7,"[local]",6b0b1484.7,{line},'
        f'"SELECT",2026-11-28 17:00:00 UTC,3/{line},0,LOG,00000,"duration: 1.000 ms  statement: {text}",""{_REST}'
        for line, (second, text) in enumerate(statements, 1)
    )
    path.write_text("".join(entries))
