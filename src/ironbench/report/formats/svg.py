"""The main charts in one vector picture, without a browser."""

from ironbench.report.image import svg as render

__all__ = ["render"]
