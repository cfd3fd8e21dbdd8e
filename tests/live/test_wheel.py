"""The wheel is all that a user needs: installed without Rust, it runs trials from any folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.timeout(1800), pytest.mark.xdist_group("wheel")]

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"
SUSPECT = 3
IronBench = Callable[..., "subprocess.CompletedProcess[str]"]

SQLITE_LAB = """\
question = "Do eight clients do more than one in SQLite?"
[workload]
name = "select-only"
[system]
engine = "sqlite"
[load]
duration = "1s"
warmup = "0s"
[vary]
clients = [1, 8]
[measure]
repeats = 2
quiet = "0s"
"""


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel that `make wheel` builds."""
    subprocess.run(["make", "wheel"], cwd=ROOT, check=True, capture_output=True, timeout=1500)
    (built,) = (ROOT / "build" / "wheel").glob("*.whl")
    return built


def without_rust() -> str:
    """PATH without the directories that hold a Rust toolchain."""
    folders = os.environ["PATH"].split(os.pathsep)
    kept = [folder for folder in folders if not any(shutil.which(tool, path=folder) for tool in ("cargo", "rustc"))]
    return os.pathsep.join(kept)


def environment(home: Path) -> dict[str, str]:
    """Returns the environment variables of a user without Rust. Downloads are shared with this machine's cache."""
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "IRONBENCH_DATA", "IRONBENCH_RESULTS")
    clean = {name: value for name, value in os.environ.items() if name not in ours}
    cache = subprocess.run([UV, "cache", "dir"], check=True, capture_output=True, text=True).stdout.strip()
    return clean | {"PATH": without_rust(), "HOME": str(home), "UV_CACHE_DIR": cache}


def runs_trials(ironbench: IronBench, home: Path) -> None:
    """Runs trials, a lab and a report on the engines that need nothing besides the wheel."""
    ironbench("doctor")
    for engine in ("postgres", "sqlite", "null"):
        where = [] if engine == "null" else ["--data", f"./data-{engine}"]
        short = ["--clients", "2", "--duration", "1s", "--warmup", "0s"]
        done = ironbench("run", "select-only", "--engine", engine, *where, *short, "--label", engine, "--json")
        assert all(trial["metrics"]["transactions"] > 0 for trial in json.loads(done.stdout)["trials"])
    (home / "clients.toml").write_text(SQLITE_LAB)
    found = json.loads(ironbench("lab", "run", "clients.toml", "--json").stdout)
    assert found["lab"]
    ironbench("report", "postgres", "sqlite", "-o", "report.html")
    assert (home / "report.html").stat().st_size > 10_000


def test_one_wheel_serves_old_distributions_and_every_python_from_3_11_on(wheel: Path) -> None:
    assert "-cp311-abi3-manylinux_2_28_" in wheel.name
    (source,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(source) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"pyproject.toml", "Cargo.lock", "README.md", "LICENSE", "src/ironbench/__init__.py"} <= names


def test_the_wheel_is_a_tool_that_runs_trials_and_the_demo_without_rust(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    tools = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    clean = environment(home) | tools
    install = [UV, "tool", "install", "--quiet", "--no-build", "--python", sys.executable, wheel]
    subprocess.run(install, env=clean, cwd=home, check=True)

    def ironbench(*words: str) -> subprocess.CompletedProcess[str]:
        command = [tmp_path / "bin" / "ironbench", *words]
        done = subprocess.run(command, env=clean, cwd=home, check=False, capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, SUSPECT), f"{words}: {done.stderr}"
        return done

    runs_trials(ironbench, home)
    ironbench(
        "run", "tpch", "--engine", "duckdb", "--data", "./data-duckdb", "--with", "sf=0.01", "--with", "queries=1"
    )
    demo = (ROOT / "labs" / "demo.toml").read_text()
    for whole, short in (("repeats = 6", "repeats = 2"), ('"8s"', '"2s"'), ('"3s"', '"1s"')):
        assert whole in demo
        demo = demo.replace(whole, short)
    (home / "demo.toml").write_text(demo)
    assert json.loads(ironbench("lab", "run", "demo.toml", "--json").stdout)["lab"]


@pytest.fixture
def debian(tmp_path: Path) -> Iterator[Path]:
    """The root of a minimal Debian with Python, and an ordinary user in it."""
    if os.geteuid() or not shutil.which("mmdebstrap"):
        pytest.skip("needs root and mmdebstrap")
    root = tmp_path / "debian"
    words = ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", "--include=python3-venv,ca-certificates"]
    made = subprocess.run([*words, "bookworm", root], check=False, capture_output=True, text=True, timeout=600)
    if made.returncode:
        pytest.skip(f"no packages of Debian: {made.stderr[-200:]}")
    subprocess.run(["chroot", root, "useradd", "--create-home", "user"], check=True)
    with ExitStack() as mounted:
        for kind, where in (("proc", "proc"), ("tmpfs", "dev/shm")):
            (root / where).mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", kind, kind, root / where], check=True)
            mounted.callback(subprocess.run, ["umount", "-l", root / where], check=True)
        yield root


def test_the_wheel_runs_in_a_minimal_debian_with_python_only(wheel: Path, debian: Path, tmp_path: Path) -> None:
    site = debian / "opt" / "ironbench"
    install = [UV, "pip", "install", "--quiet", "--only-binary", ":all:", "--python-version", "3.11", "--target", site]
    subprocess.run([*install, wheel], env=environment(tmp_path), check=True)
    program = "import sys; from ironbench.start import main; sys.exit(main())"

    def ironbench(*words: str) -> subprocess.CompletedProcess[str]:
        inside = ["env", "-i", "HOME=/home/user", "PATH=/usr/bin:/bin", "PYTHONPATH=/opt/ironbench", "LANG=C.UTF-8"]
        command = ["chroot", "--userspec=user:user", debian, "sh", "-c", 'cd /home/user; exec "$@"', "sh", *inside]
        done = subprocess.run(
            [*command, "python3", "-c", program, *words], check=False, capture_output=True, text=True, timeout=300
        )
        assert done.returncode in (0, SUSPECT), f"{words}: {done.stderr}"
        return done

    runs_trials(ironbench, debian / "home" / "user")
