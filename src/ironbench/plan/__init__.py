"""Turns user input into a validated plan. Pure: this package starts and writes nothing."""
