"""Would two systems at once, on CPUs of their own that they exchange, be more precise than turns? Would a calibration?

Two equal PostgreSQL servers are driven by pgbench, for the same time in both ways:

- turns: one at a time on all CPUs, a second each, in random order
- duet: both at once, each with its client on one half of the CPUs; the halves are exchanged each second

Both give one ratio in two seconds. Before each turn a fixed computation of about 20 ms is timed: it would be worth its
time if the ratios, less what it predicts from other rounds, varied less. About 13 minutes.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from scipy import special

from bench.figures import Between, said
from bench.peers import BIN
from bench.series import asked
from ironbench.process import processes
from tests.live.raw_server import RawServer

ROUNDS = 6
PAIRS = 15
"""Ratios of each way in a round."""
SLICE_S, START_S = 1.0, 0.1
SCALE = 5
WORKS = {"select-only": ("-S",), "tpcb-like, no wait for the log": ("-b", "tpcb-like")}


class Side:
    """A server and its pgbench, which logs when each transaction ended."""

    def __init__(self, server: RawServer, work: Sequence[str], folder: Path) -> None:
        assert server.process is not None
        self.server = server.process.pid
        command = [str(BIN / "pgbench"), "-n", "-h", server.host, "-p", str(server.port), "-U", "postgres", *work]
        command += ["-M", "prepared", "-c", "2", "-j", "1", "-T", "3600", "-s", str(SCALE), "-l"]
        self.prefix = folder / f"side-{server.port}"
        self.client = subprocess.Popen(
            [*command, f"--log-prefix={self.prefix}", "postgres"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def may_run(self, runs: bool) -> None:
        self.client.send_signal(signal.SIGCONT if runs else signal.SIGSTOP)

    def pin(self, cpus: set[int]) -> None:
        """The client's thread and all processes of the server."""
        for pid in (self.client.pid, self.server, *(one.pid for one in processes.below(self.server))):
            os.sched_setaffinity(pid, cpus)

    def ended(self) -> np.ndarray:
        """When each transaction ended, in seconds since 1970; ends the client."""
        self.may_run(True)
        self.client.kill()
        self.client.wait()
        (log,) = self.prefix.parent.glob(f"{self.prefix.name}.*")
        # The last line may be cut.
        words = [line.split() for line in log.read_text().splitlines()[:-1]]
        return np.array([int(line[4]) + int(line[5]) / 1e6 for line in words])


@contextmanager
def sides(servers: Sequence[RawServer], work: Sequence[str]) -> Iterator[list[Side]]:
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        kept = [Side(server, work, Path(folder)) for server in servers]
        try:
            time.sleep(2)  # they have connected and prepared their statements
            yield kept
        finally:
            for side in kept:
                side.client.send_signal(signal.SIGCONT)
                side.client.kill()
                side.client.wait()


def calibrated() -> float:
    """Logarithm of the seconds that a fixed computation takes."""
    began = time.perf_counter()
    digest = b"\0" * 64
    for _ in range(20_000):
        digest = hashlib.sha256(digest).digest()
    return float(np.log(time.perf_counter() - began))


def by_turns(kept: Sequence[Side], dice: random.Random) -> tuple[np.ndarray, np.ndarray]:
    """Log ratios, and the same of the computation before their turns."""
    for side in kept:
        side.may_run(False)
    spans: list[tuple[float, float]] = []
    took = np.zeros((PAIRS, 2))
    order = [dice.sample((0, 1), 2) for _ in range(PAIRS)]
    for rotation, places in enumerate(order):
        for place in places:
            took[rotation, place] = calibrated()
            kept[place].may_run(True)
            began = time.time()
            time.sleep(SLICE_S)
            spans.append((began + START_S, time.time()))
            kept[place].may_run(False)
    ended = [side.ended() for side in kept]
    rates = np.zeros((PAIRS, 2))
    for turn, span in enumerate(spans):
        rotation, place = turn // 2, order[turn // 2][turn % 2]
        rates[rotation, place] = rate(ended[place], span)
    return np.log(rates[:, 0] / rates[:, 1]), took[:, 0] - took[:, 1]


def at_once(kept: Sequence[Side]) -> np.ndarray:
    """Log ratios, each the mean of two slices with the CPUs exchanged between them."""
    cpus = sorted(os.sched_getaffinity(0))
    halves = set(cpus[::2]), set(cpus[1::2])
    spans: list[tuple[float, float]] = []
    for number in range(2 * PAIRS):
        for side, half in zip(kept, halves if number % 2 else halves[::-1], strict=True):
            side.pin(half)
        began = time.time()
        time.sleep(SLICE_S)
        spans.append((began + START_S, time.time()))
    for side in kept:
        side.pin(set(cpus))
    a, b = (np.array([rate(ended, span) for span in spans]) for ended in (side.ended() for side in kept))
    paired: np.ndarray = np.log(a / b).reshape(PAIRS, 2).mean(axis=1)
    return paired


def rate(ended: np.ndarray, span: tuple[float, float]) -> float:
    first, last = np.searchsorted(ended, span)
    return max(1, int(last - first)) / (span[1] - span[0])


def over(a: np.ndarray, b: np.ndarray) -> Between:
    """Variance of `a` over that of `b`, (rounds, ratios), about the mean of each round; its 90 % interval by F."""
    freedom = len(a) * (PAIRS - 1)
    ratio = float(np.var(a, axis=1, ddof=1).mean() / np.var(b, axis=1, ddof=1).mean())
    low, high = (ratio / float(special.fdtri(freedom, freedom, p)) for p in (0.95, 0.05))
    return Between(ratio, low, high)


def left(d: np.ndarray, k: np.ndarray) -> float:
    """Share of the variance that is left when each round is corrected by what the other rounds teach."""
    d, k = d - d.mean(axis=1, keepdims=True), k - k.mean(axis=1, keepdims=True)
    corrected = []
    for own in range(len(d)):
        others = np.arange(len(d)) != own
        slope = float((d[others] * k[others]).sum() / (k[others] ** 2).sum())
        corrected.append(d[own] - slope * k[own])
    return float((np.array(corrected) ** 2).sum() / (d**2).sum())


def main() -> None:
    rounds = asked("IRONBENCH_BENCH_PAIRS", ROUNDS)
    dice = random.Random(25)
    settings = "shared_buffers=256MB", "synchronous_commit=off"
    with ExitStack() as stack:
        servers = [stack.enter_context(RawServer(*settings)) for _ in range(2)]
        for server in servers:
            command = [str(BIN / "pgbench"), "-i", "-q", "-s", str(SCALE), "-h", server.host, "-p", str(server.port)]
            subprocess.run([*command, "-U", "postgres", "postgres"], check=True, capture_output=True)
        for name, work in WORKS.items():
            _compared(name, work, servers, rounds, dice)


def _compared(name: str, work: Sequence[str], servers: Sequence[RawServer], rounds: int, dice: random.Random) -> None:
    turns, took, duet = [], [], []
    for _ in range(rounds):
        for way in dice.sample(("turns", "duet"), 2):
            with sides(servers, work) as kept:
                if way == "turns":
                    ratios, before = by_turns(kept, dice)
                    turns.append(ratios)
                    took.append(before)
                else:
                    duet.append(at_once(kept))
    of_turns, of_duet = np.array(turns), np.array(duet)
    for way, found in (("turns", of_turns), ("duet", of_duet)):
        spread = float(np.sqrt(np.var(found, axis=1, ddof=1).mean()))
        said(f"{name}: spread of a ratio of two seconds, {way}", f"{spread:.4f}, mean {np.exp(found.mean()):.3f}")
    said(f"{name}: variance of duet over that of turns", over(of_duet, of_turns), "", str(over(of_duet, of_turns)))
    said(f"{name}: variance of turns that calibration leaves", f"{left(of_turns, np.array(took)):.2f}")
