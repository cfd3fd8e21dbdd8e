"""Bundles: records in one file for transfer to another machine, with `ironbench record export` and `record import`.

A bundle is a zip file that any zip tool can open, with these entries:

- `manifest.json`: format, contents, and length and SHA-256 of every other entry
- `trials/<id>/…`, `machines/<key>.json`, `engines/<key>.json`, `scripts/<key>.json`: the same files as in a store
- `lab/…`: files of a lab's directory (`labs.LAB_FILES`) and its stages

The comment of the zip file contains the manifest's SHA-256. This detects truncated or altered files but does not
prevent forgery: the contents of a bundle are not trusted, and every size has a limit.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import msgspec

from ironbench.errors import InputError
from ironbench.records.evidence import READERS
from ironbench.records.labs import LAB_FILES
from ironbench.words import grouped

FORMAT = 1
SUFFIX = ".ibr"
_MARK = b"ironbench parcel "
_COMMENT = re.compile(_MARK + rb"(\d{1,9}) sha256=([0-9a-f]{64})")
_MANIFEST = "manifest.json"
_ID = r"[A-Za-z0-9_+~=,-][A-Za-z0-9._+~=,-]{0,250}"
_LAB = re.compile(r"[^./\\\x00-\x1f\x7f-\x9f\ud800-\udfff][^/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]{0,254}")
"""Pattern of a directory's name: no path separators and no control characters."""
_MIB = 1 << 20
_MOST_BYTES = {
    rf"trials/{_ID}/record\.json": _MIB // 4,
    rf"trials/{_ID}/(?:{'|'.join(re.escape(name) for name in READERS if name.endswith('.parquet'))})": 1024 * _MIB,
    rf"trials/{_ID}/(?:{'|'.join(re.escape(name) for name in READERS if not name.endswith('.parquet'))})": 32 * _MIB,
    r"(?:machines|engines|scripts)/[0-9a-f]{16}\.json": _MIB,
    rf"lab/(?:{'|'.join(map(re.escape, LAB_FILES))}|stage-[1-9]\d{{0,5}}\.json)": 32 * _MIB,
}
"""Patterns of the files that a bundle may contain, with the maximum size of such a file. The files of trials that run
for several hours are much smaller."""
_MOST_MANIFEST_BYTES = 64 * _MIB
_MOST_CONTENTS_BYTES = 40 * _MIB
"""Maximum size of the zip file's central directory. The zip module reads the whole directory into memory."""
MOST_FILES = 250_000
_CHUNK = _MIB
_WHOLE = "the file was truncated or changed: export and copy it again"
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, NotImplementedError)
"""Exceptions of the zip module for damaged, encrypted and unknown entries."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Manifest(msgspec.Struct, frozen=True):
    """The manifest of a bundle."""

    format: int
    ironbench: str
    """Version of ironbench that wrote the bundle."""
    schema: int
    """The highest schema of the records in the bundle."""
    lab: str
    """Name of the lab's directory, a single path component that does not start with a dot. Empty for records without a
    lab."""
    files: dict[str, tuple[int, str]]
    """For each entry, its length in bytes and its SHA-256."""


class _Format(msgspec.Struct, frozen=True):
    format: int


class _File(io.FileIO):
    """A file that limits the size of a read, because a forged central directory may claim any size."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = max(0, os.fstat(self.fileno()).st_size - self.tell())
        if size > _MOST_CONTENTS_BYTES:
            raise zipfile.BadZipFile("the table of contents is too long")
        return super().read(size) or b""


def most_bytes(name: str) -> int | None:
    """Returns the maximum size of an entry with this name. Returns None if a store cannot contain such a file."""
    return next((most for pattern, most in _MOST_BYTES.items() if re.fullmatch(pattern, name)), None)


class Writer:
    """Writes a bundle: entries one after another, then the manifest."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._files: dict[str, tuple[int, str]] = {}

    def add(self, name: str, data: bytes) -> None:
        """Adds an entry. Raises InputError for an entry that an import would refuse: if it is not a file of a store, if
        it is too large, or if there are too many entries."""
        most = most_bytes(name)
        if most is None:
            raise InputError(name, "is not a file of a record, so it cannot be exported", "export other records")
        if len(data) > most:
            cause = f"is larger than the limit of {most // _MIB or 0.25} MiB for exported files"
            raise InputError(name, cause, "export other records")
        if len(self._files) == MOST_FILES:
            raise InputError("export", f"has more than {grouped(MOST_FILES)} files", "export fewer records at a time")
        stored = name.endswith(".parquet")  # Parquet files are already compressed
        # The date is fixed, so that equal records give identical bundles.
        entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
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
    """Reads a bundle. Opening it verifies the manifest, and reading an entry verifies the entry. Raises InputError if
    the file is not a valid bundle."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _opened(path)
        try:
            self._zip = zipfile.ZipFile(self._file)
            self._entries = {entry.filename: entry for entry in self._zip.infolist()}
            self.manifest = self._manifest()
            self._check_lab()
            self._check_entries()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
            whole = self._begins_as_zip()
            self.close()
            raise self._not_whole() if whole else self._foreign() from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    @property
    def files(self) -> Mapping[str, tuple[int, str]]:
        return self.manifest.files

    def read(self, name: str) -> bytes:
        """Returns an entry. Raises InputError if its bytes differ from those that were exported."""
        return b"".join(self.chunks(name))

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yields an entry in chunks. Raises InputError after the last chunk if the bytes differ from the exported
        bytes."""
        length, digest = self.manifest.files[name]
        seen, left = hashlib.sha256(), length
        for chunk in self._unpacked(name, length):
            seen.update(chunk)
            left -= len(chunk)
            yield chunk
        if left or seen.hexdigest() != digest:
            raise self._altered(name)

    def _manifest(self) -> Manifest:
        match = _COMMENT.fullmatch(self._zip.comment)
        if match is None:
            raise self._not_whole() if self._zip.comment.startswith(_MARK) else self._foreign()
        self._not_newer(int(match[1]))
        if _MANIFEST not in self._entries:
            raise self._altered(_MANIFEST)
        data = b"".join(self._unpacked(_MANIFEST, _MOST_MANIFEST_BYTES))
        if hashlib.sha256(data).hexdigest().encode() != match[2]:
            raise self._altered(_MANIFEST)
        try:
            self._not_newer(msgspec.json.decode(data, type=_Format).format)
            return msgspec.json.decode(data, type=Manifest)
        except (msgspec.DecodeError, RecursionError):
            raise self._altered(_MANIFEST) from None

    def _not_newer(self, format: int) -> None:
        if format > FORMAT:
            cause = f"has format {format}, but this ironbench supports only formats up to {FORMAT}"
            raise InputError(str(self.path), cause, "import it with the same version of ironbench or a newer one")

    def _check_lab(self) -> None:
        """Checks the lab's name, which becomes the name of a directory. Raises InputError."""
        lab = self.manifest.lab
        if lab and not _LAB.fullmatch(lab):
            raise self.distrusted(f"contains the lab name {lab[:100]!r}, which is not a valid directory name")

    def _check_entries(self) -> None:
        """Checks that entries and manifest name the same files, and that each is a file of a store within its size
        limit. Raises InputError."""
        names = [name for name in self._zip.namelist() if name != _MANIFEST]
        if len(names) > MOST_FILES:
            raise self.distrusted(f"contains more than {grouped(MOST_FILES)} files")
        if len(set(names)) < len(names) or set(names) != set(self.manifest.files):
            raise self._altered("the list of files")
        for name, (length, _) in self.manifest.files.items():
            most = most_bytes(name)
            if most is None:
                raise self.distrusted(f"contains {name[:100]!r}, which is not a file of a record")
            if not 0 <= length <= most:
                raise self.distrusted(f"contains {name} with {length} bytes; the limit is {most}")

    def _unpacked(self, name: str, most: int) -> Iterator[bytes]:
        """Yields the bytes of an entry, at most `most` + 1 bytes, because the declared length cannot be trusted."""
        entry = self._entries[name]
        # Other methods are refused: the zip module limits the size of a chunk only for these methods.
        if entry.compress_type not in _METHODS:
            raise self._altered(name)
        left = most + 1
        try:
            with self._zip.open(entry) as file:
                while left and (chunk := file.read(min(_CHUNK, left))):
                    left -= len(chunk)
                    yield chunk
        except _UNREADABLE as error:
            raise self._altered(name, str(error)) from None

    def distrusted(self, cause: str) -> InputError:
        """Returns the error for a bundle that ironbench did not write."""
        return InputError(str(self.path), cause, "do not trust this file")

    def _altered(self, name: str, why: str = "") -> InputError:
        return InputError(str(self.path), f"{name} differs from the exported file{f': {why}' if why else ''}", _WHOLE)

    def _foreign(self) -> InputError:
        return InputError(
            str(self.path),
            "is not a bundle of exported records",
            "use a file that `ironbench record export` wrote; for the output of another program, add `--from PROGRAM`",
        )

    def _not_whole(self) -> InputError:
        return InputError(str(self.path), "is not a complete bundle", _WHOLE)

    def _begins_as_zip(self) -> bool:
        return os.pread(self._file.fileno(), 4, 0) == b"PK\3\4"


def _opened(path: Path) -> _File:
    """Opens a regular file. A device has no end from which a zip file could be read, and a pipe can be read only
    once."""
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for the other end (fifo(7)).
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(
            str(path), error.strerror or str(error), "use a file that `ironbench record export` wrote"
        ) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(str(path), "is not a regular file", "copy the contents to a file, and import that file")
    return _File(descriptor)
