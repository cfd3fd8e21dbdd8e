"""The commands of docs/guide/remote-server.md run as written, but for durations and addresses."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from raw_server import RawServer, free_port
from ssh_server import LACKING, SshServer
from user import User

from ironbench.plan.fields import SECTIONS

pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(LACKING), reason=LACKING)]
PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "remote-server.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_leads_from_an_address_to_a_report(place: Path, raw_server: RawServer, database: str) -> None:
    user = User(place / "user")
    with SshServer(free_port()) as ssh:
        user.environment["HOME"] = str(ssh.home)
        lines = [line for block in blocks("sh") for line in block.splitlines()]
        assert len(lines) == 3
        for line in lines:
            dsn = f"postgresql://postgres@127.0.0.1:{raw_server.port}/{database}"
            words = [dsn if word.startswith("postgresql://") else word for word in shlex.split(line)[1:]]
            words = [ssh.address if word.startswith("ssh://") else word for word in words]
            short = ("--duration", "2s", "--warmup", "0s", "--with", "scale=1") if words[0] == "run" else ()
            told = user(*words, *short)
            assert told.code in (0, 3), f"{line}: {told.stderr}"
    assert "server_machine" in user.records()[-1]
    assert (user.home / "watched.html").stat().st_size > 10_000


def test_the_fields_that_the_page_names_are_those_of_a_lab_file() -> None:
    (text,) = blocks("toml")
    assert set(tomllib.loads(text)["system"]) <= set(SECTIONS["system"])
