"""What a load did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Loaded:
    """`reused`: the data were there already; rows, bytes and times are then those of the load that made them."""

    rows: int = 0
    bytes: int = 0
    """Sent to the engine."""
    elapsed_s: float = 0.0
    """Schema, rows, keys and statistics together."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """`schema`, `rows`, `keys`, `references`, `analyze`: seconds; empty when reused."""
    data_bytes: int = 0
    """Size of the tables with their indexes, after the load or as found."""
    connections: int = 0
    reused: bool = False
    key: str = ""
    resumed: bool = False
    """Times and bytes are those of the last part of a load that had been interrupted."""

    objects: Mapping[str, int] = field(default_factory=dict)
    """Restored from the user's dump and compared with its table of contents: `tables`, `rows`, … → how many."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Kind of the dump's statements that were left out → how many."""

    def metrics(self) -> dict[str, float]:
        """By catalogue name. Rates are those of copying alone; a reused load has none, for it may be from long ago."""
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
