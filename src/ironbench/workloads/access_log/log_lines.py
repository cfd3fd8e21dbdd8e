"""Reads the lines of an access log. The file may be compressed with gzip. Lines may have been written by the systemd
journal or a container runtime, which add their own prefixes."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from ironbench.errors import InputError

_GZIP = b"\x1f\x8b"
_OTHERS = {
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ": ("xz", "unxz"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"PK\x03\x04": ("zip", "unzip"),
}
"""Compression formats other than gzip. The key is the first bytes of a file. The value is the name of the format, and
the program that decompresses it."""
_COMPOSE = re.compile(r"^[\w.-]+ +\| ")
"""Pattern of the container's name, which `docker compose logs` writes at the start of each line."""
_MICROSECONDS = re.compile(r"[0-9]{1,17}")
_LONGEST_LINE = 1 << 20


@contextmanager
def opened(path: str) -> Iterator[Iterator[str]]:
    """Yields the lines of the log with their line ends, but without prefixes of the journal or a container runtime.
    Raises OSError. Raises InputError if the file is compressed in another format than gzip."""
    with Path(path).open("rb") as file:
        first = file.read(8)
        for mark, (kind, undo) in _OTHERS.items():
            if first.startswith(mark):
                raise InputError(path, f"is compressed by {kind}", f"decompress it first: {undo}")
        file.seek(0)
        if first.startswith(_GZIP):
            with gzip.open(file) as unpacked:
                yield _lines(path, unpacked)
        else:
            yield _lines(path, file)


def _lines(path: str, file: IO[bytes] | gzip.GzipFile) -> Iterator[str]:
    try:
        while line := file.readline(_LONGEST_LINE):
            text = line.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")
            yield _of_json(path, text) if text.startswith("{") else _COMPOSE.sub("", text, count=1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(path, f"is not a complete gzip file: {error}", "copy it again") from None


def _of_json(path: str, line: str) -> str:
    """Returns the message in a JSON line of a container log or of the systemd journal (`journalctl -o json`). A message
    of the journal is prefixed by its time.

    Raises InputError for the JSON format of 389 Directory Server.
    """
    try:
        entry: Any = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        if line.strip() == "{":
            raise _of_389(path)  # the `json-pretty` format of 389 Directory Server
        return line
    if isinstance(message := entry.get("MESSAGE"), str):
        micros = str(entry.get("__REALTIME_TIMESTAMP", ""))
        at = datetime.fromtimestamp(int(micros) / 1e6, UTC).isoformat() if _MICROSECONDS.fullmatch(micros) else ""
        return f"{at} {message}\n".lstrip()
    if isinstance(message := entry.get("log"), str):
        return message
    if "conn_id" in entry or "local_time" in entry:
        raise _of_389(path)
    return line


def _of_389(path: str) -> InputError:
    return InputError(
        path,
        "is in the JSON format of 389 Directory Server, which ironbench does not read",
        "switch the server to its default format: dsconf INSTANCE logging access set log-format default",
    )
