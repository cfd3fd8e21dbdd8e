"""The main charts in one vector picture, without a browser."""

from ironbench.report.formats.png import svg as render
from ironbench.report.formats.png import svg_page as render_page

__all__ = ["render", "render_page"]
