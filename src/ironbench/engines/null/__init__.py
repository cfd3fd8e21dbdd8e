"""The engine `null`, which answers without doing any work, so a trial with it measures ironbench itself."""
