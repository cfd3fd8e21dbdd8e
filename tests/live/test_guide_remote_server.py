"""The commands of docs/how/remote-server.md run as written, except for durations and addresses."""

from __future__ import annotations

import os
import shlex
import tomllib
from pathlib import Path

import pytest
from raw_server import free_port
from restartable import Restartable
from ssh_server import LACKING, SshServer
from user import User, blocks

from ironbench.fields.sections import SECTIONS

pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(LACKING), reason=LACKING)]
PAGE = "how/remote-server"


@pytest.mark.long
def test_the_page_leads_from_an_address_to_a_report_and_to_changes_for_trials(place: Path) -> None:
    user = User(place / "user")
    with SshServer(free_port()) as ssh, Restartable() as server:
        user.environment["HOME"] = str(ssh.home)
        own = {"postgresql://": f"postgresql://postgres@127.0.0.1:{server.port}/postgres", "ssh://": ssh.address}
        own |= {"postgresql.service": str(server.restart)}
        lines = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
        assert len(lines) == 5
        for line in lines:
            words = [next((own[one] for one in own if word.startswith(one)), word) for word in shlex.split(line)[1:]]
            short = ("--duration", "2s", "--warmup", "0s", "--with", "scale=1") if words[0] == "run" else ()
            if "cold" in words and not os.access("/proc/sys/vm/drop_caches", os.W_OK):
                continue
            told = user(*words, *short)
            assert told.code in (0, 3), f"{line}: {told.stderr}"
    assert "server_machine" in user.records()[-1]
    assert (user.home / "watched.html").stat().st_size > 10_000


def test_the_fields_that_the_page_names_are_those_of_a_lab_file() -> None:
    texts = blocks(PAGE, "toml")
    assert len(texts) == 2
    for text in texts:
        assert set(tomllib.loads(text)["system"]) <= set(SECTIONS["system"])
