"""The engine `null`. It answers without doing any work, so a trial with it measures ironbench itself."""
