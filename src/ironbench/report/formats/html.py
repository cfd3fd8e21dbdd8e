"""One self-contained page: everything inside, works without a network, prints, reads on a phone."""

from ironbench.report.lab_page import render as render_lab
from ironbench.report.page import render

__all__ = ["render", "render_lab"]
