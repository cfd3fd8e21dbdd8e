"""The whole tour in a real browser: a lab is queued from the page, watched to its end, noted and compared."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.long, pytest.mark.live, pytest.mark.skipif(BROWSER is None, reason="no Chromium here")]
PATIENCE_MS = 120_000
LAB = """question = "Do two clients get more done than one?"
[workload]
name = "select-only"
[system]
engine = "null"
[load]
duration = "1s"
warmup = "0s"
[vary]
clients = [1, 2]
[measure]
repeats = 6
quiet = "0s"
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The printed address, and the results directory."""
    results = tmp_path / "results"
    words = [sys.executable, "-m", "ironbench.start", "serve", "--listen", "127.0.0.1:0", "--results", str(results)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip(), results
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(20)


@pytest.fixture(params=[1400, 400])
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    said: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": request.param, "height": 900})
        context.set_default_timeout(PATIENCE_MS)
        found = context.new_page()
        found.on("console", lambda message: said.append(message.text))
        found.on("pageerror", lambda error: said.append(str(error)))
        yield found
        browser.close()
    assert said == []


def fits(page: Page) -> None:
    """Nothing of the page is beside the window."""
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]  # type: ignore[index]


def test_a_lab_is_queued_watched_to_its_end_noted_and_compared(page: Page, served: tuple[str, Path]) -> None:
    address, results = served
    page.goto(address)
    assert "token" not in page.url
    fits(page)
    page.get_by_role("link", name="Queue").click()
    page.get_by_role("link", name="Put in a lab file").click()
    draft = page.get_by_role("textbox", name="Lab file", exact=True)
    draft.fill(LAB.replace("select-only", "select-onyl"))
    expect(page.locator("#plan")).to_contain_text("did you mean select-only", timeout=PATIENCE_MS)
    draft.fill(LAB)
    expect(page.locator("#plan")).to_contain_text("6 blocks", timeout=PATIENCE_MS)
    fits(page)
    page.get_by_label("name of the lab file").fill("two")
    page.get_by_role("button", name="Put it in the queue").click()
    page.get_by_role("link", name="watch it").click()
    expect(page.locator("[data-now=title]")).to_contain_text("trial", timeout=PATIENCE_MS)
    expect(page.locator("[data-now=throughput]")).to_contain_text("/s", timeout=PATIENCE_MS)
    fits(page)
    expect(page.get_by_role("heading", name="How to reproduce")).to_be_visible(timeout=PATIENCE_MS)
    fits(page)
    page.locator("button.trial").first.click()
    expect(page.locator("output.said")).to_contain_text("block 1")
    page.get_by_label("note").fill("seen")
    page.get_by_role("button", name="Keep the note").click()
    expect(page.get_by_label("note")).to_have_value("seen\n")
    lab = next((results / "labs").iterdir())
    assert (lab / "notes" / "lab.md").read_text() == "seen\n"
    page.goto(re.sub(r"/\?.*", f"/compare?pick={lab.name}/clients=1&pick={lab.name}/clients=2", address))
    expect(page.get_by_role("heading", name="A against B")).to_be_visible()
    page.goto(re.sub(r"/\?.*", "/queue", address))
    expect(page.locator("main")).to_contain_text("Nothing runs")
    expect(page.locator(".state").first).to_have_text(re.compile("done"))
    page.goto(re.sub(r"/\?.*", "/archive?view=labs", address))
    expect(page.get_by_role("link", name=lab.name)).to_be_visible()
    fits(page)
