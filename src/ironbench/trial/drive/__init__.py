"""Runs a compiled plan in the core and returns the results."""
