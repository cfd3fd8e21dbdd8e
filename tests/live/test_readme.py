"""README's examples run as written, except for their duration and the address of your server.

tests/docs/test_page_commands.py checks that they can be planned.
"""

import os
import re
import shlex
from pathlib import Path

import launch
import pytest

ROOT = Path(__file__).parents[2]
SHORT = ["--duration", "0.4s", "--warmup", "0s"]
SUSPECT = 3

pytestmark = [pytest.mark.live, pytest.mark.long]


def examples() -> list[list[str]]:
    """Returns every `ironbench …` line of README's shell blocks, comments removed."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("ironbench ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.mark.timeout(420)
def test_readme_examples_run(tmp_path: Path, postgres) -> None:
    connection = postgres.target()["connection"]
    address = f"postgresql://{connection['user']}@/{connection['database']}?host={connection['host']}&port={connection['port']}"
    for name in ("my-report.sql", "my-order.sql"):
        (tmp_path / name).write_text("SELECT :client_id;\n")
    card = tmp_path / "card"
    card.mkdir()
    # so that no server of the user uses data in there
    environ = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = examples()
    assert len(found) >= 8
    for arguments in found:
        if "--dump" in arguments or "--template" in arguments:  # carried out by test_guide_own_data.py
            continue
        arguments = [address if word.startswith("postgresql://") else word for word in arguments]
        arguments = [str(tmp_path / "log") if word.startswith("/dev/shm") else word for word in arguments]
        arguments = [str(ROOT / word) if word.startswith("labs/") else word for word in arguments]
        arguments = [str(card) if word == "/mnt/card" else word for word in arguments]
        if arguments[:2] == ["lab", "run"]:  # a quarter of an hour, so it is only planned here
            arguments = ["lab", "plan", *arguments[2:]]
        extra = [*SHORT, *([] if "--data" in arguments or "--dsn" in arguments else ["--data", "./own"])]
        words = [*arguments, *(extra if arguments[0] == "run" else [])]
        done = launch.run(words, cwd=tmp_path, env=environ)
        assert done.returncode in (0, SUSPECT), f"{shlex.join(words)}:\n{done.stderr}"
    assert (tmp_path / "report.html").stat().st_size > 10_000
