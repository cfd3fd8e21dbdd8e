"""Field types with limits on their values. The limits are checked whenever a record or a lab is read from a file, and
are far beyond any value that can be measured. Such limits protect code that reads records from values such as a
negative number of clients, or a key that is a path to another directory.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

_ONE_LINE = r"\A[^\x00-\x1f\x7f-\x9f]*\Z"
"""Text without line ends and other control characters."""
Name = Annotated[str, Meta(min_length=1, max_length=400, pattern=_ONE_LINE)]
Label = Annotated[str, Meta(max_length=400, pattern=_ONE_LINE)]
"""A name, or an empty string."""
Key = Annotated[str, Meta(pattern=r"\A[0-9a-z]{0,64}\Z")]
"""Key by which the store finds a shared file. The key is derived from the file's contents. May be empty."""
Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
"""A SHA-256 digest in hexadecimal digits."""
Natural = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
ClientCount = Annotated[int, Meta(ge=1, le=10_000_000)]
BlockNumber = Annotated[int, Meta(ge=0, le=10_000_000)]
"""0-based number of a block."""
StageNumber = Annotated[int, Meta(ge=1, le=1_000_000)]
"""1-based number of a stage."""
Cpus = tuple[Annotated[int, Meta(ge=0, le=100_000)], ...]
"""CPU numbers."""
Amount = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(ge=1e-9)]
Share = Annotated[float, Meta(ge=0, le=1.01)]
"""A fraction of a whole. The limit is above 1 because the sum of rounded fractions may exceed 1."""


def one_of(*values: str) -> Meta:
    """Returns the constraint for a string that must be one of the given values."""
    return Meta(pattern=rf"\A({'|'.join(values)})\Z")
