"""The wheel is all that a user needs: installed without Rust, it runs trials from any folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.long]

ROOT = Path(__file__).parents[2]
SUSPECT = 3


def without_rust() -> str:
    """PATH without the directories that hold a Rust toolchain."""
    folders = os.environ["PATH"].split(os.pathsep)
    kept = [folder for folder in folders if not any(shutil.which(tool, path=folder) for tool in ("cargo", "rustc"))]
    return os.pathsep.join(kept)


@pytest.mark.timeout(1200)
def test_the_wheel_runs_trials_in_an_empty_environment_without_rust(tmp_path: Path) -> None:
    subprocess.run(["make", "wheel"], cwd=ROOT, check=True, capture_output=True, timeout=900)
    (wheel,) = (ROOT / "build" / "wheel").glob("*.whl")
    assert "-cp311-abi3-" in wheel.name, "one for every Python from 3.11 on"

    home, environment = tmp_path / "home", tmp_path / "environment"
    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "IRONBENCH_DATA", "IRONBENCH_RESULTS")
    clean = {name: value for name, value in os.environ.items() if name not in ours}
    clean |= {"PATH": without_rust(), "HOME": str(home), "UV_CACHE_DIR": cache()}
    install = [Path(sys.executable).parent / "uv", "pip", "install", "--quiet", "--only-binary", ":all:"]
    subprocess.run([*install, "--python", environment / "bin" / "python", wheel], env=clean, cwd=home, check=True)

    def ironbench(*words: str) -> subprocess.CompletedProcess[str]:
        command = [environment / "bin" / "ironbench", *words]
        done = subprocess.run(command, env=clean, cwd=home, check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, SUSPECT), f"{words}: {done.stderr}"
        return done

    for engine in ("postgres", "sqlite", "null"):
        where = [] if engine == "null" else ["--data", f"./data-{engine}"]
        short = ["--clients", "2", "--duration", "1s", "--warmup", "0s"]
        document = json.loads(
            ironbench("run", "select-only", "--engine", engine, *where, *short, "--label", engine, "--json").stdout
        )
        assert all(trial["metrics"]["transactions"] > 0 for trial in document["trials"])
    ironbench(
        "run", "tpch", "--engine", "duckdb", "--data", "./data-duckdb", "--with", "sf=0.01", "--with", "queries=1"
    )
    ironbench("report", "postgres", "sqlite", "-o", "report.html")
    assert (home / "report.html").stat().st_size > 10_000


def cache() -> str:
    """uv's download cache, so that the test downloads nothing twice."""
    command = [Path(sys.executable).parent / "uv", "cache", "dir"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
