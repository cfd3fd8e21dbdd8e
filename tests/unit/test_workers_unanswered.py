"""A trial of workers whose observers connect to a frozen server, which accepts connections and never answers."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import pytest

from ironbench.errors import InputError
from ironbench.trial.cluster import control

OBSERVERS = [{"name": "activity", "kind": "sql", "target": "SELECT 1", "period_s": 1.0}]


def test_an_interrupt_is_heard_while_observers_connect() -> None:
    """Just connecting takes 10 s."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        where = {"host": "127.0.0.1", "port": listening.getsockname()[1], "user": "u", "database": "d"}
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        began_s = time.monotonic()
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            control.sampler(OBSERVERS, where | {"sslmode": "disable"})
        assert time.monotonic() - began_s < 4
        timer.join()


def test_what_is_wrong_with_an_observer_is_raised() -> None:
    with pytest.raises(InputError):
        control.sampler([{**OBSERVERS[0], "kind": "nonsense"}], None)
