"""The picture that `igen-cpu` computes, as a PNG file (ISO/IEC 15948: the PNG specification)."""

from __future__ import annotations

import math
import struct
import zlib

import numpy as np

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(steps: bytes, width: int, limit: int) -> bytes:
    """From little-endian 32-bit steps, row by row: the set black, other points bluer to whiter with their steps."""
    found = np.frombuffer(steps, dtype="<u4").reshape(-1, width)
    colours = _palette(limit)[found]
    rows = np.zeros((len(found), width * 3 + 1), dtype="u1")  # each row begins with its filter, 0: none
    rows[:, 1:] = colours.reshape(len(found), -1)
    header = struct.pack(">IIBBBBB", width, len(found), 8, 2, 0, 0, 0)
    return (
        _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + _chunk(b"IEND", b"")
    )


def _palette(limit: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """A colour for each number of steps; logarithmic, for most points leave early."""
    share = np.log1p(np.arange(limit + 1)) / math.log1p(limit)
    channels = [np.clip(share * slope - offset, 0, 1) for slope, offset in ((2.6, 1.2), (1.9, 0.6), (1.4, 0.0))]
    colours = (np.stack(channels, axis=1) * 255).astype("u1")
    colours[limit] = 0
    return colours


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
