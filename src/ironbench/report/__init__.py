"""Studies written down: formats only, nothing is computed here."""
