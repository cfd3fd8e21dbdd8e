"""Emulated devices: modelled storage on which real file systems and real databases run.

The child process of a device imports this package. Only the standard library is available to it, so third-party
packages must not be imported at module level.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ironbench.devices.mounting import Devices
    from ironbench.model.plan import Plan


@contextmanager
def mounted(plan: Plan, name: str = "") -> Iterator[Devices]:
    """Mounts the devices of the plan's system, and unmounts them at the end of the `with` block. The devices answer
    without delay until `set_model_timing(on=True)`.

    `name`: start of the names of the trace files. The default is the name of the series. Raises InputError and
    FailureError.
    """
    from ironbench.devices import mounting

    traces = None
    if plan.traces:
        Path(plan.traces).mkdir(parents=True, exist_ok=True)
        traces = Path(plan.traces, name or plan.series)
    layout, seed = plan.system.layout, plan.trials[0].cell.load.seed
    with mounting.mounted(layout.devices, seed, traces, cuttable=bool(plan.crash), data=layout.data) as running:
        yield running
