"""The call paths of profiles for `go tool pprof` and its viewers, as a gzip-compressed protocol buffer."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence

from ironbench.report.flame_paths import graphs
from ironbench.report.page import Page, Section
from ironbench.words import clean

# Field numbers of profile.proto (github.com/google/pprof, proto/profile.proto). The schema is small, so messages are
# encoded here without a library: https://protobuf.dev/programming-guides/encoding/
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING = 1, 2, 4, 5, 6
_TYPE, _UNIT = 1, 2
_LOCATION_IDS, _VALUES, _LABEL = 1, 2, 3
_KEY, _TEXT = 1, 2
_ID, _LINE, _LINE_FUNCTION, _NAME = 1, 4, 1, 2
_NS_PER_S = 1e9
_VARINT, _BYTES = 0, 2


def render(pages: Sequence[Page], contents: Section | None = None) -> bytes:
    """Returns the content of the file. Samples contain nanoseconds per transaction, and a label with the configuration.
    Raises InputError if no trial was profiled."""
    return gzip.compress(b"".join(_profile(pages)), mtime=0)


def _profile(pages: Sequence[Page]) -> Iterator[bytes]:
    strings: dict[str, int] = {"": 0}
    functions: dict[str, int] = {}

    def text(words: str) -> int:
        return strings.setdefault(clean(words), len(strings))

    yield _message(_SAMPLE_TYPE, _number(_TYPE, text("time")) + _number(_UNIT, text("nanoseconds")))
    for graph in graphs(pages):
        label = _message(_LABEL, _number(_KEY, text("configuration")) + _number(_TEXT, text(graph.subject)))
        for path, time_s in graph.paths():
            if value := round(time_s * _NS_PER_S):
                ids = [functions.setdefault(bar.marked, len(functions) + 1) for bar in reversed(path)]
                own = _message(_LOCATION_IDS, b"".join(map(_varint, ids)))
                yield _message(_SAMPLE, own + _message(_VALUES, _varint(value)) + label)
    for name, id in functions.items():
        line = _message(_LINE, _number(_LINE_FUNCTION, id))
        yield _message(_LOCATION, _number(_ID, id) + line)
        yield _message(_FUNCTION, _number(_ID, id) + _number(_NAME, text(name)))
    for words in strings:
        yield _message(_STRING, words.encode())


def _varint(value: int) -> bytes:
    """Encodes a number as a varint: in groups of 7 bits, with the lowest group first. A negative number takes 10 bytes,
    like an int64 of a protocol buffer."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content
