"""The append-only store of records."""

from ironbench.record.store import Evidence, Store

__all__ = ["Evidence", "Store"]
