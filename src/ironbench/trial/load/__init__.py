"""Brings a workload's data into an engine: checked for space, parallel, measured, reused when already there."""

from ironbench.trial.load.loaded import Loaded
from ironbench.trial.load.prepare import data_ready

__all__ = ["Loaded", "data_ready"]
