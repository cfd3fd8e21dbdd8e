"""No input causes a traceback, a hang, more than a second per megabyte, or a gigabyte of memory.

`make test` reads a few hundred inputs of each kind, `make test-long` 20,000 in all (IRONBENCH_FUZZ_INPUTS), and
`make fuzz` FUZZ_INPUTS, a million by default, with a table of the results. Target and number determine an input: in
`tests`, `python -m fuzz.batch lab 1234 1` reads it again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fuzz.batch import FAULTY
from fuzz.campaign import SHARES, campaign, faults, one_sided, read, table
from fuzz.captures import capture_targets
from fuzz.files import file_targets
from fuzz.texts import targets

FEW = {"lab": 20, "bundle": 10, "capture-log": 60, "capture-file": 60}
"""Number of inputs in the short test, for the slowest kinds."""


@pytest.mark.parametrize("name", sorted(SHARES))
def test_a_few_mutated_inputs_are_accepted_or_refused_by_an_error_of_ours(name: str, tmp_path: Path) -> None:
    assert read(name, 0, FEW.get(name, 250), tmp_path).fault == ""


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_a_reader_that_raises_hangs_is_slow_or_ends_its_process_is_found(name: str, tmp_path: Path) -> None:
    words = {
        "raises": "ZeroDivisionError",
        "hangs": "took more than 1 s",
        "aborts": "exit -6",
        "slow": "s of processor time for 1 bytes",
    }
    assert words[name] in read(name, 7, 1, tmp_path, hang_s=1.0).fault


def test_every_target_has_a_share_of_the_inputs(tmp_path: Path) -> None:
    assert sum(SHARES.values()) == 100
    assert SHARES.keys() == {*targets(), *file_targets(tmp_path), *capture_targets(tmp_path), "bundle"}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_mutated_inputs_are_accepted_or_refused_by_an_ironbench_error() -> None:
    inputs = int(os.environ.get("IRONBENCH_FUZZ_INPUTS", "20000"))
    done = campaign(inputs, float(os.environ.get("IRONBENCH_FUZZ_SECONDS", "inf")))
    print(table(done))
    assert not faults(done), "\n\n".join(faults(done)[:20])
    assert not one_sided(done)
