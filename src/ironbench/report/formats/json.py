"""Every computed value of the studies in base units, for programs."""

from ironbench.report.json import render

__all__ = ["render"]
