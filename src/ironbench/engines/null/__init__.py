"""The null engine: answers without doing any work, and so measures ironbench itself."""
