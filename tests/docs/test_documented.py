"""Everything that exists is documented, and everything documented exists."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def test_reference_pages_are_those_the_program_writes() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "reference.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run `make docs`: {done.stderr}"


def test_every_verb_metric_observer_workload_and_engine_has_its_words() -> None:
    from ironbench.cli import VERBS
    from ironbench.cli.list import devices, engines, metrics, observers, workloads

    known = {
        "workloads": workloads(),
        "engines": engines(),
        "devices": devices(),
        "metrics": metrics(),
        "observers": observers(),
    }
    for kind, rows in known.items():
        assert rows
        assert named_on(kind) == [row["name"] for row in rows]
        for row in rows:
            assert len(row["what"].split()) >= 3, f"{row['name']} is undocumented"
    for verb, what in VERBS.items():
        assert what
        assert f"## ironbench {verb}" in (REFERENCE / "command-line.md").read_text()


def named_on(page: str) -> list[str]:
    """Returns the names that a reference page explains: its headings, or the first column of its table of metrics."""
    text = (REFERENCE / f"{page}.md").read_text()
    pattern = r"^\| `([^`]+)` \|" if page == "metrics" else r"^## (\S+)$"
    return re.findall(pattern, text, re.MULTILINE)


def test_a_name_inside_another_does_not_count_as_documented() -> None:
    assert "throughput" in named_on("metrics")
    assert "through" not in named_on("metrics")
    assert "response_time" not in named_on("metrics")


def test_every_option_says_what_it_does() -> None:
    import typer.main

    from ironbench.cli import VERBS, program

    for name, command in typer.main.get_command(program(VERBS)).commands.items():
        for parameter in command.params:
            if parameter.name != "help":
                assert getattr(parameter, "help", None), f"{name} {parameter.name} is undocumented"


def test_pages_of_help_cut_no_sentence() -> None:
    import typer.main

    from ironbench.cli import VERBS, program

    whole = typer.main.get_command(program(VERBS))
    groups = [whole, *(one for one in whole.commands.values() if hasattr(one, "commands"))]
    for group in groups:
        page = group.get_help(typer.Context(group, info_name="ironbench", terminal_width=78))
        cut = [line for line in page.splitlines() if line.endswith("...") and "Usage:" not in line]
        assert not cut, "the first sentence of a verb has 60 characters at most"


def test_contributing_lists_the_packages_in_the_order_of_imports() -> None:
    from tests.order.test_imports import PACKAGES, SHARED

    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index("| package |") : text.index("`ironbench run` and `ironbench lab run` create")]
    listed = [
        name for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    ]
    assert [name for name in listed if name in PACKAGES] == PACKAGES
    assert set(listed) - set(PACKAGES) <= SHARED
    folders = {path.parent.name for path in (ROOT / "src" / "ironbench").glob("*/__init__.py")}
    assert set(listed) == folders, "a folder of src/ironbench is a room of that table"


PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


MOST_WORDS = 900
"""Maximum number of words of a how-to page, including code, so that a reader with one question needs only a few
minutes."""


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "how").glob("*.md")), ids=lambda page: page.name)
def test_how_to_pages_are_short(page: Path) -> None:
    words = page.read_text().split()
    assert len(words) <= MOST_WORDS, f"{page.name} has {len(words)} words: shorten it, or make a second page"


@pytest.mark.parametrize(
    ("extra", "place"),
    [
        ("cluster", "docs/how/many-machines.md"),
        ("cluster", "src/ironbench/trial/cluster/control.py"),
        ("odbc", "docs/databases/odbc.md"),
        ("odbc", "src/ironbench/engines/odbc/process.py"),
    ],
)
def test_pages_and_hints_ask_for_the_versions_that_the_project_declares(extra: str, place: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = project["optional-dependencies"][extra]
    assert f"pip install '{wanted}'" in (ROOT / place).read_text()


def test_make_targets_that_pages_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page in PAGES:
        code = re.findall(r"`([^`\n]+)`|^```[a-z]*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        for target in re.findall(r"^make ([a-z][a-z-]+)", "\n".join(a or b for a, b in code), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name} names make {target}"


@pytest.mark.parametrize("page", ["how/history.md", "adr/0032-change-points.md"])
def test_pages_state_the_false_alarms_of_history_that_the_report_states(page: str) -> None:
    from ironbench.report.wording.answers.history_answer import false_alarms, what_a_change_point_is
    from ironbench.stats.change_points import CORRELATED, INDEPENDENT

    text = (ROOT / "docs" / page).read_text()
    for found in (INDEPENDENT, CORRELATED):
        assert false_alarms(found) in text and f"{found.series:,}" in text
        assert false_alarms(found) in what_a_change_point_is(INDEPENDENT, CORRELATED)
