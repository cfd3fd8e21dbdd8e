"""`make pictures LAB=DIR`: the pictures of docs/img that come from a lab of labs/demo.toml, such as `make demo` leaves.

The pictures of measured results are written by `make findings`. The pictures of `ironbench serve` and of a history need
a queue and many nights: take them by hand.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "img"
IRONBENCH = Path(sys.executable).parent / "ironbench"
CHROMIUM = "/usr/bin/chromium"
BASELINE, IDEAL = "clients=32 log=on disk", "clients=32 log=in memory"
PICTURES: dict[str, tuple[list[str], int]] = {
    "demo": (["report", "."], 1500),
    "lab": (["report", "."], 3200),
    "explain": (["explain", BASELINE, IDEAL, "--results", "."], 1340),
}
"""Name of the picture → the command whose HTML page it shows, run in the lab's folder, and its height in pixels."""


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
            tab.screenshot(path=IMAGES / f"{name}.png")
            sys.stderr.write(f"written: docs/img/{name}.png\n")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
