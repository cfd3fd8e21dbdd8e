"""Plain text for a terminal: tables and small charts."""

from ironbench.report.lab_text import render as render_lab
from ironbench.report.text import render

__all__ = ["render", "render_lab"]
