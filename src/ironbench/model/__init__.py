"""Frozen, typed values that rooms hand to each other. Pure: nothing here reads or writes anything."""
