"""`make setup` lists missing prerequisites first, with installation commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "prerequisites"


@pytest.mark.parametrize(
    ("cargo", "way"),
    [
        ("exit 0", ""),
        ("exit 1", "rustup default stable"),
        ("echo cargo 1.75.0", "rustup update stable"),
        ("echo cargo 1.200.0 '(1b2c3d 2030-01-01)'", ""),
    ],
)
def test_a_cargo_without_a_toolchain_or_with_one_too_old_is_not_taken(tmp_path: Path, cargo: str, way: str) -> None:
    for name, text in (("cargo", cargo), ("cc", "exit 0"), ("uname", "echo Linux")):
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    words = ["/bin/bash", SCRIPT, sys.executable]
    done = subprocess.run(words, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, way in done.stderr) == (int(bool(way)), True), done.stderr


def test_without_cargo_the_way_to_get_it_is_named(tmp_path: Path) -> None:
    words = ["/bin/bash", SCRIPT, sys.executable]
    done = subprocess.run(words, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "https://rustup.rs" in done.stderr and "default stable" not in done.stderr
