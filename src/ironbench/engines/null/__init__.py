"""The engine `null`, which answers without doing any work and therefore measures ironbench itself."""
