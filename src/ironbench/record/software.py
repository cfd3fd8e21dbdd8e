"""Which software measured: versions and build profile."""

from __future__ import annotations

import functools
import importlib.metadata
import platform

from ironbench import engines


@functools.cache
def software() -> dict[str, str]:
    """ironbench's version and build profile, Python, and the packages that matter to a result."""
    from ironbench import _core

    packages = {"numpy", *(one for name in engines.names() for one in engines.get(name).traits.packages)}
    return {
        "ironbench": _core.VERSION,
        "build": _core.BUILD_PROFILE,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in sorted(packages)},
    }
