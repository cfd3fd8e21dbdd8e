"""The target of `-o` is replaced atomically, and nothing else is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ironbench.cli.output import destination, target, write
from ironbench.errors import FailureError, InputError
from ironbench.report import formats


def test_a_pipe_or_device_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(target(str(pipe)), b"a report")
        assert os.read(reader, 100) == b"a report"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_format_is_found_by_its_module_which_names_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tally.py").write_text("")
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    assert destination(str(tmp_path / "r.TALLY"), "") == ("tally", tmp_path / "r.TALLY")
    with pytest.raises(InputError, match="has no known suffix") as caught:
        destination("r.pdf", "")
    assert ".tally" in caught.value.hint and ".txt" in caught.value.hint


@pytest.mark.parametrize("name", ["html", "png", "svg"])
def test_a_format_that_is_not_for_a_terminal_needs_a_file(name: str) -> None:
    with pytest.raises(InputError, match="needs an output file") as caught:
        destination("", name)
    assert caught.value.hint == f"add -o report.{name}"


@pytest.mark.parametrize(
    ("name", "format"),
    [("r", "text"), ("r.txt", "text"), ("r.text", "text"), ("r.htm", "html"), ("r.md", "md"), ("r.markdown", "md")],
)
def test_a_name_says_which_format_is_meant(name: str, format: str, tmp_path: Path) -> None:
    assert destination(str(tmp_path / name), "")[0] == format


def test_a_full_device_is_named(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(FailureError, match="full: could not be written: No space left"):
        write(target(str(full)), b"a report")
    assert full.is_symlink()


def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    shown = tmp_path / "site" / "report.html"
    shown.write_text("old")
    link = tmp_path / "report.html"
    link.symlink_to(shown)
    write(target(str(link)), b"new")
    assert link.is_symlink() and shown.read_text() == "new"
    assert list(shown.parent.iterdir()) == [shown]


def test_a_file_that_cannot_be_written_leaves_nothing_beside_it(tmp_path: Path) -> None:
    place = tmp_path / ("n" * 255)  # the temporary name is longer, at least by the digits of a process id
    with pytest.raises(FailureError, match="could not be written"):
        write(place, b"x")
    assert not list(tmp_path.iterdir())
