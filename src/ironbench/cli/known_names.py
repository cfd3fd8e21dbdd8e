"""Lists the names of built-in workloads, engines, devices and metrics for shell completion."""

from __future__ import annotations

from collections.abc import Callable


def names_of(kind: str) -> Callable[[], list[str]]:
    """Returns a function for shell completion. The function lists the names that `ironbench list KIND` shows."""

    def names() -> list[str]:
        from ironbench.cli import list as listing

        return [row["name"] for row in listing.kinds("")[kind]()]

    return names
