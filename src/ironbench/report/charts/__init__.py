"""Vega-Lite specifications as plain dicts: one specification for the interactive page and for PNG and SVG."""
