"""The main charts in one picture, without a browser."""

from ironbench.report.image import lab_png as render_lab
from ironbench.report.image import png as render

__all__ = ["render", "render_lab"]
