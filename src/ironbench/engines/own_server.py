"""Starts a server on a locked data directory, and restarts it on the same directory."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from ironbench.engines.server import RunningServer
from ironbench.engines.server_session import OwnedServer
from ironbench.host import data_dirs

_S = TypeVar("_S")


class OwnServer(ABC, Generic[_S]):
    """An engine's functions for starting its server. `_S`: type of the session."""

    __slots__ = ()

    @property
    @abstractmethod
    def place(self) -> Path:
        """The data directory, which is locked while it is in use."""

    @abstractmethod
    def running(self, lock: int) -> RunningServer:
        """Starts the server with the directories of the layout. Raises InputError and FailureError."""

    @abstractmethod
    def directories(self) -> dict[str, str]:
        """Returns the directory of each role."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """Returns facts about the installation and the identity, for the record."""

    @abstractmethod
    def connected(self, own: OwnedServer) -> _S:
        """Connects a session to the running server."""

    def session(self) -> _S:
        """Claims the data directory, starts a server and connects to it. After a failure, no process keeps running."""
        own = self._own()
        try:
            return self.connected(own)
        except BaseException:
            try:
                own.running.stop()
            finally:
                own.release()
            raise

    def _own(self) -> OwnedServer:
        lock = data_dirs.lock(data_dirs.claim(str(self.place), "data"))
        try:
            running = self.running(lock)
            try:
                start, release = partial(self.running, lock), partial(os.close, lock)
                return OwnedServer(running, start, self.directories(), self.facts(), release, self._own)
            except BaseException:
                running.stop()
                raise
        except BaseException:
            os.close(lock)
            raise
