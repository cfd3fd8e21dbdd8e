"""A lab by slices: the systems of a block stand side by side and are driven in turns."""
