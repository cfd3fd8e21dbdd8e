"""Charts as Vega-Lite specifications in plain dicts. Interactive pages, PNG and SVG use the same specifications."""
