"""Every computed value of the studies in base units, for programs."""

from ironbench.report.json import render
from ironbench.report.lab_json import render as render_lab

__all__ = ["render", "render_lab"]
