"""Markdown: headline, tables, cautions; for a ticket or a repository."""

from ironbench.report.lab_markdown import render as render_lab
from ironbench.report.markdown import render

__all__ = ["render", "render_lab"]
