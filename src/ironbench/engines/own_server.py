"""A server of ours on its locked data directory: started, and started again from what is there."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from ironbench.engines.server import Running
from ironbench.engines.server_session import Own
from ironbench.host import place

_S = TypeVar("_S")


class OwnServer(ABC, Generic[_S]):
    """How one engine starts a server of ours, as often as it must. `_S`: its session."""

    __slots__ = ()

    @property
    @abstractmethod
    def place(self) -> Path:
        """The data directory; whoever uses it holds its lock."""

    @abstractmethod
    def running(self, lock: int) -> Running:
        """A server with everything where the layout wants it. InputError, FailureError."""

    @abstractmethod
    def directories(self) -> dict[str, str]:
        """By role."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """Installation and identity, for the record."""

    @abstractmethod
    def connected(self, own: Own) -> _S:
        """A session with the server that runs."""

    def session(self) -> _S:
        """Takes the data directory, starts a server and connects; nothing stays where that fails."""
        own = self._own()
        try:
            return self.connected(own)
        except BaseException:
            try:
                own.running.stop()
            finally:
                own.release()
            raise

    def _own(self) -> Own:
        lock = place.lock(place.claim(str(self.place), "data"))
        try:
            running = self.running(lock)
            try:
                start, release = partial(self.running, lock), partial(os.close, lock)
                return Own(running, start, self.directories(), self.facts(), release, self._own)
            except BaseException:
                running.stop()
                raise
        except BaseException:
            os.close(lock)
            raise
