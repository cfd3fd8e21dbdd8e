"""The main charts in one picture, without a browser."""

from ironbench.report.image import png as render

__all__ = ["render"]
