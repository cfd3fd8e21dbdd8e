"""The file with the sampled stacks of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ironbench.model.profile import MOST_FRAMES, SampledStack
from ironbench.records import parquet
from ironbench.records.profiles import read_profile, write_profile
from ironbench.stats.multiplicity import discoveries

READS = SampledStack("wait", "engine", "postgres", "blocked", "main;exec;read_[k]", "swapper_[k]", 12, 0.25)
COMPUTES = SampledStack("cpu", "client", "ironbench", "", "main;drive", "", 3, 0.03)


def test_stacks_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.parquet", [READS, COMPUTES])
    assert read_profile(tmp_path / "profile.parquet") == (READS, COMPUTES)
    assert READS.frames == ("main", "exec", "read_[k]")


def test_a_profile_without_samples_is_a_file_without_rows(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.parquet", [])
    assert read_profile(tmp_path / "profile.parquet") == ()


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "gpu"},
        {"role": "other"},
        {"reason": "tired"},
        {"samples": -1},
        {"seconds": -0.1},
        {"seconds": float("inf")},
        {"thread": "a\nb"},
        {"stack": "a;\x1b[31mb"},
        {"stack": ";".join("f" * (MOST_FRAMES + 1))},
        {"waker": "x" * 70_000},
    ],
)
def test_impossible_values_are_refused(tmp_path: Path, fault: Mapping[str, Any]) -> None:
    write_profile(tmp_path / "profile.parquet", [replace(READS, **fault)])
    with pytest.raises(ValueError, match=r"Expected|which is too long or not printable"):
        read_profile(tmp_path / "profile.parquet")


def test_other_columns_are_refused(tmp_path: Path) -> None:
    parquet.write_table(tmp_path / "profile.parquet", {"stack": np.array(["a"], dtype=object)})
    with pytest.raises(ValueError, match="columns"):
        read_profile(tmp_path / "profile.parquet")


@pytest.mark.parametrize(
    ("ps", "expected"),
    [
        ((), ()),
        ((0.04,), (True,)),
        ((0.06,), (False,)),
        ((0.04, 0.04), (True, True)),
        ((0.001, 0.04, 0.9, 0.02), (True, False, False, True)),
        ((0.9, 0.8, 0.0125), (False, False, True)),
    ],
)
def test_the_false_discovery_rate_is_that_of_benjamini_and_hochberg(
    ps: tuple[float, ...], expected: tuple[bool, ...]
) -> None:
    assert discoveries(ps) == expected
