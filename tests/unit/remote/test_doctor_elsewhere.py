"""The doctor on another machine, which consists of answers to its commands."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ironbench.errors import InputError
from ironbench.host.doctor import examine
from ironbench.host.remote import host, link
from ironbench.host.remote.address import SshAddress
from ironbench.host.remote.link import CommandResult, quoted

FILES = b"""/proc/stat:cpu 100 0 100 10000 0 0 0 0 0 0
/proc/self/mountinfo:27 1 8:1 / / rw,noatime - ext4 /dev/sda1 rw
/proc/self/mountinfo:32 27 0:50 / /dev/shm rw - tmpfs shm rw
"""
FREE = {
    "'/dev/shm'": b"shm 65536 1024 64512 2% /dev/shm",
    "'/srv/db'": b"/dev/sda1 200000000 100000000 100000000 50% /",
}


class _Machine:
    address = SshAddress("db.example", "bench")

    def run(self, command: str, stdin: bytes = b"", limit_s: float = 30.0) -> CommandResult:
        if "grep" in command:
            return CommandResult(0, FILES, "")
        if command.startswith("d="):
            return CommandResult(0 if "'/srv/db'" in command else 1, b"", "")
        if command.startswith("df "):
            known = next((line for name, line in FREE.items() if command.endswith(name)), b"")
            return CommandResult(
                0 if known else 1, b"Filesystem 1024-blocks Used Available Capacity Mounted on\n" + known, ""
            )
        assert command.startswith("readlink")
        return CommandResult(0, command.rpartition(" ")[2].strip("'").encode(), "")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "connection_to", lambda _: _Machine())
    monkeypatch.setattr(host, "WATCH_S", 0.0)


def test_a_directory_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="has no such directory") as caught:
        host.examine("ssh://bench@db.example", (Path("/srv/db"), Path("/srv/dbb")))
    assert caught.value.subject == "--data /srv/dbb"


@pytest.mark.parametrize(
    ("place", "may_be"), [("there", True), ("closed/in", True), ("absent/in", False), ("file", False)]
)
def test_a_directory_may_be_where_the_user_may_not_look(tmp_path: Path, place: str, may_be: bool) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "closed").mkdir()
    (tmp_path / "file").touch()
    # Root can read everything, so an inaccessible directory is simulated.
    command = host._MAY_BE.format(path=quoted(str(tmp_path / place)))
    closed = (
        f'[() {{ case "$1 $2" in "! -x") case "$3" in */closed) return 0;; esac;; esac; command [ "$@"; }}; {command}'
    )
    done = subprocess.run(["bash", "-c", closed], check=False)
    assert (done.returncode == 0) == may_be


def test_room_in_shared_memory_is_asked_for_on_that_machine() -> None:
    seen = host.examine("ssh://bench@db.example", (Path("/srv/db"),))
    (found,) = (one for one in examine(seen, host.AREAS) if one.name == "shared memory")
    assert (found.visible, found.severity) == (True, "warning")
