"""Markdown: headline, tables, cautions; for a ticket or a repository."""

from ironbench.report.markdown import render

__all__ = ["render"]
