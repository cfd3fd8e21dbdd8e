"""Hands a compiled plan to the core and takes back what was measured."""
