"""Which CPUs are threads of one core (Linux: Documentation/admin-guide/cputopology.rst)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ironbench.machine.tree import Tree

_CPU = "/sys/devices/system/cpu"


def cores(tree: Tree, cpus: Iterable[int]) -> Sequence[Sequence[int]]:
    """These CPUs, those of one core together and cores of one socket next to each other. One whose core is not to be
    seen is a core of its own."""
    found: dict[tuple[int, int, int], list[int]] = {}
    for cpu in sorted(cpus):
        place = f"{_CPU}/cpu{cpu}/topology"
        package, core = (tree.integer(f"{place}/{name}") for name in ("physical_package_id", "core_id"))
        key = (package or 0, core, 0) if core is not None else (package or 0, 0, 1 + cpu)
        found.setdefault(key, []).append(cpu)
    return [found[key] for key in sorted(found)]


def halves(tree: Tree, cpus: Iterable[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Two sets of as many whole cores; of an odd number one is in neither. None: there is one core."""
    each = cores(tree, cpus)
    half = len(each) // 2
    if half == 0:
        return None
    first, second = (tuple(cpu for core in of for cpu in core) for of in (each[:half], each[half : 2 * half]))
    return first, second
