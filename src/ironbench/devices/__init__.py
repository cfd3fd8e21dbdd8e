"""Emulated devices: modelled storage that real file systems and real databases run on.

Only what the process of a device needs is loaded with this package: it has the standard library and nothing else.
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
    """The devices of the plan's system, for as long as the block lasts.

    They answer at once until `set_model_timing(on=True)`. `name`: what traces are called, if not after the series.
    InputError, FailureError.
    """
    from ironbench.devices import mounting

    traces = None
    if plan.traces:
        Path(plan.traces).mkdir(parents=True, exist_ok=True)
        traces = Path(plan.traces, name or plan.series)
    layout, seed = plan.system.layout, plan.trials[0].cell.load.seed
    with mounting.mounted(layout.devices, seed, traces, cuttable=bool(plan.crash), data=layout.data) as running:
        yield running
