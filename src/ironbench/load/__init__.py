"""Brings a workload's data into an engine: checked for space, parallel, measured, reused when already there."""

from ironbench.load.loaded import Loaded
from ironbench.load.prepare import data_ready

__all__ = ["Loaded", "data_ready"]
