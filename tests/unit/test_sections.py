"""A report is a list of sections, each from one module, of the same kind for runs and for labs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from factories import Shelf, example
from labfactory import lab, studied, trials

from ironbench.report import formats, sections
from ironbench.study.runstudy import studies
from ironbench.study.study import Study

MODULE = """
from ironbench.report.charts.base import Table
from ironbench.report.page import Section

PLACE = 1


def sections(study):
    table = Table(("what", "n"), (("trials", f"{study.trials} n"),))
    yield Section("added", "Trials of this study", tables=(("", table),))
    yield Section("nothing", "Nothing to show")
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A report with an additional module in the package of sections."""
    (tmp_path / "added_for_a_test.py").write_text(MODULE)
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    yield
    sys.modules.pop(f"{sections.__name__}.added_for_a_test", None)


def of_runs() -> Study:
    records = example()
    return studies(records, Shelf(records))[0]


def of_a_lab() -> Study:
    plan = lab({"log": ("disk", "memory")}, blocks=4)
    records = trials(plan, {"log=disk": 1800.0, "log=memory": 2900.0}, observed=True)
    return studied(plan, records)


@pytest.mark.parametrize("make", [of_runs, of_a_lab])
@pytest.mark.parametrize("format", ["html", "md", "text", "csv"])
@pytest.mark.usefixtures("added")
def test_a_section_is_added_by_one_file(make: Callable[[], Study], format: str) -> None:
    study = make()
    text = formats.get(format)([study]).decode()
    assert "Trials of this study" in text and f"{study.trials} n" in text
    assert "Nothing to show" not in text


def test_runs_and_labs_have_sections_of_the_same_list() -> None:
    run, of_lab = ([one.id for one in sections.sections(study)] for study in (of_runs(), of_a_lab()))
    assert {"curves", "law", "waits"} <= set(run) and {"claims", "findings", "plan"} & set(run) == set()
    assert {"findings", "trials", "plan"} <= set(of_lab) and {"curves", "law", "waits"} & set(of_lab) == set()
    both = [id for id in run if id in of_lab]
    assert both == [id for id in of_lab if id in run] and {"cpu", "balance", "differences"} <= set(both)


@pytest.mark.parametrize("make", [of_runs, of_a_lab])
def test_sections_have_ids_of_their_own(make: Callable[[], Study]) -> None:
    ids = [one.id for one in sections.sections(make())]
    assert len(ids) == len(set(ids))
