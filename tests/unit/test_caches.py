"""Whether data fit into memory is predicted before the trial and reported after it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ironbench.host.tree import Tree
from ironbench.model.system import Load, System
from ironbench.trial.drive import caches


@pytest.mark.parametrize(
    ("method", "cache_bytes", "fits"),
    [("O_DIRECT", 64 << 20, True), ("O_DIRECT", 8 << 20, False), ("fsync", 8 << 20, True)],
)
def test_data_fit_where_the_memory_that_they_can_stay_in_is_large_enough(
    monkeypatch: pytest.MonkeyPatch, method: str, cache_bytes: int, fits: bool
) -> None:
    """The engine's cache counts in addition to the page cache."""
    settings = {"innodb_flush_method": method, "innodb_buffer_pool_size": str(cache_bytes)}
    system = System("mariadb", "here", memory_total_bytes=1 << 30)
    assert _fits(monkeypatch, settings, system) is fits


@pytest.mark.parametrize(("limit", "fits"), [("max", True), ("12000000", False)])
def test_memory_that_our_control_group_does_not_allow_is_none_for_the_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, fits: bool
) -> None:
    files = {
        "proc/meminfo": "MemAvailable:   1000000 kB\n",
        "proc/self/mountinfo": "30 27 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "proc/self/cgroup": "0::/db.slice\n",
        "sys/fs/cgroup/db.slice/memory.max": f"{limit}\n",
        "sys/fs/cgroup/db.slice/memory.current": "1000000\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(caches, "Tree", lambda: Tree(tmp_path))
    assert _fits(monkeypatch, {"innodb_flush_method": "fsync"}, System("mariadb", "here")) is fits


def _fits(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], system: System) -> bool:
    monkeypatch.setattr(caches, "warm", lambda *_: "read")
    session = SimpleNamespace(engine="mariadb", facts=lambda: {"settings": settings})
    state = caches.prepared(session, system, Load(2, cache="warm"), (), 16_000_000, lambda: None)  # type: ignore[arg-type]
    said = caches.verified(state, 0).conditions["cache verified"]
    return "the data are larger than the memory that can cache them" not in said
