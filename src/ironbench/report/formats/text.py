"""Plain text for a terminal: tables and small charts."""

from ironbench.report.text import render

__all__ = ["render"]
