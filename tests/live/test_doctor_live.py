"""The doctor on the machine that runs the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.host.capability_tests import LocalCapabilityTests
from ironbench.host.doctor import examine, probes
from ironbench.host.host_view import OwnProcesses, watch_host
from ironbench.host.tree import Tree


@pytest.mark.live
def test_this_machine_is_examined_and_left_as_it_was(tmp_path: Path) -> None:
    found = examine(watch_host(Tree(), (tmp_path,), LocalCapabilityTests(), OwnProcesses("release"), watch_s=0.2))
    assert {one.name for one in found} == {one.name for one in probes()}
    visible = {one.name for one in found if one.visible}
    assert {"steal", "other programs", "free memory", "wake-up", "file system", "free space", "io_uring"} <= visible
    assert list(tmp_path.iterdir()) == []
