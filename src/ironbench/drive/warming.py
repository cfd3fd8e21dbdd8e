"""Fills caches before a trial: the page cache file by file, the engine's own as the engine can."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ironbench import engines
from ironbench.machine import copies
from ironbench.model.session import Session
from ironbench.model.system import System

def warm(session: Session, system: System, tables: tuple[str, ...]) -> str:
    """Fills the caches with the tables (none: all of the database), as far as they fit; how, in words. FailureError."""
    ways = []
    data = session.directories().get("data")
    # In a memory control group a page belongs to whom read it first: what we read would escape the engine's limit.
    if data is not None and system.memory_total_bytes is None and system.dsn is None:
        copies.touch(Path(data))
        ways.append("files read")
    if own := engines.get(session.engine).administration.warm(session, tables):
        ways.append(own)
    return " and ".join(ways) or "nothing could be read beforehand"


def hit_share(before: Mapping[str, int], after: Mapping[str, int]) -> float | None:
    """Share of the blocks between two readings that were found; None without any."""
    if not before or not after:
        return None
    hit, read = after["hit"] - before["hit"], after["read"] - before["read"]
    return hit / (hit + read) if hit + read > 0 else None
