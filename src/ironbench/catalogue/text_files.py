"""Detects compression, UTF-16 and byte order marks from the first bytes of a text file."""

from __future__ import annotations

import codecs
from pathlib import Path

from ironbench.errors import InputError

_PACKED = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"),
           (b"\x04\x22\x4d\x18", "lz4"), (b"PK\x03\x04", "zip"), (b"7z\xbc\xaf\x27\x1c", "7z"))  # fmt: skip
"""Magic numbers of compressed files and archives (file(1), magic/Magdir/compress and archive)."""
_UNPACK = {"gzip": "gunzip", "zstd": "unzstd", "bzip2": "bunzip2", "xz": "unxz", "lz4": "unlz4", "zip": "unzip"}
MARK = codecs.BOM_UTF8
"""The byte order mark that editors on Windows write before UTF-8."""


def head_of(path: Path, size: int = 4096) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


def refuse_unreadable(head: bytes, subject: str, kind: str, *, empty: bool = False) -> None:
    """Raises InputError if the file is compressed, encoded in UTF-16, binary or empty. `kind`: what the file should
    contain. `empty`: whether the file may be empty."""
    if not empty and not head.strip(b"\0 \r\n\t" + MARK):
        raise InputError(subject, "the file is empty", "create it again")
    for magic, name in _PACKED:
        if head.startswith(magic):
            hint = f"decompress it first ({_UNPACK[name]})" if name in _UNPACK else "decompress it first"
            raise InputError(subject, f"compressed with {name}", hint)
    if head.startswith(b"PAR1"):
        raise InputError(subject, f"a Parquet file (captures are Parquet files), not {kind}", "use another file")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or _looks_like_utf16(head):
        raise InputError(subject, "encoded in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW")
    if b"\0" in head:
        raise InputError(subject, f"a binary file, not {kind}", "use another file")


def _looks_like_utf16(head: bytes) -> bool:
    """Detects UTF-16 without a byte order mark. In such a text, every other byte of ASCII letters is zero. In other
    binary files, zeros are often adjacent."""
    sample = head[:400]
    fewer, more = sorted((sample[::2].count(0), sample[1::2].count(0)))
    return len(sample) >= 8 and more > len(sample) // 2 * 0.9 and fewer < len(sample) // 2 * 0.1
