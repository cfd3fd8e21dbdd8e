"""A lab by slices: the systems of a block stand side by side and are driven in turns, or two of them as a duet."""
