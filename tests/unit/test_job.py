"""Long calls in child processes: how they end."""

from __future__ import annotations

import pytest

from ironbench.errors import EngineDiedError
from ironbench.host import job


def test_a_child_that_does_not_stop_is_killed_and_the_kernel_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "STOP_S", 0.2)
    # Stops before running our program, which would otherwise write its result before a busy machine stops it.
    stopped = job.ChildPlacement(within=("sh", "-c", 'kill -STOP $$; exec "$@"', "sh"))
    with pytest.raises(EngineDiedError) as died:
        job.run(job.CoreCall("write", b"[]", "the work"), stopped, stopping=lambda: True, keep=True)
    assert died.value.cause == "was killed because it did not stop within 0.2 s"
    assert "memory" not in died.value.hint
