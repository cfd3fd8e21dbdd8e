"""Paths as users write them."""

from pathlib import Path

from ironbench.errors import InputError


def expanded(text: str) -> Path:
    """With the home that a `~` at its beginning stands for. InputError: there is none."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise InputError(text, "there is no home directory for its ~", "write the whole path") from None
