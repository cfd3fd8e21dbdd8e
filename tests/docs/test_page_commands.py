"""Each `ironbench run` that a page shows can be planned as written.

Tests in tests/live carry out the commands of most pages from end to end, some of them in `make test-long`.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import launch
import pytest
from factories import lacking

from ironbench.devices import capability

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.parent.name != "adr"
    and str(page.relative_to(ROOT / "docs"))
    not in ("how/emulated-devices.md", "databases/odbc.md", "contributing/engines.md")
]
"""All pages except those whose commands cannot be planned here. Devices need privileges and file system programs, and
ODBC needs drivers: tests/live runs both. The page for engine authors names an engine that does not exist."""
DEBIAN = "/usr/lib/postgresql/15/bin"
"""Programs that a page names for their contrib modules."""
LACKED = {"mariadb": "mariadb", "directory": "slapd"}
"""Word in a command → the engine that it needs."""
EMULATED = ("hdd-", "ssd-")
"""Prefixes of words that name an emulated device, which needs privileges."""
NEEDED = ("--cluster", "--dump", "--resume", "expected=", "file=shop.capture")
"""Options that need something even for a plan: a running cluster, a dump, an earlier run, answers, a capture."""


def commands(page: Path) -> list[list[str]]:
    """Returns the words of every `ironbench run WORKLOAD …`, on a separate line or within a sentence.

    On a separate line, it may follow a prompt (`old$ `) and be followed by two spaces and an explanation. Placeholders
    within sentences (`FILE`) are not commands.
    """
    text = page.read_text()
    lines = re.findall(r"^(?:\w+\$ )?ironbench (run .*?)(?:  .*)?$", text, re.MULTILINE)
    sentences = re.findall(
        r"`ironbench\s+(run\s+[a-z][^`]*\s--[^`]*)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    )
    lines += [line for line in sentences if not re.search(r"\b[A-Z]+\b|…", line)]
    return [shlex.split(line, comments=True) for line in lines]


def test_commands_within_sentences_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Try `ironbench run storage\n--with tests=sync`, not `ironbench run script FILE`.\n\nold$ ironbench run x\n"
    )
    assert commands(page) == [["run", "x"], ["run", "storage", "--with", "tests=sync"]]


@pytest.mark.parametrize(
    "page", [page for page in (ROOT / "README.md", *PAGES) if commands(page)], ids=lambda page: page.name
)
def test_every_run_of_a_page_can_be_planned(page: Path, tmp_path: Path) -> None:
    for folder in ("card", "wal"):
        (tmp_path / folder).mkdir()
    (tmp_path / "day.csv").write_text("0 100\n1h 200\n")
    planned = 0
    for words in commands(page):
        if any(needed in word for needed in NEEDED for word in words):
            continue
        if any(word in words and lacking(engine) for word, engine in LACKED.items()):
            continue
        if any(word.startswith(EMULATED) for word in words) and capability.lacking():
            continue
        if f"bin={DEBIAN}" in words and not Path(DEBIAN).is_dir():
            continue
        words = [str(tmp_path / word.removeprefix("/mnt/")) if word.startswith("/mnt/") else word for word in words]
        for word in words:
            if word.endswith(".sql") or ".sql@" in word:
                (tmp_path / word.partition("@")[0]).write_text("SELECT :client_id;\n")
        done = launch.run([*words, *(() if "--plan" in words else ("--plan",))], cwd=tmp_path)
        assert done.returncode == 0, f"{shlex.join(words)}:\n{done.stderr}"
        planned += 1
    if not planned:
        pytest.skip("each command needs what is not here")


def wrongly_resumed(text: str) -> list[str]:
    """Returns every file after `lab resume` whose lab the page started with `--results`.

    `lab resume FILE` searches only the default directory, so such a page has to name the directory.
    """
    elsewhere = {
        words[0]
        for line in re.findall(r"ironbench lab run ([^`\n]*)", text)
        if "--results" in (words := shlex.split(line, comments=True)) and not words[0].startswith("-")
    }
    return [name for name in re.findall(r"ironbench lab resume +([^\s`]+)", text) if name in elsewhere]


def test_a_lab_with_its_own_directory_is_not_resumed_by_its_file() -> None:
    text = "ironbench lab run a.toml --results a\nironbench lab run b.toml\n`ironbench lab resume {} --more 6`"
    assert [wrongly_resumed(text.format(name)) for name in ("a.toml", "a", "b.toml")] == [["a.toml"], [], []]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_every_lab_of_a_page_can_be_resumed_as_written(page: Path) -> None:
    assert not wrongly_resumed(page.read_text())
