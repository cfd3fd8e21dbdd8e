"""Facts in a record about the measuring software."""

from __future__ import annotations

import importlib.metadata

import pytest

from ironbench import engines
from ironbench.records import make


def test_a_package_of_an_extra_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    carried = {package for name in engines.names() for package in engines.get(name).traits.packages}
    assert carried
    installed = importlib.metadata.version

    def version(name: str) -> str:
        if name in carried:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    software = make.software.__wrapped__()
    assert not carried & set(software) and "numpy" in software
