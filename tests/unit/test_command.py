"""A user's command never continues without ironbench, whatever happens between its start and waiting for it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ironbench.errors import FailureError
from ironbench.host import command
from ironbench.host.processes import ProcessId
from ironbench.lab.upkeep import Upkeep
from ironbench.model.commands import Commands
from ironbench.plan.commands import Scope
from ironbench.printer import Printer


def test_a_command_whose_start_cannot_be_noted_is_ended(tmp_path: Path) -> None:
    shells: list[ProcessId | None] = []

    def begun(shell: ProcessId | None) -> None:
        shells.append(shell)
        raise FailureError("note", "no space left on device")

    with pytest.raises(FailureError, match="no space"):
        command.run("sleep 60", str(tmp_path), {}, 60.0, begun)
    assert shells[0] is not None and not shells[0].alive()


def test_a_command_is_ended_by_an_interrupt_that_comes_while_it_starts(tmp_path: Path) -> None:
    shells: list[ProcessId | None] = []

    def begun(shell: ProcessId | None) -> None:
        shells.append(shell)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        command.run("sleep 60", str(tmp_path), {}, 60.0, begun)
    assert shells[0] is not None and not shells[0].alive()


def test_a_command_in_a_directory_that_is_gone_is_refused_in_words(tmp_path: Path) -> None:
    ended = command.run("true", str(tmp_path / "gone"), {}, 60.0)
    assert ended.status is None and "cannot be run in" in ended.cause


@pytest.mark.parametrize("log", [None, "commands.jsonl"])
def test_a_prepare_that_fails_says_where_it_can_be_tried_and_what_it_wrote(tmp_path: Path, log: str | None) -> None:
    kept = tmp_path / log if log else None
    upkeep = Upkeep("2026-11-21T01:00:00", str(tmp_path), Printer.silent(), kept)
    with pytest.raises(FailureError, match="prepare of lab: `exit 3` exited with status 3") as failed:
        upkeep.enter([Scope(("lab",), Commands("exit 3", of="lab"))], {})
    assert f"by hand in {tmp_path}" in failed.value.hint and (str(kept) in failed.value.hint) == (log is not None)
