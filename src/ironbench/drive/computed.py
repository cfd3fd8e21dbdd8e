"""What the work of a trial computes: CPU of the engine's processes and of ours, which drive it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

from ironbench.model.driven import Computed, Driven
from ironbench.model.session import Session
from ironbench.process import processes


def over(session: Session, work: Callable[[], Driven]) -> Driven:
    """What came of the work, and what was computed from its begin to its end."""
    began_s, before_s = time.time(), _cpu_s(session)
    result = work()
    computed = Computed(began_s, time.time(), _cpu_s(session) - before_s)
    # A server that has died is gone, and its CPU with it.
    return replace(result, computed=computed) if computed.cpu_s > 0 else result


def _cpu_s(session: Session) -> float:
    """So far. Processes that have ended are in what their parents waited for."""
    return sum(processes.cpu_s(pid) for pid in (os.getpid(), *session.processes()))
