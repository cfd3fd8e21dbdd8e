"""The append-only store of records."""

from ironbench.records.store import Store

__all__ = ["Store"]
