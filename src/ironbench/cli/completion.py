"""Shell completion: scripts for bash, zsh and fish, generated from the commands and options that the parser knows.

The scripts contain all names, so that completing a word does not start Python (docs/adr/0040-completion-scripts.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import typer

from ironbench.cli import completion_scripts
from ironbench.cli.command_tree import Command, commands
from ironbench.errors import InputError, nearest

FLAG = "--install-completion"
MARK = "# Written by `ironbench --install-completion` or `--show-completion`."
"""Beginning of a line that every completion script contains. ironbench may overwrite files that contain such a line."""


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell that can complete commands of ironbench."""

    script: Callable[[Command], str]
    file: Callable[[Mapping[str, str], Path], Path]
    """Function that returns the path of the completion script, given the environment variables and the home
    directory."""
    load: str
    """Instructions for the user on how to load the script. `{file}` and `{folder}` are placeholders."""


def _bash_file(variables: Mapping[str, str], home: Path) -> Path:
    folders = variables.get("BASH_COMPLETION_USER_DIR", "").split(":")
    return Path(folders[0] or _data_home(variables, home) / "bash-completion", "completions", "ironbench")


def _zsh_file(variables: Mapping[str, str], home: Path) -> Path:
    return _data_home(variables, home) / "zsh" / "site-functions" / "_ironbench"


def _fish_file(variables: Mapping[str, str], home: Path) -> Path:
    return Path(variables.get("XDG_CONFIG_HOME") or home / ".config", "fish", "completions", "ironbench.fish")


def _data_home(variables: Mapping[str, str], home: Path) -> Path:
    return Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")


SHELLS = {
    "bash": Shell(
        completion_scripts.bash,
        _bash_file,
        "open a new shell; without the package bash-completion, add this line to ~/.bashrc: source {file}",
    ),
    "zsh": Shell(
        completion_scripts.zsh,
        _zsh_file,
        "add this line to ~/.zshrc, before compinit, and open a new shell: fpath=({folder} $fpath)",
    ),
    "fish": Shell(completion_scripts.fish, _fish_file, "open a new shell"),
}


def users_shell(variables: Mapping[str, str]) -> str:
    """Returns the name of the user's shell. Raises InputError if $SHELL names no known shell."""
    name = Path(variables.get("SHELL", "")).name
    if name not in SHELLS:
        cause = f"cannot detect your shell: $SHELL is {name}" if name else "cannot detect your shell: $SHELL is not set"
        raise InputError(FLAG, cause, f"add the name of your shell, e.g. {FLAG} bash; known: {', '.join(SHELLS)}")
    return name


def script(program: typer.Typer, option: str, name: str) -> str:
    """Returns the completion script for a shell. Raises InputError if the shell is unknown."""
    from ironbench._core import VERSION

    if name not in SHELLS:
        raise InputError(f"{option} {name}", "unknown shell", nearest(name, list(SHELLS)))
    first = f"#compdef ironbench\n{MARK}" if name == "zsh" else MARK
    return f"{first} It completes version {VERSION}.\n{SHELLS[name].script(commands(program))}"


def installed(program: typer.Typer, name: str, variables: Mapping[str, str], home: Path) -> str:
    """Writes the completion script to the user's directory. Returns a message with the path of the script and
    instructions to load it.

    Raises InputError if the file exists and was not written by ironbench.
    """
    from ironbench.cli.output import write

    text = script(program, FLAG, name)
    file = SHELLS[name].file(variables, home)
    if (file.exists() or file.is_symlink()) and not _is_ours(file):
        hint = f"move the file away, or write the script to another file: ironbench --show-completion {name} > FILE"
        raise InputError(str(file), "exists and was not written by ironbench", hint)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = f"write the script to another file: ironbench --show-completion {name} > FILE"
        raise InputError(str(file.parent), f"cannot be created: {error.strerror}", hint) from error
    write(file, text.encode())
    return f"written: {file}\nto load it: {SHELLS[name].load.format(file=file, folder=file.parent)}"


def _is_ours(file: Path) -> bool:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return any(line.startswith(MARK) for line in islice(opened, 2))
    except OSError:
        return False
