"""Profiles for other viewers: folded stacks and pprof."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest
from factories import Shelf, example
from profiles import AFTER, BEFORE, BURN, profiled

from ironbench.errors import InputError
from ironbench.report import formats
from ironbench.report.formats.pprof import _varint
from ironbench.study.labstudy import lab_study
from ironbench.study.runstudy import studies
from ironbench.study.study import Study

GO = next(filter(None, map(shutil.which, ("go", "/usr/local/go/bin/go"))), None)
WAIT = "main;serve;lock;futex_wait_[k];schedule_[k]"


@pytest.fixture(scope="module")
def found() -> Study:
    lab = profiled({BURN: 50e-6}, {WAIT: 30e-6})
    return lab_study(lab.lab, lab.records, lab.shelf)


def folded(study: Study) -> dict[str, int]:
    lines = formats.get("folded")([study]).decode().splitlines()
    return {path: int(count) for path, count in (line.rsplit(" ", 1) for line in lines)}


def test_folded_stacks_are_nanoseconds_per_transaction_by_configuration(found: Study) -> None:
    paths = folded(found)
    assert paths[f"{AFTER};engine, on CPU;{BURN}"] == pytest.approx(50_000, rel=0.2)
    assert paths[f"{AFTER};engine, waiting;main;serve;lock;futex_wait_[k]"] == pytest.approx(30_000, rel=0.2)
    assert not [path for path in paths if path.startswith(BEFORE) and "burn" in path]
    of_it = sum(count for path, count in paths.items() if path.startswith(BEFORE))
    (whole,) = (one for one in found.details.profiles if one.configuration.name == BEFORE)
    assert of_it == pytest.approx(1e9 * sum(node.time_s for node in whole.nodes if node.parent < 0), rel=1e-3)


@pytest.mark.parametrize(
    ("value", "encoded"), [(0, b"\x00"), (127, b"\x7f"), (300, b"\xac\x02"), (-1, b"\xff" * 9 + b"\x01")]
)
def test_numbers_are_encoded_as_protocol_buffers_do(value: int, encoded: bytes) -> None:
    assert _varint(value) == encoded


@pytest.mark.long  # Go compiles pprof first
@pytest.mark.skipif(GO is None, reason="no go tool")
def test_pprof_reads_the_same_times(found: Study, tmp_path: Path) -> None:
    file = tmp_path / "profile.pb.gz"
    file.write_bytes(formats.get("pprof")([found]))
    assert gzip.decompress(file.read_bytes())
    command = [str(GO), "tool", "pprof", "-top", "-unit=ns", f"-tagfocus=configuration={AFTER}", str(file)]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    (burn,) = (line.split() for line in done.stdout.splitlines() if line.endswith(" burn"))
    assert float(burn[0].removesuffix("ns")) == folded(found)[f"{AFTER};engine, on CPU;{BURN}"]


@pytest.mark.parametrize("format", ["folded", "pprof"])
def test_a_report_without_profiles_cannot_be_written_as_a_profile(format: str) -> None:
    records = example()
    with pytest.raises(InputError) as refused:
        formats.get(format)(studies(records, Shelf(records)))
    assert "--profile" in refused.value.hint


def test_the_suffix_selects_the_format() -> None:
    assert formats.of_suffix("gz") == "pprof" and formats.of_suffix("folded") == "folded"
    assert formats.needs_file("pprof") and not formats.needs_file("folded")
