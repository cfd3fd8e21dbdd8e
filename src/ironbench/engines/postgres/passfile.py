"""libpq's password file. https://www.postgresql.org/docs/18/libpq-pgpass.html"""

from __future__ import annotations

from pathlib import Path

from ironbench.errors import InputError


def look_up(path: Path, host: str, port: int, database: str, user: str) -> str | None:
    """The password of the first line that fits, or None. InputError when others may read a line that fits."""
    try:
        mode = path.stat().st_mode
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    wanted = [host, str(port), database, user]
    for line in lines:
        fields = _fields(line)
        if len(fields) == 5 and all(field in ("*", want) for field, want in zip(fields, wanted, strict=False)):
            if mode & 0o077:
                raise InputError(f"password file {path}", "others may read it", f"chmod 600 {path}")
            return fields[4]
    return None


def _fields(line: str) -> list[str]:
    """Colons part, a backslash takes the next character as it is, `#` begins a remark."""
    if line.startswith("#"):
        return []
    fields: list[str] = []
    current, characters = "", iter(line)
    for char in characters:
        if char == "\\":
            current += next(characters, "")
        elif char == ":" and len(fields) < 4:
            fields.append(current)
            current = ""
        else:
            current += char
    return [*fields, current]
