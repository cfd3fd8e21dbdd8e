"""Studies written down: sections of what was computed, and formats of these."""
