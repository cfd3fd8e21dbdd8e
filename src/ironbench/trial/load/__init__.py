"""Loads a workload's data into an engine: with a check of disk space, in parallel, timed, and reused if it exists."""

from ironbench.trial.load.loaded import Loaded
from ironbench.trial.load.prepare import data_ready

__all__ = ["Loaded", "data_ready"]
