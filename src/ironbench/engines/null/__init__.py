"""The null engine: answers at once, and so measures ironbench itself."""
