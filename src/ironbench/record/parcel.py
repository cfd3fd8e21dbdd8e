"""Records in one file, to be carried to another machine: `ironbench record export` and `record import`.

A parcel is a zip file, so that anybody can look into it:

```
manifest.json      format, what it holds, and of every other entry its length and SHA-256
trials/<id>/…      machines/<key>.json  engines/<key>.json  scripts/<key>.json    as in a store
lab/…              of a lab's directory: its file, plan and stages
```
The zip file's comment holds the manifest's SHA-256. That finds what was truncated or altered on the way; it proves
nothing against somebody who means to deceive.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import msgspec

from ironbench.errors import InputError

FORMAT = 1
SUFFIX = ".ibr"
_MARK = b"ironbench parcel "
_COMMENT = re.compile(_MARK + rb"(\d+) sha256=([0-9a-f]{64})")
_MANIFEST = "manifest.json"
_ID = r"[A-Za-z0-9_+~=,-][A-Za-z0-9._+~=,-]{0,250}"
EVIDENCE = (
    *("timeline.parquet", "seconds.parquet", "observed.parquet", "counted.json", "latency.hlog", "log/child.log"),
    *("plans.txt", "streams.csv"),
)
"""What a trial leaves beside its record."""
_LAB = re.compile(r"[^./\\\x00-\x1f\x7f-\x9f\ud800-\udfff][^/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]{0,254}")
"""Name of a directory: it leads nowhere else and shows as what it is."""
_ALLOWED = re.compile(
    rf"trials/{_ID}/(?:record\.json|{'|'.join(re.escape(name) for name in EVIDENCE)})"
    r"|(?:machines|engines|scripts)/[0-9a-f]{16}\.json"
    r"|lab/(?:lab\.toml|plan\.json|peak\.json|stage-[1-9]\d{0,5}\.json)"
)
_MOST_MANIFEST_BYTES = 1 << 28
_LOCAL = struct.Struct("<4s22xHH")
"""Signature of a local file header, and how long the name and the extra field after it are."""
_WHOLE = "it was cut short or changed on the way: export and copy it again"


class Manifest(msgspec.Struct, frozen=True):
    """What a parcel says of itself."""

    format: int
    ironbench: str
    """Version that wrote it."""
    schema: int
    """The highest of its records'."""
    lab: str
    """Name of the lab's directory, one step and not hidden; empty for plain records."""
    files: dict[str, tuple[int, str]]
    """Entry → length in bytes and SHA-256."""


class _Format(msgspec.Struct, frozen=True):
    format: int


def _foreign(path: Path) -> InputError:
    return InputError(str(path), "is no file of exported records", "name a file of `ironbench record export`")


def _not_whole(path: Path) -> InputError:
    return InputError(str(path), "is no whole file of exported records", _WHOLE)


def _begins_as_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\3\4"


class Writer:
    """Writes entries one after the other, then the manifest."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._files: dict[str, tuple[int, str]] = {}

    def add(self, name: str, data: bytes) -> None:
        """InputError for what no store holds: it could not be imported."""
        if not _ALLOWED.fullmatch(name):
            raise InputError(name, "is no file of a record, and cannot be exported", "export other records")
        stored = name.endswith(".parquet")  # compressed already
        entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))  # the same records give the same file
        entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        self._zip.writestr(entry, data)
        self._files[name] = (len(data), hashlib.sha256(data).hexdigest())

    def close(self, ironbench: str, schema: int, lab: str) -> None:
        if lab and not _LAB.fullmatch(lab):
            lab = "lab"
        manifest = msgspec.json.encode(Manifest(FORMAT, ironbench, schema, lab, self._files))
        self._zip.writestr(zipfile.ZipInfo(_MANIFEST, date_time=(1980, 1, 1, 0, 0, 0)), manifest)
        self._zip.comment = f"ironbench parcel {FORMAT} sha256={hashlib.sha256(manifest).hexdigest()}".encode()
        self._zip.close()


class Reader:
    """A parcel whose manifest was verified; every entry is verified when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise InputError(
                str(path), error.strerror or str(error), "name a file of `ironbench record export`"
            ) from None
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            raise _not_whole(path) if _begins_as_zip(path) else _foreign(path) from None
        self._entries = {entry.filename: entry for entry in self._zip.infolist()}
        try:
            self.manifest = self._manifest()
            self._hold_lab()
            self._hold_entries()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._zip.close()
        self._file.close()

    @property
    def files(self) -> Mapping[str, tuple[int, str]]:
        return self.manifest.files

    def read(self, name: str) -> bytes:
        """InputError where the bytes are not those that were exported."""
        length, digest = self.manifest.files[name]
        data = self._bytes(name, length)
        if len(data) != length or hashlib.sha256(data).hexdigest() != digest:
            raise self._altered(name)
        return data

    def _manifest(self) -> Manifest:
        said = _COMMENT.fullmatch(self._zip.comment)
        if said is None:
            raise _not_whole(self.path) if self._zip.comment.startswith(_MARK) else _foreign(self.path)
        self._not_newer(int(said[1]))
        if _MANIFEST not in self._entries:
            raise self._altered(_MANIFEST)
        data = self._bytes(_MANIFEST, _MOST_MANIFEST_BYTES)
        if hashlib.sha256(data).hexdigest().encode() != said[2]:
            raise self._altered(_MANIFEST)
        try:
            self._not_newer(msgspec.json.decode(data, type=_Format).format)
            return msgspec.json.decode(data, type=Manifest)
        except msgspec.DecodeError:
            raise self._altered(_MANIFEST) from None

    def _not_newer(self, format: int) -> None:
        if format > FORMAT:
            cause = f"has format {format}, newer than {FORMAT}"
            raise InputError(str(self.path), cause, "import it with the ironbench that wrote it, or a newer one")

    def _hold_lab(self) -> None:
        """The lab's name becomes that of a directory. InputError."""
        lab = self.manifest.lab
        if lab and not _LAB.fullmatch(lab):
            raise InputError(
                str(self.path), f"names the lab {lab!r}, which is no name of a directory", "do not trust this file"
            )

    def _hold_entries(self) -> None:
        """Entries and manifest name the same files, each of them one that a store holds. InputError."""
        names = [name for name in self._zip.namelist() if name != _MANIFEST]
        for name in names:
            if not _ALLOWED.fullmatch(name):
                raise InputError(
                    str(self.path), f"holds {name!r}, which is no file of a record", "do not trust this file"
                )
        if len(set(names)) < len(names) or set(names) != set(self.manifest.files):
            raise self._altered("its list of files")

    def _bytes(self, name: str, most: int) -> bytes:
        """No more than `most` bytes and one: what an entry claims of its length is not believed.

        The zip module's own reader takes longer for a small entry than everything else that is done with it; checksums
        are the manifest's. Local file header and methods: PKWARE, APPNOTE.TXT 6.3.10, 4.3.7 and 4.4.5.
        """
        entry = self._entries[name]
        try:
            signature, own, extra = _LOCAL.unpack(self._at(entry.header_offset, _LOCAL.size))
            start = entry.header_offset + _LOCAL.size + own + extra
            packed = self._at(start, min(entry.compress_size, most + (most >> 2) + 64))
            if signature != b"PK\3\4":
                raise self._altered(name, "it does not begin as an entry does")
            if entry.compress_type == zipfile.ZIP_STORED:
                return packed[: most + 1]
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most + 1)
        except (struct.error, zlib.error, OSError, ValueError) as error:
            raise self._altered(name, str(error)) from None

    def _at(self, offset: int, count: int) -> bytes:
        """So many bytes of the file, or those up to its end."""
        found = os.pread(self._file.fileno(), count, offset)
        while 0 < len(found) < count:  # Linux reads at most 2 GiB at a time
            more = os.pread(self._file.fileno(), count - len(found), offset + len(found))
            if not more:
                break
            found += more
        return found

    def _altered(self, name: str, why: str = "") -> InputError:
        return InputError(str(self.path), f"{name} is not what was exported{f': {why}' if why else ''}", _WHOLE)
