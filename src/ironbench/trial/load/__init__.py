"""Loads a workload's data into an engine: checks disk space, loads in parallel, measures times, and reuses existing
data."""

from ironbench.trial.load.loaded import Loaded
from ironbench.trial.load.prepare import data_ready

__all__ = ["Loaded", "data_ready"]
