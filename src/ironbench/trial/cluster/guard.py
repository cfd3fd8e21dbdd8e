"""The parent of the process that uses Ray: it ends all processes that Ray leaves behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import NoReturn

from ironbench.host import processes


def wait(owner: int, driver: int) -> NoReturn:
    """Waits until one of the two processes ends, ends all child processes, and exits with the driver's status."""
    ended = os.pidfd_open(driver)
    either = select.poll()
    either.register(owner, select.POLLIN)
    either.register(ended, select.POLLIN)
    either.poll()
    status = os.waitpid(driver, os.WNOHANG)[1]
    _end_all()
    os._exit(abs(os.waitstatus_to_exitcode(status)))


def _end_all() -> None:
    """Ends every process below this one."""
    deadline, none = time.monotonic() + 5.0, 0
    # When a process ends, its children become children of this process; a scan may miss them in that moment.
    while none < 3 and time.monotonic() < deadline:
        left = processes.below(os.getpid())
        for one in left:
            one.signal(signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        none = 0 if left else none + 1
        time.sleep(0.02)
