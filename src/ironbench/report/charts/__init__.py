"""Vega-Lite specifications as plain dicts: one specification serves the interactive page, PNG and SVG."""
