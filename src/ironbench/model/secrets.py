"""What must never reach a record, a log or a report."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Secrets:
    """Kept beside the system, never in it; its repr shows nothing."""

    password: str | None = field(default=None, repr=False)
