"""Measures the cost of watching a lab with two equal systems. One of them is watched by two open pages of `ironbench
serve`.

The pages are connections that read the same data as the page's script; a browser would render elsewhere. The server's
CPU time is measured for a lab of 6 blocks that is watched from the first trial to the last, including the processing of
each completed trial. In a second lab the pages are open only during the trials of one configuration, so that the lab
itself shows whether both configurations are equivalent. Takes about 13 minutes; `IRONBENCH_BENCH_PAIRS=6` measures 6
blocks.
"""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.figures import at_most, report, within
from bench.pairs import Ratio
from bench.series import number_from_environment
from bench.serve import TOKEN, Served, serving
from ironbench.host import processes
from ironbench.records.labs import LabDirectory
from ironbench.report.studies import study_of
from ironbench.trial.drive import live

OPEN_PAGES = 2
MOST_CORES, WITHIN = 0.01, 0.01
WATCHED = "work_mem=8MB"
LAB = """question = "Does it cost anything to be watched?"
[workload]
name = "select-only"
with = {{ scale = 2 }}
[system]
memory = "128MB"
[load]
clients = 2
duration = "10s"
warmup = "1s"
[vary.work_mem]
"4MB" = {{ system.set.work_mem = "4MB" }}
"8MB" = {{ system.set.work_mem = "8MB" }}
[measure]
repeats = {blocks}
margin = 0.01
quiet = "0s"
rates = "none"
"""


class Watchers:
    """Pages that are open during the trials of the watched configuration."""

    def __init__(self, server: Served, lab: str) -> None:
        self._server, self._lab = server, lab
        self._open: list[http.client.HTTPConnection] = []
        self._began = 0.0, 0.0
        self.cpu_s, self.wall_s, self.told_bytes = 0.0, 0.0, 0

    def watch(self, wanted: bool) -> None:
        """Opens or closes the pages."""
        if wanted and not self._open:
            self._began = processes.cpu_s(self._server.pid), time.monotonic()
            self._open = [self._opened() for _ in range(OPEN_PAGES)]
        elif not wanted and self._open:
            for line in self._open:
                if line.sock is not None:
                    line.sock.shutdown(2)
            self._open = []
            self.cpu_s += processes.cpu_s(self._server.pid) - self._began[0]
            self.wall_s += time.monotonic() - self._began[1]

    def _opened(self) -> http.client.HTTPConnection:
        line = http.client.HTTPConnection("127.0.0.1", self._server.port)
        line.request("GET", f"/lab/{self._lab}/events", headers={"authorization": f"Bearer {TOKEN}"})
        threading.Thread(target=self._read, args=(line.getresponse(),), daemon=True).start()
        return line

    def _read(self, answer: http.client.HTTPResponse) -> None:
        try:
            while part := answer.read1(65536):
                self.told_bytes += len(part)
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            return  # closed by this process


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ironbench-serve-cost-") as folder:
        made = Path(folder)
        with serving(made / "results", made) as server:
            whole = _watched(made, server, "whole", 6, lambda cell: bool(cell))
            cores = whole.cpu_s / whole.wall_s
            report(f"cores that the server takes with {OPEN_PAGES} pages open, whole lab", cores, at_most(MOST_CORES))
            parts = _watched(
                made,
                server,
                "parts",
                number_from_environment("IRONBENCH_BENCH_PAIRS", 20),
                lambda cell: cell == WATCHED,
            )
            report("  the same, if pages are opened again for each trial", parts.cpu_s / parts.wall_s)
        directory = LabDirectory(made / "results" / "labs" / "parts")
        (found,) = [one for one in study_of(directory).findings if one.metric == "throughput"]
        ratio = Ratio(found.ratio, found.low, found.high, found.blocks)
        report("throughput watched / not", ratio, within(1 - WITHIN, 1 + WITHIN))
        report("what the lab says of it", found.conclusion.value)


def _watched(made: Path, server: Served, name: str, blocks: int, wanted: Callable[[str], bool]) -> Watchers:
    """Runs a lab to its end; pages are open while `wanted` is true for the configuration that is being measured."""
    directory, file = made / "results" / "labs" / name, made / f"{name}.toml"
    file.write_text(LAB.format(blocks=blocks))
    words = [sys.executable, "-m", "ironbench.start", "lab", "run", str(file), "--results", str(directory)]
    watchers = Watchers(server, name)
    with (made / "log").open("ab") as log, subprocess.Popen(words, stdout=log, stderr=log) as lab:
        try:
            while lab.poll() is None:
                watchers.watch(wanted(_cell(directory)))
                time.sleep(0.1)
        finally:
            watchers.watch(False)
            if lab.poll() is None:
                lab.send_signal(signal.SIGINT)
    assert watchers.told_bytes, (made / "log").read_text()[-2000:]
    return watchers


def _cell(directory: Path) -> str:
    """Returns the configuration of the running trial; "" if there is none."""
    return next((state.cell for path in directory.glob(".*.live") if (state := live.read(path))), "")


if __name__ == "__main__":
    main()
