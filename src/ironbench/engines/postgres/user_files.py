"""Reads values that a DSN omits: passwords, services and certificates. These values are in the user's files.
https://www.postgresql.org/docs/18/libpq-pgpass.html https://www.postgresql.org/docs/18/libpq-pgservice.html"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

from ironbench.engines.url import certificate, harmless, is_file, wrong
from ironbench.errors import InputError, nearest


def service(name: str, given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the parameters of a service from the user's file or the system's file. Raises InputError if neither file
    contains the service."""
    user = given.get("servicefile") or environ.get("PGSERVICEFILE") or str(_home(environ, ".pg_service.conf"))
    system = str(Path(environ["PGSYSCONFDIR"], "pg_service.conf")) if environ.get("PGSYSCONFDIR") else ""
    known: list[str] = []
    for place in filter(None, (user, system)):
        if not is_file(place):  # anything but a regular file is skipped, because reading a pipe might never end
            continue
        try:
            text = Path(place).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        services = _services(text, place)
        if name in services:
            return services[name]
        known += services
    file = user if harmless(user) else "your service file"
    raise wrong(
        "the service is not in any service file", nearest(name, known) if known else f"add the service to {file}"
    )


def _services(text: str, place: str) -> dict[str, dict[str, str]]:
    """Parses the INI format with one parameter per line. Lines that start with # are comments."""
    services: dict[str, dict[str, str]] = {}
    current: dict[str, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        if words.startswith("[") and words.endswith("]"):
            current = services.setdefault(words[1:-1], {})
            continue
        parameter, equals, value = words.partition("=")
        if not equals or current is None:
            raise InputError(f"{place}, line {number}", "is neither [service] nor name=value", "correct the file")
        current[parameter.strip()] = value.strip()
    return services


def client_certificate(given: Mapping[str, str], environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Returns the files with the client certificate and key. These are the specified files, or the files in
    ~/.postgresql if they exist. Raises InputError if a file is missing, or if other users can read the key (libpq,
    32.19.2)."""
    if given.get("sslcertmode") == "disable" or given.get("sslmode") == "disable":
        return None, None
    usual, usual_key = _home(environ, ".postgresql/postgresql.crt"), _home(environ, ".postgresql/postgresql.key")
    shown = certificate("sslcert", given.get("sslcert")) or (str(usual) if usual.is_file() else None)
    if shown is None:
        return None, None
    key = certificate("sslkey", given.get("sslkey")) or (str(usual_key) if usual_key.is_file() else None)
    if key is None:
        raise wrong("contains a certificate without its key", "add sslkey=FILE")
    info = Path(key).stat()
    if info.st_mode & (0o077 if info.st_uid else 0o027):
        raise InputError(f"private key {key}", "other users can read it", f"chmod 600 {key}")
    return shown, key


def _home(environ: Mapping[str, str], name: str) -> Path:
    return Path(environ.get("HOME", "/"), name)


def stored_password(path: Path, host: str, port: int, database: str, user: str) -> str | None:
    """Returns the password of the first matching line. Returns None if no line matches. Raises InputError if other
    users can read the file."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # reading a pipe might never end, and libpq also ignores files that are not regular
            return None
        lines = path.read_text(errors="replace").splitlines()
    except (OSError, ValueError):  # ValueError means that the path contains a null character
        return None
    keys = [host, str(port), database, user]
    for line in lines:
        fields = _passfile_fields(line)
        if len(fields) == 5 and all(field in ("*", want) for field, want in zip(fields, keys, strict=False)):
            if mode & 0o077:
                raise InputError(f"password file {path}", "other users can read it", f"chmod 600 {path}")
            return fields[4]
    return None


def _passfile_fields(line: str) -> list[str]:
    """Splits a line at colons. A backslash escapes the next character, and `#` starts a comment line."""
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
