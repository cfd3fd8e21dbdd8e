"""Frozen, typed values that packages exchange. Pure: nothing here reads or writes files."""
