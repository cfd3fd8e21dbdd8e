"""Names of databases that ironbench creates on existing servers.

A database cannot be created and marked in one transaction. If ironbench were killed in between, it would leave a copy
of the user's data that could not be dropped safely. Therefore the name itself is the mark. The last part of the name is
a checksum of the rest. The name of a user's database does not match this checksum by accident.
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
