"""A load can be stopped whatever the server does: this one accepts connections and never answers."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any

import pytest

from ironbench import _core
from ironbench.errors import FailureError

STOPPED_AFTER_S = 0.3
POSTGRES: dict[str, Any] = {"kind": "postgres", "protocol": "prepared", "io": "auto"}
MYSQL: dict[str, Any] = {"kind": "mysql", "protocol": "prepared", "io": "auto"}


@pytest.mark.parametrize("engine", [POSTGRES, MYSQL], ids=["postgresql", "mysql"])
def test_a_load_into_a_server_that_does_not_answer_ends_when_it_is_stopped(engine: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = {"host": "127.0.0.1", "port": silent.getsockname()[1], "user": "u", "database": "d"}
        target = engine | {"connection": connection}
        plan = {"engine": target, "generator": {"rows": "pgbench", "scale": 1}, "connections": 2}
        progress = _core.LoadProgress()
        timer = threading.Timer(STOPPED_AFTER_S, progress.stop)
        timer.start()
        began = time.monotonic()
        with pytest.raises(FailureError, match="stopped before all rows"):
            _core.load_rows(json.dumps(plan).encode(), progress)
        # Just connecting would take 10 s.
        assert time.monotonic() - began < 4
