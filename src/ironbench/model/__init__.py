"""Frozen, typed values that the stages hand to each other. Pure: nothing here reads or writes anything."""
