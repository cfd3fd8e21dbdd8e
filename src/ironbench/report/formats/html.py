"""One self-contained page: everything inside, works without a network, prints, reads on a phone."""

from ironbench.report.page import render

__all__ = ["render"]
