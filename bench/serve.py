"""Measures pages of `ironbench serve` with 100,000 records, and the page of a lab while the lab runs.

Records: a server starts, and each page is requested once, then repeatedly. The index of the records has already been
built; its construction is a separate result. Live: a lab with the engine `null` is watched in Chromium. The first paint
is reported by the browser (Paint Timing). The delay is measured from the end of a second of the trial until its number
is on the page, which includes writing the state and detecting changes.

Takes about 8 minutes, most of them for creating the records.
"""

from __future__ import annotations

import http.client
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from bench.archive import fill, installed
from bench.figures import at_most, report
from ironbench.records import Store
from ironbench.trial.drive import live

if TYPE_CHECKING:
    from playwright.sync_api import Page

RECORDS = 100_000
TOKEN = "a-token-for-a-bench-alone"
FIRST_S, AGAIN_S, MOST_MB = 1.0, 0.3, 300
REPEATS = 5
PAINT_S, DELAY_S = 1.0, 1.5
WATCHED_S = 20
LIVE = "/lab/watched"
PAGES = {
    "overview": "/",
    "archive": "/archive",
    "search by a word": "/archive?q=system+3",
    "search by load and day": f"/archive?{urlencode({'q': 'clients=8', 'since': '2026-06-01', 'until': '2026-12-31'})}",
    "search by status": "/archive?status=suspect",
    "labels": "/archive?view=labels",
    "comparison of two runs": "/compare?a=run0100&b=run0101",
    "record": "/record/r050000",
    "history of a label": f"/history?{urlencode({'of': 'system 1'})}",
}
JUDGED = (
    "overview",
    "archive",
    "search by a word",
    "search by load and day",
    "search by status",
    "comparison of two runs",
)
"""Pages with a target: overview, search, comparison."""
LAB = """question = "Does a second client get more done?"
[workload]
name = "select-only"
[system]
engine = "null"
[load]
duration = "30s"
warmup = "0s"
think_time = "1ms"
[vary]
clients = [1, 2]
[measure]
repeats = 6
quiet = "0s"
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    pid: int
    port: int

    def get(self, path: str) -> float:
        """Returns the seconds until the whole page was received."""
        started = time.perf_counter()
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        line.request("GET", path, headers={"authorization": f"Bearer {TOKEN}"})
        answer = line.getresponse()
        body = answer.read()
        took_s = time.perf_counter() - started
        line.close()
        assert answer.status == 200, (path, answer.status, body[-500:])
        return took_s

    def most_mb(self) -> float:
        """Returns the peak memory (VmHWM of proc_pid_status(5), in KiB)."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:"))


@contextmanager
def serving(results: Path, made: Path) -> Iterator[Served]:
    environment = installed(made) | {"IRONBENCH_TOKEN": TOKEN, "XDG_CACHE_HOME": str(made / "cache")}
    words = [sys.executable, "-m", "ironbench.start", "serve", "--listen", "127.0.0.1:0", "--results", str(results)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            port = urlsplit(server.stdout.readline()).port
            assert port is not None
            yield Served(server.pid, port)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(60)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ironbench-serve-") as folder:
        made = Path(folder)
        _archive(made)
        _live(made)


def _archive(made: Path) -> None:
    results = made / "results"
    fill(results, RECORDS)
    with serving(made / "nothing", made) as server:
        server.get("/")  # compiles the bytecode, so that later starts are not the first after an installation
    started = time.perf_counter()
    Store(results).listed()
    report(f"index of {RECORDS} records, made once, s", time.perf_counter() - started)
    with serving(results, made) as server:
        for name, path in PAGES.items():
            first = server.get(path)
            again = statistics.median(server.get(path) for _ in range(REPEATS))
            judged = name in JUDGED
            report(f"{name}, {RECORDS} records, first, s", first, at_most(FIRST_S) if judged else "")
            report(f"{name}, again, median of {REPEATS}, s", again, at_most(AGAIN_S) if judged else "")
        report("memory of the server at its most, MB", server.most_mb(), at_most(MOST_MB))
    shutil.rmtree(results)


def _live(made: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        report("a lab while it is measured", "there is no Chromium here")
        return
    from playwright.sync_api import sync_playwright

    results = made / "live"
    directory = results / "labs" / "watched"
    (made / "watched.toml").write_text(LAB)
    words = [sys.executable, "-m", "ironbench.start", "lab", "run", str(made / "watched.toml")]
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with (
        serving(results, made) as server,
        subprocess.Popen([*words, "--results", str(directory)], env=installed(made), **output) as lab,  # type: ignore[call-overload]
        sync_playwright() as playwright,
    ):
        try:
            _until_measured(directory)
            chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            page = chromium.new_page()
            page.goto(f"http://127.0.0.1:{server.port}/?token={TOKEN}")
            paints = [_paint(page, f"http://127.0.0.1:{server.port}{LIVE}") for _ in range(REPEATS)]
            report("first paint of a live lab, the slowest of 5, s", max(paints), at_most(PAINT_S))
            report(
                "  of this the server's page, median, s", statistics.median(server.get(LIVE) for _ in range(REPEATS))
            )
            delays = _delays(page, directory)
            report(f"delay of {len(delays)} updates, median, s", statistics.median(delays))
            report("delay of an update, the longest, s", max(delays), at_most(DELAY_S))
            chromium.close()
        finally:
            lab.send_signal(signal.SIGINT)
            lab.wait(60)


def _until_measured(directory: Path) -> live.LiveTrial:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        state = _state(directory)
        if state is not None and state.phase == "run":
            return state
        time.sleep(0.05)
    raise TimeoutError("the lab has not begun")


def _state(directory: Path) -> live.LiveTrial | None:
    return next((state for path in directory.glob(".*.live") if (state := live.read(path))), None)


def _paint(page: Page, address: str) -> float:
    """Returns the seconds from the start of the navigation (Paint Timing, first-contentful-paint)."""
    page.goto(address)
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    found: float = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return found / 1000


def _delays(page: Page, directory: Path) -> list[float]:
    """Returns, for each second of trials, the time until the page shows it."""
    page.evaluate(
        "() => { window.shown = []; const place = document.querySelector('[data-now=phase]');"
        " new MutationObserver(() => window.shown.push([Date.now() / 1000, place.textContent]))"
        ".observe(place, {childList: true, characterData: true, subtree: true}); }"
    )
    begun: dict[tuple[int, str], float] = {}
    until = time.monotonic() + WATCHED_S
    while time.monotonic() < until:
        if (state := _state(directory)) is not None and state.phase == "run":
            trial = (state.block, state.cell)
            begun[trial] = min(begun.get(trial, float("inf")), state.at - state.elapsed_s)
        time.sleep(0.05)
    shown: list[tuple[float, str]] = page.evaluate("window.shown")
    delays = []
    for at, words in shown:
        if words.startswith("measuring, "):
            second = int(words.removeprefix("measuring, ").split()[0])
            window = max((start for start in begun.values() if start <= at), default=None)
            if window is not None and second:
                delays.append(at - window - second)
    assert len(delays) > WATCHED_S // 2, shown
    return delays


if __name__ == "__main__":
    main()
