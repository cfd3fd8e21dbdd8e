"""No password leaves, even where one slipped into a setting or a connection string."""

from __future__ import annotations

import re

HIDDEN = "•••"
_SECRET_NAME = re.compile(r"passw|passphrase|secret|token|credential|private_key", re.IGNORECASE)
_URL = re.compile(r"(\w+://[^\s:/@]*):[^\s@]*@")
_PAIR = re.compile(r"\b(password|passwd|pwd)\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&;,]+)", re.IGNORECASE)


def redacted(value: str, name: str = "") -> str:
    """`value` without passwords; all of it hidden when its name is that of a secret."""
    last = name.rpartition(".")[2]
    # password_encryption names a method, md5_password_warnings is a switch: neither is a secret.
    if value and _SECRET_NAME.search(last) and last != "password_encryption" and value not in ("on", "off"):
        return HIDDEN
    return _PAIR.sub(rf"\1={HIDDEN}", _URL.sub(rf"\1:{HIDDEN}@", value))
