"""Report pages in a real browser without a network: every chart is drawn, in wide and narrow windows."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, Shelf, example, record
from labfactory import lab, studied, trials

from ironbench import workloads
from ironbench.model.system import Choice
from ironbench.report import formats
from ironbench.study.runstudy import studies

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.long, pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")]


def of_systems() -> bytes:
    return formats.get("html")(studies(example(), Shelf(example())))


def of_tpch() -> bytes:
    work = Choice("tpch", {"sf": "0.01"})
    times = {f"query_time_s{{query=q{query:02}}}": 0.001 * query for query in range(1, 23)}
    figures = {"power_unrounded": 2877.0, "power": 360.0, "query_time_geomean_s": 0.0121, **times}
    systems = [replace(DISK, label=f"work_mem {size} MB") for size in (4, 64, 256)]
    return formats.get("html")(
        studies([replace(record(one, metrics=figures), choice=work) for one in systems], Shelf())
    )


def of_works_with_long_names() -> bytes:
    weights = "search=60,modify=20,bind=10,compare=5,add=3,delete=1,modify-dn=1"
    directory = workloads.get("directory")
    works = [directory.validated(one) for one in ({}, {"job": "mixed", "weights": weights})]
    records = [
        record(clients=clients, choice=Choice("directory", work), id=f"{place}-{clients}", series=f"s{place}")
        for place, work in enumerate(works)
        for clients in (1, 16)
    ]
    return formats.get("html")(studies(records, Shelf(records)))


def of_a_lab() -> bytes:
    plan = lab({"log": ("disk", "memory"), "clients": ("1", "4", "8")}, blocks=6)
    records = trials(plan, {s.cell.name: 500.0 * s.cell.load.clients for s in plan.setups}, observed=True)
    return formats.get("html")([studied(plan, records)])


def browsed(page: Path, folder: Path, width: int) -> subprocess.CompletedProcess[str]:
    """Returns the document after its scripts have run."""
    command = [
        str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
        "--proxy-server=127.0.0.1:9", f"--window-size={width},2000", "--virtual-time-budget=30000",
        "--enable-logging=stderr", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)


@pytest.mark.parametrize("made", [of_systems, of_a_lab, of_tpch])
@pytest.mark.parametrize("width", [400, 1200])
def test_every_chart_is_drawn_without_a_network(width: int, made: Callable[[], bytes], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_bytes(made())
    done = browsed(page, tmp_path, width)
    charts = re.findall(r'<div class="chart[ "][^>]*>', done.stdout)
    drawn = re.findall(r'<div class="chart[ "][^>]*>\s*<svg', done.stdout)
    assert charts
    assert len(drawn) == len(charts)
    # Vega sets a new label when it draws the chart.
    assert not [chart for chart in charts if 'aria-label="Vega visualization"' in chart]
    assert ">This chart could not be drawn" not in done.stdout
    assert "CONSOLE" not in done.stderr, done.stderr


CUT = """<script>addEventListener("load", () => setTimeout(() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  setTimeout(() => {
    const cut = [...document.querySelectorAll(".scroll")].filter((one) => one.scrollWidth > one.clientWidth + 1);
    const parts = cut.map((one) => one.textContent.slice(0, 80));
    const tables = document.querySelectorAll("table").length;
    const answer = { inside: innerWidth, whole: document.documentElement.scrollWidth, cut: parts, tables };
    parent.postMessage(answer, "*");
  }, 500);
}, 500));</script>"""


@pytest.mark.parametrize("made", [of_systems, of_a_lab, of_tpch, of_works_with_long_names])
@pytest.mark.parametrize("width", [400, 800])
def test_no_table_is_cut_on_a_phone_or_a_tablet(width: int, made: Callable[[], bytes], tmp_path: Path) -> None:
    """Uses a frame, because a headless browser's window is at least 500 pixels wide."""
    text = made().decode()
    (tmp_path / "page.html").write_text(f"{text[: text.rindex('</body>')]}{CUT}</body></html>", encoding="utf-8")
    around = tmp_path / "around.html"
    around.write_text(
        f'<iframe src="page.html" width="{width}" height="2000" frameborder="0"></iframe><pre></pre><script>'
        'addEventListener("message", (one) => document.querySelector("pre").textContent = JSON.stringify(one.data))'
        "</script>"
    )
    shown = re.search(r"<pre>(.+?)</pre>", browsed(around, tmp_path, 1000).stdout)
    assert shown is not None
    found = json.loads(html.unescape(shown[1]))
    assert found["inside"] == width and found["tables"] > 3
    assert found["cut"] == []
    assert found["whole"] <= width


def test_every_table_can_be_saved_as_csv(tmp_path: Path) -> None:
    save = """<script>addEventListener("load", () => setTimeout(() => {
      const buttons = [...document.querySelectorAll("button.csv")];
      URL.createObjectURL = (blob) => { blob.text().then((text) => {
        const shown = document.createElement("pre");
        Object.assign(shown, { id: "saved", textContent: text });
        document.body.append(shown);
      }); return "#"; };
      document.body.dataset.buttons = buttons.length;
      buttons[0].click();
    }, 500));</script>"""
    text = of_tpch().decode()
    page = tmp_path / "page.html"
    page.write_text(f"{text[: text.rindex('</body>')]}{save}</body></html>", encoding="utf-8")
    dumped = browsed(page, tmp_path, 1200).stdout
    assert int(re.findall(r'data-buttons="(\d+)"', dumped)[0]) == text.count('class="scroll"')
    saved = re.search(r'<pre id="saved">(.*?)</pre>', dumped, re.DOTALL)
    assert saved is not None
    head, first, *_ = html.unescape(saved[1]).splitlines()
    assert head.lstrip("\ufeff").startswith(",work_mem 4 MB,work_mem 64 MB,work_mem 256 MB")
    assert first.startswith('"power, unrounded",2880 queries/h × SF,')


HEARD = """<script>
  let heard = 0;
  for (const [name, more] of [["addEventListener", 1], ["removeEventListener", -1]]) {
    const before = window[name];
    window[name] = (type, ...rest) => {
      heard += type === "resize" ? more : 0;
      return before.call(window, type, ...rest);
    };
  }
  addEventListener("load", () => setTimeout(() => {
    const charts = JSON.parse(document.getElementById("charts").textContent);
    document.body.dataset.before = heard;
    for (let time = 0; time < 20; time++) document.dispatchEvent(new CustomEvent("charts", { detail: charts }));
    setTimeout(() => { document.body.dataset.after = heard; }, 5000);
  }, 5000));
</script>"""


def test_a_chart_that_is_drawn_anew_leaves_nothing_behind(tmp_path: Path) -> None:
    """A page of a lab may stay open for a day and redraws its charts at each update."""
    page = tmp_path / "page.html"
    page.write_text(of_a_lab().decode().replace("<head>", f"<head>{HEARD}", 1), encoding="utf-8")
    dumped = browsed(page, tmp_path, 1200).stdout
    before, after = (int(re.findall(rf'data-{name}="(\d+)"', dumped)[0]) for name in ("before", "after"))
    assert before > 0 and after == before
