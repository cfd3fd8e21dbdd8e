"""The guide's commands for two machines, with shorter trials; two CPU limits represent the machines."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "how" / "machines-side-by-side.md"
IRONBENCH = [sys.executable, "-m", "ironbench.start"]
SHORT = {"--clients": "1,2", "--repeats": "2"}
SUSPECT = 3
WORKS = ["igen-cpu", "igen-ram", "igen-batch", "igen-oltp weight=heavy"]

pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two CPU limits need two CPUs"),
]


def commands(machine: str) -> list[list[str]]:
    """Returns the lines `old$ ironbench …` in the part about two machines."""
    part = GUIDE.read_text().split("## Several workloads")[1]
    return [shlex.split(line) for line in re.findall(rf"^{machine}\$ ironbench (.*)$", part, re.MULTILINE)]


def shortened(arguments: list[str], label: str, cpus: str) -> list[str]:
    """Returns a `run` of the guide on the machine `label`, with a second or two per trial."""
    words = list(arguments)
    for option, value in {**SHORT, "--label": label}.items():
        words[words.index(option) + 1] = value
    if "--checkpoint" in words:
        words[words.index("--checkpoint") + 1] = "500ms"
    if "igen-ram" in words:
        words += ["--with", "memory=16MiB", "--with", "draws=20000"]
    return [*words, "--server-cpus", cpus, "--duration", "1s", "--warmup", "0s"]


def ironbench(arguments: list[str], directory: Path) -> str:
    done = subprocess.run(
        [*IRONBENCH, *arguments], cwd=directory, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode in (0, SUSPECT), f"{shlex.join(arguments)}:\n{done.stderr}"
    return done.stdout


def test_exports_of_two_machines_give_the_published_table_and_chart(tmp_path: Path) -> None:
    old, new, fresh = (tmp_path / name for name in ("old", "new", "fresh"))
    for directory in (old, new, fresh):
        directory.mkdir()
    *runs, export = commands("old")
    assert (len(runs), export[:2]) == (4, ["record", "export"])
    for run in runs:
        ironbench(shortened(run, "old", "0"), old)
        ironbench(shortened(run, "new", "0-1"), new)
    ironbench(export, old)
    ironbench(["record", "export", "--results", "servers", "-o", "new.ibr"], new)
    shutil.copy(old / "old.ibr", new)

    for command in commands("new"):
        ironbench(command, new)
    assert (new / "servers.html").stat().st_size > 10_000

    for bundle in (old / "old.ibr", new / "new.ibr"):
        ironbench(["record", "import", str(bundle), "--results", "servers"], fresh)
    lead = ["lead", "old", "new", "--results", "servers"]
    found = json.loads(ironbench([*lead, "--json"], fresh))
    assert [work["work"].split(" draws")[0] for work in found["works"]] == WORKS
    assert all(work["peaks"]["confirmed"] for work in found["works"]), "peaks are measured on fresh trials"
    assert all([one["clients"] for one in work["by_clients"]] == [1, 2] for work in found["works"])
    assert found["cores"] == [1, 2]
    limits = [row["values"] for row in found["differences"] if row["name"] == "server_cpus"]
    assert limits == [["0", "0, 1"]]
    text = ironbench(lead, fresh)
    assert text.index("What differs") < text.index("Peak throughput")
    ironbench([*lead, "-o", "lead.png"], fresh)
    assert (fresh / "lead.png").read_bytes().startswith(b"\x89PNG")
