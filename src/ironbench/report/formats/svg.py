"""The main charts in one vector picture, without a browser."""

from ironbench.report.formats.png import svg as render

__all__ = ["render"]
