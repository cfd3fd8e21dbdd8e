"""Flame graphs in a real browser without a network: drawn, enlarged by click and keyboard, searched."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from profiles import BURN, profiled
from test_report_page import BROWSER, browsed

from ironbench.report import formats
from ironbench.study.labstudy import lab_study

pytestmark = [pytest.mark.long, pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")]
USED = """<script>addEventListener("load", () => setTimeout(() => {
  const flame = document.querySelector(".flame"), bars = () => [...flame.querySelectorAll(".bar")];
  const named = (name) => bars().find((one) => one.querySelector("title").textContent.startsWith(`${name}:`));
  const result = document.createElement("pre");
  const width = (one) => Math.round(one.querySelector("rect").getAttribute("width"));
  const whole = width(named("all")), before = width(named("burn"));
  named("burn").dispatchEvent(new MouseEvent("click"));
  const after = width(named("burn")), detail = flame.querySelector(".detail").textContent;
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  const again = width(named("burn"));
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  const focused = document.activeElement.querySelector("title").textContent;
  const search = flame.querySelector("input");
  search.value = "burn"; search.dispatchEvent(new Event("input"));
  const hits = bars().filter((one) => one.classList.contains("hit")).length;
  const share = flame.querySelector("output").textContent;
  const end = (one) => one.getBBox().x + one.getBBox().width;
  const labelled = bars().filter((one) => one.querySelector("text"));
  const within = labelled.every((one) => end(one.querySelector("text")) <= end(one.querySelector("rect")));
  result.id = "result";
  result.textContent = JSON.stringify({ whole, before, after, again, detail, focused, hits, share, within });
  document.body.append(result);
}, 500));</script>"""


@pytest.mark.parametrize("width", [500, 1400])
def test_a_flame_graph_is_enlarged_by_click_and_keyboard_and_can_be_searched(width: int, tmp_path: Path) -> None:

    lab = profiled({BURN: 60e-6, f"main;serve;{10 * 'WM'}": 60e-6})
    text = formats.get("html")([lab_study(lab.lab, lab.records, lab.shelf)]).decode()
    page = tmp_path / "page.html"
    page.write_text(f"{text[: text.rindex('</body>')]}{USED}</body></html>", encoding="utf-8")
    done = browsed(page, tmp_path, width)
    shown = re.search(r'<pre id="result">(.+?)</pre>', done.stdout)
    assert shown is not None, done.stderr
    found = json.loads(html.unescape(shown[1]))
    assert found["before"] == found["again"] < found["whole"] == found["after"]
    assert found["detail"].startswith("burn:") and found["focused"].startswith("engine, on CPU:")
    assert found["hits"] == 1 and 10 < float(found["share"].partition("%")[0]) < 25
    assert found["within"], "a label is wider than its bar"
    assert "CONSOLE" not in done.stderr, done.stderr
