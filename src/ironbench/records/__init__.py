"""The append-only store of records."""

from ironbench.records.evidence import Evidence
from ironbench.records.store import Store

__all__ = ["Evidence", "Store"]
