"""Completion scripts know every command and option, and write no file that belongs to another program."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from ironbench import cli
from ironbench.cli import VERBS, completion, program
from ironbench.cli.command_tree import Command, commands
from ironbench.errors import InputError


@cache
def tree() -> Command:
    return commands(program(VERBS))


@cache
def script(shell: str) -> str:
    return completion.script(program(VERBS), "--show-completion", shell)


def completed(*words: str) -> list[str]:
    """Returns what bash offers for the last word."""
    call = """
compopt() { COMPREPLY=(FILES); }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_ironbench && printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(
        ["bash", "-c", script("bash") + call, "bash", *words], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_names_every_command_and_option(shell: str) -> None:
    text = script(shell)
    for command in tree().every():
        assert command.name in text
        for option in command.options:
            for name in option.names:
                assert (f"-l {name[2:]}" if shell == "fish" and name.startswith("--") else name.lstrip("-")) in text


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ironbench device ", ["show", "calibrate", "mount", "unmount", "trace"]),
        ("ironbench device trace ", ["replay"]),
        ("ironbench run --en", ["--engine"]),
        ("ironbench run --cache ", ["cold", "warm", "hot"]),
        ("ironbench run --cache = w", ["warm"]),
        ("ironbench run --engine sql", ["sqlite"]),
        ("ironbench run select-only --engine sql", ["sqlite"]),
        ("ironbench run --engine sqlite tpc", ["tpcb-like", "tpcc", "tpch"]),
        ("ironbench run --clients ", []),
        ("ironbench run --set a = ", []),
        ("ironbench run script ", ["FILES"]),
        ("ironbench run script --results ", ["FILES"]),
        ("ironbench run --data hdd-7", ["hdd-7200"]),
        ("ironbench run --data ./", ["FILES"]),
        ("ironbench device trace replay x --on hdd-7", ["hdd-7200"]),
        ("ironbench list obs", ["observers"]),
        ("ironbench gate a b --undecided ", ["fail", "pass"]),
        ("ironbench --show-completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_bash_offers(words: str, offered: list[str]) -> None:
    assert completed(*words.split(" ")) == offered


def test_choices_are_those_of_the_table_of_fields() -> None:
    run = next(one for one in tree().commands if one.name == "run")
    offered = {option.names[0]: option.words for option in run.options}
    assert offered["--protocol"] == ("prepared", "extended", "simple")
    assert "postgres" in offered["--engine"] and "hdd-7200" in offered["--log"]


@pytest.mark.parametrize(
    ("shell", "variables", "file"),
    [
        ("bash", {}, ".local/share/bash-completion/completions/ironbench"),
        ("bash", {"XDG_DATA_HOME": "{home}/data"}, "data/bash-completion/completions/ironbench"),
        ("bash", {"BASH_COMPLETION_USER_DIR": "{home}/own"}, "own/completions/ironbench"),
        ("zsh", {}, ".local/share/zsh/site-functions/_ironbench"),
        ("fish", {}, ".config/fish/completions/ironbench.fish"),
        ("fish", {"XDG_CONFIG_HOME": "{home}/config"}, "config/fish/completions/ironbench.fish"),
    ],
)
def test_the_script_is_written_to_the_users_folder(
    shell: str, variables: dict[str, str], file: str, tmp_path: Path
) -> None:
    place = {name: value.format(home=tmp_path) for name, value in variables.items()}
    for _ in range(2):  # our own file is replaced
        said = completion.installed(program(VERBS), shell, place, tmp_path)
        assert str(tmp_path / file) in said and "to load it" in said
    assert (tmp_path / file).read_text() == script(shell)


def test_a_file_of_another_program_stays(tmp_path: Path) -> None:
    file = tmp_path / ".local/share/bash-completion/completions/ironbench"
    file.parent.mkdir(parents=True)
    file.write_text("# my own\n")
    with pytest.raises(InputError, match="was not written by ironbench"):
        completion.installed(program(VERBS), "bash", {}, tmp_path)
    assert file.read_text() == "# my own\n"
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="was not written by ironbench"):
        completion.installed(program(VERBS), "bash", {}, tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_the_shell_is_detected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert ended(monkeypatch, "--install-completion") == 0
    assert (tmp_path / ".config/fish/completions/ironbench.fish").is_file()
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert ended(monkeypatch, "--install-completion") == 2
    assert "$SHELL is tcsh" in capsys.readouterr().err
    assert ended(monkeypatch, "--show-completion", "fsh") == 2
    assert "did you mean fish" in capsys.readouterr().err


def ended(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Returns the exit code of the program."""
    monkeypatch.setattr("sys.argv", ["ironbench", *words])
    with pytest.raises(SystemExit) as exit:
        cli.main()
    return int(exit.value.code or 0)
