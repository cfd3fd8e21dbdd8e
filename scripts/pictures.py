"""`make pictures LAB=DIR`: takes the pictures in docs/img that show a lab of labs/demo.toml, such as `make demo`
creates, and `ironbench serve` while a lab runs (about three minutes).

The pictures of measured results are written by `make findings`. The picture of a history needs many nights: take it by
hand.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "img"
IRONBENCH = Path(sys.executable).parent / "ironbench"
CHROMIUM = "/usr/bin/chromium"
BASELINE, IDEAL = "clients=8 log=on disk", "clients=8 log=in memory"
PICTURES: dict[str, tuple[list[str], int]] = {
    "demo": (["report", "."], 1500),
    "lab": (["report", "."], 3200),
    "explain": (["explain", BASELINE, IDEAL, "--results", "."], 1340),
}
"""Name of the picture → the command whose HTML page it shows, run in the lab's folder, and its height in pixels."""
QUEUED = """\
question = "Does a larger page cache make SQLite faster?"
workload = { name = "igen-oltp", with = { scale = 2 } }
system.engine = "sqlite"
load = { clients = 2, duration = "10s", warmup = "1s" }
vary.system.memory = ["8MB", "64MB"]
measure = { repeats = 6, quiet = "1s", rates = "none" }
"""
WATCHED = 9
"""Number of the trial of the queued lab at which the picture is taken. By then, the page shows an interim answer and
comparisons."""


def main() -> int:
    lab = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (command, height) in PICTURES.items():
            page = Path(folder) / f"{name}.html"
            subprocess.run([IRONBENCH, *command, "-o", page], cwd=lab, check=True)
            tab = browser.new_page(viewport={"width": 1000, "height": height})
            tab.goto(page.as_uri())
            tab.wait_for_timeout(1000)  # charts are drawn by scripts of the page
            save(tab, name)
        serve(browser, Path(folder) / "results")
        browser.close()
    return 0


def serve(browser: Browser, results: Path) -> None:
    """Takes the pictures of a running lab and of the queue."""
    command = [IRONBENCH, "serve", "--results", results, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            tab = browser.new_page(viewport={"width": 1000, "height": 1240})
            tab.set_default_timeout(300_000)
            tab.goto(server.stdout.readline().strip())
            for name, when in (("page-cache", ""), ("page-cache-again", ""), ("nightly", "22:00")):
                tab.get_by_role("link", name="Queue", exact=True).click()
                tab.get_by_role("link", name="Queue a lab file").click()
                tab.get_by_role("textbox", name="Lab file", exact=True).fill(QUEUED)
                tab.get_by_label("name of the lab file").fill(name)
                tab.get_by_label("every night at").fill(when)
                tab.get_by_role("button", name="Add to the queue").click()
            tab.get_by_role("link", name="Watch", exact=True).wait_for()
            tab.reload()
            save(tab, "serve-queue")
            tab.get_by_role("link", name="Watch", exact=True).click()
            tab.get_by_text(f"trial {WATCHED} of").first.wait_for()
            tab.reload()
            tab.wait_for_timeout(8000)
            save(tab, "serve-lab")
            tab.on("dialog", lambda dialog: dialog.accept())
            tab.get_by_role("button", name="Stop", exact=True).click()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(120)


def save(tab: Page, name: str) -> None:
    tab.screenshot(path=IMAGES / f"{name}.png")
    sys.stderr.write(f"written: docs/img/{name}.png\n")


if __name__ == "__main__":
    sys.exit(main())
