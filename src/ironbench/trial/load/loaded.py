"""The result of a load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a load. `reused`: whether the data already existed. If so, rows, bytes and times are those of the
    original load."""

    rows: int = 0
    bytes: int = 0
    """Number of bytes sent to the engine."""
    elapsed_s: float = 0.0
    """Total seconds for schema, rows, keys and statistics."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """For each phase (`schema`, `rows`, `keys`, `references`, `analyze`), its duration in seconds. Empty if the data
    were reused."""
    data_bytes: int = 0
    """Size of the tables with their indexes. If the data already existed, this is their present size."""
    connections: int = 0
    reused: bool = False
    key: str = ""
    resumed: bool = False
    """Whether the load had been interrupted before. Times and bytes are then those of its last part."""

    objects: Mapping[str, int] = field(default_factory=dict)
    """For each kind of object (`tables`, `rows`, …), the number of objects that were restored from the user's dump.
    These numbers were compared with the dump's table of contents."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """For each kind of statement in the dump, the number of such statements that were skipped."""

    def metrics(self) -> dict[str, float]:
        """Returns metrics by catalogue name. Rates are computed from the time for copying rows only. There are no
        metrics for reused data, because their load may be old."""
        metrics = {"data_bytes": float(self.data_bytes)} if self.data_bytes else {}
        metrics |= {"load_rows": float(self.rows)} if self.rows else {}
        metrics |= {f"restored_objects{{kind={kind}}}": float(count) for kind, count in self.objects.items()}
        metrics |= {f"restore_left_out{{kind={kind}}}": float(count) for kind, count in self.left_out.items()}
        if self.reused or self.resumed or not self.rows:
            return metrics
        metrics |= {"load_bytes": float(self.bytes), "load_elapsed_s": self.elapsed_s}
        metrics |= {f"load_phase_s{{phase={name}}}": spent_s for name, spent_s in self.phases.items()}
        copying = self.phases.get("rows", 0.0)
        if copying > 0:
            metrics |= {"load_rows_per_s": self.rows / copying, "load_bytes_per_s": self.bytes / copying}
        return metrics
