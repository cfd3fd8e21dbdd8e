"""Makes nearly valid files: bytes of real files are cut, moved, repeated, or mixed with words of the format."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

_TOKEN = re.compile(rb"[A-Za-z_]\w*|[0-9]+|\s+|.", re.DOTALL)
_ANY = (
    *(b"\0", b"\t", b"\n", b"\r\n", b"\r", b"\x1b", b" ", b'"', b"'", b"\\", b"`", b"$", b"%", b"(", b"*", b":", b";"),
    *(b"=", b"{", b"\x7f", b"\xa0", b"\xff", b"\xef\xbb\xbf", b"\xc3", "\u2028".encode(), "𝄞".encode(), b"-", b"/"),
    *(b"0", b"-1", b"9" * 25, b"9" * 5000, b"1e309", b"0x" + b"f" * 300),
)
"""Bytes that many formats treat specially."""
_LARGE = ((1_000, 60), (10_000, 30), (100_000, 10))
"""Sizes of repetitions in bytes, with weights. They reveal time that grows with the square of the size."""


def spliced(corpus: Sequence[bytes], words: Sequence[bytes], dice: random.Random) -> bytes:
    """Returns one of the files with one to eight changes. `words`: words of the format's grammar."""
    data = dice.choice(corpus)
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        data = _changed(data, corpus, words, dice)
    return data


def _changed(data: bytes, corpus: Sequence[bytes], words: Sequence[bytes], dice: random.Random) -> bytes:
    at = dice.randrange(len(data) + 1)
    end = min(len(data), at + dice.choice((1, 4, 16, 64, 256, 2000)))
    match dice.randrange(10):
        case 0:  # cut short
            return data[:at]
        case 1:  # deleted
            return data[:at] + data[end:]
        case 2:  # moved
            other = dice.randrange(len(data) + 1)
            rest = data[:at] + data[end:]
            return rest[:other] + data[at:end] + rest[other:]
        case 3:  # from another file
            source = dice.choice(corpus)
            start = dice.randrange(len(source) + 1)
            return data[:at] + source[start : start + dice.choice((4, 64, 256, 2000))] + data[at:]
        case 4 | 5:  # a word of the format, instead of a token or beside it
            return _at_token(data, at, dice.choice(words), dice)
        case 6:
            return _at_token(data, at, dice.choice(_ANY), dice)
        case 7:  # a single byte
            return data[:at] + dice.randbytes(1) + data[at + 1 :]
        case 8:  # a part of the file twice or often
            return data[:end] + data[at:end] * dice.choice((1, 1, 2, 50)) + data[end:]
        case _:  # a few words very often
            unit = b"".join(dice.choice((*words, *_ANY[:31])) for _ in range(dice.choice((1, 1, 2, 3))))
            size = dice.choices(_LARGE, [weight for _, weight in _LARGE])[0][0]
            return data[:at] + unit * (size // len(unit)) + data[at:]


def _at_token(data: bytes, at: int, word: bytes, dice: random.Random) -> bytes:
    found = _TOKEN.search(data, at)
    if found is None:
        return data + word
    end = found.end() if dice.random() < 0.5 else found.start()
    return data[: found.start()] + word + data[end:]
