"""The page in a real browser, without a network: every chart is drawn, in wide and narrow windows."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from factories import Shelf, example
from labfactory import lab, trials

from ironbench.analyse.labstudy import lab_study
from ironbench.analyse.study import studies
from ironbench.report import formats

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.long, pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")]


def of_systems() -> bytes:
    return formats.get("html")(studies(example(), Shelf(example())))


def of_a_lab() -> bytes:
    plan = lab({"log": ("disk", "memory"), "clients": ("1", "4", "8")}, blocks=6)
    records = trials(plan, {s.cell.name: 500.0 * s.cell.load.clients for s in plan.setups}, observed=True)
    return formats.get_lab("html")([lab_study(plan, records, Shelf(records))])


@pytest.mark.parametrize("made", [of_systems, of_a_lab])
@pytest.mark.parametrize("width", [400, 1200])
def test_every_chart_is_drawn_without_a_network(width: int, made: Callable[[], bytes], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_bytes(made())
    command = [
        str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
        "--proxy-server=127.0.0.1:9", f"--window-size={width},2000", "--virtual-time-budget=20000",
        "--enable-logging=stderr", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    charts = re.findall(r'<div class="chart[ "][^>]*>', done.stdout)
    drawn = re.findall(r'<div class="chart[ "][^>]*>\s*<svg', done.stdout)
    assert charts
    assert len(drawn) == len(charts)
    # Vega names a chart anew when it draws it.
    assert not [chart for chart in charts if 'aria-label="Vega visualization"' in chart]
    assert ">This chart could not be drawn" not in done.stdout
    assert "CONSOLE" not in done.stderr, done.stderr
