"""A foreign record: a result of another program, imported from the program's output and shown beside ironbench's
results.

A foreign record contains only what the output contains, and never enters a comparison with a verdict or a ranking.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from ironbench.model.constraints import Count, Digest, Label, Name, Natural, one_of

FORMAT = 1
MOST_PARTS, MOST_SECONDS = 1000, 90_000
"""Maximum number of kinds of transactions in a record, and maximum number of seconds in its time line (25 hours)."""
Figures = Annotated[dict[Name, float], Meta(max_length=40)]
"""The values of metrics in base units. Names of ironbench's metrics are used only if the program measures the same
quantity."""
Column = Annotated[tuple[float | None, ...], Meta(max_length=MOST_SECONDS)]


@dataclass(frozen=True, slots=True)
class ForeignPart:
    """Results of one kind of transaction."""

    name: Name
    metrics: Figures


@dataclass(frozen=True, slots=True)
class ForeignRecord:
    """A result of another program."""

    id: Annotated[str, Meta(pattern=r"\A[a-z-]{3,20}-[0-9a-f]{12}(-[1-9]\d{0,3})?\Z")]
    program: Annotated[str, one_of("hammerdb", "go-tpc", "sysbench", "pgbench")]
    version: Label
    """Version of the program. Empty if the output does not contain it."""
    label: Label
    """The user's name for the result. Empty if the user chose none."""
    file: Label
    """Name of the imported file, without its directory."""
    digest: Digest
    """SHA-256 of the imported file."""
    imported_at: Label
    """Time of the import in UTC, ISO 8601."""
    started_at: Label = ""
    """Start of the run as the program printed it, without a time zone. Empty if the output does not contain it."""
    elapsed_s: Annotated[float, Meta(gt=0, le=1e10)] | None = None
    """Measured time in seconds, or None if the output does not contain it."""
    clients: Count | None = None
    """Number of clients, threads or virtual users, or None if the output does not contain it."""
    facts: Annotated[dict[Name, Label], Meta(max_length=40)] = field(default_factory=dict)
    """Other facts about the work that the output contains, as values by name."""
    metrics: Figures = field(default_factory=dict)
    parts: Annotated[tuple[ForeignPart, ...], Meta(max_length=MOST_PARTS)] = ()
    seconds: Annotated[dict[Name, Column], Meta(max_length=10)] = field(default_factory=dict)
    """Time series by column name, with one value per interval. The column `t_s` contains the starts of the intervals.
    Columns have equal lengths. A value is None if the output does not contain it."""
    failed_users: Natural = 0
    """Number of virtual users that failed, according to the output."""
    format: Count = FORMAT

    def __post_init__(self) -> None:
        if len({len(column) for column in self.seconds.values()}) > 1:
            raise ValueError("columns of a time line have different lengths")

    @property
    def name(self) -> str:
        """The user's label of the record. If the record has no label, its id."""
        return self.label or self.id
