"""The page in a real browser, without a network: every chart is drawn, in wide and narrow windows."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from factories import Shelf, example

from ironbench.analyse.study import studies
from ironbench.report import formats

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.long, pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")]


@pytest.mark.parametrize("width", [400, 1200])
def test_every_chart_is_drawn_without_a_network(width: int, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_bytes(formats.get("html")(studies(example(), Shelf(example()))))
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
