"""Long calls in child processes: how they end."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from ironbench.errors import EngineDiedError
from ironbench.process import job, processes


def test_a_child_that_does_not_stop_is_killed_and_the_kernel_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "STOP_S", 0.2)

    def stopping() -> bool:
        stopped = False  # before it has become our program, it bears another command line
        for pid in processes.children(os.getpid()):
            with contextlib.suppress(FileNotFoundError):
                if "ironbench.process.job" in Path(f"/proc/{pid}/cmdline").read_text():
                    os.kill(pid, signal.SIGSTOP)
                    stopped = True
        return stopped

    with pytest.raises(EngineDiedError) as died:
        job.run(job.Call("write", b"[]", "the work"), stopping=stopping, keep=True)
    assert died.value.cause == "it did not stop within 0.2 s of being told to, and was killed"
    assert "memory" not in died.value.hint
