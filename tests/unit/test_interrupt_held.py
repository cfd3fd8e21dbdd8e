"""A Ctrl-C between starting a process and knowing that it runs is delayed until it is known."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from ironbench.host.processes import interrupt_held


def test_an_interrupt_takes_effect_at_the_end_and_only_then() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interrupt_held():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("still here")
    assert done == ["still here"]


def test_without_an_interrupt_nothing_changes() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupt_held():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_inside_comes_out_and_the_handler_is_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="inside"), interrupt_held():
        raise ValueError("inside")
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_are_never_interrupted_and_hold_nothing() -> None:
    found = []

    def held() -> None:
        with interrupt_held():
            found.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=held)
    thread.start()
    thread.join()
    assert found == [before]
