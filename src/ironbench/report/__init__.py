"""Turns studies into pages, and pages into text, HTML, Markdown, JSON, CSV and pictures."""
