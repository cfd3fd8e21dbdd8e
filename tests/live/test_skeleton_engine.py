"""The skeleton of docs/contributing/engines.md is a working engine: it needs only its folder and dialect texts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ironbench

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]


def test_the_skeleton_of_the_docs_runs_a_workload(tmp_path: Path) -> None:
    package = tmp_path / "ironbench"
    shutil.copytree(Path(ironbench.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/contributing/engines.md").read_text(), re.DOTALL)
    folder = package / "engines" / "skeleton"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "engine.py").write_text(code)
    workloads = package / "workloads"
    for text in ("pgbench_tables/schema", "tpcb_like/tpcb-like"):
        shutil.copy(workloads / f"{text}.sqlite.sql", workloads / f"{text}.skeleton.sql")

    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "IRONBENCH_RESULTS": str(tmp_path / "results")}
    run = ["run", "tpcb-like", "--engine", "skeleton", "--transactions", "50", "--warmup", "0s", "--json", "--data"]
    program = [sys.executable, "-c", "import sys; from ironbench.start import main; sys.exit(main())"]
    done = subprocess.run(
        [*program, *run, str(tmp_path / "data")], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode in (0, 3), done.stderr
    (record,) = json.loads(done.stdout)["trials"]
    assert record["metrics"]["throughput"] > 0
    assert record["checks"] and all(check["passed"] for check in record["checks"])
