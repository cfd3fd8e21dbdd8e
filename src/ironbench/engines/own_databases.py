"""Names of databases that ironbench makes on running servers.

Making a database belongs to no transaction, and a note in it can only follow: whoever is killed between the two would
leave a copy of somebody's data that nobody dares to drop. So the name itself is the mark: its last part is a checksum
of the part before, which no other database's name has by accident.
"""

from __future__ import annotations

import hashlib
import re
import secrets

_NAME = re.compile(r"ironbench_([0-9a-f]{10})_([0-9a-f]{8})")


def new_name() -> str:
    part = secrets.token_hex(5)
    return f"ironbench_{part}_{_checksum(part)}"


def is_ours(name: str) -> bool:
    match = _NAME.fullmatch(name)
    return match is not None and _checksum(match[1]) == match[2]


def _checksum(part: str) -> str:
    return hashlib.sha256(f"database made by ironbench {part}".encode()).hexdigest()[:8]
