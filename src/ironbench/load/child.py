"""A large load in a process of its own: the text that its rows are cut from takes 300 MB, and is gone with it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from ironbench import errors

Told = Callable[[int, int], None]
"""Told rows and bytes so far, several times a second."""
STOP_S = 20.0
"""How long the child may take to leave what it is doing."""


def load(plan: bytes, told: Told) -> dict[str, Any]:
    """As `_core.load_rows`, which see; FailureError, also when the child died."""
    with tempfile.TemporaryFile() as log:
        command = [
            sys.executable,
            "-I",
            "-S",
            str(Path(__file__).with_name("inside.py")),
            str(Path(errors.__file__).parents[1]),
        ]
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0, process_group=0
        )
        try:
            return _heard(child, plan, told, log)
        finally:
            _ended(child)


def _heard(child: subprocess.Popen[bytes], plan: bytes, told: Told, log: IO[bytes]) -> dict[str, Any]:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(plan.replace(b"\n", b" ") + b"\n")
    with child.stdout:
        for line in iter(child.stdout.readline, b""):
            message = json.loads(line)
            if "loaded" in message:
                return dict(message["loaded"])
            if "failed" in message:
                kind, subject, cause, hint = message["failed"]
                raise getattr(errors, kind)(subject, cause, hint)
            told(message["rows"], message["bytes"])
    raise _death(child.wait(), log)


def _ended(child: subprocess.Popen[bytes]) -> None:
    """Its input's end tells it to stop."""
    assert child.stdin is not None
    child.stdin.close()
    try:
        child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _death(code: int, log: IO[bytes]) -> errors.FailureError:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    if code < 0:
        cause = f"the process that makes the rows was ended by {signal.Signals(-code).name}"
    else:
        cause = f"the process that makes the rows ended with exit code {code}"
    hint = f"it said: {lines[-1]}" if lines else ""
    if code == -signal.SIGKILL and not hint:
        hint = "the kernel does this to the largest process when memory runs out (see dmesg)"
    return errors.FailureError("load", cause, hint)
