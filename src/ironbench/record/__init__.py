"""The append-only store of records."""

from ironbench.record.evidence import Evidence
from ironbench.record.store import Store

__all__ = ["Evidence", "Store"]
