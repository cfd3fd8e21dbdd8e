"""Whether data fit into the memory for them is decided before the trial, and said after it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ironbench.drive import caches
from ironbench.model.system import Load, System


@pytest.mark.parametrize(
    ("method", "cache_bytes", "fits"),
    [("O_DIRECT", 64 << 20, True), ("O_DIRECT", 8 << 20, False), ("fsync", 8 << 20, True)],
)
def test_data_fit_where_the_memory_that_they_can_stay_in_is_large_enough(
    monkeypatch: pytest.MonkeyPatch, method: str, cache_bytes: int, fits: bool
) -> None:
    """Past the page cache that is the engine's own alone."""
    monkeypatch.setattr(caches, "warm", lambda *_: "read")
    settings = {"innodb_flush_method": method, "innodb_buffer_pool_size": str(cache_bytes)}
    session = SimpleNamespace(engine="mariadb", facts=lambda: {"settings": settings})
    system = System("mariadb", "here", memory_total_bytes=1 << 30)
    state = caches.prepared(session, system, Load(2, cache="warm"), (), 16_000_000, lambda: None)  # type: ignore[arg-type]
    said = caches.verified(state, 0).conditions["cache verified"]
    assert ("the data are larger than the memory for them" in said) is not fits
