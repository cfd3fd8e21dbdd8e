"""The manual page names every command and option, and is without errors of formatting."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ironbench.cli import VERBS, program
from ironbench.cli.command_tree import commands

PAGE = Path(__file__).parents[2] / "packaging/data/share/man/man1/ironbench.1"


def test_it_names_every_command_and_option() -> None:
    text = PAGE.read_text().replace(r"\-", "-")
    for command in commands(program(VERBS)).every():
        if not command.commands:
            assert f'.SS "{command.path} ' in text
        for option in command.options:
            assert option.names == ("--help",) or all(rf"\fB{name}\fR" in text for name in option.names)


@pytest.mark.skipif(not shutil.which("man"), reason="man is not installed")
def test_it_renders_without_warnings() -> None:
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", PAGE],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stderr == ""
    assert "EXIT STATUS" in done.stdout
