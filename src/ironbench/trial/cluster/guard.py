"""The process above the one that speaks with Ray: it ends whatever that one leaves behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import NoReturn

from ironbench.host import processes


def wait(owner: int, driver: int) -> NoReturn:
    """Waits for the end of either; the exit status is the driver's."""
    ended = os.pidfd_open(driver)
    select.select([owner, ended], [], [])
    status = os.waitpid(driver, os.WNOHANG)[1]
    _end_all()
    os._exit(abs(os.waitstatus_to_exitcode(status)))


def _end_all() -> None:
    """Ends every process below this one."""
    deadline, none = time.monotonic() + 5.0, 0
    # While one ends, its children go over to this process, and a look may miss them on their way.
    while none < 3 and time.monotonic() < deadline:
        left = processes.below(os.getpid())
        for one in left:
            one.signal(signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        none = 0 if left else none + 1
        time.sleep(0.02)
