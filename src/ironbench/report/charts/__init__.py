"""Charts as Vega-Lite specifications in plain dicts. The same specification is used for the interactive page, PNG and
SVG."""
