"""Converts studies to pages, and pages to text, HTML, Markdown, JSON, CSV and pictures."""
