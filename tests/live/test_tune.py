"""`ironbench tune` as on its page: its lab file is planned as written, its commands run on a small one."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how" / "tune.md"
IRONBENCH = Path(sys.executable).parent / "ironbench"
SMALL = """question = "Does what errors do matter where there are none?"
[system]
engine = "null"
[workload]
name = "select-only"
[load]
duration = "0.2s"
[vary]
on_error = ["stop", "continue"]
max_tries = [1, 2]
[measure]
quiet = "0s"
"""
SUSPECT = 3

pytestmark = [pytest.mark.live, pytest.mark.long]


def commands() -> list[list[str]]:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [shlex.split(line, comments=True)[1:] for line in block.splitlines()]


def ran(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"IRONBENCH_DATA": str(folder / "data")}
    return subprocess.run(
        [IRONBENCH, *arguments], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=500
    )


@pytest.mark.timeout(900)
def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "settings.toml").write_text(example)
    plan, tune, resume, report = commands()
    planned = ran(plan, tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert "16 runs" in planned.stdout and "minimum detectable effect of the screen:" in planned.stdout
    assert not (tmp_path / "ironbench-results").exists()
    (tmp_path / "settings.toml").write_text(SMALL)
    done = ran([*tune[: tune.index("--budget")], "--json"], tmp_path)
    assert done.returncode in (0, SUSPECT), done.stderr
    screen = json.loads(done.stdout)["lab"]["screen"]
    assert [one["name"] for one in screen["factors"]] == ["on_error", "max_tries"] and screen["trials"] == 20
    again = ran(resume, tmp_path)
    assert again.returncode in (0, SUSPECT) and "already measured; no trial was run" in again.stderr, again.stderr
    assert "Screening of factors" in again.stdout
    (directory,) = (tmp_path / "ironbench-results" / "labs").iterdir()
    assert f"/labs/{directory.name}" in done.stderr, "the first lines name the directory"
    example_of_it = re.sub(r"settings-\d{8}T\d{6}-[0-9a-f]{4}", directory.name, shlex.join(report))
    assert directory.name in example_of_it
    paged = ran(shlex.split(example_of_it), tmp_path)
    assert paged.returncode == 0, paged.stderr
    assert "effects of the factors" in (tmp_path / "tune.html").read_text()
