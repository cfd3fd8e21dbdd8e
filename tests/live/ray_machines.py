"""Two machines of a Ray cluster, as network namespaces with separate Ray nodes, and a third one with a server."""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

RAY = Path(sys.executable).with_name("ray")
PORT = 6379
PATIENCE_S = 60.0
_NUMBERS = itertools.count()
_AHEAD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long ahead(void) { const char *text = getenv("AHEAD_S"); return text ? atol(text) : 0; }
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += ahead();
    return status;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec at;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""
"""Sets the time of day of a process forward. With faketime(1), Python's sleep would fail."""
_MTU = "9000"
"""Packets are large, because packets of a slow link pass through a process."""


def lacking() -> str:
    """Returns the reason why machines cannot be created here; empty if they can be created."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and ip(8)"
    if not RAY.exists():
        return "Ray is not installed"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    tried = subprocess.run(["ip", "netns", "add", f"ibt{os.getpid()}"], capture_output=True, check=False)
    if tried.returncode:
        return "network namespaces are not permitted here"
    subprocess.run(["ip", "netns", "del", f"ibt{os.getpid()}"], check=True)
    return ""


class RayMachines:
    """Machine 1 has the head node and runs commands; this process is on the same network, at `here`."""

    def __init__(self, count: int = 2, ahead_s: int = 0) -> None:
        """`ahead_s`: how far the clock of machine 2 is ahead for Ray's processes there. Needs a C compiler."""
        self._ahead_s = ahead_s
        self._links: list[subprocess.Popen[str]] = []
        one = next(_NUMBERS)
        self._name = f"{os.getpid()}{'abcdefgh'[one % 8]}"
        self._bridge, self._names = f"ibr{self._name}", [f"ib{self._name}-{number + 1}" for number in range(count)]
        self._network = f"10.77.{(os.getpid() + 101 * one) % 200 + 20}"
        self.here = f"{self._network}.254"
        self.address = f"{self._network}.1:{PORT}"
        self._folder = Path(tempfile.mkdtemp(prefix="ibr", dir="/tmp"))
        self.nodes: list[subprocess.Popen[bytes]] = []
        self.token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        proxies = {name for name in os.environ if name.lower().endswith("_proxy")}
        self.environment = {name: value for name, value in os.environ.items() if name not in proxies} | self.token

    def __enter__(self) -> RayMachines:
        try:
            self._connect()
            for number in range(len(self._names)):
                self._begin(number)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for node in self.nodes:
            with_children = [str(node.pid), *_below(node.pid)]
            for pid in with_children:
                subprocess.run(["kill", "-KILL", pid], capture_output=True, check=False)
            node.wait()
        for link in self._links:
            link.kill()
            link.wait()
        for name in self._names:
            _ip("netns", "del", name, check=False)
        _ip("link", "del", self._bridge, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def within(self, number: int = 0) -> list[str]:
        """Returns the prefix that runs a command on that machine."""
        return ["ip", "netns", "exec", self._names[number]]

    def slow(self, ms: float, loss: float = 0.0) -> None:
        """Sets delay and loss rate of packets to and from machine 2."""
        stdin = self._links[0].stdin
        assert stdin is not None
        stdin.write(f"{ms} {loss}\n")
        stdin.flush()

    def lose(self, number: int) -> None:
        """Kills every process of that machine at once."""
        for pid in (str(self.nodes[number].pid), *_below(self.nodes[number].pid)):
            subprocess.run(["kill", "-KILL", pid], capture_output=True, check=False)
        self.nodes[number].wait()

    def worker_processes(self, number: int) -> list[str]:
        """Lists the worker processes that Ray still runs on that machine."""
        pids = _below(self.nodes[number].pid)
        return [pid for pid in pids if b"ray::Worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def _connect(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self.here}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for number, name in enumerate(self._names):
            ours, theirs = f"v{self._name}{number}", "eth0"
            _ip("netns", "add", name)
            if number == 0:
                _ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", name)
            else:
                self._links.append(_link(ours, name, theirs))
            _ip("link", "set", ours, "mtu", _MTU, "master", self._bridge, "up")
            for words in (
                ("addr", "add", f"{self._network}.{number + 1}/24", "dev", theirs),
                ("link", "set", theirs, "mtu", _MTU, "up"),
                ("link", "set", "lo", "up"),
            ):
                _ip("-n", name, *words)

    def _begin(self, number: int) -> None:
        own = f"{self._network}.{number + 1}"
        where = (
            ["--head", f"--port={PORT}", "--include-dashboard=false"] if number == 0 else [f"--address={self.address}"]
        )
        folder = self._folder / str(number)
        temporary = [f"--temp-dir={folder}"]
        sizes = ["--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats"]
        with (self._folder / f"{number}.log").open("wb") as log:
            node = subprocess.Popen(
                [
                    *self.within(number),
                    str(RAY),
                    "start",
                    "--block",
                    f"--node-ip-address={own}",
                    *where,
                    *sizes,
                    *temporary,
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self.environment | (self._ahead() if number and self._ahead_s else {}),
                start_new_session=True,
            )
        self.nodes.append(node)
        self._wait(number, node)

    def _ahead(self) -> dict[str, str]:
        library = self._folder / "ahead.so"
        words = ["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(library), "-ldl"]
        subprocess.run(words, input=_AHEAD, text=True, check=True)
        return {"LD_PRELOAD": str(library), "AHEAD_S": str(self._ahead_s)}

    def _wait(self, number: int, node: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        said = self._folder / f"{number}.log"
        while b"Ray runtime started" not in said.read_bytes():
            assert node.poll() is None and time.monotonic() < deadline, said.read_text()
            time.sleep(0.1)


def _link(ours: str, namespace: str, theirs: str) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("slow_link.py")
    words = [sys.executable, str(script), ours, namespace, theirs]
    link = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert link.stdout is not None
    assert link.stdout.readline() == "ready\n"
    return link


def _below(pid: int) -> list[str]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    return [*found, *(one for child in found for one in _below(int(child)))]


def _ip(*words: str, check: bool = True) -> int:
    return subprocess.run(["ip", *words], check=check, capture_output=True).returncode
