"""Which CPUs are hardware threads of the same core (Linux: Documentation/admin-guide/cputopology.rst)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ironbench.host.tree import Tree

_CPU = "/sys/devices/system/cpu"


def cores(tree: Tree, cpus: Iterable[int]) -> Sequence[Sequence[int]]:
    """Groups CPUs by core; cores of the same socket are adjacent. A CPU whose core is unknown counts as a separate
    core."""
    found: dict[tuple[int, int, int], list[int]] = {}
    for cpu in sorted(cpus):
        place = f"{_CPU}/cpu{cpu}/topology"
        package, core = (tree.integer(f"{place}/{name}") for name in ("physical_package_id", "core_id"))
        key = (package or 0, core, 0) if core is not None else (package or 0, 0, 1 + cpu)
        found.setdefault(key, []).append(cpu)
    return [found[key] for key in sorted(found)]
