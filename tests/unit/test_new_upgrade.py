"""`lab new upgrade --other DIR`: the versions by name, the older one as the baseline."""

from __future__ import annotations

import re

import pytest

from ironbench.errors import InputError
from ironbench.fields.new import NewLab
from ironbench.lab import new


def lab(other: str) -> str:
    here = new.lab_context("upgrade", NewLab(engine="postgres", other=other), None)
    return new.text("upgrade", here, "upgrade.toml")


def test_the_older_version_is_the_baseline_and_both_have_their_numbers() -> None:
    versions = re.findall(r'^"(\d+)[^"]*" = (.*)$', lab("wheel:16").partition("[vary.version]")[2], re.MULTILINE)
    assert versions == [("16", '{ bin = "wheel:16" }'), ("18", "{}")]


def test_a_version_is_not_compared_with_itself() -> None:
    with pytest.raises(InputError, match="the version that is compared with it"):
        lab("wheel:18")
