"""Converts user input to a validated plan. Pure: this package starts and writes nothing."""
